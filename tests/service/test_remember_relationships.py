"""Relationships of a store call: placeholders, policy, replays, refusals that keep the node."""

from __future__ import annotations

from typing import Any

import pytest

from hivemem.domain.relationships import GENERIC_LABELS
from hivemem.service.limits import Limits
from hivemem.service.remember import Remember, StoreRequest
from tests.service.conftest import GRAPH, LONG, OWNER, World

LABEL = "was decided in one meeting"


def joined(*keys: str, **fields: Any) -> dict[str, Any]:
    return {"participant_keys": list(keys), "relationship": LABEL, "description": LONG, **fields}


async def test_a_missing_target_becomes_a_placeholder(world: World) -> None:
    result = await world.put("fact_a", "A.", {"to_key": "person_bob", "relationship": "was told by"})
    bob = await world.node("person_bob")
    assert (bob.placeholder, bob.node_type, bob.write_version) == (True, "person", 1)
    assert any("'person_bob'" in warning for warning in result.warnings)


async def test_missing_participants_become_placeholders(world: World) -> None:
    await world.put("fact_a", "A.", joined("fact_a", "fact_b", "fact_c"))
    assert (await world.node("fact_b")).placeholder
    assert (await world.node("fact_c")).placeholder


async def test_the_answer_tells_each_relationship_by_index(world: World) -> None:
    items = [
        {"to_key": "fact_b", "relationship": "explains the delay"},
        {"to_key": "fact_b", "relationship": "chat_monday"},
        joined("fact_a", "fact_b", "fact_c"),
        {"to_key": "fact_b", "relationship": "explains the delay"},
    ]
    result = await world.put("fact_a", "A.", *items)
    assert [(one.index, one.kind, one.keys) for one in result.created] == [
        (0, "edge", ("fact_a", "fact_b")),
        (2, "hyperedge", ("fact_a", "fact_b", "fact_c")),
    ]
    assert [(one.index, one.code) for one in result.errors] == [(1, "validation_error")]
    assert [(one.index, one.entity_id) for one in result.replayed] == [(3, result.created[0].entity_id)]
    assert all(one.write_version == 1 for one in result.created)


async def test_the_label_is_stored_verbatim_and_in_the_data(world: World) -> None:
    label = "Was chosen because it needs no daemon — said José, twice."
    result = await world.put("fact_a", "A.", {"to_key": "fact_b", "relationship": label, "data": {"n": 1}})
    edge_id = result.created[0].entity_id
    edge = (await world.store.edges(GRAPH, [edge_id]))[edge_id]
    assert edge.relationship == label
    assert edge.data == {"n": 1, "semantic_relationship": label}


@pytest.mark.parametrize("item", [{"to_key": "fact_b", "relationship": "explains"}, joined("x", "y", "z")])
async def test_a_replay_has_the_same_id_and_writes_no_edge(world: World, item: dict[str, Any]) -> None:
    first = await world.put("fact_a", "A.", item)
    second = await world.put("fact_a", "A.", item)
    assert (second.created, second.errors) == ((), ())
    assert [one.entity_id for one in second.replayed] == [one.entity_id for one in first.created]
    assert second.replayed[0].write_version == 1


async def test_a_hyperedge_in_another_order_is_a_replay(world: World) -> None:
    first = await world.put("fact_a", "A.", joined("x", "y", "z"))
    second = await world.put("fact_a", "A.", joined("z", "x", "y"))
    assert second.replayed[0].entity_id == first.created[0].entity_id


async def test_a_hyperedge_with_another_description_is_a_conflict(world: World) -> None:
    await world.put("fact_a", "A.", joined("x", "y", "z"))
    result = await world.put("fact_a", "B.", joined("x", "y", "z", description=LONG + " And more."))
    assert [one.code for one in result.errors] == ["hyperedge_conflict"]
    assert (result.created, result.replayed) == ((), ())
    assert (await world.node("fact_a")).description == "B."
    assert (await world.store.counts(GRAPH)).hyperedges == 1


