"""Edges by id, and forgetting."""

from __future__ import annotations

import asyncio

import pytest

from hivemem.domain.edge import Edge
from hivemem.domain.graph import Kind
from hivemem.errors import Conflict, Forbidden, InvalidInput, NotFound
from hivemem.service.change import Change
from hivemem.service.limits import Limits
from hivemem.service.relate import Relate
from tests.service.conftest import GRAPH, LONG, OWNER, READER, World


@pytest.fixture
def change(world: World) -> Change:
    return Change(store=world.store, clock=world.clock, limits=Limits())


async def _edge(world: World) -> str:
    result = await world.put("fact_a", "One.", {"to_key": "fact_b", "relationship": "came before"})
    return result.created[0].entity_id


async def _hyperedge(world: World, *more: str) -> str:
    item = {
        "participant_keys": ["fact_a", "fact_b", "fact_c", *more],
        "relationship": "were decided together",
        "description": LONG,
    }
    return (await world.put("fact_a", "One.", item)).created[0].entity_id


async def _stored(world: World, edge_id: str) -> Edge:
    return (await world.store.edges(GRAPH, [edge_id]))[edge_id]


async def test_an_edge_changes_field_by_field_and_counts_its_versions(world: World, change: Change) -> None:
    edge_id = await _edge(world)
    edge = await change.update_edge(OWNER, edge_id, description="By a week.", data={"since": 2020})
    assert (edge.description, edge.data["since"], edge.write_version) == ("By a week.", 2020, 2)
    edge = await change.update_edge(OWNER, edge_id, expected=2, data={"until": 2021})
    assert edge.data == {"semantic_relationship": "came before", "since": 2020, "until": 2021}
    assert (await _stored(world, edge_id)).data == edge.data
    with pytest.raises(Conflict, match="is at version 3") as refused:
        await change.update_edge(OWNER, edge_id, expected=2, description="x")
    assert (refused.value.code, refused.value.facts) == ("version_conflict", {"current_version": 3})


async def test_rewording_an_edge_changes_its_label_and_identity(world: World, change: Change) -> None:
    edge_id = await _edge(world)
    await change.update_edge(OWNER, edge_id, data={"semantic_relationship": "led to"})
    assert (await _stored(world, edge_id)).relationship == "led to"
    again = await world.put("fact_a", "One.", {"to_key": "fact_b", "relationship": "came before"})
    assert [one.entity_id for one in again.created] != [edge_id]
    with pytest.raises(Conflict, match="already says 'came before'"):
        await change.update_edge(OWNER, edge_id, data={"semantic_relationship": "came before"})
    for bad in (7, "  "):
        with pytest.raises(InvalidInput, match="semantic_relationship"):
            await change.update_edge(OWNER, edge_id, data={"semantic_relationship": bad})


async def test_a_hyperedge_never_changes(world: World, change: Change) -> None:
    with pytest.raises(Conflict) as refused:
        await change.update_edge(OWNER, await _hyperedge(world), description="x")
    assert refused.value.code == "hyperedge_immutable"


async def test_forgetting_an_edge_or_a_hyperedge_leaves_the_nodes(world: World, change: Change) -> None:
    edge_id, hyperedge_id = await _edge(world), await _hyperedge(world)
    with pytest.raises(Conflict, match="/edge_version is 9"):
        await change.forget_relationship(OWNER, edge_id, expected=9)
    await change.forget_relationship(OWNER, edge_id, expected=1)
    await change.forget_relationship(OWNER, hyperedge_id)
    counts = await world.store.counts(GRAPH)
    assert (counts.edges, counts.hyperedges, counts.nodes) == (0, 0, 3)
    for gone in (edge_id, hyperedge_id):
        with pytest.raises(NotFound, match=gone):
            await change.forget_relationship(OWNER, gone)
    [removal, before] = await world.store.versions(GRAPH, Kind.EDGE, edge_id)
    assert removal.state is None and before.state is not None


async def test_forgetting_a_node_takes_its_relationships_and_small_hyperedges(
    world: World, change: Change
) -> None:
    await _edge(world)
    small, large = await _hyperedge(world), await _hyperedge(world, "fact_d")
    gone = await change.forget_node(OWNER, "fact_b")
    assert (gone.id, gone.relationships_removed) == ("fact_b", 3)
    assert "fact_b" not in await world.store.nodes(GRAPH, ["fact_b"])
    left = await world.store.hyperedges(GRAPH, [small, large])
    assert list(left) == [large]
    assert (left[large].keys, left[large].write_version) == (("fact_a", "fact_c", "fact_d"), 2)
    with pytest.raises(NotFound, match="'fact_b' does not exist"):
        await change.forget_node(OWNER, "fact_b")
    assert (await world.put("fact_b", "Two, anew.")).status == "created"


async def test_the_owners_profile_stays(world: World, change: Change) -> None:
    await world.put("fact_a")
    with pytest.raises(Conflict, match="cannot be forgotten"):
        await change.forget_node(OWNER, "user_profile")


async def test_readers_change_nothing(world: World, change: Change) -> None:
    edge_id = await _edge(world)
    with pytest.raises(Forbidden):
        await change.update_edge(READER, edge_id, description="x")
    with pytest.raises(Forbidden):
        await change.forget_node(READER, "fact_a")
    with pytest.raises(Forbidden):
        await change.forget_relationship(READER, edge_id)


async def test_concurrent_merges_into_one_edge_lose_nothing(world: World, change: Change) -> None:
    edge_id = await _edge(world)
    await asyncio.gather(
        *(change.update_edge(OWNER, edge_id, data={f"field_{number}": number}) for number in range(12))
    )
    edge = await _stored(world, edge_id)
    assert {f"field_{number}": number for number in range(12)}.items() <= edge.data.items()
    assert edge.write_version == 13


async def test_relating_needs_existing_nodes_and_replays_what_exists(world: World) -> None:
    relate = Relate(store=world.store, clock=world.clock, limits=Limits())
    await world.put("fact_a")
    await world.put("fact_b", "Two.")
    await world.put("fact_c", "Three.")
    edge = {"from_key": "fact_a", "to_key": "fact_b", "relationship": "came before"}
    three = {"participant_keys": ["fact_a", "fact_b", "fact_c"], "relationship": "met", "description": LONG}
    nowhere = {"from_key": "fact_a", "to_key": "fact_zzz", "relationship": "came before"}
    generic = {**three, "relationship": "linked"}
    result = await relate.relate(OWNER, [edge, nowhere, three, generic, edge])
    assert [one.index for one in result.created] == [0, 2]
    assert [one.index for one in result.replayed] == [4]
    assert [(one.index, one.code) for one in result.errors] == [(1, "not_found"), (3, "validation_error")]
    assert "fact_zzz" not in await world.store.nodes(GRAPH, ["fact_zzz"])
    revision = await world.store.revision(GRAPH)
    again = await relate.relate(OWNER, [edge, three])
    assert [one.entity_id for one in again.replayed] == [one.entity_id for one in result.created]
    assert (again.created, await world.store.revision(GRAPH)) == ((), revision)
    changed = await relate.relate(OWNER, [{**three, "description": LONG + " Differently."}])
    assert [one.code for one in changed.errors] == ["hyperedge_conflict"]
    with pytest.raises(InvalidInput, match="/relationships is empty"):
        await relate.relate(OWNER, [])
    with pytest.raises(Forbidden):
        await relate.relate(READER, [edge])
