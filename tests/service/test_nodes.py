"""Reading nodes by key."""

from __future__ import annotations

from typing import Any

import pytest

from hivemem.domain.access import Principal, Scope
from hivemem.errors import InvalidInput, LimitExceeded
from hivemem.service.limits import Limits
from hivemem.service.nodes import Nodes, NodesRequest, NodesResult
from tests.service.conftest import GRAPH, LONG, OWNER, READER, World
from tests.support import builders as make


async def read(world: World, *keys: str, **options: Any) -> NodesResult:
    request = NodesRequest(keys=list(keys), **options)
    return await Nodes(store=world.store, limits=Limits()).nodes(OWNER, request)


async def test_found_and_missing_keep_the_order_of_the_request(world: World) -> None:
    for key in ("fact_c", "fact_a", "fact_b"):
        await world.put(key)
    result = await read(world, "fact_b", "no_2", "fact_c", "no_1", "fact_a")
    assert list(result.found) == ["fact_b", "fact_c", "fact_a"]
    assert result.missing == ("no_2", "no_1")


async def test_repeated_keys_and_other_spellings_are_one(world: World) -> None:
    await world.put("Nóż_plan")
    result = await read(world, "Nóż_plan", "No\u0301z\u0307_plan", " Nóż_plan", "gone", "gone")
    assert list(result.found) == ["Nóż_plan"]
    assert result.missing == ("gone",)


async def test_a_key_that_no_node_can_have_is_missing(world: World) -> None:
    await world.put("fact_a")
    result = await read(world, "", "zwj\u200bkey", "k" * 300, "fact_a")
    assert result.missing == ("", "zwj\u200bkey", "k" * 300)
    assert list(result.found) == ["fact_a"]


async def test_placeholders_and_the_profile_are_found(world: World) -> None:
    await world.put("fact_a", "A.", {"to_key": "fact_b", "relationship": "names"})
    result = await read(world, "fact_b", "user_profile")
    assert [detail.node.placeholder for detail in result.found.values()] == [True, True]


async def test_the_description_is_whole(world: World) -> None:
    long = "Long interview notes. " * 2_000
    await world.put("fact_a", long)
    assert (await read(world, "fact_a")).found["fact_a"].node.description == long


async def test_relationships_come_with_their_totals(world: World) -> None:
    items: list[dict[str, Any]] = [
        {"to_key": "fact_hub", "relationship": f"mentions it in line {n}"} for n in range(60)
    ]
    items += [
        {
            "participant_keys": ["fact_hub", "fact_a", f"fact_{n}"],
            "relationship": "were joined",
            "description": LONG,
        }
        for n in range(25)
    ]
    await world.put("fact_a", "A.", *items)
    summary = (await read(world, "fact_hub")).found["fact_hub"].relationships
    assert summary is not None
    assert (len(summary.edges), summary.edge_total) == (50, 60)
    assert (len(summary.hyperedges), summary.hyperedge_total) == (20, 25)
    full = (await read(world, "fact_hub", relationship_detail="full")).found["fact_hub"].relationships
    assert full is not None
    assert (len(full.edges), full.edge_total) == (60, 60)
    assert (len(full.hyperedges), full.hyperedge_total) == (25, 25)


async def test_relationships_are_left_out_when_not_asked_for(world: World) -> None:
    await world.put("fact_a", "A.", {"to_key": "fact_b", "relationship": "names"})
    assert (await read(world, "fact_a", include_relationships=False)).found["fact_a"].relationships is None


async def test_a_node_without_relationships_has_empty_ones(world: World) -> None:
    await world.put("fact_a")
    related = (await read(world, "fact_a")).found["fact_a"].relationships
    assert related is not None
    assert (related.edges, related.edge_total, related.hyperedge_total) == ((), 0, 0)


async def test_session_hyperedges_are_shown_on_request_only(world: World) -> None:
    things = [make.node(key) for key in ("a", "b", "c")]
    session = make.hyperedge("a", "b", "c", relationship="chat_monday")
    plain = make.hyperedge("a", "b", "c", relationship="were joined")
    await world.store.apply(GRAPH, make.batch(*things, session, plain))
    hidden = (await read(world, "a")).found["a"].relationships
    shown = (await read(world, "a", include_session_relationships=True)).found["a"].relationships
    assert hidden is not None and shown is not None
    assert [one.relationship for one in hidden.hyperedges] == ["were joined"]
    assert (hidden.hyperedge_total, shown.hyperedge_total, len(shown.hyperedges)) == (1, 2, 2)


async def test_the_history_is_newest_first_when_asked_for(world: World) -> None:
    await world.put("fact_a", "One.")
    await world.put("fact_a", "Two.")
    assert (await read(world, "fact_a")).found["fact_a"].history == ()
    history = (await read(world, "fact_a", include_enrichment_history=True)).found["fact_a"].history
    assert [getattr(version.state, "description", None) for version in history] == ["Two.", "One."]


async def test_too_many_keys_are_refused_with_both_numbers(world: World) -> None:
    assert len((await read(world, *(f"k{n}" for n in range(100)))).missing) == 100
    with pytest.raises(LimitExceeded, match=r"names 101 nodes; one call reads at most 100"):
        await read(world, *(f"k{n}" for n in range(101)))


@pytest.mark.parametrize(
    ("keys", "options", "pointer"),
    [
        ([], {}, "/keys "),
        (["a"], {"participant_limit": -1}, "/participant_limit "),
        (["a"], {"participant_limit": 101}, "/participant_limit "),
        (["a"], {"relationship_detail": "everything"}, "/relationship_detail "),
    ],
)
async def test_a_value_out_of_range_is_refused(
    world: World, keys: list[str], options: dict[str, Any], pointer: str
) -> None:
    with pytest.raises(InvalidInput) as refusal:
        await read(world, *keys, **options)
    assert refusal.value.message.startswith(pointer)


def test_a_summary_shows_at_most_five_participants() -> None:
    assert NodesRequest(keys=["a"]).shown_participants == 5
    assert NodesRequest(keys=["a"], participant_limit=3).shown_participants == 3
    assert NodesRequest(keys=["a"], relationship_detail="full").shown_participants == 20


async def test_a_foreign_node_is_missing_like_one_that_does_not_exist(world: World) -> None:
    await world.put("fact_a")
    service = Nodes(store=world.store, limits=Limits())
    stranger = Principal(user_id="user_two", graph_id="graph_two", scope=Scope.OWNER)
    result = await service.nodes(stranger, NodesRequest(keys=["fact_a", "no_such"]))
    assert (result.found, result.missing) == ({}, ("fact_a", "no_such"))
    assert list((await service.nodes(READER, NodesRequest(keys=["fact_a"]))).found) == ["fact_a"]
