"""Programs that sign in with OAuth 2.1: their registration, and the tokens of what was granted to them.

A program sends a browser with a request; a person signs in and allows it (`hivemem.service.consenting`); the
program exchanges the code that the browser brings back for an access token and a refresh token. Both sides of
HTTP are the surface's work.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from hivemem.domain.access import hash_api_key as hash_of
from hivemem.domain.oauth import (
    ACCESS_LIFETIME,
    ACCESS_TOKEN_PREFIX,
    READ,
    REFRESH_GRACE,
    REFRESH_LIFETIME,
    REFRESH_TOKEN_PREFIX,
    UNUSED_CLIENT_LIFETIME,
    AuthorizationCode,
    ClientAuthentication,
    Grant,
    OAuthClient,
    Token,
    TokenKind,
    TokenState,
    new_secret,
)
from hivemem.domain.redirect_uris import MAX_LENGTH, redirect_uri_problem, same_redirect_uri
from hivemem.domain.text import JsonObject
from hivemem.errors import InvalidInput, NotFound
from hivemem.ports.clock import Clock
from hivemem.ports.store import OAuthStore
from hivemem.service.audit import AuditLog

CODE_GRANT_TYPE = "authorization_code"
REFRESH_GRANT_TYPE = "refresh_token"
GRANT_TYPES = (CODE_GRANT_TYPE, REFRESH_GRANT_TYPE)

_VERIFIER = re.compile(r"[A-Za-z0-9._~-]{43,128}")
_MAX_REDIRECT_URIS = 20
_TIDY_EVERY = timedelta(minutes=10)


class InvalidGrant(InvalidInput):
    """A code or refresh token that is unknown, used, expired, revoked, or another program's."""

    code = "invalid_grant"


@dataclass(frozen=True, slots=True, kw_only=True)
class IssuedTokens:
    """Tokens for their program, readable here and never again. `refresh` is None for programs without it."""

    access: str
    refresh: str | None
    scopes: tuple[str, ...]
    expires_in_seconds: int


