"""What happens when connections, the server or locks fail: against a real server, which is really stopped."""

from __future__ import annotations

import asyncio
import logging
import random
from dataclasses import replace
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit, urlunsplit

import psycopg
import pytest

from hivemem.domain.node import EnrichmentStatus
from hivemem.errors import (
    Conflict,
    Corruption,
    HivememError,
    InvalidInput,
    NotFound,
    StaleWrite,
    Unavailable,
)
from hivemem.storage.postgres import PostgresStore
from hivemem.storage.postgres.connection import Address
from tests.conformance.store.observe import GRAPH
from tests.storage.postgres.conftest import COMMIT, Opener, administrator, wait_for_lock
from tests.storage.postgres.proxy import Proxy
from tests.support.builders import (
    api_key,
    batch,
    create,
    delete,
    edge,
    entry,
    graph,
    hyperedge,
    minutes,
    node,
    passage,
    user,
    vectors,
)
from tests.support.postgres import Server, with_parameters


def end_connections(url: str) -> int:
    """End all other connections to the server of stores; the number of them."""
    with administrator(url) as connection:
        ended = connection.execute(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE application_name = 'hivemem'"
        ).fetchall()
    return len(ended)


async def test_a_store_outlives_the_end_of_all_its_connections(opened: Opener, own_url: str) -> None:
    store = await opened(own_url)
    assert await store.apply(GRAPH, batch(node("a_1"))) == 1
    await asyncio.gather(*(store.revision(GRAPH) for _ in range(20)))
    for revision in (2, 3, 4):
        assert await asyncio.to_thread(end_connections, own_url) >= 1
        assert await store.apply(GRAPH, batch(node(f"n_{revision}"))) == revision
        await asyncio.to_thread(end_connections, own_url)
        assert await store.revision(GRAPH) == revision


async def test_connections_that_end_under_running_calls_cost_nothing(opened: Opener, own_url: str) -> None:
    store = await opened(own_url)
    writes = [asyncio.ensure_future(store.apply(GRAPH, batch(node(f"n_{i}")))) for i in range(60)]
    reads = [asyncio.ensure_future(store.counts(GRAPH)) for _ in range(60)]
    for _ in range(5):
        await asyncio.to_thread(end_connections, own_url)
        await asyncio.sleep(0.01)
    assert sorted(await asyncio.gather(*writes)) == list(range(1, 61))
    await asyncio.gather(*reads)
    assert len(await store.scan(GRAPH)) == 60
    assert await store.revision(GRAPH) == 60


@pytest.mark.parametrize("mode", ["fast", "immediate"])
async def test_calls_wait_for_a_server_that_starts_again(
    opened: Opener, server: Server, own_url: str, mode: str
) -> None:
    store = await opened(own_url, wait_seconds=30.0)
    acknowledged = [await store.apply(GRAPH, batch(node(f"n_{i}"))) for i in range(5)]
    await asyncio.to_thread(server.stop, mode)
    writes = [asyncio.ensure_future(store.apply(GRAPH, batch(node(f"m_{i}")))) for i in range(5)]
    read = asyncio.ensure_future(store.revision(GRAPH))
    await asyncio.sleep(0.2)
    assert not any(call.done() for call in (*writes, read))
    await asyncio.to_thread(server.start)
    assert sorted([*acknowledged, *await asyncio.gather(*writes)]) == list(range(1, 11))
    assert 5 <= await read <= 10
    assert len(await store.scan(GRAPH)) == 10


async def test_a_server_that_is_away_is_said_to_be_and_is_found_again(
    opened: Opener, server: Server, own_url: str
) -> None:
    store = await opened(own_url, wait_seconds=0.3)
    await store.apply(GRAPH, batch(node("a_1")))
    await asyncio.to_thread(server.stop)
    try:
        for _ in range(3):
            with pytest.raises(Unavailable, match=r"postgres at .*:5432 could not be reached") as caught:
                await store.revision(GRAPH)
            assert caught.value.retryable
        with pytest.raises(Unavailable, match="could not be reached"):
            await store.apply(GRAPH, batch(node("b_1")))
        with pytest.raises(Unavailable, match="postgres at"):
            await opened(own_url)
    finally:
        await asyncio.to_thread(server.start)
    # A pool that waits ever longer between attempts would not be back after so few calls.
    for _ in range(15):
        try:
            assert await store.revision(GRAPH) == 1
            break
        except Unavailable:
            continue
    else:
        pytest.fail("the store did not come back")
    assert await store.apply(GRAPH, batch(node("b_1"))) == 2


