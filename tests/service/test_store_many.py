"""The bulk path: the same outcome as one store after the other, in few transactions."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from hivemem.domain.node import EnrichmentStatus
from hivemem.errors import Conflict, HivememError, InvalidInput, Unavailable
from hivemem.models.executor import ModelExecutor
from hivemem.ports.store import Store
from hivemem.service.limits import Limits
from hivemem.service.remember import IfExists, Remember, StoreRequest, StoreResult
from hivemem.storage.memory import MemoryStore
from tests.service.conftest import GRAPH, OWNER, CountingEmbedder, World
from tests.support.builders import FixedClock


def note(key: str, description: str = "", *items: Any, **fields: Any) -> StoreRequest:
    text = description or f"What is known about {key}."
    return StoreRequest(key=key, description=text, relationships=items, **fields)


async def put_all(
    world: World, requests: Sequence[StoreRequest], batch: int = 256
) -> list[StoreResult | HivememError]:
    limits = Limits(max_import_batch=batch)
    remember = Remember(store=world.store, executor=world.executor, clock=world.clock, limits=limits)
    return await remember.store_many(OWNER, requests)


def statuses(outcomes: Sequence[StoreResult | HivememError]) -> list[str]:
    return [one.status if isinstance(one, StoreResult) else one.code for one in outcomes]


async def test_nothing_to_store_is_an_empty_list(world: World) -> None:
    assert await put_all(world, []) == []


@pytest.mark.parametrize("batch", [1, 3, 256])
async def test_outcomes_keep_the_order_of_the_requests(world: World, batch: int) -> None:
    outcomes = await put_all(world, [note(f"fact_{n}") for n in range(10)], batch)
    assert statuses(outcomes) == ["created"] * 10
    assert [one.node.key for one in outcomes if isinstance(one, StoreResult)] == [
        f"fact_{n}" for n in range(10)
    ]
    assert (await world.store.counts(GRAPH)).nodes == 10
    assert await world.passages("fact_9") == ["description"]


async def test_a_batch_is_one_transaction(world: World) -> None:
    await put_all(world, [note(f"fact_{n}") for n in range(10)], batch=5)
    assert await world.store.revision(GRAPH) == 2


async def test_a_refused_item_leaves_the_others_alone(world: World) -> None:
    await world.put("fact_there")
    requests = [
        note("fact_a"),
        note(" "),
        note("fact_there", if_exists=IfExists.ERROR),
        StoreRequest(key="fact_blank", description=""),
        note("fact_b"),
    ]
    outcomes = await put_all(world, requests)
    assert statuses(outcomes) == [
        "created",
        "validation_error",
        "already_exists",
        "validation_error",
        "created",
    ]
    assert isinstance(outcomes[1], InvalidInput)
    assert isinstance(outcomes[2], Conflict)
    assert set(await world.store.nodes(GRAPH, ["fact_a", "fact_b", "fact_blank"])) == {"fact_a", "fact_b"}


@pytest.mark.parametrize("batch", [1, 256])
async def test_the_same_key_twice_is_like_two_stores(world: World, batch: int) -> None:
    requests = [
        note("fact_a", "First.", data={"n": 1}),
        note("fact_b"),
        note("fact_a", "Second."),
        note("fact_a", "Third.", if_exists=IfExists.KEEP),
        note("fact_a", "Fourth.", if_exists=IfExists.ERROR),
    ]
    outcomes = await put_all(world, requests, batch)
    assert statuses(outcomes) == ["created", "created", "updated", "kept", "already_exists"]
    stored = await world.node("fact_a")
    assert (stored.description, stored.data, stored.write_version) == ("Second.", {"n": 1}, 2)


@pytest.mark.parametrize("batch", [1, 2, 256])
async def test_relationships_to_later_items_leave_no_placeholder(world: World, batch: int) -> None:
    count = 7
    requests = [
        note(f"fact_{n}", "", {"to_key": f"fact_{(n + 1) % count}", "relationship": "comes before"})
        for n in range(count)
    ]
    outcomes = await put_all(world, requests, batch)
    assert statuses(outcomes) == ["created"] * count
    nodes = await world.store.nodes(GRAPH, [f"fact_{n}" for n in range(count)])
    assert not any(node.placeholder for node in nodes.values())
    assert (await world.store.counts(GRAPH)).edges == count


async def test_replays_are_seen_within_a_batch(world: World) -> None:
    item = {"from_key": "fact_a", "to_key": "fact_b", "relationship": "explains"}
    first, second = await put_all(world, [note("fact_a", "", item), note("fact_b", "", item)])
    assert isinstance(first, StoreResult) and isinstance(second, StoreResult)
    assert second.replayed[0].entity_id == first.created[0].entity_id


async def test_a_second_import_of_the_same_items_embeds_nothing(world: World) -> None:
    requests = [note(f"fact_{n}") for n in range(6)]
    await put_all(world, requests)
    world.embedder.embedded.clear()
    outcomes = await put_all(world, requests, batch=2)
    assert statuses(outcomes) == ["updated"] * 6
    assert world.embedder.embedded == []


async def test_progress_is_told_after_each_batch(world: World) -> None:
    told: list[tuple[int, int]] = []
    limits = Limits(max_import_batch=4)
    remember = Remember(store=world.store, executor=world.executor, clock=world.clock, limits=limits)
    requests = [*(note(f"fact_{n}") for n in range(9)), note(" ")]
    await remember.store_many(OWNER, requests, on_progress=lambda done, total: told.append((done, total)))
    assert [total for _, total in told] == [10] * len(told)
    assert [done for done, _ in told] == sorted(done for done, _ in told)
    assert told[-1] == (10, 10)
    assert len(told) == 3


async def test_each_session_records_its_nodes(world: World) -> None:
    notes = [note("fact_a", session_id="s1"), note("fact_b"), note("fact_c", session_id="s1")]
    await world.remember.store_many(OWNER, notes)
    assert {touch.key for touch in await world.store.touched(GRAPH, "s1")} == {"fact_a", "fact_c"}


async def test_without_a_model_everything_is_stored_and_waits(world: World) -> None:
    world.embedder.fails = True
    outcomes = await put_all(world, [note(f"fact_{n}") for n in range(5)], batch=2)
    assert statuses(outcomes) == ["created"] * 5
    nodes = await world.store.nodes(GRAPH, [f"fact_{n}" for n in range(5)])
    assert {node.enrichment_status for node in nodes.values()} == {EnrichmentStatus.PENDING}


class PickyEmbedder(CountingEmbedder):
    """Breaks on one word, as a model can on an unusual text."""

    def embed_passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        if any("poison" in text for text in texts):
            raise RuntimeError("shape mismatch")
        return super().embed_passages(texts)


async def test_a_text_that_the_model_fails_on_costs_the_others_nothing(
    store: Store, clock: FixedClock
) -> None:
    executor = ModelExecutor(PickyEmbedder(), None)
    remember = Remember(store=store, executor=executor, clock=clock, limits=Limits())
    outcomes = await remember.store_many(OWNER, [note("fact_a"), note("fact_b", "poison"), note("fact_c")])
    executor.close()
    assert statuses(outcomes) == ["created"] * 3
    found = await store.nodes(GRAPH, ["fact_a", "fact_b", "fact_c"])
    assert [str(node.enrichment_status) for node in found.values()] == ["skipped", "pending", "skipped"]


class FlakyStore(MemoryStore):
    """Refuses every batch that holds the named key."""

    def __init__(self, key: str, error: HivememError) -> None:
        super().__init__()
        self._key = key
        self._error = error

    async def apply(self, graph_id: str, batch: Any) -> int:
        if any(write.node.key == self._key for write in batch.nodes):
            raise self._error
        return await super().apply(graph_id, batch)


async def test_an_item_that_the_store_refuses_leaves_its_batch_alone(
    executor: ModelExecutor, clock: FixedClock
) -> None:
    store = FlakyStore("fact_b", InvalidInput("/key 'fact_b' cannot be stored here."))
    remember = Remember(store=store, executor=executor, clock=clock, limits=Limits())
    outcomes = await remember.store_many(OWNER, [note("fact_a"), note("fact_b"), note("fact_c")])
    assert statuses(outcomes) == ["created", "validation_error", "created"]


async def test_a_store_that_is_down_fails_its_batch_only(executor: ModelExecutor, clock: FixedClock) -> None:
    store = FlakyStore("fact_1", Unavailable("the database is locked."))
    remember = Remember(store=store, executor=executor, clock=clock, limits=Limits(max_import_batch=2))
    outcomes = await remember.store_many(OWNER, [note(f"fact_{n}") for n in range(4)])
    assert statuses(outcomes) == ["unavailable", "unavailable", "created", "created"]


async def test_a_cancelled_import_finishes_the_batch_it_is_writing(world: World) -> None:
    limits = Limits(max_import_batch=2)
    remember = Remember(store=world.store, executor=world.executor, clock=world.clock, limits=limits)
    begun = asyncio.Event()

    def progress(done: int, total: int) -> None:
        begun.set()

    requests = [note(f"fact_{n}") for n in range(400)]
    task = asyncio.create_task(remember.store_many(OWNER, requests, on_progress=progress))
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    counts = await world.store.counts(GRAPH)
    assert 2 <= counts.nodes < 400
    assert counts.nodes % 2 == 0
