"""`GraphStore.apply`: all or nothing, optimistic, versioned."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from hivemem.domain.graph import Deletion, EdgeWrite, HyperedgeWrite, Kind, NodeWrite
from hivemem.errors import StaleWrite
from hivemem.ports.store import Store
from tests.conformance.store.observe import GRAPH, everything, replica
from tests.support.builders import (
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

ABCD = tuple(node(key) for key in ("a_1", "b_1", "c_1", "d_1"))
EDGE = edge("a_1", "b_1")
HYPER = hyperedge("a_1", "b_1", "c_1")


async def test_a_graph_that_was_never_written_is_empty(store: Store) -> None:
    assert await store.revision(GRAPH) == 0
    assert await store.nodes(GRAPH, ["a_1"]) == {}
    assert (await everything(store))["timeline"] == []


async def test_everything_of_a_batch_is_stored_under_one_new_revision(store: Store) -> None:
    revision = await store.apply(GRAPH, batch(*ABCD, EDGE, HYPER, entry("Began.")))
    assert revision == await store.revision(GRAPH) == 1
    assert await store.nodes(GRAPH, ["b_1", "a_1"]) == {
        "b_1": replace(ABCD[1], revision=1),
        "a_1": replace(ABCD[0], revision=1),
    }
    assert await store.edges(GRAPH, [EDGE.edge_id]) == {EDGE.edge_id: replace(EDGE, revision=1)}
    assert await store.hyperedges(GRAPH, [HYPER.hyperedge_id]) == {
        HYPER.hyperedge_id: replace(HYPER, revision=1)
    }
    assert [event.entry for event in await store.timeline(GRAPH)] == [entry("Began.")]


async def test_the_given_revision_of_a_value_is_replaced_by_the_stores(store: Store) -> None:
    await store.apply(GRAPH, batch(node("a_1", revision=77)))
    assert (await store.nodes(GRAPH, ["a_1"]))["a_1"].revision == 1
    assert (await store.versions(GRAPH, Kind.NODE, "a_1"))[0].state == node("a_1", revision=1)


async def test_revisions_count_changes_of_the_graph_and_nothing_else(store: Store) -> None:
    assert await store.apply(GRAPH, batch()) == 0
    assert await store.apply(GRAPH, batch(entry())) == 0
    assert await store.apply(GRAPH, batch(node("a_1"))) == 1
    assert await store.apply(GRAPH, batch(entry())) == 1
    assert await store.apply(GRAPH, batch(node("b_1"), entry())) == 2
    await store.touch(GRAPH, "s", ["a_1"], minutes(1))
    assert await store.revision(GRAPH) == 2


STALE = {
    "a new node that exists": batch(node("a_1", "Other text.")),
    "a node at another version": batch(update(replace(ABCD[0], write_version=2))),
    "a node that does not exist": batch(update(node("nobody_1"))),
    "a new edge whose id exists": batch(edge("c_1", "d_1", edge_id=EDGE.edge_id)),
    "a new edge whose identity exists": batch(replace(EDGE, edge_id="edge_other")),
    "an edge at another version": batch(update(replace(EDGE, write_version=2))),
    "an edge that does not exist": batch(update(edge("c_1", "d_1"))),
    "an edge that takes the identity of another": batch(
        edge("c_1", "d_1"), update(edge("c_1", "d_1"), from_key="a_1", to_key="b_1")
    ),
    "an edge from nowhere": batch(edge("nobody_1", "a_1")),
    "an edge to nowhere": batch(edge("a_1", "nobody_1")),
    "an edge with the id of a hyperedge": batch(edge("c_1", "d_1", edge_id=HYPER.hyperedge_id)),
    "a new hyperedge whose id exists": batch(hyperedge("b_1", "c_1", "d_1", hyperedge_id=HYPER.hyperedge_id)),
    "a new hyperedge whose identity exists in another order": batch(hyperedge("c_1", "a_1", "b_1")),
    "a hyperedge at another version": batch(update(replace(HYPER, write_version=2))),
    "a hyperedge that does not exist": batch(update(hyperedge("b_1", "c_1", "d_1"))),
    "a hyperedge that takes the identity of another": batch(
        hyperedge("b_1", "c_1", "d_1"),
        update(hyperedge("b_1", "c_1", "d_1"), participants=HYPER.participants),
    ),
    "a hyperedge over a missing node": batch(hyperedge("a_1", "b_1", "nobody_1")),
    "a hyperedge with the id of an edge": batch(hyperedge("b_1", "c_1", "d_1", hyperedge_id=EDGE.edge_id)),
    "the removal of a node at another version": batch(delete(replace(ABCD[3], write_version=2))),
    "the removal of a node that is not there": batch(delete(node("nobody_1"))),
    "the removal of nothing at version 0": batch(Deletion(kind=Kind.NODE, id="nobody_1", expected=0)),
    "the removal of an edge at another version": batch(delete(replace(EDGE, write_version=2))),
    "the removal of an edge that is not there": batch(delete(edge("c_1", "d_1"))),
    "the removal of a hyperedge at another version": batch(delete(replace(HYPER, write_version=2))),
    "the removal of an edge by the kind of a hyperedge": batch(
        Deletion(kind=Kind.HYPEREDGE, id=EDGE.edge_id, expected=1)
    ),
    "the removal of an edge that goes with its node": batch(delete(ABCD[0]), delete(EDGE)),
    "the same new node twice": batch(node("e_1"), node("e_1")),
    "the same new hyperedge twice under two ids": batch(
        hyperedge("b_1", "c_1", "d_1"), hyperedge("b_1", "c_1", "d_1", hyperedge_id="hyper_x")
    ),
    "the same new edge twice under two ids": batch(edge("c_1", "d_1"), edge("c_1", "d_1", edge_id="edge_x")),
}


@pytest.mark.parametrize("refused", STALE.values(), ids=STALE.keys())
async def test_a_stale_batch_is_refused_and_leaves_no_trace(store: Store, refused) -> None:
    await store.apply(GRAPH, batch(*ABCD, EDGE, HYPER))
    before = await everything(store)
    good_part = batch(
        node("new_1"), update(ABCD[2], vectors(passage(1.0))), edge("c_1", "new_1"), entry("Never seen.")
    )
    mixed = replace(
        refused,
        nodes=(*good_part.nodes, *refused.nodes),
        edges=(*good_part.edges, *refused.edges),
        timeline=good_part.timeline,
    )
    with pytest.raises(StaleWrite):
        await store.apply(GRAPH, mixed)
    assert await everything(store) == before
    assert await store.versions(GRAPH, Kind.NODE, "new_1") == []


async def test_a_refusal_names_the_thing_and_its_version(store: Store) -> None:
    await store.apply(GRAPH, batch(node("a_1", write_version=4)))
    with pytest.raises(StaleWrite, match="'a_1'") as caught:
        await store.apply(GRAPH, batch(node("a_1")))
    assert caught.value.facts == {"current_version": 4}


async def test_writes_of_a_batch_build_on_each_other_in_order(store: Store) -> None:
    first = node("a_1", "First.")
    second = replace(first, description="Second.", write_version=2)
    one = edge("a_1", "b_1")
    moved = replace(one, to_key="c_1", write_version=2)
    await store.apply(
        GRAPH,
        batch(
            first,
            NodeWrite(node=second, expected=1),
            node("b_1"),
            node("c_1"),
            one,
            EdgeWrite(edge=moved, expected=1),
            edge("a_1", "b_1", edge_id="edge_successor"),
        ),
    )
    assert (await store.nodes(GRAPH, ["a_1"]))["a_1"].description == "Second."
    assert await store.edges(GRAPH, [one.edge_id, "edge_successor"]) == {
        one.edge_id: replace(moved, revision=1),
        "edge_successor": edge("a_1", "b_1", edge_id="edge_successor", revision=1),
    }
    history = await store.versions(GRAPH, Kind.NODE, "a_1")
    assert [version.state for version in history] == [replace(second, revision=1)]


async def test_a_thing_made_and_removed_in_one_batch_leaves_its_removal(store: Store) -> None:
    await store.apply(GRAPH, batch(node("a_1"), delete(node("a_1"))))
    assert (await replica(store)).nodes == {}
    (version,) = await store.versions(GRAPH, Kind.NODE, "a_1")
    assert version.state is None


async def test_a_relationship_moves_to_other_ends(store: Store) -> None:
    await store.apply(GRAPH, batch(*ABCD, EDGE, HYPER))
    other = hyperedge("b_1", "c_1", "d_1").participants
    await store.apply(
        GRAPH, batch(update(EDGE, from_key="c_1", to_key="d_1"), update(HYPER, participants=other))
    )
    found = await store.relationships(GRAPH, ["a_1", "d_1"], edge_limit=9, hyperedge_limit=9)
    assert (found["a_1"].edge_total, found["a_1"].hyperedge_total) == (0, 0)
    assert (found["d_1"].edge_total, found["d_1"].hyperedge_total) == (1, 1)
    await store.apply(GRAPH, batch(replace(EDGE, edge_id="edge_second"), hyperedge("b_1", "c_1", "a_1")))


async def test_roles_and_gaps_between_ordinals_are_kept(store: Store) -> None:
    await store.apply(GRAPH, batch(*ABCD))
    participants = tuple(
        replace(participant, role=role, ordinal=ordinal)
        for participant, role, ordinal in zip(
            HYPER.participants, ("author", "", "reader"), (0, 4, 7), strict=True
        )
    )
    with_roles = replace(HYPER, participants=participants)
    await store.apply(GRAPH, batch(with_roles))
    found = await store.hyperedges(GRAPH, [HYPER.hyperedge_id])
    assert found[HYPER.hyperedge_id].participants == participants


async def test_hyperedges_that_became_the_same_stay_writable(store: Store) -> None:
    wide = hyperedge("a_1", "b_1", "c_1", "d_1", created_at=minutes(1))
    await store.apply(GRAPH, batch(*ABCD, HYPER, wide))
    await store.apply(GRAPH, batch(delete(ABCD[3])))
    both = await store.hyperedges(GRAPH, [HYPER.hyperedge_id, wide.hyperedge_id])
    assert len({hyperedge.identity for hyperedge in both.values()}) == 1
    snapshot = await store.snapshot(GRAPH, hyperedges=[HYPER.identity])
    assert snapshot.hyperedges == {HYPER.identity: both[HYPER.hyperedge_id]}
    for one in both.values():
        await store.apply(
            GRAPH,
            batch(
                HyperedgeWrite(
                    hyperedge=replace(one, write_version=one.write_version + 1), expected=one.write_version
                )
            ),
        )
    with pytest.raises(StaleWrite):
        await store.apply(GRAPH, batch(hyperedge("a_1", "b_1", "c_1", hyperedge_id="hyper_third")))


async def test_of_concurrent_writes_planned_on_one_state_exactly_one_is_stored(store: Store) -> None:
    await store.apply(GRAPH, batch(node("a_1")))
    outcomes = await asyncio.gather(
        *(
            store.apply(GRAPH, batch(update(node("a_1"), description=f"Text {i}."), node(f"side_{i}")))
            for i in range(20)
        ),
        return_exceptions=True,
    )
    assert sorted(type(outcome).__name__ for outcome in outcomes) == ["StaleWrite"] * 19 + ["int"]
    winner = next(i for i, outcome in enumerate(outcomes) if outcome == 2)
    assert (await store.nodes(GRAPH, ["a_1"]))["a_1"].description == f"Text {winner}."
    assert set((await replica(store)).nodes) == {"a_1", f"side_{winner}"}


async def test_concurrent_independent_writes_are_all_stored_under_their_own_revisions(store: Store) -> None:
    revisions = await asyncio.gather(
        *(store.apply(GRAPH, batch(create(node(f"n_{i}")), entry())) for i in range(50))
    )
    assert sorted(revisions) == list(range(1, 51))
    nodes = await store.nodes(GRAPH, [f"n_{i}" for i in range(50)])
    assert [nodes[f"n_{i}"].revision for i in range(50)] == revisions