async def test_a_lock_that_somebody_else_holds_is_waited_for_and_then_named(opened: Opener, url: str) -> None:
    store = await opened(wait_seconds=0.3)
    await store.apply(GRAPH, batch(node("a_1")))
    with administrator(url) as other:
        other.execute("BEGIN")
        other.execute("SELECT revision FROM graph_counters FOR UPDATE")
        with pytest.raises(Unavailable, match="busy_timeout_seconds"):
            await store.apply(GRAPH, batch(node("b_1")))
        assert await store.revision(GRAPH) == 1, "reads do not wait for writes"
        other.execute("COMMIT")
    assert await store.apply(GRAPH, batch(node("b_1"))) == 2


async def test_writes_that_queue_for_too_long_are_told_so(opened: Opener, url: str) -> None:
    store = await opened(wait_seconds=0.3)
    await store.apply(GRAPH, batch(node("a_1")))
    with administrator(url) as other:
        other.execute("BEGIN")
        other.execute("SELECT revision FROM graph_counters FOR UPDATE")
        outcomes = await asyncio.gather(
            *(store.apply(GRAPH, batch(node(f"n_{i}"))) for i in range(8)), return_exceptions=True
        )
        # They hold one connection together, so that another graph is written and read meanwhile.
        assert all(isinstance(outcome, Unavailable) for outcome in outcomes)
        assert await store.apply("graph_two", batch(node("a_1"))) == 1
        other.execute("COMMIT")
    assert await store.revision(GRAPH) == 1


async def test_a_used_up_pool_names_the_setting(opened: Opener) -> None:
    store = await opened(connections=1, wait_seconds=0.2)
    deadline = asyncio.get_running_loop().time() + 10
    async with store._pool._connection(deadline):
        outcomes = await asyncio.gather(
            store.revision(GRAPH), store.apply(GRAPH, batch(node("a_1"))), return_exceptions=True
        )
    for outcome in outcomes:
        assert isinstance(outcome, Unavailable)
        assert "all 1 connections" in outcome.message
        assert "database_connections" in outcome.message
    assert await store.revision(GRAPH) == 0


async def test_a_statement_that_takes_too_long_is_ended(opened: Opener, url: str) -> None:
    store = await opened(statement_seconds=0.2, wait_seconds=5.0)
    with administrator(url) as other:
        other.execute("BEGIN")
        other.execute("LOCK TABLE nodes IN ACCESS EXCLUSIVE MODE")
        with pytest.raises(Unavailable, match="database_statement_seconds"):
            await store.nodes(GRAPH, ["a_1"])
        with pytest.raises(Unavailable, match="database_statement_seconds"):
            await store.apply(GRAPH, batch(node("a_1")))
    assert await store.apply(GRAPH, batch(node("a_1"))) == 1


async def test_deadlocks_are_repeated(opened: Opener, url: str) -> None:
    """Somebody else locks in the opposite order; one of the two is rolled back."""
    store = await opened(wait_seconds=20.0)
    await store.apply(GRAPH, batch(node("a_1")))
    await store.touch(GRAPH, "s", ["a_1"], minutes(1))
    with administrator(url) as other:
        # The one that waited longer finds the deadlock, and is its victim.
        other.execute("SET deadlock_timeout = '10s'")
        other.execute("BEGIN")
        other.execute("SELECT key FROM nodes WHERE key = 'a_1' FOR UPDATE")
        touch = asyncio.ensure_future(store.touch(GRAPH, "s", ["a_1"], minutes(2)))
        # It holds the row of the conversation, and waits for the node.
        await wait_for_lock(url)
        await asyncio.to_thread(other.execute, "UPDATE sessions SET tool_calls = 10 WHERE session_id = 's'")
        other.execute("COMMIT")
        await touch
        calls = other.execute("SELECT tool_calls FROM sessions").fetchall()
    assert calls == [(11,)], "the touch was rolled back, and made again after the other's change"
    (touched,) = await store.touched(GRAPH, "s")
    assert touched.touch_count == 2


async def test_statements_that_the_server_has_forgotten_are_sent_anew(opened: Opener) -> None:
    """A pooler between, or a failed pipeline, leaves the driver with names that the server does not know."""
    store = await opened(connections=1)
    for number in range(1, 13):
        await store.apply(GRAPH, batch(node(f"n_{number}")))
        await store.revision(GRAPH)
        counted = await store.counts(GRAPH)
    deadline = asyncio.get_running_loop().time() + 10
    for forgotten in (12, 13):
        async with store._pool._connection(deadline) as connection:
            # Not by way of the driver, which would take notice.
            connection.pgconn.exec_(b"DEALLOCATE ALL")
        if forgotten == 12:
            assert await store.revision(GRAPH) == 12
            assert await store.counts(GRAPH) == counted
        else:
            assert await store.apply(GRAPH, batch(node("n_13"))) == 13
    assert len(await store.scan(GRAPH)) == 13


