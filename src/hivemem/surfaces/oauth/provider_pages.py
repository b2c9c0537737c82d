"""Sign-in at an identity provider: the way there, and the way back.

The way back names the sign-in in `state`, together with a secret of its own. What the answer must match is
kept with the sign-in, so that any server of the same database can take it, once.
"""

from __future__ import annotations

import hmac
import json
import secrets
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from typing import Any

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from hivemem.domain.access import hash_api_key as hash_of
from hivemem.domain.oauth import OWN_PAGES, Identity, OAuthClient, SignIn
from hivemem.domain.rates import Bucket
from hivemem.errors import Forbidden, NotFound, Unauthorized
from hivemem.service.consenting import Consenting
from hivemem.service.joining import Joining
from hivemem.service.sign_ins import SignIns
from hivemem.settings import Settings
from hivemem.surfaces.oauth.addresses import base_address
from hivemem.surfaces.oauth.identity_provider import Expected, IdentityProvider, ProviderRefusal
from hivemem.surfaces.oauth.pages import problem_page
from hivemem.surfaces.oauth.wire import AddressLimit, query_parameters

CALLBACK_PATH = "/oauth/oidc/callback"

AskConsent = Callable[[str, SignIn, OAuthClient, Identity], Awaitable[Response]]
AskJoining = Callable[[str, SignIn, Identity], Awaitable[Response]]
AskAgain = Callable[[str, str], Awaitable[Response]]


class ProviderPages:
    """The two addresses of a sign-in at the provider.

    Args:
        provider: The provider.
        consenting: Sign-ins under way.
        sign_ins: Decides who somebody is here.
        joining: Invitations.
        settings: For the address of this server.
        limit: Of network addresses.
        ask_consent: Answers for a program, when somebody has signed in.
        ask_joining: Answers for an invitation.
        ask_again: The page of a sign-in with a problem on it.
    """

    def __init__(
        self,
        provider: IdentityProvider,
        consenting: Consenting,
        sign_ins: SignIns,
        joining: Joining,
        settings: Settings,
        *,
        limit: AddressLimit,
        ask_consent: AskConsent,
        ask_joining: AskJoining,
        ask_again: AskAgain,
    ) -> None:
        self._provider = provider
        self._consenting = consenting
        self._sign_ins = sign_ins
        self._joining = joining
        self._settings = settings
        self._limit = limit
        self._ask_consent = ask_consent
        self._ask_joining = ask_joining
        self._ask_again = ask_again

    async def start(self, request: Request) -> Response:
        """`GET /oauth/oidc/start`: go to the provider, for a sign-in or for an invitation."""
        await self._limit(request, Bucket.AUTHORIZE)
        sent = query_parameters(request)
        invitation = sent.get("invitation")
        if invitation is None:
            secret = sent.required("request")
            await self._consenting.sign_in(secret)
        else:
            invited, _ = await self._joining.invited(invitation)
            secret = await self._consenting.begin_joining(invited.hash)
        state = f"{secret}.{secrets.token_urlsafe(32)}"
        redirect_uri = base_address(self._settings, request) + CALLBACK_PATH
        address, expected = await self._provider.request(redirect_uri, state)
        await self._consenting.send_out(
            secret, json.dumps({"state": hash_of(state), "expected": asdict(expected)})
        )
        return RedirectResponse(address, 303)

    async def callback(self, request: Request) -> Response:
        """`GET /oauth/oidc/callback`: see who the provider says is there."""
        await self._limit(request, Bucket.SIGN_IN)
        sent = query_parameters(request)
        sent.check_repetitions()
        state = sent.required("state")
        secret = state.partition(".")[0]
        sign_in, client = await self._consenting.sign_in(secret)
        expected = _expected(sign_in, state)
        # Before anything is asked: an answer is good for one try.
        await self._consenting.send_out(secret, "{}")
        try:
            await self._provider.check_sender(sent.get("iss"))
            if sent.get("error") is not None:
                raise ProviderRefusal("the identity provider did not let you in, or you went back.")
            proved = await self._provider.identity(sent.required("code"), expected)
            invited = client.client_id == OWN_PAGES
            identity = await self._sign_ins.by_provider(
                proved, invited=invited and self._joining.creates_accounts
            )
        except (Unauthorized, Forbidden) as error:
            if isinstance(error, ProviderRefusal):
                await self._sign_ins.refused("oidc")
            if client.client_id == OWN_PAGES:
                return problem_page(f"{error.message} Open the invitation again to try once more.", 403, {})
            return await self._ask_again(secret, error.message)
        if client.client_id == OWN_PAGES:
            return await self._ask_joining(secret, sign_in, identity)
        return await self._ask_consent(secret, sign_in, client, identity)


def _expected(sign_in: SignIn, state: str) -> Expected:
    """What was noted when the browser was sent out.

    Raises:
        NotFound: It was not, or for another answer, or one has come already.
    """
    noted: dict[str, Any] = json.loads(sign_in.external or "{}")
    if not hmac.compare_digest(str(noted.get("state", "")), hash_of(state)):
        raise NotFound(
            "this answer of the identity provider was not expected, or came before; start again.",
            code="sign_in_ended",
        )
    return Expected(**noted["expected"])
