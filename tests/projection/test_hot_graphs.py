"""The cache of graphs: always fresh, one catch-up for many callers, bounded in bytes."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hivemem.domain.graph import ChangePage
from hivemem.errors import Corruption, Unavailable
from hivemem.ports.store import Store
from hivemem.projection import GraphIndex, HotGraphs
from hivemem.retrieval.analyse import analyse_query
from hivemem.storage.memory import MemoryStore
from hivemem.storage.postgres import PostgresStore
from hivemem.storage.sqlite.store import SqliteStore
from tests.support.builders import MODEL, batch, create, delete, edge, graph, node, passage, user, vectors
from tests.support.postgres import fresh_database

GRAPH = "graph_one"


class CountingStore(MemoryStore):
    """Counts reads; `gate` holds `changes` back until it is set, `failure` is raised by it once."""

    def __init__(self) -> None:
        super().__init__()
        self.revision_reads = 0
        self.change_reads = 0
        self.reads_allowed = 1_000_000
        self.gate = asyncio.Event()
        self.gate.set()
        self.failure: Exception | None = None

    async def revision(self, graph_id: str) -> int:
        self.revision_reads += 1
        assert self.revision_reads <= self.reads_allowed, "the revision is read again and again"
        return await super().revision(graph_id)

    async def changes(self, graph_id: str, since: int, *, model_id: str, limit: int = 1000) -> ChangePage:
        self.change_reads += 1
        page = await super().changes(graph_id, since, model_id=model_id, limit=limit)
        await self.gate.wait()
        if self.failure is not None:
            failure, self.failure = self.failure, None
            raise failure
        return page


@pytest.fixture
async def store() -> CountingStore:
    store = CountingStore()
    await store.add_user(user(), graph())
    return store


def hot_graphs(store: Any, max_bytes: int = 10**9, **changes: Any) -> HotGraphs:
    return HotGraphs(store, MODEL, 2, max_bytes, **changes)


def found(index: GraphIndex, text: str) -> list[str]:
    return [hit.key for hit in index.search_terms(analyse_query(text), 100)]


async def test_a_write_is_seen_by_the_next_call(store: CountingStore) -> None:
    hot = hot_graphs(store)
    assert (await hot.fresh(GRAPH)).node_count == 0
    await store.apply(GRAPH, batch(create(node("alpha", "garden pump"), vectors(passage(0, 1)))))
    index = await hot.fresh(GRAPH)
    assert found(index, "pump") == ["alpha"]
    assert [hit.key for hit in index.search_vectors(np.array([0, 1], dtype=np.float32), 3)] == ["alpha"]
    await store.apply(GRAPH, batch(delete((await store.nodes(GRAPH, ["alpha"]))["alpha"])))
    assert found(await hot.fresh(GRAPH), "pump") == []


async def test_an_unchanged_graph_costs_one_read(store: CountingStore) -> None:
    await store.apply(GRAPH, batch(node("alpha")))
    hot = hot_graphs(store)
    index = await hot.fresh(GRAPH)
    store.revision_reads = store.change_reads = 0
    assert await hot.fresh(GRAPH) is index
    assert (store.revision_reads, store.change_reads) == (1, 0)


async def test_loading_goes_page_by_page(store: CountingStore) -> None:
    for number in range(25):
        await store.apply(GRAPH, batch(node(f"key_{number:02d}", "garden")))
    index = await hot_graphs(store, page_rows=10).fresh(GRAPH)
    assert found(index, "garden") == [f"key_{number:02d}" for number in range(25)]
    assert store.change_reads == 3


async def test_callers_of_one_graph_share_a_catch_up(store: CountingStore) -> None:
    await store.apply(GRAPH, batch(node("alpha")))
    hot = hot_graphs(store)
    indexes = await asyncio.gather(*(hot.fresh(GRAPH) for _ in range(20)))
    assert store.change_reads == 1
    assert all(index is indexes[0] for index in indexes)


async def test_joining_a_running_catch_up_does_not_miss_a_later_write(store: CountingStore) -> None:
    await store.apply(GRAPH, batch(node("alpha", "garden")))
    hot = hot_graphs(store)
    store.gate.clear()
    first = asyncio.create_task(hot.fresh(GRAPH))
    while not store.change_reads:
        await asyncio.sleep(0)
    # The running catch-up has read its page already, so it cannot know this write.
    await store.apply(GRAPH, batch(node("beta", "garden")))
    second = asyncio.create_task(hot.fresh(GRAPH))
    await asyncio.sleep(0)
    store.gate.set()
    assert found(await second, "garden") == ["alpha", "beta"]
    assert "alpha" in found(await first, "garden")


async def test_a_catch_up_that_has_ended_is_not_joined(store: CountingStore) -> None:
    """A caller who came between its end and its tidying up awaited it for ever, and without a pause."""
    hot = hot_graphs(store)
    ended = asyncio.ensure_future(hot.fresh(GRAPH))
    await ended
    await store.apply(GRAPH, batch(create(node("late", "late"))))
    hot._catching_up[GRAPH] = ended
    store.reads_allowed = 10
    assert found(await hot.fresh(GRAPH), "late") == ["late"]


async def test_a_cancelled_caller_does_not_stop_the_others(store: CountingStore) -> None:
    await store.apply(GRAPH, batch(node("alpha", "garden")))
    hot = hot_graphs(store)
    store.gate.clear()
    first, second = (asyncio.create_task(hot.fresh(GRAPH)) for _ in range(2))
    while not store.change_reads:
        await asyncio.sleep(0)
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    store.gate.set()
    assert found(await second, "garden") == ["alpha"]
    assert store.change_reads == 1


async def test_a_busy_store_is_reported_and_the_next_call_succeeds(store: CountingStore) -> None:
    await store.apply(GRAPH, batch(node("alpha", "garden")))
    hot = hot_graphs(store)
    store.failure = Unavailable("the database is busy; try again.")
    with pytest.raises(Unavailable):
        await hot.fresh(GRAPH)
    assert found(await hot.fresh(GRAPH), "garden") == ["alpha"]


async def test_an_index_that_failed_half_way_is_thrown_away(store: CountingStore) -> None:
    await store.apply(GRAPH, batch(node("alpha", "garden")))
    hot = hot_graphs(store)
    before = await hot.fresh(GRAPH)
    await store.apply(
        GRAPH, batch(node("beta", "garden"), create(node("gamma", "garden"), vectors(passage(1, 0, 0))))
    )
    with pytest.raises(Corruption):
        await hot.fresh(GRAPH)
    assert hot.graph_ids == ()
    gamma = (await store.nodes(GRAPH, ["gamma"]))["gamma"]
    await store.apply(GRAPH, batch(delete(gamma)))
    after = await hot.fresh(GRAPH)
    assert after is not before
    assert found(after, "garden") == ["alpha", "beta"]


async def test_a_store_put_back_to_an_earlier_state_is_loaded_anew(store: CountingStore) -> None:
    hot = hot_graphs(store)
    await store.apply(GRAPH, batch(node("alpha", "garden")))
    await store.apply(GRAPH, batch(node("beta", "garden")))
    assert found(await hot.fresh(GRAPH), "garden") == ["alpha", "beta"]
    earlier = CountingStore()
    await earlier.add_user(user(), graph())
    await earlier.apply(GRAPH, batch(node("gamma", "garden")))
    store.__dict__.update(earlier.__dict__)
    assert found(await hot.fresh(GRAPH), "garden") == ["gamma"]


async def test_the_least_recently_used_graphs_are_dropped_and_come_back_right(store: CountingStore) -> None:
    names = [f"graph_{number}" for number in range(4)]
    for number, name in enumerate(names):
        await store.add_user(user(f"user_{number}"), graph(name, f"user_{number}"))
        nodes = [node(f"key_{n}", f"garden {name} {n}") for n in range(50)]
        await store.apply(name, batch(*nodes, edge("key_0", "key_1")))
    one = (await hot_graphs(store).fresh(names[0])).size_bytes
    hot = hot_graphs(store, max_bytes=int(2.5 * one))
    for name in (names[0], names[1], names[0], names[2]):
        await hot.fresh(name)
    assert hot.graph_ids == (names[0], names[2])
    assert hot.size_bytes <= 2.5 * one
    for name in names * 2:
        index = await hot.fresh(name)
        assert len(found(index, name)) == 50
        assert index.degree("key_0") == 1
    tiny = hot_graphs(store, max_bytes=1)
    await tiny.fresh(names[0])
    await tiny.fresh(names[1])
    assert tiny.graph_ids == (names[1],)


async def test_two_large_graphs_do_not_keep_each_other_from_loading(store: CountingStore) -> None:
    for number in (2, 3):
        await store.add_user(user(f"user_{number}"), graph(f"graph_{number}", f"user_{number}"))
        await store.apply(f"graph_{number}", batch(node("alpha", "garden")))
    hot = hot_graphs(store, max_bytes=1)
    indexes = await asyncio.gather(*(hot.fresh(f"graph_{n}") for n in (2, 3) * 5))
    assert all(found(index, "garden") == ["alpha"] for index in indexes)


async def test_a_dropped_graph_is_loaded_anew(store: CountingStore) -> None:
    await store.apply(GRAPH, batch(node("alpha")))
    hot = hot_graphs(store)
    before = await hot.fresh(GRAPH)
    hot.drop(GRAPH)
    hot.drop("never seen")
    after = await hot.fresh(GRAPH)
    assert after is not before
    assert after.revision == before.revision


async def test_a_write_of_another_process_is_seen_by_the_next_call(tmp_path: Path) -> None:
    left = await SqliteStore.open(tmp_path / "hivemem.db")
    right = await SqliteStore.open(tmp_path / "hivemem.db")
    try:
        await left.add_user(user(), graph())
        hot_left, hot_right = hot_graphs(left, page_rows=7), hot_graphs(right, page_rows=7)
        for number in range(20):
            writer, reader = (left, hot_right) if number % 2 else (right, hot_left)
            await writer.apply(
                GRAPH,
                batch(create(node(f"key_{number:02d}", f"writer item {number}"), vectors(passage(0, 1)))),
            )
            assert f"key_{number:02d}" in found(await reader.fresh(GRAPH), f"item {number}")
        keys = [f"key_{number:02d}" for number in range(20)]
        for hot in (hot_left, hot_right):
            index = await hot.fresh(GRAPH)
            assert found(index, "writer item") == keys
            assert [hit.key for hit in index.search_vectors(np.array([0, 1], dtype=np.float32), 30)] == keys
        await right.apply(GRAPH, batch(delete((await right.nodes(GRAPH, ["key_03"]))["key_03"])))
        assert "key_03" not in found(await hot_left.fresh(GRAPH), "writer item")
    finally:
        await left.close()
        await right.close()


async def test_another_model_never_mixes_with_the_index_of_the_first(store: CountingStore) -> None:
    for number in range(4):
        vector = vectors(passage(0, 0, 1), model_id="other") if number % 2 else vectors(passage(0, 1))
        await store.apply(GRAPH, batch(create(node(f"key_{number}", "garden"), vector)))
    hot = hot_graphs(store, page_rows=1)
    store.gate.clear()
    waiting = asyncio.create_task(hot.fresh(GRAPH))
    while not store.change_reads:
        await asyncio.sleep(0)
    hot.use_model("other", 3)
    store.gate.set()
    for index in (await waiting, await hot.fresh(GRAPH)):
        assert (index.dimension, index.embedded_count, index.node_count) == (3, 2, 4)
        hits = index.search_vectors(np.array([0, 0, 1], dtype=np.float32), 5)
        assert [hit.key for hit in hits] == ["key_1", "key_3"]


@pytest.fixture(params=["sqlite", "postgres"])
async def durable(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    """A store of each kind that servers use."""
    if request.param == "sqlite":
        opened: Store = await SqliteStore.open(tmp_path / "memory.db")
    else:
        opened = await PostgresStore.open(fresh_database(), connections=4, wait_seconds=60.0)
    yield opened
    await opened.close()


@pytest.mark.parametrize("rooms", [0, 1, 2.5])
async def test_too_little_memory_for_the_graphs_in_use_costs_time_and_no_answer(
    durable: Store, rooms: float
) -> None:
    """Six graphs that are read and written at once, and room for some of them, or for none."""
    # The name of a graph is a word of all its texts, and of no other's.
    graphs = ["amber", "birch", "cedar", "dune", "ember", "fjord"]
    written = dict.fromkeys(graphs, 30)

    async def write(graph_id: str, number: int) -> None:
        one = create(node(f"n_{number}", f"pump {graph_id}"))
        await durable.apply(graph_id, batch(one))

    for graph_id in graphs:
        await durable.apply(
            graph_id,
            batch(
                *(
                    create(
                        node(f"n_{number}", f"pump {graph_id}"),
                        vectors(passage(1, number)),
                    )
                    for number in range(written[graph_id])
                ),
                *(edge(f"n_{number}", f"n_{number + 1}") for number in range(written[graph_id] - 1)),
            ),
        )
    one_graph = (await hot_graphs(durable).fresh(graphs[0])).size_bytes
    hot = hot_graphs(durable, max_bytes=int(rooms * one_graph), page_rows=7)
    loads = 0

    async def read(seed: int) -> None:
        nonlocal loads
        chance = random.Random(seed)
        for _ in range(25):
            graph_id = chance.choice(graphs)
            expected = written[graph_id]
            loads += graph_id not in hot.graph_ids
            index = await hot.fresh(graph_id)
            keys = await asyncio.to_thread(found, index, "pump")
            # Writes that came since may be in there too; nothing of another graph is.
            assert {f"n_{number}" for number in range(expected)} <= set(keys)
            assert len(keys) <= written[graph_id] + 1
            assert await asyncio.to_thread(found, index, graph_id) != []
            other = graphs[graphs.index(graph_id) - 1]
            assert await asyncio.to_thread(found, index, other) == []
            nearest = index.search_vectors(np.array([1, 0], dtype=np.float32), 30)
            assert len(nearest) == 30

    async def keep_writing(graph_id: str) -> None:
        for number in range(30, 42):
            await write(graph_id, number)
            written[graph_id] = number + 1

    await asyncio.gather(*(read(seed) for seed in range(8)), *map(keep_writing, graphs))
    assert loads > len(graphs), "graphs were to be dropped and loaded again"
    for graph_id in graphs:
        assert len(found(await hot.fresh(graph_id), "pump")) == 42
    assert len(hot.graph_ids) <= max(1, rooms)
