"""Two servers on one database, many callers each: nothing is lost, nothing is half seen."""

from __future__ import annotations

import asyncio
import itertools
import random
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from hivemem.domain.access import Principal, Scope
from hivemem.domain.graph import Kind
from hivemem.domain.node import EnrichmentStatus
from hivemem.errors import StaleWrite
from hivemem.models.executor import ModelExecutor
from hivemem.models.hashing import HashingEmbedder
from hivemem.service.limits import Limits
from hivemem.service.remember import Remember, StoreRequest
from hivemem.storage.postgres import PostgresStore
from tests.conformance.store.observe import GRAPH, Replica, everything, replica
from tests.storage.postgres.conftest import Opener
from tests.support.builders import (
    MODEL,
    FixedClock,
    batch,
    create,
    delete,
    edge,
    entry,
    hyperedge,
    minutes,
    node,
    passage,
    update,
    vectors,
)

Stores = tuple[PostgresStore, PostgresStore]
OWNER = Principal(user_id="user_one", graph_id=GRAPH, scope=Scope.OWNER)


@pytest.fixture
async def stores(opened: Opener) -> AsyncIterator[Stores]:
    yield await opened(wait_seconds=60.0), await opened(wait_seconds=60.0)


async def test_stores_of_one_key_through_two_servers_are_all_versions(stores: Stores) -> None:
    executor = ModelExecutor(HashingEmbedder(32), None)
    services = [
        Remember(store=store, executor=executor, clock=FixedClock(), limits=Limits()) for store in stores
    ]
    shared = {"to_key": "person_maria", "relationship": "mentions"}

    async def put(service: Remember, text: str) -> int:
        request = StoreRequest(key="fact_a", description=text, relationships=(shared,))
        return (await service.store(OWNER, request)).node.write_version

    texts = [f"Writer {number}." for number in range(30)]
    try:
        versions = await asyncio.gather(*(put(services[i % 2], text) for i, text in enumerate(texts)))
    finally:
        executor.close()
    assert sorted(versions) == list(range(1, 31))
    history = await stores[0].versions(GRAPH, Kind.NODE, "fact_a")
    assert {version.state.description for version in history if version.state} == set(texts)
    assert (await stores[0].counts(GRAPH)).edges == 1


async def test_no_increment_is_lost(stores: Stores) -> None:
    await stores[0].apply(GRAPH, batch(node("counter_1", data={"count": 0})))

    async def count_up(store: PostgresStore) -> None:
        while True:
            present = (await store.snapshot(GRAPH, ["counter_1"])).nodes["counter_1"]
            try:
                await store.apply(GRAPH, batch(update(present, data={"count": present.data["count"] + 1})))
            except StaleWrite:
                continue
            return

    await asyncio.gather(*(count_up(stores[i % 2]) for i in range(40)))
    counter = (await stores[0].nodes(GRAPH, ["counter_1"]))["counter_1"]
    assert (counter.data, counter.write_version, counter.revision) == ({"count": 40}, 41, 41)


async def test_writes_in_opposite_orders_do_not_block_each_other(stores: Stores) -> None:
    keys = [f"n_{number}" for number in range(12)]
    ring = [edge(one, other) for one, other in itertools.pairwise(keys)]
    await stores[0].apply(GRAPH, batch(*map(node, keys), *ring, hyperedge(*keys[:6])))
    order = random.Random(7)

    async def rewrite(store: PostgresStore, backwards: bool) -> None:
        while True:
            found = await store.nodes(GRAPH, keys)
            changed = [update(one) for one in (reversed(found.values()) if backwards else found.values())]
            try:
                await store.apply(GRAPH, batch(*changed, entry()))
            except StaleWrite:
                continue
            return

    async def touch(store: PostgresStore, session: str) -> None:
        await store.touch(GRAPH, session, order.sample(keys, len(keys)), minutes(1))

    await asyncio.gather(
        *(rewrite(stores[i % 2], backwards=i % 3 == 0) for i in range(20)),
        *(touch(stores[i % 2], f"session {i % 3}") for i in range(30)),
    )
    assert {one.write_version for one in (await stores[0].nodes(GRAPH, keys)).values()} == {21}
    for session in range(3):
        touches = await stores[1].touched(GRAPH, f"session {session}")
        assert [touch.touch_count for touch in touches] == [10] * len(keys)


async def test_touches_and_deletions_of_the_same_nodes_meet_well(stores: Stores) -> None:
    keys = [f"n_{number}" for number in range(10)]
    for _ in range(3):
        await stores[0].apply(GRAPH, batch(*map(node, keys), edge("n_0", "n_1"), hyperedge(*keys[:5])))
        present = await stores[0].nodes(GRAPH, keys)
        pairs = [(keys[i + 1], keys[i]) for i in range(0, len(keys), 2)]
        await asyncio.gather(
            *(stores[0].apply(GRAPH, batch(*(delete(present[key]) for key in pair))) for pair in pairs),
            *(stores[1].touch(GRAPH, "s", keys, minutes(1)) for _ in range(10)),
        )
        assert await stores[0].touched(GRAPH, "s") == []
        assert (await stores[0].counts(GRAPH)).nodes == 0