async def test_a_connection_is_good_after_refused_writes(opened: Opener) -> None:
    """What the server skips after a refusal was never prepared, whatever the driver thinks."""
    store = await opened(connections=1)
    await store.add_user(user(), graph(GRAPH))
    await store.add_user(user("user_two"), graph("graph_gone", "user_two"))
    await store.remove_user("user_two", minutes(5))
    for number in range(1, 21):
        with pytest.raises(NotFound):
            await store.apply("graph_gone", batch(node("late"), entry("Late.")))
        with pytest.raises(NotFound):
            await store.touch("graph_gone", "s", ["late"], minutes(3))
        assert await store.apply(GRAPH, batch(node(f"n_{number}"), entry("Here."))) == number
        await store.touch(GRAPH, "s", [f"n_{number}"], minutes(3))


# Lost answers ----------------------------------------------------------------------------------


WRITES = {
    "nodes": batch(create(node("b_1"), vectors(passage(1.0))), entry("Stored.")),
    "edge": batch(node("b_1"), edge("a_1", "b_1")),
    "deletion": batch(delete(node("a_1"))),
    "diary": batch(entry("Said."), entry("And done.")),
}


@pytest.mark.parametrize("when", ["cut_before", "cut_after"])
@pytest.mark.parametrize("name", WRITES)
async def test_a_batch_whose_commit_got_no_answer_is_stored_once(
    cut_store: PostgresStore, between: Proxy, name: str, when: str
) -> None:
    changes = WRITES[name].changes_graph
    await cut_store.apply(GRAPH, batch(node("a_1")))
    setattr(between, when, COMMIT)
    assert await cut_store.apply(GRAPH, WRITES[name]) == 1 + changes
    assert getattr(between, when) is None, "the line was not cut"
    assert await cut_store.revision(GRAPH) == 1 + changes
    assert len(await cut_store.timeline(GRAPH)) == len(WRITES[name].timeline)


@pytest.mark.parametrize("when", ["cut_before", "cut_after"])
async def test_other_writes_whose_commit_got_no_answer_are_made_once(
    cut_store: PostgresStore, between: Proxy, when: str
) -> None:
    await cut_store.apply(GRAPH, batch(node("a_1")))

    setattr(between, when, COMMIT)
    await cut_store.add_user(user(), graph())
    assert (await cut_store.users(), await cut_store.graphs("user_one")) == ([user()], [graph()])
    setattr(between, when, COMMIT)
    await cut_store.add_key(api_key())
    assert await cut_store.keys() == [api_key()]
    setattr(between, when, COMMIT)
    assert await cut_store.revoke_key(api_key().key_id, minutes(3))
    assert [key.revoked_at for key in await cut_store.keys()] == [minutes(3)]
    setattr(between, when, COMMIT)
    with pytest.raises(Conflict):
        await cut_store.add_user(user(), graph())
    setattr(between, when, COMMIT)
    assert not await cut_store.revoke_key(api_key().key_id, minutes(4))

    setattr(between, when, COMMIT)
    assert await cut_store.put_vectors(GRAPH, "a_1", 1, vectors(passage(1.0)), EnrichmentStatus.SKIPPED)
    assert await cut_store.vector_models(GRAPH) == {"test-model": 1}
    setattr(between, when, COMMIT)
    await cut_store.touch(GRAPH, "s", ["a_1"], minutes(1))
    assert len(await cut_store.touched(GRAPH, "s")) == 1
    setattr(between, when, COMMIT)
    assert await cut_store.acquire_lease("work", "one", at=minutes(0), expires_at=minutes(1))
    assert not await cut_store.acquire_lease("work", "two", at=minutes(0), expires_at=minutes(1))


async def test_a_write_that_others_followed_is_still_recognised(
    cut_store: PostgresStore, between: Proxy, opened: Opener, own_url: str
) -> None:
    other = await opened(own_url)
    await cut_store.apply(GRAPH, batch(node("a_1")))
    between.cut_after = COMMIT
    write = asyncio.ensure_future(cut_store.apply(GRAPH, batch(node("b_1"))))
    while await other.revision(GRAPH) < 2:
        await asyncio.sleep(0.001)
    await other.apply(GRAPH, batch(delete(node("b_1"))))
    assert await write == 2
    assert await cut_store.nodes(GRAPH, ["b_1"]) == {}


