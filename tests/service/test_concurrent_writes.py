"""Many callers at once lose nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from dataclasses import replace

import pytest

from hivemem.domain.edge import EdgeIdentity, HyperedgeIdentity
from hivemem.domain.graph import Deletion, GraphId, Kind, NodeWrite, Snapshot, WriteBatch
from hivemem.errors import StaleWrite, Unavailable
from hivemem.models.executor import ModelExecutor
from hivemem.service.limits import Limits
from hivemem.service.remember import Remember, StoreRequest
from hivemem.storage.memory import MemoryStore
from tests.service.conftest import GRAPH, OWNER, World
from tests.support.builders import FixedClock

WRITERS = 50


async def test_fifty_stores_of_one_key_are_fifty_versions(world: World) -> None:
    results = await asyncio.gather(*(world.put("fact_a", f"Writer {n}.") for n in range(WRITERS)))
    assert sorted(result.node.write_version for result in results) == list(range(1, WRITERS + 1))
    assert [result.status for result in results].count("created") == 1
    stored = await world.node("fact_a")
    assert stored.write_version == WRITERS
    [last] = [result for result in results if result.node.write_version == WRITERS]
    assert stored.description == last.node.description
    versions = await world.store.versions(GRAPH, Kind.NODE, "fact_a")
    assert {v.state.description for v in versions if v.state} == {f"Writer {n}." for n in range(WRITERS)}


async def test_fifty_stores_share_new_targets(world: World) -> None:
    shared = [
        {"to_key": "person_maria", "relationship": "mentions"},
        {"from_key": "person_maria", "to_key": "project_x", "relationship": "leads"},
    ]
    results = await asyncio.gather(*(world.put(f"fact_{n}", "A log.", *shared) for n in range(WRITERS)))
    assert all(result.status == "created" and not result.errors for result in results)
    mentions = {result.created[0].entity_id for result in results if result.created}
    assert len(mentions) == WRITERS
    leads = [one for result in results for one in (*result.created, *result.replayed) if one.index == 1]
    assert len(leads) == WRITERS
    assert len({one.entity_id for one in leads}) == 1
    counts = await world.store.counts(GRAPH)
    assert (counts.nodes, counts.edges) == (WRITERS + 2, WRITERS + 1)
    assert (await world.node("person_maria")).write_version == 1


async def test_two_services_on_one_store_lose_nothing(world: World) -> None:
    other = Remember(store=world.store, executor=world.executor, clock=world.clock, limits=Limits())

    async def put(service: Remember, number: int) -> None:
        await service.store(OWNER, StoreRequest(key="fact_a", description=f"Write {number}."))

    await asyncio.gather(*(put(service, n) for n in range(15) for service in (world.remember, other)))
    assert (await world.node("fact_a")).write_version == 30


async def test_an_import_and_single_stores_may_meet(world: World) -> None:
    requests = [StoreRequest(key=f"fact_{n}", description=f"Imported {n}.") for n in range(40)]
    imported, *single = await asyncio.gather(
        world.remember.store_many(OWNER, requests), *(world.put(f"fact_{n}", "Single.") for n in range(40))
    )
    assert len(imported) == len(single) == 40
    nodes = await world.store.nodes(GRAPH, [f"fact_{n}" for n in range(40)])
    assert {node.write_version for node in nodes.values()} == {2}


class RacedStore(MemoryStore):
    """Somebody else always writes first, for a while."""

    def __init__(self, times: int) -> None:
        super().__init__()
        self.left = times

    async def apply(self, graph_id: str, batch: WriteBatch) -> int:
        if self.left > 0:
            self.left -= 1
            raise StaleWrite("somebody wrote first.")
        return await super().apply(graph_id, batch)


async def test_a_lost_race_is_planned_again_with_the_same_vectors(world: World, clock: FixedClock) -> None:
    store = RacedStore(times=5)
    remember = Remember(store=store, executor=world.executor, clock=clock, limits=Limits())
    result = await remember.store(OWNER, StoreRequest(key="fact_a", description="A."))
    assert (result.status, result.node.write_version) == ("created", 1)
    assert world.embedder.embedded == ["A."]


async def test_endless_races_end_with_an_error_that_may_be_repeated(
    executor: ModelExecutor, clock: FixedClock
) -> None:
    remember = Remember(store=RacedStore(times=1_000), executor=executor, clock=clock, limits=Limits())
    with pytest.raises(Unavailable) as refusal:
        await remember.store(OWNER, StoreRequest(key="fact_a", description="A."))
    assert refusal.value.retryable
    assert "'fact_a'" in refusal.value.message


class SlowStore(MemoryStore):
    """Leaves room between a snapshot and the write that was planned on it."""

    async def apply(self, graph_id: str, batch: WriteBatch) -> int:
        await asyncio.sleep(0.003)
        return await super().apply(graph_id, batch)


async def test_losers_of_a_race_take_turns_instead_of_using_up_their_attempts(
    executor: ModelExecutor, clock: FixedClock
) -> None:
    store = SlowStore()
    remember = Remember(store=store, executor=executor, clock=clock, limits=Limits())
    writers = 100
    await asyncio.gather(
        *(remember.store(OWNER, StoreRequest(key="fact_a", description=f"W {n}.")) for n in range(writers))
    )
    assert (await store.nodes(GRAPH, ["fact_a"]))["fact_a"].write_version == writers


class OvertakenStore(MemoryStore):
    """Another process writes right after the first snapshot, once."""

    def __init__(self) -> None:
        super().__init__()
        self.overtake: WriteBatch | None = None

    async def snapshot(
        self,
        graph_id: GraphId,
        keys: Collection[str] = (),
        edges: Collection[EdgeIdentity] = (),
        hyperedges: Collection[HyperedgeIdentity] = (),
    ) -> Snapshot:
        found = await super().snapshot(graph_id, keys, edges, hyperedges)
        batch, self.overtake = self.overtake, None
        if batch is not None:
            await self.apply(graph_id, batch)
        return found


async def test_text_that_changed_after_the_read_ahead_is_embedded(world: World, clock: FixedClock) -> None:
    store = OvertakenStore()
    remember = Remember(store=store, executor=world.executor, clock=clock, limits=Limits())
    first = await remember.store(OWNER, StoreRequest(key="fact_a", description="Same."))
    other = replace(first.node, description="Other.", write_version=2)
    store.overtake = WriteBatch(at=clock.now(), nodes=(NodeWrite(node=other, expected=1),))
    world.embedder.embedded.clear()
    result = await remember.store(OWNER, StoreRequest(key="fact_a", description="Same."))
    assert (result.node.write_version, result.node.description) == (3, "Same.")
    assert world.embedder.embedded == ["Same."]


async def test_an_edge_that_was_forgotten_while_its_node_was_embedded_is_created_again(
    world: World, clock: FixedClock
) -> None:
    store = OvertakenStore()
    remember = Remember(store=store, executor=world.executor, clock=clock, limits=Limits())
    related = ({"to_key": "fact_b", "relationship": "explains"},)
    before = await remember.store(OWNER, StoreRequest(key="fact_a", description="A.", relationships=related))
    [edge] = before.created
    store.overtake = WriteBatch(
        at=clock.now(), deletions=(Deletion(kind=Kind.EDGE, id=edge.entity_id, expected=1),)
    )
    after = await remember.store(OWNER, StoreRequest(key="fact_a", description="B.", relationships=related))
    assert (len(after.created), after.replayed) == (1, ())
    assert list(await store.edges(GRAPH, [after.created[0].entity_id])) == [after.created[0].entity_id]