async def test_the_same_label_over_other_participants_is_a_new_hyperedge(world: World) -> None:
    await world.put("fact_a", "A.", joined("x", "y", "z"))
    result = await world.put("fact_a", "A.", joined("x", "y", "w"))
    assert len(result.created) == 1
    assert (await world.store.counts(GRAPH)).hyperedges == 2


async def test_an_edge_replay_keeps_its_description_and_warns(world: World) -> None:
    first = await world.put(
        "fact_a", "A.", {"to_key": "fact_b", "relationship": "explains", "description": "Old."}
    )
    edge_id = first.created[0].entity_id
    second = await world.put(
        "fact_a", "A.", {"to_key": "fact_b", "relationship": "explains", "description": "New."}
    )
    assert any(repr(edge_id) in warning for warning in second.warnings)
    assert (await world.store.edges(GRAPH, [edge_id]))[edge_id].description == "Old."


@pytest.mark.parametrize(
    "item",
    [
        "not an object",
        {},
        {"to_key": "fact_b"},
        {"to_key": "fact_a", "relationship": "points to itself"},
        {"to_key": "zw\u200bkey", "relationship": "explains"},
        {"to_key": "fact_b", "relationship": "explains", "data": {"x": float("inf")}},
        {"to_key": "fact_b", "relationship": "explains", "strength": 3},
        joined("fact_a"),
        joined("fact_a", "fact_b", "fact_c", description="d" * 79),
        joined("fact_a", "b", "c", "d", relationship="too short"),
        joined("fact_a", "b", "c", "d", "e", relationship="too short"),
        *(joined("fact_a", "b", "c", "d", "e", "f", relationship=label) for label in sorted(GENERIC_LABELS)),
        joined("fact_a", "fact_b", relationship="linked"),
        joined("fact_a", "b", "c", relationship="chat_tuesday"),
    ],
)
async def test_a_refused_relationship_does_not_undo_the_node(world: World, item: Any) -> None:
    good = {"to_key": "fact_good", "relationship": "explains the delay"}
    result = await world.put("fact_a", "A.", item, good)
    assert result.status == "created"
    assert [one.index for one in result.errors] == [0]
    assert result.errors[0].detail.startswith("/relationships/0")
    assert [one.index for one in result.created] == [1]
    assert any("1 of 2 relationships were refused" in warning for warning in result.warnings)
    assert set(await world.store.nodes(GRAPH, ["fact_a", "fact_b", "b", "c", "fact_good"])) == {
        "fact_a",
        "fact_good",
    }


async def test_sizes_of_a_relationship_are_limited(world: World) -> None:
    limits = Limits(max_label_characters=20, max_data_characters=20, max_participants=4)
    remember = Remember(store=world.store, executor=world.executor, clock=world.clock, limits=limits)
    items: list[dict[str, Any]] = [
        {"to_key": "fact_b", "relationship": "x" * 21},
        {"to_key": "fact_b", "relationship": "explains", "data": {"x": "y" * 20}},
        {"participant_keys": list("abcde"), "relationship": "five of them"},
    ]
    request = StoreRequest(key="fact_a", description="A.", relationships=items)
    result = await remember.store(OWNER, request)
    assert [one.code for one in result.errors] == ["payload_too_large"] * 3
    assert result.created == ()


async def test_two_participants_are_stored_as_an_edge(world: World) -> None:
    result = await world.put("fact_a", "A.", joined("fact_b", "fact_a"))
    assert [(one.kind, one.keys) for one in result.created] == [("edge", ("fact_b", "fact_a"))]


async def test_an_edge_may_join_two_other_nodes(world: World) -> None:
    item = {"from_key": "fact_b", "to_key": "fact_c", "relationship": "explains"}
    result = await world.put("fact_a", "A.", item)
    assert result.created[0].keys == ("fact_b", "fact_c")
    assert (await world.node("fact_b")).placeholder


async def test_both_spellings_of_an_end_are_one_node(world: World) -> None:
    await world.put("Nóż_plan", "Knife block plan.")
    result = await world.put("fact_a", "A.", {"to_key": "No\u0301z\u0307_plan", "relationship": "needs"})
    assert result.created[0].keys == ("fact_a", "Nóż_plan")
    assert not (await world.node("Nóż_plan")).placeholder
