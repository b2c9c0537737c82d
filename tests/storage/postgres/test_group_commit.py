"""Writes that wait together share a transaction, and each has its own outcome."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from hivemem.domain.graph import WriteBatch
from hivemem.errors import InvalidInput, StaleWrite
from hivemem.storage.postgres import PostgresStore
from hivemem.storage.postgres.groups import Claims
from tests.conformance.store.observe import GRAPH, everything
from tests.storage.postgres.conftest import Opener
from tests.storage.postgres.proxy import proxy
from tests.support.builders import batch, delete, edge, entry, hyperedge, node, update
from tests.support.postgres import Server, fresh_database, with_parameters


@contextlib.contextmanager
def held(url: str) -> Iterator[None]:
    """Keep all writes of the graph waiting."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("BEGIN")
        connection.execute("SELECT revision FROM graph_counters FOR UPDATE")
        yield
        connection.execute("COMMIT")


async def together(store: PostgresStore, url: str, *batches: WriteBatch) -> list[int | BaseException]:
    """The outcomes of batches, all but the first of which wait for the next group."""
    with held(url):
        writes = [asyncio.ensure_future(store.apply(GRAPH, one)) for one in batches]
        await asyncio.sleep(0.05)
    return await asyncio.gather(*writes, return_exceptions=True)


def commits(url: str) -> int:
    """Transactions that changed something, by the number that the next one gets."""
    with psycopg.connect(url, autocommit=True) as connection:
        (number,) = connection.execute("SELECT pg_snapshot_xmax(pg_current_snapshot())::text").fetchone() or (
            0,
        )
    return int(number)


async def test_writes_that_wait_share_a_transaction(store: PostgresStore, url: str) -> None:
    await store.apply(GRAPH, batch(node("hub_1")))
    before = commits(url)
    wanted = [batch(node(f"n_{i}"), edge(f"n_{i}", "hub_1"), entry(f"Line {i}.")) for i in range(20)]
    assert await together(store, url, *wanted) == list(range(2, 22))
    # The lock of the test, the write at it, and one group; other tests may use the server too.
    assert commits(url) - before <= 10
    found = await store.nodes(GRAPH, [f"n_{i}" for i in range(20)])
    assert sorted(one.revision for one in found.values()) == list(range(2, 22))
    assert len(await store.timeline(GRAPH)) == 20


async def test_a_refused_write_leaves_the_others_and_no_gap(store: PostgresStore, url: str) -> None:
    await store.apply(GRAPH, batch(node("a_1"), node("b_1")))
    outcomes = await together(
        store,
        url,
        batch(node("first_1")),
        batch(node("second_1")),
        batch(node("c_1"), entry("Kept.")),
        batch(node("a_1"), node("half_1"), entry("Refused.")),
        batch(edge("a_1", "gone_1")),
        batch(edge("a_1", "b_1"), entry("Kept too.")),
    )
    assert outcomes[:3] == [2, 3, 4]
    assert [type(outcome) for outcome in outcomes[3:5]] == [StaleWrite, StaleWrite]
    assert outcomes[5] == 5
    assert await store.revision(GRAPH) == 5
    assert await store.nodes(GRAPH, ["half_1"]) == {}
    events = await store.timeline(GRAPH)
    assert sorted((event.id, event.entry.summary) for event in events) == [(1, "Kept."), (2, "Kept too.")]


async def test_a_group_of_refusals_changes_nothing(store: PostgresStore, url: str) -> None:
    await store.apply(GRAPH, batch(node("a_1")))
    before = await everything(store)
    outcomes = await together(store, url, *(batch(node("a_1"), entry()) for _ in range(6)))
    assert [type(outcome) for outcome in outcomes] == [StaleWrite] * 6
    assert await everything(store) == before


async def test_a_value_that_cannot_be_stored_is_refused_alone(store: PostgresStore, url: str) -> None:
    await store.apply(GRAPH, batch(node("a_1")))
    outcomes = await together(
        store, url, *(batch(node(f"n_{i}"), entry("a\0b" if i == 5 else "Line.")) for i in range(8))
    )
    assert isinstance(outcomes.pop(5), InvalidInput)
    assert sorted(outcomes) == list(range(2, 9))
    assert len(await store.timeline(GRAPH)) == 7


