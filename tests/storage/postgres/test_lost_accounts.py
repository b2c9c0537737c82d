"""Writes of accounts whose commit got no answer: made once, and answered as if nothing had happened."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest

from hivemem.domain.accounts import AuditQuery, Role
from hivemem.errors import Conflict
from hivemem.storage.postgres import PostgresStore
from tests.conformance.store.observe import GRAPH
from tests.storage.postgres.conftest import COMMIT
from tests.storage.postgres.proxy import Proxy
from tests.support.builders import (
    api_key,
    audit_event,
    external_identity,
    graph,
    hash_api_key,
    invitation,
    minutes,
    oauth_client,
    organization,
    sign_in,
    user,
)

Write = Callable[[PostgresStore], Awaitable[object]]
Look = Callable[[PostgresStore], Awaitable[object]]
INVITATION = hash_api_key("inv_1")
IDENTITY = external_identity()


async def log(store: PostgresStore) -> list[str]:
    return [event.action for event in await store.audit_events(AuditQuery())]


async def roles(store: PostgresStore) -> dict[str, Role]:
    return {member.user_id: member.role for member in await store.members("org_one")}


async def used_by(store: PostgresStore) -> str | None:
    found = await store.invitation(INVITATION)
    return None if found is None else found.used_by


async def last_use(store: PostgresStore) -> object:
    return [key.last_used_at for key in await store.keys()]


async def default(store: PostgresStore) -> list[str]:
    return [one.graph_id for one in await store.graphs("user_one") if one.is_default]


async def identities(store: PostgresStore) -> list[str]:
    return [one.subject for one in await store.external_identities("user_one")]


# The write, its answer, and what is there afterwards.
WRITES: dict[str, tuple[Write, object, Look, object]] = {
    "add_user": (
        lambda s: s.add_user(user("user_new"), graph("graph_new", "user_new")),
        None,
        lambda s: s.graphs("user_new"),
        [graph("graph_new", "user_new")],
    ),
    "put_user": (
        lambda s: s.put_user(user(name="Renamed", operator=True)),
        None,
        lambda s: s.user("user_one"),
        user(name="Renamed", operator=True),
    ),
    "remove_user": (
        lambda s: s.remove_user("user_two", minutes(9)),
        True,
        lambda s: s.user("user_two"),
        None,
    ),
    "remove_nobody": (
        lambda s: s.remove_user("user_none", minutes(9)),
        False,
        lambda s: s.user("user_none"),
        None,
    ),
    "add_graph": (
        lambda s: s.add_graph(graph("graph_new", is_default=True)),
        None,
        default,
        ["graph_new"],
    ),
    "put_graph": (lambda s: s.put_graph(graph(is_default=True)), True, default, [GRAPH]),
    "remove_graph": (lambda s: s.remove_graph(GRAPH, minutes(9)), True, lambda s: s.graph(GRAPH), None),
    "add_organization": (
        lambda s: s.add_organization(organization("org_new"), "user_one"),
        None,
        lambda s: s.organization("org_new"),
        organization("org_new"),
    ),
    "rename_organization": (
        lambda s: s.rename_organization("org_one", "Other"),
        True,
        lambda s: s.organization("org_one"),
        organization(name="Other"),
    ),
    "remove_organization": (
        lambda s: s.remove_organization("org_one", minutes(9)),
        True,
        lambda s: s.organizations(),
        [],
    ),
    "put_member": (
        lambda s: s.put_member("org_one", "user_two", Role.ADMIN, minutes(9)),
        None,
        roles,
        {"user_one": Role.OWNER, "user_two": Role.ADMIN},
    ),
    "remove_member": (
        lambda s: s.remove_member("org_one", "user_two", minutes(9)),
        True,
        roles,
        {"user_one": Role.OWNER},
    ),
    "add_invitation": (
        lambda s: s.add_invitation(invitation("inv_2")),
        None,
        lambda s: s.invitation(hash_api_key("inv_2")),
        invitation("inv_2"),
    ),
    "accept_invitation": (
        lambda s: s.accept_invitation(INVITATION, "user_two", minutes(9)),
        True,
        used_by,
        "user_two",
    ),
    "accept_too_late": (
        lambda s: s.accept_invitation(INVITATION, "user_two", minutes(99)),
        False,
        used_by,
        None,
    ),
    "remove_invitation": (
        lambda s: s.remove_invitation(INVITATION),
        True,
        lambda s: s.invitations("org_one"),
        [],
    ),
    "key_used": (lambda s: s.key_used(api_key().key_id, minutes(9)), None, last_use, [minutes(9)]),
    "add_external_identity": (
        lambda s: s.add_external_identity(external_identity("2")),
        None,
        identities,
        ["2", IDENTITY.subject],
    ),
    "remove_external_identity": (
        lambda s: s.remove_external_identity(IDENTITY.issuer, IDENTITY.subject),
        True,
        identities,
        [],
    ),
    "send_out": (
        lambda s: s.send_out(sign_in().hash, "{}"),
        True,
        lambda s: s.sign_in(sign_in().hash),
        replace(sign_in(), external="{}"),
    ),
    "add_audit_events": (
        lambda s: s.add_audit_events([audit_event("one"), audit_event("two")]),
        None,
        log,
        ["two", "one"],
    ),
}


@pytest.mark.parametrize("when", ["cut_before", "cut_after"])
async def test_a_write_is_made_once_and_answered(cut_store: PostgresStore, between: Proxy, when: str) -> None:
    for write, answer, look, found in WRITES.values():
        await empty_and_fill(cut_store)
        setattr(between, when, COMMIT)
        assert await write(cut_store) == answer
        assert getattr(between, when) is None, "the line was not cut"
        assert await look(cut_store) == found


@pytest.mark.parametrize("when", ["cut_before", "cut_after"])
async def test_a_refusal_stays_one(cut_store: PostgresStore, between: Proxy, when: str) -> None:
    await empty_and_fill(cut_store)
    setattr(between, when, b"ROLLBACK\0")
    with pytest.raises(Conflict) as caught:
        await cut_store.remove_user("user_one", minutes(9))
    assert caught.value.code in ("last_operator", "last_owner")
    assert await cut_store.user("user_one") == user(operator=True)


async def empty_and_fill(store: PostgresStore) -> None:
    """Two users, an organization of the first, and one thing of each kind."""
    async with store._pool._connection(store._pool.deadline()) as connection:
        await connection.execute(b"ALTER TABLE audit_events DISABLE TRIGGER USER")
        await connection.execute(
            b"TRUNCATE users, organizations, deleted_graphs, audit_events, oauth_clients CASCADE"
        )
        await connection.execute(b"ALTER TABLE audit_events ENABLE TRIGGER USER")
    await store.add_user(user(operator=True), graph())
    await store.add_user(user("user_two"), graph("graph_two", "user_two"))
    await store.add_organization(organization(), "user_one")
    await store.put_member("org_one", "user_two", Role.MEMBER, minutes(1))
    await store.add_invitation(invitation())
    await store.add_key(api_key())
    await store.add_external_identity(IDENTITY)
    await store.put_oauth_client(oauth_client())
    await store.add_sign_in(sign_in())
