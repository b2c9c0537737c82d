"""API keys."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from hivemem.domain.access import ApiKey, Principal, Scope
from hivemem.domain.text import JsonObject
from hivemem.surfaces.administration.routes import administration
from hivemem.surfaces.administration.users import reference
from hivemem.surfaces.answers import Answer
from hivemem.surfaces.inputs import Input
from hivemem.surfaces.presentation import timestamp
from hivemem.surfaces.services import Services

ScopeName = Literal["owner", "member"]


class KeyEntry(Answer):
    """A key, without its secret."""

    key_id: str
    name: str
    user_id: str
    graph_id: str
    scope: ScopeName = Field(description="owner reads and writes, member reads.")
    admin: bool = Field(description="Whether it reaches the administration.")
    created_at: str
    expires_at: str | None
    last_used_at: str | None
    revoked_at: str | None


class CreatedKey(KeyEntry):
    """A new key. `key` is the secret, shown here and never again."""

    key: str


class KeyList(Answer):
    """Keys, oldest first."""

    keys: list[KeyEntry]
    count: int


class RevokedKey(Answer):
    """A key that has ended."""

    key_id: str
    revoked: bool


class CreateKeyInput(Input):
    """A new key."""

    name: str = Field("key", description="What uses the key.")
    user: str = Field("me", description="Id or name of the user it stands for.")
    graph: str | None = Field(None, description="Id of one of the user's graphs; else the default one.")
    org: str | None = Field(None, description="Id or name of the organization whose graph it is for.")
    scope: ScopeName | None = Field(
        None,
        description="owner reads and writes, member reads. Else owner; with an organization member.",
    )
    admin: bool = Field(False, description="It reaches the administration, as far as its user does.")
    days: int | None = Field(None, ge=1, le=3650, description="After how many days it ends; else never.")


class ListKeysInput(Input):
    """Whose keys."""

    user: str | None = Field(
        None, description="Id or name of the user. Left out: your own, or all for who runs the server."
    )


class KeyInput(Input):
    """A key."""

    key: str = Field(description="Id of the key, or the whole key.")


def key_entry(key: ApiKey) -> JsonObject:
    """A key as JSON, without its hash."""
    moments = (key.expires_at, key.last_used_at, key.revoked_at)
    expires_at, last_used_at, revoked_at = (None if at is None else timestamp(at) for at in moments)
    return {
        "key_id": key.key_id,
        "name": key.name,
        "user_id": key.user_id,
        "graph_id": key.graph_id,
        "scope": key.scope.value,
        "admin": key.admin,
        "created_at": timestamp(key.created_at),
        "expires_at": expires_at,
        "last_used_at": last_used_at,
        "revoked_at": revoked_at,
    }


async def _create(services: Services, actor: Principal, sent: CreateKeyInput) -> JsonObject:
    secret, key = await services.keys.create(
        actor,
        name=sent.name,
        user=reference(sent.user),
        graph_id=sent.graph,
        organization=sent.org,
        scope=None if sent.scope is None else Scope(sent.scope),
        admin=sent.admin,
        days=sent.days,
    )
    return {"key": secret, **key_entry(key)}


async def _list(services: Services, actor: Principal, sent: ListKeysInput) -> JsonObject:
    user = actor.user_id if sent.user is not None and reference(sent.user) is None else sent.user
    keys = await services.keys.list(actor, user)
    return {"keys": [key_entry(key) for key in keys], "count": len(keys)}


async def _show(services: Services, actor: Principal, sent: KeyInput) -> JsonObject:
    return key_entry(await services.keys.show(actor, sent.key))


async def _revoke(services: Services, actor: Principal, sent: KeyInput) -> JsonObject:
    return {"key_id": await services.keys.revoke(actor, sent.key), "revoked": True}


KEY_OPERATIONS = (
    administration(
        "key create", "Make an API key; its secret is shown once.", CreateKeyInput, CreatedKey,
        "POST /keys", _create,
    ),
    administration(
        "key list", "List keys, without their secrets.", ListKeysInput, KeyList, "GET /keys", _list
    ),
    administration(
        "key show", "Show a key, without its secret.", KeyInput, KeyEntry, "GET /keys/{key}", _show,
        arguments=("key",),
    ),
    administration(
        "key revoke", "End a key, from the next request on.", KeyInput, RevokedKey, "DELETE /keys/{key}",
        _revoke, arguments=("key",), destructive=True,
    ),
)  # fmt: skip
