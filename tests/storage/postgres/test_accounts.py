"""Accounts in PostgreSQL: older databases, servers side by side, the log that nobody changes, late writes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator

import psycopg
import pytest

from hivemem.domain.accounts import AuditQuery
from hivemem.errors import Conflict, NotFound, Unavailable
from hivemem.storage.postgres import PostgresStore, filling
from hivemem.storage.postgres.connection import Address
from hivemem.storage.postgres.purging import PURGED
from hivemem.storage.postgres.statements import migration_names, read_sql
from hivemem.storage.times import from_microseconds
from tests.conformance.store.content import export, file, fill_graph, skill, token_report
from tests.conformance.store.observe import GRAPH, OTHER_GRAPH
from tests.storage.postgres.conftest import Opener, Stores, administrator, wait_for_lock
from tests.support.builders import (
    audit_event,
    batch,
    entry,
    graph,
    minutes,
    node,
    user,
)

# Servers of the version before ----------------------------------------------------------------

OLD_WRITES = """
INSERT INTO users (user_id, name, created_at) VALUES ('u_{0}', 'Name {0}', {1});
INSERT INTO graphs (graph_id, name, kind, owner_id, created_at)
VALUES ('g_{0}', 'first', 'personal', 'u_{0}', {1}), ('h_{0}', 'second', 'personal', 'u_{0}', {1});
INSERT INTO api_keys (key_id, hash, name, user_id, graph_id, scope, created_at, revoked_at)
VALUES ('k_{0}', 'hash {0}', 'laptop', 'u_{0}', 'h_{0}', 'owner', {1}, NULL);
INSERT INTO oauth_clients
    (client_id, name, redirect_uris, grant_types, scopes, authentication, secret_hash, created_at)