async def test_a_refusal_is_told_although_the_line_is_cut_behind_it(
    cut_store: PostgresStore, between: Proxy
) -> None:
    await cut_store.apply(GRAPH, batch(node("a_1")))
    between.cut_after = b"ROLLBACK\0"
    with pytest.raises(StaleWrite):
        await cut_store.apply(GRAPH, batch(node("a_1")))
    assert await cut_store.revision(GRAPH) == 1


async def test_an_outcome_that_stays_open_is_said_to_be(
    between: Proxy, opened: Opener, own_url: str, tmp_path: Path
) -> None:
    address = with_parameters(own_url, host=str(tmp_path))
    store = await opened(address, connections=1, wait_seconds=0.5)
    await store.apply(GRAPH, batch(node("a_1")))
    between.cut_after = COMMIT
    between.refuses = True
    with pytest.raises(Unavailable, match="may have been stored; repeat the call") as caught:
        await store.apply(GRAPH, batch(node("b_1")))
    assert caught.value.facts == {"outcome": "unknown"}


async def test_round_trips(cut_store: PostgresStore, between: Proxy) -> None:
    """The numbers that docs/decisions/postgresql.md states."""
    await cut_store.apply(GRAPH, batch(node("a_1"), node("b_1"), edge("a_1", "b_1")))

    async def cost(call) -> int:
        before = between.round_trips
        await call
        return between.round_trips - before

    write = batch(create(node("c_1"), vectors(passage(1.0))), edge("c_1", "a_1"), entry())
    assert await cost(cut_store.apply(GRAPH, write)) == 2
    assert await cost(cut_store.apply(GRAPH, batch(entry()))) == 2
    assert await cost(cut_store.apply(GRAPH, batch(delete(node("c_1"))))) == 3
    put = cut_store.put_vectors(GRAPH, "a_1", 1, vectors(passage(1.0)), EnrichmentStatus.SKIPPED)
    assert await cost(put) == 2
    assert await cost(cut_store.touch(GRAPH, "s", ["a_1"], minutes(1))) == 1
    assert await cost(cut_store.revision(GRAPH)) == 1
    assert await cost(cut_store.changes(GRAPH, 0, model_id="test-model")) == 1
    assert await cost(cut_store.nodes(GRAPH, ["a_1", "b_1"])) == 1
    assert await cost(cut_store.snapshot(GRAPH, ["a_1"], [edge("a_1", "b_1").identity])) == 1
    found = cut_store.relationships(GRAPH, ["a_1", "b_1"], edge_limit=5, hyperedge_limit=5)
    assert await cost(found) == 1
    assert await cost(cut_store.counts(GRAPH)) == 1
    assert await cost(cut_store.key_account("none")) == 1
    assert await cost(cut_store.token_account("none", None)) == 1
    assert await cost(cut_store.account("none", "none")) == 1


# Values and addresses --------------------------------------------------------------------------


async def test_values_that_postgresql_cannot_hold_are_invalid_input(store: PostgresStore) -> None:
    with pytest.raises(InvalidInput, match="surrogate"):
        await store.touch(GRAPH, "\ud800", [], minutes(1))
    with pytest.raises(InvalidInput, match="surrogate"):
        await store.timeline(GRAPH, node_key="\udfff")
    with pytest.raises(InvalidInput, match="NUL"):
        await store.touch(GRAPH, "a\0b", [], minutes(1))
    with pytest.raises(InvalidInput, match="NUL"):
        await store.apply(GRAPH, batch(entry("a\0b")))
    with pytest.raises(InvalidInput, match="64 bits"):
        await store.apply(GRAPH, batch(node("a_1", write_version=2**63)))
    assert await store.nodes(GRAPH, ["\ud800", "a\0b"]) == {}
    assert await store.revision(GRAPH) == 0
    assert await store.apply(GRAPH, batch(node("a_1"))) == 1


