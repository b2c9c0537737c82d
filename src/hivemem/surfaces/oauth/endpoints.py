"""The authorization, token and revocation endpoints, and the pages between the first two."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from hivemem.domain.oauth import (
    ADMIN,
    OWN_PAGES,
    AuthorizationRequest,
    Identity,
    OAuthClient,
    SignIn,
    granted_scopes,
    known_scopes,
    same_resource,
)
from hivemem.domain.rates import Bucket
from hivemem.domain.redirect_uris import redirect_uris_match, with_parameters
from hivemem.errors import HivememError, InvalidInput, NotFound, Unauthorized
from hivemem.service.consenting import Consenting
from hivemem.service.oauth import CODE_GRANT_TYPE, GRANT_TYPES, OAuth
from hivemem.service.sign_ins import SignIns
from hivemem.settings import Settings
from hivemem.surfaces.envelope import answer_headers, http_status
from hivemem.surfaces.oauth.addresses import MCP_PATH, base_address
from hivemem.surfaces.oauth.clients import Clients
from hivemem.surfaces.oauth.pages import Form, Question, consent_page, problem_page, sign_in_page
from hivemem.surfaces.oauth.sign_in_ways import SignInWay
from hivemem.surfaces.oauth.wire import (
    AddressLimit,
    Endpoint,
    OAuthError,
    Parameters,
    body_parameters,
    json_answer,
    query_parameters,
)


def page(endpoint: Endpoint) -> Endpoint:
    """`endpoint`, its refusals answered as a page for people."""

    async def answer(request: Request) -> Response:
        try:
            return await endpoint(request)
        except HivememError as error:
            status = error.status if isinstance(error, OAuthError) else http_status(error)
            return problem_page(error.message, status, answer_headers(error))

    return answer


class Authorization:
    """From the request of a program to the code for it, through the browser of a person."""

    def __init__(
        self,
        consenting: Consenting,
        clients: Clients,
        sign_ins: SignIns,
        settings: Settings,
        ways: Sequence[SignInWay],
        *,
        limit: AddressLimit,
        provider_start: str | None = None,
    ) -> None:
        """`provider_start`: path that leads to the identity provider, if there is one."""
        self._consenting = consenting
        self._clients = clients
        self._sign_ins = sign_ins
        self._settings = settings
        self._ways = {way.form.way: way for way in ways}
        self._limit = limit
        self._provider_start = provider_start

    async def authorize(self, request: Request) -> Response:
        """`GET` or `POST /authorize`: check what is asked for, and go on to the sign-in.

        As long as program and redirect URI are not known to belong together, nobody is sent anywhere.
        """
        await self._limit(request, Bucket.AUTHORIZE)
        sent = query_parameters(request) if request.method == "GET" else await body_parameters(request)
        client = await self._clients.asking(sent.required("client_id"))
        if client is None:
            raise OAuthError(
                "invalid_request", "the program is unknown here or was revoked; let it register again."
            )
        redirect_uri = _redirect_uri(client, sent)
        base = base_address(self._settings, request)
        try:
            asked = _asked(client, sent, redirect_uri, base)
            secret = await self._consenting.begin(asked)
        except InvalidInput as error:
            return _back(redirect_uri, sent.get("state"), base, "invalid_request", error.message)
        except OAuthError as error:
            return _back(redirect_uri, sent.get("state"), base, error.code, error.message)
        # Relative, so that it is right behind every proxy.
        return RedirectResponse(f"/oauth/sign-in?request={secret}", 303)

    async def sign_in(self, request: Request) -> Response:
        """`GET /oauth/sign-in`: ask who is there."""
        return await self.ask_who(query_parameters(request).required("request"))

    async def signed_in(self, request: Request) -> Response:
        """`POST /oauth/sign-in`: find out who it is, and ask for consent."""
        await self._limit(request, Bucket.SIGN_IN)
        sent = await body_parameters(request)
        secret = sent.required("request")
        sign_in, client = await self._consenting.sign_in(secret)
        way = self._ways.get(sent.required("way"))
        if way is None:
            raise OAuthError("invalid_request", "there is no such way to sign in; start again in your agent.")
        try:
            identity = await way.identity(sent)
        except Unauthorized as error:
            return await self.ask_who(secret, error.message)
        return await self.ask_consent(secret, sign_in, client, identity)

    async def ask_consent(
        self, secret: str, sign_in: SignIn, client: OAuthClient, identity: Identity
    ) -> Response:
        """Ask somebody who has signed in, whether the program may have what it asks for."""
        _require_program(client)
        consent = await self._consenting.identify(secret, identity)
        question = Question(
            scopes=granted_scopes(sign_in.request.scopes, identity),
            who=await self._sign_ins.name_of(identity) if identity.key_id is None else "",
            memories=await self._sign_ins.memories(identity),
        )
        return consent_page(client, sign_in.request.redirect_uri, secret, consent, question)

    async def decided(self, request: Request) -> Response:
        """`POST /oauth/consent`: send the browser back to the program, with a code or with the refusal."""
        sent = await body_parameters(request)
        secret, consent = sent.required("request"), sent.required("consent")
        base = base_address(self._settings, request)
        _, client = await self._consenting.sign_in(secret)
        _require_program(client)
        if sent.get("decision") != "allow":
            asked = await self._consenting.deny(secret, consent)
            return _back(asked.redirect_uri, asked.state, base, "access_denied", "access was denied.")
        asked, code = await self._consenting.allow(secret, consent, sent.get("graph"))
        answer = {"code": code, "state": asked.state, "iss": base}
        return RedirectResponse(with_parameters(asked.redirect_uri, answer), 303)

    async def ask_who(self, secret: str, problem: str = "") -> Response:
        """The page of a sign-in under way; `problem` is why the last attempt failed."""
        sign_in, client = await self._consenting.sign_in(secret)
        _require_program(client)
        forms = [way.form for way in self._ways.values()]
        if self._provider_start is not None:
            link = f"{self._provider_start}?{urlencode({'request': secret})}"
            forms.append(Form(way="oidc", button=f"Continue with {self._settings.oidc_name}", link=link))
        return sign_in_page(client, sign_in.request.redirect_uri, secret, forms, problem)


class Tokens:
    """Tokens for codes and refresh tokens, and their end."""

    def __init__(self, oauth: OAuth, clients: Clients, settings: Settings, limit: AddressLimit) -> None:
        self._oauth = oauth
        self._clients = clients
        self._settings = settings
        self._limit = limit

    async def token(self, request: Request) -> Response:
        """`POST /token`, a form or JSON."""
        await self._limit(request, Bucket.TOKEN)
        sent = await body_parameters(request)
        sent.check_repetitions()
        client = await self._clients.authenticated(request, sent)
        _check_resources(sent, base_address(self._settings, request))
        grant_type = sent.required("grant_type")
        if grant_type not in GRANT_TYPES:
            raise OAuthError(
                "unsupported_grant_type", f"{grant_type[:100]!r}: use {' or '.join(GRANT_TYPES)}."
            )
        if grant_type not in client.grant_types:
            raise OAuthError("unauthorized_client", f"the program did not register for {grant_type}.")
        if grant_type == CODE_GRANT_TYPE:
            issued = await self._oauth.exchange_code(
                client,
                sent.required("code"),
                verifier=sent.required("code_verifier"),
                redirect_uri=sent.get("redirect_uri"),
            )
        else:
            scopes = (sent.get("scope") or "").split()
            issued = await self._oauth.refresh(client, sent.required("refresh_token"), scopes)
        answer: dict[str, object] = {
            "access_token": issued.access,
            "token_type": "Bearer",
            "expires_in": issued.expires_in_seconds,
            "scope": " ".join(issued.scopes),
        }
        if issued.refresh is not None:
            answer["refresh_token"] = issued.refresh
        return json_answer(answer, headers={"Pragma": "no-cache"})

    async def revoke(self, request: Request) -> Response:
        """`POST /revoke` (RFC 7009): either token ends the whole grant."""
        await self._limit(request, Bucket.TOKEN)
        sent = await body_parameters(request)
        sent.check_repetitions()
        client = await self._clients.authenticated(request, sent)
        await self._oauth.revoke_token(client, sent.required("token"))
        return json_answer({})


def _require_program(client: OAuthClient) -> None:
    """Let sign-ins pass that a program began; others end at a page of their own."""
    if client.client_id == OWN_PAGES:
        raise NotFound("this sign-in is for an invitation; open its link again.", code="sign_in_ended")


def _redirect_uri(client: OAuthClient, sent: Parameters) -> str:
    asked = sent.get("redirect_uri")
    if asked is None and "redirect_uri" not in sent.repeated and len(client.redirect_uris) == 1:
        return client.redirect_uris[0]
    if asked is None or not any(redirect_uris_match(one, asked) for one in client.redirect_uris):
        raise OAuthError("invalid_request", "redirect_uri is not one that the program registered.")
    return asked


def _asked(client: OAuthClient, sent: Parameters, redirect_uri: str, base: str) -> AuthorizationRequest:
    sent.check_repetitions()
    if sent.required("response_type") != "code":
        raise OAuthError("unsupported_response_type", "response_type must be 'code'.")
    # Without a method RFC 7636 means `plain`, which protects from nobody who reads the request.
    if sent.get("code_challenge_method") != "S256":
        raise OAuthError("invalid_request", "code_challenge_method must be 'S256'.")
    _check_resources(sent, base)
    scope = sent.get("scope")
    if scope is None:
        scopes = tuple(one for one in client.scopes if one != ADMIN) or client.scopes
    else:
        scopes = tuple(one for one in known_scopes(scope.split()) if one in client.scopes)
    if not scopes:
        raise OAuthError("invalid_scope", "none of the scopes is known here and registered by the program.")
    return AuthorizationRequest(
        client_id=client.client_id,
        redirect_uri=redirect_uri,
        redirect_uri_given=sent.get("redirect_uri") is not None,
        code_challenge=sent.required("code_challenge"),
        state=sent.get("state"),
        scopes=scopes,
        resource=base + MCP_PATH,
    )


def _check_resources(sent: Parameters, base: str) -> None:
    if not all(same_resource(resource, base) for resource in sent.resources):
        raise OAuthError("invalid_target", f"resource must be {base}{MCP_PATH}.")


def _back(redirect_uri: str, state: str | None, base: str, error: str, description: str) -> Response:
    """Tell the program what went wrong (RFC 6749, 4.1.2.1; RFC 9207)."""
    answer = {"error": error, "error_description": description, "state": state, "iss": base}
    return RedirectResponse(with_parameters(redirect_uri, answer), 303)