VALUES ('c_{0}', 'n', '[]', '[]', '[]', 'none', NULL, {1});
INSERT INTO oauth_sign_ins (hash, client_id, request, expires_at) VALUES ('s_{0}', 'c_{0}', '{{}}', {1});
INSERT INTO oauth_grants (grant_id, client_id, user_id, graph_id, key_id, scopes, resource, created_at)
VALUES ('t_{0}', 'c_{0}', 'u_{0}', 'h_{0}', 'k_{0}', '[]', 'r', {1});
"""
OLD_READ = (
    "SELECT graph_id, name, kind, owner_id, created_at FROM graphs WHERE owner_id = %s ORDER BY graph_id"
)


@pytest.fixture
def before(url: str) -> Iterator[psycopg.Connection]:
    """A connection of a server of the version before, whose schema the database has."""
    with administrator(url) as connection:
        for name in migration_names()[:5]:
            connection.execute(read_sql(name).encode())
        connection.execute("INSERT INTO schema_version (version, oldest_program) VALUES (5, 1)")
        connection.execute(OLD_WRITES.format("b", 5).encode())
        connection.execute(OLD_WRITES.format("a", 5).encode())
        yield connection


async def test_accounts_of_an_older_database(before: psycopg.Connection, opened: Opener) -> None:
    store = await opened()
    first, second = await store.users()
    assert (first.user_id, first.operator, first.created_at) == ("u_a", True, from_microseconds(5))
    assert (second.user_id, second.operator) == ("u_b", False)
    assert [(one.graph_id, one.is_default) for one in await store.graphs("u_b")] == [
        ("g_b", True),
        ("h_b", False),
    ]
    found = await store.key_account("hash a")
    assert found is not None
    key, account = found
    assert (key.admin, key.expires_at, key.last_used_at) == (False, None, None)
    assert account.graph is not None and account.graph.graph_id == "h_a"
    assert [one.grant_id for one in await store.grants("u_a")] == ["t_a"]
    assert await store.leftovers() == {}


async def test_a_server_of_the_version_before_works_on(before: psycopg.Connection, opened: Opener) -> None:
    store = await opened()
    before.execute(OLD_WRITES.format("c", 7).encode())
    await store.add_user(user("u_d"), graph("g_d", "u_d", is_default=True))
    assert [row[:4] for row in before.execute(OLD_READ, ("u_d",))] == [("g_d", "personal", "personal", "u_d")]
    assert [(one.graph_id, one.is_default) for one in await store.graphs("u_c")] == [
        ("g_c", False),
        ("h_c", False),
    ]
    found = await store.key_account("hash c")
    assert found is not None and not found[0].admin and not found[1].user.operator
    assert await store.remove_user("u_c", minutes(1))
    assert before.execute(OLD_READ, ("u_c",)).fetchall() == []
    assert before.execute("SELECT count(*) FROM api_keys WHERE user_id = 'u_c'").fetchone() == (0,)


# The audit log ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE audit_events SET action = 'other'",
        "DELETE FROM audit_events",
        "DELETE FROM audit_events WHERE event_id = 1",
        "TRUNCATE audit_events",
        "INSERT INTO audit_events (event_id, at, action, credential, address, request_id, detail)"
        " VALUES (1, 0, 'other', '', '', '', '') ON CONFLICT (event_id) DO UPDATE SET action = 'other'",
    ],
)
async def test_the_audit_log_is_append_only_for_sql_too(opened: Opener, url: str, statement: str) -> None:
    store = await opened()
    await store.add_audit_events([audit_event(), audit_event("second")])
    kept = await store.audit_events(AuditQuery())
    with administrator(url) as other, pytest.raises(psycopg.errors.RaiseException, match="append-only"):
        other.execute(statement.encode())
    assert await store.audit_events(AuditQuery()) == kept


# Late writes, and purging ------------------------------------------------------------------------

ADDS: list[Callable[[PostgresStore], Awaitable[object]]] = [
    lambda store: store.apply(GRAPH, batch(node("late_1"))),
    lambda store: store.add_event(GRAPH, entry()),
    lambda store: store.touch(GRAPH, "late", ["n_00"], minutes(3)),
    lambda store: store.record_tokens(GRAPH, token_report(session_id="late")),
    lambda store: store.add_file(GRAPH, file("late")),
    lambda store: store.put_skill(GRAPH, skill("late")),
    lambda store: store.add_export(GRAPH, export("late")),
    lambda store: store.blobs(GRAPH).put(b"late"),
]


@pytest.mark.parametrize("number", range(len(ADDS)))
async def test_a_write_under_way_is_waited_for_and_a_later_one_refused(
    stores: Stores, url: str, number: int
) -> None:
    await stores[0].add_user(user(), graph())
    with administrator(url) as other:
        other.execute("BEGIN")
        other.execute("SELECT hold_graph(%s)", (GRAPH,))
        removal = asyncio.ensure_future(stores[0].remove_graph(GRAPH, minutes(5)))
        await wait_for_lock(url)
        late = asyncio.ensure_future(ADDS[number](stores[1]))
        assert await stores[1].revision(GRAPH) == 0, "reads do not wait"
        assert not removal.done()
        other.execute("INSERT INTO tombstones VALUES (%s, 'node', 'a_1', 1)", (GRAPH,))
        other.execute("COMMIT")
    assert await removal
    with pytest.raises(NotFound, match="'graph_one' was deleted") as caught:
        await late
    assert caught.value.code == "graph_deleted"
    assert await stores[0].leftovers() == {"tombstones": 1}
    assert await stores[0].purge_graph(GRAPH) == 1
    assert await stores[0].leftovers() == {}


async def test_writes_that_race_a_removal_leave_nothing(
    stores: Stores, collisions: list[BaseException]
) -> None:
    await stores[0].add_user(user(), graph("graph_own"))
    for _ in range(4):
        await stores[0].add_user(user("user_two"), graph(GRAPH, "user_two"))
        adds = [ADDS[i % len(ADDS)](stores[i % 2]) for i in range(40)]
        removal = stores[1].remove_user("user_two", minutes(5))
        outcomes = await asyncio.gather(*adds[:20], removal, *adds[20:], return_exceptions=True)
        errors = [outcome for outcome in outcomes if isinstance(outcome, BaseException)]
        assert all(isinstance(e, NotFound | Conflict) for e in errors), errors
        await asyncio.gather(*(purge_all(store, GRAPH) for store in stores))
        assert await stores[0].leftovers() == {}
        with administrator_of(stores[0]) as other:
            other.execute("DELETE FROM deleted_graphs")
    assert collisions == []


async def purge_all(store: PostgresStore, graph_id: str) -> int:
    removed = 0
    while step := await store.purge_graph(graph_id, 7):
        removed += step
    return removed


def administrator_of(store: PostgresStore) -> psycopg.Connection:
    return psycopg.connect(autocommit=True, **store._address.parameters)


async def test_two_servers_that_purge_see_the_end_only_when_it_is_there(stores: Stores) -> None:
    await stores[0].add_user(user(), graph())
    await fill_graph(stores[0], GRAPH, "secret", nodes=60)
    await stores[0].blobs(GRAPH).put(b"secret" * 100_000)
    await stores[0].blobs(OTHER_GRAPH).put(b"public" * 100_000)
    with administrator_of(stores[0]) as other:
        rows = sum(
            row[0]
            for table in PURGED
            for row in other.execute(f"SELECT count(*) FROM {table} WHERE graph_id = %s".encode(), (GRAPH,))
        )
    await stores[0].remove_graph(GRAPH, minutes(5))

    async def purge(store: PostgresStore) -> tuple[int, dict[str, int]]:
        removed = await purge_all(store, GRAPH)
        return removed, dict(await store.leftovers())

    outcomes = await asyncio.gather(*(purge(store) for store in (*stores, *stores)))
    assert sum(removed for removed, _ in outcomes) <= rows
    others = {"blobs": 1, "blob_chunks": 3}
    assert [left for _, left in outcomes] == [others] * 4
    assert [blob.size_bytes async for blob in stores[0].blobs(OTHER_GRAPH).list()] == [600_000]


async def test_a_deleted_graph_is_not_filled_with_an_archive(stores: Stores, url: str) -> None:
    await stores[0].add_user(user(), graph())
    await stores[0].remove_graph(GRAPH, minutes(1))
    with pytest.raises(NotFound, match="deleted"):
        await asyncio.to_thread(filling.fill_graph, Address.parse(url), GRAPH, lambda table: [])


async def test_reclaiming_is_refused_when_the_store_is_closed(opened: Opener) -> None:
    store = await opened()
    await store.reclaim()
    await store.close()
    for call in (store.reclaim(), store.leftovers()):
        with pytest.raises(Unavailable, match="closed"):
            await call
