"""Nothing that was stored is gone for good."""

from __future__ import annotations

import pytest

from hivemem.errors import Conflict, Forbidden, NotFound
from hivemem.service.change import Change
from hivemem.service.history import History
from hivemem.service.limits import Limits
from tests.service.conftest import GRAPH, LONG, OWNER, READER, World


@pytest.fixture
def history(world: World) -> History:
    return History(store=world.store, executor=world.executor, clock=world.clock)


@pytest.fixture
def change(world: World) -> Change:
    return Change(store=world.store, clock=world.clock, limits=Limits())


async def test_the_state_before_comes_back_as_a_new_version(world: World, history: History) -> None:
    await world.put("fact_a", "First.", data={"n": 1})
    await world.put("fact_a", "Second.")
    await world.put("fact_a", "Third.", data={"n": 3})
    result = await history.restore(OWNER, "fact_a")
    assert (result.restored_version, result.node.write_version) == (2, 4)
    node = await world.node("fact_a")
    assert (node.description, node.data) == ("Second.", {"n": 1})
    assert world.embedder.embedded[-1] == "Second."
    assert await world.passages("fact_a") == ["description"]
    await history.restore(OWNER, "fact_a", version=1)
    assert (await world.node("fact_a")).description == "First."
    assert [version.state is None for version in await history.versions(OWNER, "fact_a")] == [False] * 5
    [newest, *_] = await world.store.timeline(GRAPH)
    assert newest.entry.summary == "Restored fact_a to version 1"


async def test_a_forgotten_node_comes_back_with_what_went_with_it(
    world: World, history: History, change: Change
) -> None:
    await world.put("fact_a", "One.", {"to_key": "fact_b", "relationship": "came before"})
    three = {"participant_keys": ["fact_a", "fact_b", "fact_c"], "relationship": "met", "description": LONG}
    await world.put("fact_b", "Two.", {"to_key": "fact_gone", "relationship": "knows"}, three)
    created_at = (await world.node("fact_b")).created_at
    await change.forget_node(OWNER, "fact_b")
    await change.forget_node(OWNER, "fact_gone")
    assert (await world.store.counts(GRAPH)).edges == 0
    result = await history.restore(OWNER, "fact_b")
    assert result.relationships == 2, "the edge to a node that is gone as well cannot come back"
    counts = await world.store.counts(GRAPH)
    assert (counts.edges, counts.hyperedges) == (1, 1)
    node = await world.node("fact_b")
    assert (node.description, node.created_at) == ("Two.", created_at)


async def test_a_forgotten_node_takes_part_again_where_it_did(
    world: World, history: History, change: Change
) -> None:
    four = {"participant_keys": ["fact_a", "fact_b", "fact_c", "fact_d"], "relationship": "met in the hall"}
    five = {**four, "participant_keys": [*four["participant_keys"], "fact_e"]}
    stored = await world.put("fact_a", "One.", four, five)
    four_id, five_id = (one.entity_id for one in stored.created)
    before = await world.store.hyperedges(GRAPH, [four_id, five_id])
    await change.forget_node(OWNER, "fact_a")
    left = await world.store.hyperedges(GRAPH, [four_id, five_id])
    assert [len(one.participants) for one in left.values()] == [3, 4]
    assert (await history.restore(OWNER, "fact_a")).relationships == 2
    now = await world.store.hyperedges(GRAPH, [four_id, five_id])
    assert [now[id].participants for id in now] == [before[id].participants for id in before]
    assert [one.write_version for one in now.values()] == [3, 3]

    await change.forget_node(OWNER, "fact_a")
    await change.forget_node(OWNER, "fact_b")
    assert (await history.restore(OWNER, "fact_a")).relationships == 0, "they have changed since"
    rest = await world.store.hyperedges(GRAPH, [four_id, five_id])
    assert [one.keys for one in rest.values()] == [("fact_c", "fact_d", "fact_e")]


async def test_of_two_hyperedges_that_became_the_same_one_comes_back(
    world: World, history: History, change: Change
) -> None:
    three = ["fact_a", "fact_b", "fact_c"]
    await world.put(
        "fact_a",
        "One.",
        {"participant_keys": [*three, "fact_x"], "relationship": "met in the hall"},
        {"participant_keys": [*three, "fact_y"], "relationship": "met in the hall"},
    )
    await change.forget_node(OWNER, "fact_x")
    await change.forget_node(OWNER, "fact_y")
    assert (await world.store.counts(GRAPH)).hyperedges == 2
    await change.forget_node(OWNER, "fact_a")
    assert (await history.restore(OWNER, "fact_a")).relationships == 1
    assert (await world.store.counts(GRAPH)).hyperedges == 1


async def test_what_was_stored_again_meanwhile_is_not_doubled(
    world: World, history: History, change: Change
) -> None:
    edge = {"to_key": "fact_b", "relationship": "came before"}
    await world.put("fact_a", "One.", edge)
    await change.forget_node(OWNER, "fact_a")
    await world.put("fact_a", "One, again.", edge)
    result = await history.restore(OWNER, "fact_a")
    assert (result.relationships, (await world.node("fact_a")).description) == (0, "One.")
    assert (await world.store.counts(GRAPH)).edges == 1


async def test_without_a_model_it_comes_back_and_waits(world: World, history: History) -> None:
    await world.put("fact_a", "First.")
    await world.put("fact_a", "Second.")
    world.embedder.fails = True
    result = await history.restore(OWNER, "fact_a")
    assert "without vectors" in result.warnings[0]
    assert (await world.node("fact_a")).enrichment_status == "pending"


async def test_what_cannot_be_restored_says_why(world: World, history: History) -> None:
    with pytest.raises(NotFound, match="never was a node 'fact_none'"):
        await history.restore(OWNER, "fact_none")
    await world.put("fact_a", "First.", {"to_key": "fact_named", "relationship": "names"})
    with pytest.raises(Conflict, match="no earlier state"):
        await history.restore(OWNER, "fact_a")
    with pytest.raises(Conflict, match="no earlier state"):
        await history.restore(OWNER, "fact_named")
    with pytest.raises(NotFound, match=r"no version 7; it has 1\."):
        await history.restore(OWNER, "fact_a", version=7)
    with pytest.raises(Forbidden):
        await history.restore(READER, "fact_a")