class OAuth:
    """Registers programs, and issues and ends their tokens."""

    def __init__(
        self, *, store: OAuthStore, audit: AuditLog, clock: Clock, private_schemes: Collection[str] = ()
    ) -> None:
        self._store = store
        self._audit = audit
        self._clock = clock
        self._private_schemes = private_schemes
        self._tidied_at: datetime | None = None

    async def register(
        self,
        *,
        name: str,
        redirect_uris: tuple[str, ...],
        grant_types: tuple[str, ...],
        scopes: tuple[str, ...],
        authentication: ClientAuthentication,
    ) -> tuple[OAuthClient, str | None]:
        """A new program, and the secret that it proves itself with, readable here and never again.

        Raises:
            InvalidInput: A redirect URI is not allowed, or there are none or too many.
        """
        if not 1 <= len(redirect_uris) <= _MAX_REDIRECT_URIS:
            raise InvalidInput(
                f"redirect_uris has {len(redirect_uris)} entries; register 1 to {_MAX_REDIRECT_URIS}.",
                code="invalid_redirect_uri",
            )
        for uri in redirect_uris:
            problem = redirect_uri_problem(uri, self._private_schemes)
            if problem is not None:
                raise InvalidInput(
                    f"{uri[:200]!r} is no redirect URI: {problem}.", code="invalid_redirect_uri"
                )
        secret = None if authentication is ClientAuthentication.NONE else new_secret()
        client = OAuthClient(
            client_id=self._clock.new_id("client"),
            name=name,
            redirect_uris=redirect_uris,
            grant_types=grant_types,
            scopes=scopes,
            authentication=authentication,
            secret_hash=None if secret is None else hash_of(secret),
            created_at=self._clock.now(),
        )
        await self.keep_client(client)
        return client, secret

    async def keep_client(self, client: OAuthClient) -> None:
        """Keep a program that is named by its document, or what the document now says."""
        await self.tidy()
        await self._store.put_oauth_client(client)

    async def client(self, client_id: str) -> OAuthClient | None:
        """A program that may ask; None when it is unknown or revoked."""
        # Ids are plain ASCII; others need not be looked for, and some databases could not.
        if not client_id.isascii() or not client_id.isprintable():
            return None
        client = await self._store.oauth_client(client_id)
        return client if client is not None and client.revoked_at is None else None

    async def exchange_code(
        self, client: OAuthClient, code: str, *, verifier: str, redirect_uri: str | None
    ) -> IssuedTokens:
        """Tokens for a code. A code that comes a second time has leaked, and ends what the first time gave.

        Raises:
            InvalidGrant: Unknown, used, expired or another program's; a wrong verifier or redirect URI.
        """
        found = await self._store.authorization_code(hash_of(code))
        if found is None or found[1].client_id != client.client_id:
            raise InvalidGrant("the authorization code is unknown; sign in again.")
        kept, grant = found
        now = self._clock.now()
        if kept.used_at is not None:
            await self._end_stolen(grant, "code")
            raise InvalidGrant("the authorization code was used before; sign in again.")
        if kept.expires_at <= now or grant.revoked_at is not None:
            raise InvalidGrant("the authorization code has expired or was revoked; sign in again.")
        if not _same_place(kept, redirect_uri):
            raise InvalidGrant("redirect_uri is not the one of the authorization request.")
        if not _VERIFIER.fullmatch(verifier) or not _proves(verifier, kept.code_challenge):
            raise InvalidGrant("code_verifier does not belong to the code_challenge of the request.")
        issued, tokens = self._issue(client, grant, grant.scopes)
        if not await self._store.exchange_code(kept.hash, tokens, now):
            # Somebody else exchanged it since it was read: one of the two has no right to it.
            await self._end_stolen(grant, "code")
            raise InvalidGrant("the authorization code was used before; sign in again.")
        return issued

    async def refresh(
        self, client: OAuthClient, refresh_token: str, scopes: Collection[str] = ()
    ) -> IssuedTokens:
        """The next pair of tokens; `scopes` asks for an access token that may do less.

        The used token is good for half a minute more, then its use means theft and ends the grant.

        Raises:
            InvalidGrant: Unknown, expired, revoked, used long before, or another program's.
            InvalidInput: None of the scopes was granted.
        """
        state = await self._token(refresh_token, TokenKind.REFRESH)
        now = self._clock.now()
        if state is None or state.grant.client_id != client.client_id or not state.is_alive(now):
            raise InvalidGrant("the refresh token is unknown, expired or revoked; sign in again.")
        narrowed = tuple(one for one in state.grant.scopes if not scopes or one in scopes or one == READ)
        if scopes and not set(scopes) & set(narrowed):
            raise InvalidInput("none of these scopes was granted; ask for fewer.", code="invalid_scope")
        issued, tokens = self._issue(client, state.grant, narrowed)
        used = await self._store.exchange_refresh_token(state.token.hash, tokens, now, now - REFRESH_GRACE)
        if not used:
            await self._end_stolen(state.grant, "refresh_token")
            raise InvalidGrant("the refresh token was used before; sign in again.")
        return issued

    async def revoke_token(self, client: OAuthClient, token: str) -> None:
        """End the grant of a token; nothing happens when it is unknown or another program's (RFC 7009)."""
        state = await self._store.oauth_token(hash_of(token))
        if state is not None and state.grant.client_id == client.client_id:
            await self._store.revoke_grant(state.grant.grant_id, self._clock.now())
            if state.grant.revoked_at is None:
                await self._note_end("grant.revoke", state.grant, {"by": "program"})

    async def revoke_client(self, client_id: str) -> None:
        """End a program and all that anybody granted to it, from the next request on.

        Raises:
            NotFound: It is unknown or revoked.
        """
        if await self.client(client_id) is None:
            raise NotFound(f"there is no program {client_id!r} that could be revoked.")
        await self._store.revoke_oauth_client(client_id, self._clock.now())

    async def _end_stolen(self, grant: Grant, what: str) -> None:
        """End a grant of which somebody has a secret who should not."""
        await self._store.revoke_grant(grant.grant_id, self._clock.now())
        await self._note_end("grant.reuse", grant, {"of": what})

    async def _note_end(self, action: str, grant: Grant, detail: JsonObject) -> None:
        await self._audit.record(
            action,
            user_id=grant.user_id,
            credential=f"grant:{grant.grant_id}",
            graph_id=grant.graph_id,
            target=grant.grant_id,
            detail={"client_id": grant.client_id, **detail},
        )

    async def _token(self, secret: str, kind: TokenKind) -> TokenState | None:
        state = await self._store.oauth_token(hash_of(secret))
        return state if state is not None and state.token.kind is kind else None

    def _issue(
        self, client: OAuthClient, grant: Grant, scopes: tuple[str, ...]
    ) -> tuple[IssuedTokens, list[Token]]:
        """Fresh tokens for the program and as they are kept."""
        now = self._clock.now()
        access, refresh = new_secret(ACCESS_TOKEN_PREFIX), new_secret(REFRESH_TOKEN_PREFIX)
        short = Token(
            hash=hash_of(access),
            kind=TokenKind.ACCESS,
            grant_id=grant.grant_id,
            scopes=scopes,
            expires_at=now + ACCESS_LIFETIME,
        )
        # A refresh token keeps all that was granted: a later access token may do more again.
        long = replace(
            short,
            hash=hash_of(refresh),
            kind=TokenKind.REFRESH,
            scopes=grant.scopes,
            expires_at=now + REFRESH_LIFETIME,
        )
        refreshes = REFRESH_GRANT_TYPE in client.grant_types
        issued = IssuedTokens(
            access=access,
            refresh=refresh if refreshes else None,
            scopes=scopes,
            expires_in_seconds=int(ACCESS_LIFETIME.total_seconds()),
        )
        return issued, [short, long] if refreshes else [short]

    async def tidy(self) -> None:
        """Forget what has ended, now and then: only who asks for something new adds rows."""
        now = self._clock.now()
        if self._tidied_at is None or now - self._tidied_at >= _TIDY_EVERY:
            self._tidied_at = now
            await self._store.drop_stale_oauth(now, now - UNUSED_CLIENT_LIFETIME)


def _proves(verifier: str, challenge: str) -> bool:
    """RFC 7636 (4.6) with the method S256."""
    digest = hashlib.sha256(verifier.encode()).digest()
    return hmac.compare_digest(base64.urlsafe_b64encode(digest).decode().rstrip("="), challenge)


def _same_place(code: AuthorizationCode, redirect_uri: str | None) -> bool:
    """RFC 6749 (4.1.3): a redirect URI that was sent with the request is sent again, and is the same."""
    if redirect_uri is None:
        return not code.redirect_uri_given
    return len(redirect_uri) <= MAX_LENGTH and same_redirect_uri(code.redirect_uri, redirect_uri)