async def test_of_equal_relationships_one_is_stored(stores: Stores) -> None:
    await stores[0].apply(GRAPH, batch(node("a_1"), node("b_1"), node("c_1")))
    edges = [edge("a_1", "b_1", edge_id=f"edge_{number}") for number in range(16)]
    triples = [hyperedge("a_1", "b_1", "c_1", hyperedge_id=f"hyper_{number}") for number in range(16)]
    outcomes = await asyncio.gather(
        *(stores[i % 2].apply(GRAPH, batch(one)) for i, one in enumerate((*edges, *triples))),
        return_exceptions=True,
    )
    stored = [outcome for outcome in outcomes if isinstance(outcome, int)]
    assert sorted(stored) == [2, 3]
    assert [type(o) for o in outcomes if not isinstance(o, int)] == [StaleWrite] * 30
    counts = await stores[0].counts(GRAPH)
    assert (counts.edges, counts.hyperedges) == (1, 1)


async def test_relationships_and_deletions_of_their_ends_race(stores: Stores) -> None:
    for number in range(8):
        await stores[0].apply(GRAPH, batch(node(f"a_{number}"), node(f"b_{number}")))
        one = (await stores[0].nodes(GRAPH, [f"a_{number}"]))[f"a_{number}"]
        outcomes = await asyncio.gather(
            stores[0].apply(GRAPH, batch(edge(f"a_{number}", f"b_{number}"))),
            stores[1].apply(GRAPH, batch(delete(one))),
            return_exceptions=True,
        )
        assert isinstance(outcomes[1], int)
        assert isinstance(outcomes[0], int | StaleWrite)
    graph = await replica(stores[0])
    assert not graph.edges
    assert set(graph.nodes) == {f"b_{number}" for number in range(8)}


async def test_vectors_belong_to_the_text_that_is_stored(stores: Stores) -> None:
    await stores[0].apply(GRAPH, batch(node("a_1", "Version 1.")))

    async def rewrite() -> None:
        for version in range(2, 12):
            present = (await stores[0].nodes(GRAPH, ["a_1"]))["a_1"]
            await stores[0].apply(GRAPH, batch(update(present, vectors(), description=f"Version {version}.")))

    async def embed() -> int:
        stored = 0
        for _ in range(25):
            present = (await stores[1].nodes(GRAPH, ["a_1"]))["a_1"]
            number = float(present.description.removeprefix("Version ").removesuffix("."))
            stored += await stores[1].put_vectors(
                GRAPH, "a_1", present.write_version, vectors(passage(number)), EnrichmentStatus.SKIPPED
            )
        return stored

    _, *stored = await asyncio.gather(rewrite(), embed(), embed())
    graph = await replica(stores[0])
    last = graph.nodes["a_1"]
    assert last.node.description == "Version 11."
    assert last.passages in ((), vectors(passage(11.0)).passages)
    assert graph.revision == 11 + sum(stored), "each that was stored has a revision, and no other"


async def test_who_sees_a_revision_sees_all_that_led_to_it(stores: Stores) -> None:
    """Each write stores one node, so that revision N without N nodes would be a gap."""
    writers = 40
    done = asyncio.Event()

    async def read() -> int:
        looks, follower = 0, Replica()
        while not done.is_set():
            revision = await stores[looks % 2].revision(GRAPH)
            await follower.catch_up(stores[looks % 2], limit=5)
            assert follower.revision >= revision
            assert sorted(one.node.revision for one in follower.nodes.values()) == list(
                range(1, follower.revision + 1)
            )
            looks += 1
        return looks

    async def write(number: int) -> None:
        store = stores[number % 2]
        await store.apply(GRAPH, batch(create(node(f"n_{number}"), vectors(passage(1.0))), entry()))
        await store.apply(GRAPH, batch(node(f"m_{number}"), edge(f"m_{number}", f"n_{number}")))

    readers = [asyncio.ensure_future(read()) for _ in range(2)]
    await asyncio.gather(*(write(number) for number in range(writers)))
    done.set()
    assert min(await asyncio.gather(*readers)) > 0
    assert await stores[0].revision(GRAPH) == 2 * writers
    events = await stores[0].timeline(GRAPH, limit=1000)
    assert sorted(event.id for event in events) == list(range(1, writers + 1))
    assert await everything(stores[0]) == await everything(stores[1])


async def test_the_first_writes_of_many_graphs_at_once(stores: Stores) -> None:
    graphs = [f"graph_{number}" for number in range(6)]
    writes = [stores[i % 2].apply(graph, batch(node(f"n_{i}"))) for i, graph in enumerate(5 * graphs)]
    await asyncio.gather(*writes)
    for graph in graphs:
        page = await stores[0].changes(graph, 0, model_id=MODEL)
        assert [changed.node.revision for changed in page.nodes] == [1, 2, 3, 4, 5]


async def test_a_cancelled_write_is_finished(stores: Stores) -> None:
    first = asyncio.ensure_future(stores[0].apply(GRAPH, batch(node("a_1"))))
    await asyncio.sleep(0)
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    await stores[0].close()
    assert await stores[1].nodes(GRAPH, ["a_1"]) == {"a_1": replace(node("a_1"), revision=1)}


async def test_cancelled_reads_leave_their_connections_usable(stores: Stores) -> None:
    await stores[0].apply(GRAPH, batch(*(node(f"n_{number}", "Text. " * 200) for number in range(200))))
    for _ in range(20):
        read = asyncio.ensure_future(stores[0].changes(GRAPH, 0, model_id=MODEL))
        await asyncio.sleep(random.Random(7).uniform(0, 0.01))
        read.cancel()
        await asyncio.wait([read])
    assert len(await stores[0].scan(GRAPH)) == 200
    assert await stores[0].apply(GRAPH, batch(node("a_1"))) == 2
