"""What people granted to programs that signed in with OAuth."""

from __future__ import annotations

from pydantic import Field

from hivemem.domain.access import Principal
from hivemem.domain.text import JsonObject
from hivemem.service.grants import NamedGrant
from hivemem.surfaces.administration.routes import administration
from hivemem.surfaces.administration.users import reference
from hivemem.surfaces.answers import Answer
from hivemem.surfaces.inputs import Input
from hivemem.surfaces.presentation import timestamp
from hivemem.surfaces.services import Services


class GrantEntry(Answer):
    """A grant, without its tokens."""

    grant_id: str
    program: str = Field(description="What the program calls itself; nobody has checked it.")
    user_id: str
    graph_id: str
    key_id: str | None = Field(description="The API key that it hangs on; null when there is none.")
    scopes: list[str]
    created_at: str
    revoked_at: str | None


class GrantList(Answer):
    """Grants, newest first."""

    grants: list[GrantEntry]
    count: int


class RevokedGrant(Answer):
    """A grant that has ended."""

    grant_id: str
    revoked: bool


class ListGrantsInput(Input):
    """Whose grants."""

    user: str | None = Field(
        None, description="Id or name of the user. Left out: your own, or all for who runs the server."
    )


class GrantInput(Input):
    """A grant."""

    grant: str = Field(description="Id of the grant.")


def _entry(named: NamedGrant) -> JsonObject:
    grant = named.grant
    return {
        "grant_id": grant.grant_id,
        "program": named.client_name,
        "user_id": grant.user_id,
        "graph_id": grant.graph_id,
        "key_id": grant.key_id,
        "scopes": list(grant.scopes),
        "created_at": timestamp(grant.created_at),
        "revoked_at": None if grant.revoked_at is None else timestamp(grant.revoked_at),
    }


async def _list(services: Services, actor: Principal, sent: ListGrantsInput) -> JsonObject:
    user = actor.user_id if sent.user is not None and reference(sent.user) is None else sent.user
    found = await services.grants.list(actor, user)
    return {"grants": [_entry(one) for one in found], "count": len(found)}


async def _revoke(services: Services, actor: Principal, sent: GrantInput) -> JsonObject:
    return {"grant_id": (await services.grants.revoke(actor, sent.grant)).grant_id, "revoked": True}


GRANT_OPERATIONS = (
    administration(
        "grant list", "List what was granted to programs, newest first.", ListGrantsInput, GrantList,
        "GET /grants", _list,
    ),
    administration(
        "grant revoke", "End a program's access, from its next request on.", GrantInput, RevokedGrant,
        "DELETE /grants/{grant}", _revoke, arguments=("grant",), destructive=True,
    ),
)  # fmt: skip