async def test_the_longest_names_fit_into_the_indexes(store: PostgresStore) -> None:
    """Signs of four bytes that do not compress; an index entry holds 2,700 bytes."""
    signs = random.Random(7)

    def name(length: int) -> str:
        return "".join(chr(signs.randrange(0x20000, 0x2A000)) for _ in range(length))

    one, other, third = (node(name(256)) for _ in range(3))
    line = edge(one.key, other.key, name(2_000), edge_id="edge_1")
    many = hyperedge(one.key, other.key, third.key, relationship=name(2_000), hyperedge_id="hyper_1")
    await store.apply(GRAPH, batch(one, other, third, line, many, entry(node_key=one.key)))
    session = name(256)
    await store.touch(GRAPH, session, [one.key], minutes(1))
    assert [touch.key for touch in await store.touched(GRAPH, session)] == [one.key]
    assert len(await store.timeline(GRAPH, node_key=one.key)) == 1
    with pytest.raises(StaleWrite, match="edge_1"):
        await store.apply(GRAPH, batch(replace(line, edge_id="edge_2")))
    await store.apply(GRAPH, batch(replace(line, relationship=line.relationship + "\\", edge_id="edge_2")))
    await store.apply(GRAPH, batch(edge(one.key, other.key, "\\x00", edge_id="edge_3")))


async def test_a_damaged_row_is_named(store: PostgresStore, url: str) -> None:
    await store.apply(GRAPH, batch(node("a_1"), node("b_1")))
    with administrator(url) as other:
        other.execute("UPDATE nodes SET data = '{' WHERE key = 'a_1'")
    with pytest.raises(Corruption, match="'a_1'"):
        await store.nodes(GRAPH, ["a_1"])
    assert list(await store.nodes(GRAPH, ["b_1"])) == ["b_1"]


async def test_a_table_that_is_gone_is_corruption(store: PostgresStore, url: str) -> None:
    with administrator(url) as other:
        other.execute("DROP TABLE session_nodes")
    with pytest.raises(Corruption, match="session_nodes"):
        await store.touched(GRAPH, "s")


PASSWORD = "tr0ub4dor&3"


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://me:tr0ub4dor%263@127.0.0.1:1/memory",
        "postgresql://me:tr0ub4dor&3@127.0.0.1:1/memory?connect_timeout=1",
        "postgresql://me:tr0ub4dor&3@nowhere.invalid:1/memory",
        "postgresql://me:tr0ub4dor&3@host:port/memory",
        "postgresql://me:x@tr0ub4dor&3@host/memory",
        "postgresql://me:x/tr0ub4dor&3@host/memory",
        "postgresql://me:tr0ub4dor&3@host/memory?no_such_option=1",
        "postgresql://me@host/memory?password=tr0ub4dor&3%",
        "mysql://me:tr0ub4dor&3@host/memory",
        "me:tr0ub4dor&3@host/memory",
    ],
)
async def test_a_password_is_never_told(address: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    with pytest.raises(HivememError) as caught:
        await PostgresStore.open(address)
    told: list[str] = [caplog.text]
    error: BaseException | None = caught.value
    while error is not None:
        told += [str(error), repr(error)]
        error = None if error.__suppress_context__ else error.__cause__ or error.__context__
    assert "tr0ub4dor" not in "\n".join(told)
    assert isinstance(caught.value, InvalidInput | Unavailable)


def test_an_address_prints_without_its_credentials() -> None:
    address = Address.parse("postgresql://me:tr0ub4dor%263@db.example:6432/memory?sslmode=require")
    assert str(address) == "memory at db.example:6432"
    assert "tr0ub4dor" not in f"{address} {address!r}"
    assert address.parameters["password"] == PASSWORD
    assert "***" in address.without_secrets(f"bad password {PASSWORD}")


async def test_what_keeps_out_is_told_on_one_line_with_what_to_look_at(url: str) -> None:
    parts = urlsplit(url)
    for address, said in {
        urlunsplit(parts._replace(path="/no_such_database")): 'database "no_such_database" does not exist',
        urlunsplit(parts._replace(netloc="me:tr0ub4dor@127.0.0.1:1", query="")): "Connection refused",
    }.items():
        with pytest.raises(Unavailable) as caught:
            await PostgresStore.open(address)
        assert said in caught.value.message and "\n" not in caught.value.message
        assert "host, user, password and database in database_url" in caught.value.message


async def test_a_role_without_rights_is_told_what_it_has_to_own(url: str) -> None:
    schema = dict(parse_qsl(urlsplit(url).query))["options"].rpartition("=")[2]
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"DROP ROLE IF EXISTS {schema}_poor; CREATE ROLE {schema}_poor".encode())
        connection.execute(f"GRANT USAGE ON SCHEMA {schema} TO {schema}_poor".encode())
    try:
        options = f"-csearch_path={schema} -crole={schema}_poor"
        with pytest.raises(Unavailable, match=r"permission denied for .* owner of its schema"):
            await PostgresStore.open(with_parameters(url, options=options))
    finally:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(f"DROP OWNED BY {schema}_poor; DROP ROLE {schema}_poor".encode())
