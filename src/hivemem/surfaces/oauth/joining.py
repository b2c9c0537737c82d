"""The page of an invitation: somebody joins an organization with an account, or makes one.

A form carries the secret of the invitation and, with it, who joins: there is no session that another page
could use. At an identity provider the browser goes away and comes back; then a page asks before anyone joins.
"""

from __future__ import annotations

from html import escape
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response

from hivemem.domain.accounts import Invitation, Membership, Organization, Role
from hivemem.domain.oauth import Identity, SignIn
from hivemem.domain.rates import Bucket
from hivemem.errors import Conflict, InvalidInput, Unauthorized
from hivemem.service.consenting import Consenting
from hivemem.service.joining import Joining
from hivemem.service.sign_ins import SignIns
from hivemem.surfaces.oauth.pages import Form, alert, hidden, plain_page
from hivemem.surfaces.oauth.sign_in_ways import NEW_ACCOUNT_FIELDS, PASSWORD_FIELDS
from hivemem.surfaces.oauth.wire import AddressLimit, OAuthError, body_parameters, query_parameters

JOIN_PATH = "/join"

_RIGHTS = {
    Role.OWNER: "you read and write its memory, and decide about everything in it",
    Role.ADMIN: "you read and write its memory, and decide about its members",
    Role.MEMBER: "you read its memory",
}


class JoinPages:
    """What the link of an invitation opens."""

    def __init__(
        self,
        joining: Joining,
        consenting: Consenting,
        sign_ins: SignIns,
        *,
        limit: AddressLimit,
        provider_start: str | None,
        provider_name: str,
    ) -> None:
        """`provider_start`: path that leads to the identity provider, if there is one."""
        self._joining = joining
        self._consenting = consenting
        self._sign_ins = sign_ins
        self._limit = limit
        self._provider_start = provider_start
        self._provider_name = provider_name

    async def show(self, request: Request) -> Response:
        """`GET /join`: what the invitation is for, and how to use it."""
        await self._limit(request, Bucket.AUTHORIZE)
        return await self._page(query_parameters(request).required("invitation"))

    async def submit(self, request: Request) -> Response:
        """`POST /join`: use it."""
        await self._limit(request, Bucket.SIGN_IN)
        sent = await body_parameters(request)
        way = sent.required("way")
        if way == "confirm":
            hash, identity = await self._consenting.joined(sent.required("request"), sent.required("consent"))
            if sent.get("decision") != "join":
                return plain_page("Not joined", "<h1>Not joined</h1><p>Nothing was changed.</p>")
            return _joined(await self._joining.as_identified(hash, identity))
        secret, name = sent.required("invitation"), sent.get("name") or ""
        password = sent.get("password") or ""
        try:
            if way == "password":
                return _joined(await self._joining.as_user(secret, name, password))
            if way == "new":
                return _joined(await self._joining.as_newcomer(secret, name, password))
        except (Unauthorized, Conflict, InvalidInput) as error:
            # Where a program would look for the field, a person sees its label.
            told = error.message.replace("/password", "the password").replace("/name", "the name")
            return await self._page(secret, told[:1].upper() + told[1:])
        raise OAuthError("invalid_request", "there is no such way to join; open the invitation again.")

    async def confirm(self, secret: str, sign_in: SignIn, identity: Identity) -> Response:
        """Ask somebody who came back from the identity provider, whether they want to join."""
        invitation, organization = await self._joining.invited_by_hash(sign_in.request.state)
        consent = await self._consenting.identify(secret, identity)
        body = (
            f"{_invites(invitation, organization)}<p>You are signed in as "
            f"<strong>{escape(await self._sign_ins.name_of(identity))}</strong>.</p>"
            f'<form method="post" action="{JOIN_PATH}">{hidden("way", "confirm")}{hidden("request", secret)}'
            f'{hidden("consent", consent)}<button type="submit" name="decision" value="join">Join</button>'
            '<button type="submit" name="decision" value="no">Do not join</button></form>'
        )
        return plain_page("Join", body, ("'self'",))

    async def _page(self, secret: str, problem: str = "") -> Response:
        invitation, organization = await self._joining.invited(secret)
        carried = hidden("invitation", secret)
        body = _invites(invitation, organization) + alert(problem)
        body += "<h2>With your account</h2>"
        body += Form(way="password", fields=PASSWORD_FIELDS, button="Join").html(JOIN_PATH, carried)
        if self._provider_start is not None:
            link = f"{self._provider_start}?{urlencode({'invitation': secret})}"
            button = f"Continue with {self._provider_name}"
            body += Form(way="oidc", button=button, link=link).html(JOIN_PATH, carried)
        if self._joining.creates_accounts:
            new = Form(way="new", fields=NEW_ACCOUNT_FIELDS, button="Make an account and join")
            body += f"<h2>With a new account</h2>{new.html(JOIN_PATH, carried)}"
        return plain_page("Join", body, ("'self'",), 403 if problem else 200)


def _invites(invitation: Invitation, organization: Organization) -> str:
    name = escape(organization.name)
    return (
        f"<h1>Join {name}</h1><p>You are invited to the organization <strong>{name}</strong> with the role "
        f"<strong>{invitation.role.value}</strong>: "
        f"{_RIGHTS[invitation.role]}. This works once.</p>"
    )


def _joined(membership: Membership) -> Response:
    name, role = escape(membership.name), membership.role.value
    body = (
        f'<h1>Welcome to {name}</h1><p role="status">You have joined as {role}. Your agents find its memory '
        "beside your own from their next question on.</p><p>To connect an agent, add the address of this "
        "server with <code>/mcp</code> at its end, and sign in when it asks.</p>"
    )
    return plain_page("Joined", body)
