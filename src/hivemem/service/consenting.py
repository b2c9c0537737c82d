"""A sign-in on its way through the browser of a person: from the request of a program to the code for it."""

from __future__ import annotations

import hmac
import re
from dataclasses import replace
from typing import Protocol

from hivemem.domain.access import hash_api_key as hash_of
from hivemem.domain.access import principal_at
from hivemem.domain.oauth import (
    CODE_LIFETIME,
    CODE_PREFIX,
    OWN_PAGES,
    SIGN_IN_LIFETIME,
    AuthorizationCode,
    AuthorizationRequest,
    ClientAuthentication,
    Grant,
    Identity,
    OAuthClient,
    SignIn,
    granted_scopes,
    new_secret,
)
from hivemem.errors import Forbidden, InvalidInput, NotFound
from hivemem.ports.clock import Clock
from hivemem.ports.store import AccountStore, OAuthStore
from hivemem.service.audit import AuditLog
from hivemem.service.oauth import OAuth
from hivemem.service.passwords import mark_of

_CHALLENGE = re.compile(r"[A-Za-z0-9_-]{43}")


class ConsentingStore(AccountStore, OAuthStore, Protocol):
    """What of a store this use case needs."""


class Consenting:
    """Lets people sign in, and say whether a program gets what it asks for.

    What names a sign-in is a secret in the address of its pages. What decides is a second one, which only the
    page knows that was shown to whoever signed in.
    """

    def __init__(self, *, store: ConsentingStore, oauth: OAuth, audit: AuditLog, clock: Clock) -> None:
        self._store = store
        self._oauth = oauth
        self._audit = audit
        self._clock = clock

    async def begin(self, request: AuthorizationRequest) -> str:
        """Start a sign-in, and return the secret that names it for the next ten minutes.

        Raises:
            InvalidInput: The PKCE challenge is not a SHA-256 in base64url.
        """
        if not _CHALLENGE.fullmatch(request.code_challenge):
            raise InvalidInput(
                "code_challenge must be 43 characters of base64url, the SHA-256 of the verifier."
            )
        await self._oauth.tidy()
        return await self._begun(request)

    async def begin_joining(self, invitation_hash: str) -> str:
        """Start a sign-in whose end is not a grant but the use of an invitation; see `begin`.

        It is one of a program that is none: it has no place to return to, so that nobody can ask in its name.
        """
        now = self._clock.now()
        own = OAuthClient(
            client_id=OWN_PAGES,
            name="",
            redirect_uris=(),
            grant_types=(),
            scopes=(),
            authentication=ClientAuthentication.NONE,
            secret_hash=None,
            created_at=now,
        )
        await self._oauth.keep_client(own)
        return await self._begun(
            AuthorizationRequest(
                client_id=OWN_PAGES,
                redirect_uri="",
                redirect_uri_given=False,
                code_challenge="",
                state=invitation_hash,
                scopes=(),
                resource="",
            )
        )

    async def send_out(self, secret: str, external: str) -> None:
        """Note what the answer of an identity provider must match.

        Raises:
            NotFound: The sign-in has ended.
        """
        if not await self._store.send_out(hash_of(secret), external):
            raise NotFound("this sign-in has ended; start again in your agent.", code="sign_in_ended")

    async def sign_in(self, secret: str) -> tuple[SignIn, OAuthClient]:
        """A sign-in under way, and the program that asks.

        Raises:
            NotFound: It has ended, or the program was revoked meanwhile.
        """
        sign_in = await self._store.sign_in(hash_of(secret))
        client = None if sign_in is None else await self._oauth.client(sign_in.request.client_id)
        if sign_in is None or client is None or sign_in.expires_at <= self._clock.now():
            raise NotFound(
                "this sign-in has ended, or took longer than ten minutes; start again in your agent.",
                code="sign_in_ended",
            )
        return sign_in, client

    async def identify(self, secret: str, identity: Identity) -> str:
        """Note who signed in, and return the secret that only the page asking for consent may know.

        Raises:
            NotFound: The sign-in has ended.
        """
        sign_in, _ = await self.sign_in(secret)
        consent = new_secret()
        if not await self._store.identify(sign_in.hash, identity, hash_of(consent)):
            raise NotFound("this sign-in has ended; start again in your agent.", code="sign_in_ended")
        return consent

    async def allow(
        self, secret: str, consent: str, graph_id: str | None = None
    ) -> tuple[AuthorizationRequest, str]:
        """Grant what a program asked for, as far as the signed-in person may; the code for the program.

        Args:
            secret: Names the sign-in.
            consent: What only the page knew that asked.
            graph_id: The memory that the person chose; None for the one that `identity` names.

        Raises:
            NotFound: The sign-in has ended, nobody with this consent secret has signed in, or they have
                another password since.
            Forbidden: The memory is not one that they can let others into.
        """
        sign_in, identity = await self._consented(secret, consent)
        if sign_in.request.client_id == OWN_PAGES:
            raise NotFound("there is nothing to allow here; open the invitation again.", code="sign_in_ended")
        identity = await self._chosen(identity, graph_id)
        now, request, code = self._clock.now(), sign_in.request, new_secret(CODE_PREFIX)
        grant = Grant(
            grant_id=self._clock.new_id("grant"),
            client_id=request.client_id,
            user_id=identity.user_id,
            graph_id=identity.graph_id,
            key_id=identity.key_id,
            scopes=granted_scopes(request.scopes, identity),
            resource=request.resource,
            created_at=now,
        )
        kept = AuthorizationCode(
            hash=hash_of(code),
            grant_id=grant.grant_id,
            redirect_uri=request.redirect_uri,
            redirect_uri_given=request.redirect_uri_given,
            code_challenge=request.code_challenge,
            expires_at=now + CODE_LIFETIME,
        )
        if not await self._store.allow_sign_in(sign_in.hash, grant, kept):
            raise NotFound(
                "this sign-in was answered already; start again in your agent.", code="sign_in_ended"
            )
        if not await self._has_password_of(identity):
            await self._store.revoke_grant(grant.grant_id, now)
            raise NotFound(
                "the password was changed after this sign-in; start again in your agent.",
                code="sign_in_ended",
            )
        await self._audit.record(
            "grant.create",
            user_id=grant.user_id,
            credential="" if grant.key_id is None else f"key:{grant.key_id}",
            graph_id=grant.graph_id,
            target=grant.grant_id,
            detail={"client_id": grant.client_id, "scopes": list(grant.scopes)},
        )
        return request, code

    async def deny(self, secret: str, consent: str) -> AuthorizationRequest:
        """End a sign-in without a grant; the errors are those of `allow`."""
        sign_in, _ = await self._consented(secret, consent)
        await self._store.end_sign_in(sign_in.hash)
        return sign_in.request

    async def joined(self, secret: str, consent: str) -> tuple[str, Identity]:
        """End a sign-in of `begin_joining`: the hash of the invitation, and who uses it.

        Raises:
            NotFound: It has ended, or nobody with this consent secret has signed in.
        """
        sign_in, identity = await self._consented(secret, consent)
        request = sign_in.request
        own = request.client_id == OWN_PAGES
        if not own or request.state is None or not await self._store.end_sign_in(sign_in.hash):
            raise NotFound("this page was answered already; open the invitation again.", code="sign_in_ended")
        return request.state, identity

    async def _begun(self, request: AuthorizationRequest) -> str:
        secret = new_secret()
        expires_at = self._clock.now() + SIGN_IN_LIFETIME
        await self._store.add_sign_in(SignIn(hash=hash_of(secret), request=request, expires_at=expires_at))
        return secret

    async def _consented(self, secret: str, consent: str) -> tuple[SignIn, Identity]:
        sign_in, _ = await self.sign_in(secret)
        expected = sign_in.consent_hash or ""
        if sign_in.identity is None or not hmac.compare_digest(expected, hash_of(consent)):
            raise NotFound(
                "this page is out of date: somebody signed in again; start again in your agent.",
                code="sign_in_ended",
            )
        return sign_in, sign_in.identity

    async def _has_password_of(self, identity: Identity) -> bool:
        """Whether the person still has the password that they had when they signed in.

        A page that asks for consent may stand open in the browser of whom a new password is to keep out.
        To be asked after the grant is kept: a new password ends the grants that it finds, so that either
        it finds this one, or is seen here.
        """
        if identity.key_id is not None:
            return True
        user = await self._store.user(identity.user_id)
        return user is not None and mark_of(user) == identity.password_mark

    async def _chosen(self, identity: Identity, graph_id: str | None) -> Identity:
        """The identity at the memory that was chosen; what a form says of it is believed of nobody."""
        if graph_id is None or graph_id == identity.graph_id:
            return identity
        account = None
        if identity.key_id is None:
            account = await self._store.account(identity.user_id, graph_id)
        if account is None or principal_at(account, scope=identity.scope) is None:
            raise Forbidden("this memory is not yours to give access to; start again in your agent.")
        return replace(identity, graph_id=graph_id)
