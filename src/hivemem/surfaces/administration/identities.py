"""Who users are at an identity provider."""

from __future__ import annotations

from pydantic import Field

from hivemem.domain.access import Principal
from hivemem.domain.accounts import ExternalIdentity
from hivemem.domain.text import JsonObject
from hivemem.surfaces.administration.routes import administration
from hivemem.surfaces.administration.users import UserInput, reference
from hivemem.surfaces.answers import Answer
from hivemem.surfaces.presentation import timestamp
from hivemem.surfaces.services import Services


class IdentityEntry(Answer):
    """Who a user is at an identity provider."""

    user_id: str
    issuer: str
    subject: str
    created_at: str


class IdentityList(Answer):
    """Identities of a user, oldest first."""

    identities: list[IdentityEntry]
    count: int


class RemovedIdentity(Answer):
    """An identity that nobody is linked to any more."""

    user_id: str
    removed: bool


class IdentityInput(UserInput):
    """An identity of a user."""

    issuer: str = Field(description="Address of the provider, as in the setting oidc_issuer.")
    subject: str = Field(description="The claim `sub` of the person there; not their e-mail address.")


def _entry(identity: ExternalIdentity) -> JsonObject:
    return {
        "user_id": identity.user_id,
        "issuer": identity.issuer,
        "subject": identity.subject,
        "created_at": timestamp(identity.created_at),
    }


async def _link(services: Services, actor: Principal, sent: IdentityInput) -> JsonObject:
    user = reference(sent.user) or actor.user_id
    return _entry(await services.identities.link(actor, user, sent.issuer, sent.subject))


async def _unlink(services: Services, actor: Principal, sent: IdentityInput) -> JsonObject:
    gone = await services.identities.unlink(actor, reference(sent.user), sent.issuer, sent.subject)
    return {"user_id": gone.user_id, "removed": True}


async def _list(services: Services, actor: Principal, sent: UserInput) -> JsonObject:
    _, found = await services.identities.list(actor, reference(sent.user))
    return {"identities": [_entry(one) for one in found], "count": len(found)}


IDENTITY_OPERATIONS = (
    administration(
        "user link", "Let somebody of an identity provider sign in as a user.", IdentityInput, IdentityEntry,
        "POST /users/{user}/identities", _link, arguments=("user",),
    ),
    administration(
        "user unlink", "Forget who a user is at an identity provider.", IdentityInput, RemovedIdentity,
        "DELETE /users/{user}/identities", _unlink, arguments=("user",), destructive=True,
    ),
    administration(
        "user identities", "List who a user is at identity providers.", UserInput, IdentityList,
        "GET /users/{user}/identities", _list, arguments=("user",),
    ),
)  # fmt: skip