async def test_a_cancelled_caller_leaves_its_write_and_the_group(store: PostgresStore, url: str) -> None:
    await store.apply(GRAPH, batch(node("a_1")))
    with held(url):
        writes = [asyncio.ensure_future(store.apply(GRAPH, batch(node(f"n_{i}")))) for i in range(8)]
        await asyncio.sleep(0.05)
        writes[1].cancel()
        writes[4].cancel()
        await asyncio.sleep(0)
    await asyncio.gather(*writes, return_exceptions=True)
    await store.apply(GRAPH, batch(node("last_1")))
    assert await store.revision(GRAPH) == 10
    assert len(await store.scan(GRAPH)) == 10


async def test_a_group_whose_commit_got_no_answer_is_stored_once(opened: Opener, tmp_path: Path) -> None:
    server = Server()
    try:
        url = fresh_database(server.url)
        async with proxy(server.socket, tmp_path) as between:
            store = await opened(with_parameters(url, host=str(tmp_path)), wait_seconds=10.0)
            for when in ("cut_before", "cut_after"):
                await store.apply(GRAPH, batch(node(f"{when}_0")))
                with held(url):
                    writes = [
                        asyncio.ensure_future(store.apply(GRAPH, batch(node(f"{when}_{i}"), entry())))
                        for i in (0, *range(1, 12))
                    ]
                    await asyncio.sleep(0.05)
                    setattr(between, when, b"COMMIT\0")
                outcomes = await asyncio.gather(*writes, return_exceptions=True)
                assert getattr(between, when) is None, "the line was not cut"
                assert isinstance(outcomes[0], StaleWrite)
                assert len({one for one in outcomes if isinstance(one, int)}) == 11
            assert await store.revision(GRAPH) == 24
            assert len(await store.timeline(GRAPH)) == 22
            await store.close()
    finally:
        server.remove()


CLAIMS = {
    "different nodes": (batch(node("a_1")), batch(node("b_1")), True),
    "the same node": (batch(node("a_1")), batch(node("a_1")), False),
    "edges to one node": (batch(edge("a_1", "hub_1")), batch(edge("b_1", "hub_1", edge_id="e_2")), True),
    "an edge to a new node": (batch(node("a_1")), batch(edge("a_1", "b_1")), False),
    "the same edge": (batch(edge("a_1", "b_1")), batch(edge("a_1", "b_1", edge_id="e_2")), False),
    "one id": (
        batch(edge("a_1", "b_1", edge_id="x_1")),
        batch(hyperedge("a_1", "c_1", "d_1", hyperedge_id="x_1")),
        False,
    ),
    "the diary": (batch(entry()), batch(entry()), True),
}


@pytest.mark.parametrize("name", CLAIMS)
def test_which_writes_may_share(name: str) -> None:
    one, other, expected = CLAIMS[name]
    first, second = Claims.of(one), Claims.of(other)
    assert first is not None
    assert second is not None
    assert first.allow(second) is expected
    assert second.allow(first) is expected


async def test_deletions_and_dependent_writes_take_their_turns(store: PostgresStore, url: str) -> None:
    assert Claims.of(batch(delete(node("a_1")))) is None
    await store.apply(GRAPH, batch(node("a_1"), node("b_1"), edge("a_1", "b_1")))
    present = (await store.nodes(GRAPH, ["b_1"]))["b_1"]
    outcomes = await together(
        store,
        url,
        batch(node("c_1")),
        batch(node("d_1")),
        batch(delete(node("a_1"))),
        batch(update(present)),
        batch(update(present)),
        batch(edge("a_1", "b_1", edge_id="e_2")),
        batch(node("e_1")),
    )
    refused = [type(outcome) for outcome in outcomes if isinstance(outcome, BaseException)]
    assert refused == [StaleWrite, StaleWrite]
    stored = sorted(outcome for outcome in outcomes if isinstance(outcome, int))
    assert stored == [2, 3, 4, 5, 6]
    assert (await store.counts(GRAPH)).edges == 0
