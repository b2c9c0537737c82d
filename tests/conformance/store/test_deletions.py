"""What goes with a removed node, and that its key can be used again."""

from __future__ import annotations

from dataclasses import replace

from hivemem.domain.graph import Kind, Removal
from hivemem.ports.store import Store
from tests.conformance.store.observe import GRAPH, everything, replica
from tests.support.builders import (
    MODEL,
    batch,
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

NODES = tuple(node(f"{letter}_1") for letter in "abcde")
LATER = minutes(30)


async def test_a_node_goes_with_its_edges_each_with_version_and_tombstone(store: Store) -> None:
    out, into, other = edge("a_1", "b_1"), edge("c_1", "a_1"), edge("b_1", "c_1")
    await store.apply(GRAPH, batch(*NODES, out, into, other))
    await store.apply(GRAPH, batch(delete(NODES[0]), at=LATER))
    assert set((await replica(store)).edges) == {other.edge_id}
    page = await store.changes(GRAPH, 1, model_id=MODEL)
    assert page.removals == (
        *(Removal(kind=Kind.EDGE, id=id, revision=2) for id in sorted((out.edge_id, into.edge_id))),
        Removal(kind=Kind.NODE, id="a_1", revision=2),
    )
    for kind, id in ((Kind.NODE, "a_1"), (Kind.EDGE, out.edge_id), (Kind.EDGE, into.edge_id)):
        removal, creation = await store.versions(GRAPH, kind, id)
        assert (removal.revision, removal.recorded_at, removal.state) == (2, LATER, None)
        assert creation.state is not None


async def test_a_hyperedge_loses_the_node_and_keeps_the_ordinals_of_the_others(store: Store) -> None:
    four = hyperedge("a_1", "b_1", "c_1", "d_1")
    await store.apply(GRAPH, batch(*NODES, four))
    await store.apply(GRAPH, batch(delete(NODES[1]), at=LATER))
    expected = replace(
        four,
        participants=(four.participants[0], *four.participants[2:]),
        write_version=2,
        revision=2,
        updated_at=LATER,
    )
    assert (await replica(store)).hyperedges == {four.hyperedge_id: expected}
    assert (await store.versions(GRAPH, Kind.HYPEREDGE, four.hyperedge_id))[0].state == expected
    page = await store.changes(GRAPH, 1, model_id=MODEL)
    assert page.hyperedges == (expected,)
    found = await store.snapshot(GRAPH, hyperedges=[expected.identity, four.identity])
    assert found.hyperedges == {expected.identity: expected}


async def test_a_hyperedge_goes_when_fewer_than_three_remain(store: Store) -> None:
    three = hyperedge("a_1", "b_1", "c_1")
    await store.apply(GRAPH, batch(*NODES, three))
    await store.apply(GRAPH, batch(delete(NODES[2])))
    page = await store.changes(GRAPH, 1, model_id=MODEL)
    assert Removal(kind=Kind.HYPEREDGE, id=three.hyperedge_id, revision=2) in page.removals
    assert page.hyperedges == ()
    found = await store.relationships(GRAPH, ["a_1"], edge_limit=9, hyperedge_limit=9)
    assert found["a_1"].hyperedge_total == 0


async def test_several_removals_of_a_batch_are_one_revision(store: Store) -> None:
    five = hyperedge("a_1", "b_1", "c_1", "d_1", "e_1")
    await store.apply(GRAPH, batch(*NODES, five))
    await store.apply(GRAPH, batch(delete(NODES[0]), delete(NODES[1])))
    (rest,) = (await replica(store)).hyperedges.values()
    assert rest.keys == ("c_1", "d_1", "e_1")
    assert (rest.write_version, rest.revision) == (3, 2)
    assert len(await store.versions(GRAPH, Kind.HYPEREDGE, five.hyperedge_id)) == 2
    await store.apply(GRAPH, batch(*(delete(one) for one in NODES[2:])))
    assert (await replica(store)).hyperedges == {}
    assert await store.revision(GRAPH) == 3


async def test_relationships_are_removed_alone(store: Store) -> None:
    one, three = edge("a_1", "b_1"), hyperedge("a_1", "b_1", "c_1")
    await store.apply(GRAPH, batch(*NODES, one, three))
    await store.apply(GRAPH, batch(delete(one), delete(three)))
    after = await replica(store)
    assert (len(after.nodes), after.edges, after.hyperedges) == (5, {}, {})
    page = await store.changes(GRAPH, 1, model_id=MODEL)
    assert {(r.kind, r.id) for r in page.removals} == {
        (Kind.EDGE, one.edge_id),
        (Kind.HYPEREDGE, three.hyperedge_id),
    }


async def test_diary_lines_that_name_the_node_go_but_not_the_line_of_its_removal(store: Store) -> None:
    await store.apply(
        GRAPH, batch(*NODES, entry("Stored a.", node_key="a_1"), entry("Stored b.", node_key="b_1"))
    )
    await store.apply(GRAPH, batch(delete(NODES[0]), entry("Forgot a node.", node_key="a_1")))
    events = await store.timeline(GRAPH)
    assert [event.entry.summary for event in events] == ["Forgot a node.", "Stored b."]
    assert len({event.id for event in events}) == 2


async def test_event_numbers_are_not_used_again(store: Store) -> None:
    await store.apply(GRAPH, batch(NODES[0], entry("Stored a.", node_key="a_1")))
    (first,) = await store.timeline(GRAPH)
    await store.apply(GRAPH, batch(delete(NODES[0]), entry("Forgot a node.")))
    (second,) = await store.timeline(GRAPH)
    assert second.id > first.id


async def test_a_key_that_is_stored_again_starts_clean(store: Store) -> None:
    one, three = edge("a_1", "b_1"), hyperedge("a_1", "b_1", "c_1")
    first = update(NODES[0], vectors(passage(1.0)), search_text="old words")
    await store.apply(GRAPH, batch(*NODES, one, three, entry(node_key="a_1")))
    await store.apply(GRAPH, batch(first))
    await store.touch(GRAPH, "s", ["a_1"], minutes(1))
    await store.apply(GRAPH, batch(delete(replace(NODES[0], write_version=2))))
    again = node("a_1", "A new beginning.")
    await store.apply(GRAPH, batch(again))

    (changed,) = (await store.changes(GRAPH, 3, model_id=MODEL)).nodes
    assert changed.node == replace(again, revision=4)
    assert changed.passages == ()
    assert await store.touched(GRAPH, "s") == []
    assert await store.timeline(GRAPH, node_key="a_1") == []
    assert await store.vector_models(GRAPH) == {}
    found = await store.relationships(GRAPH, ["a_1"], edge_limit=9, hyperedge_limit=9)
    assert (found["a_1"].edge_total, found["a_1"].hyperedge_total) == (0, 0)
    # The old states stay readable: they are what a restore needs.
    history = await store.versions(GRAPH, Kind.NODE, "a_1")
    assert [version.revision for version in history] == [4, 3, 2, 1]
    assert history[1].state is None


async def test_a_thing_that_is_stored_again_has_no_tombstone(store: Store) -> None:
    one = edge("a_1", "b_1")
    await store.apply(GRAPH, batch(*NODES, one))
    await store.apply(GRAPH, batch(delete(NODES[0])))
    await store.apply(GRAPH, batch(NODES[0], one))
    page = await store.changes(GRAPH, 0, model_id=MODEL)
    assert page.removals == ()
    assert {edge.edge_id: edge.revision for edge in page.edges} == {one.edge_id: 3}


async def test_removing_all_leaves_an_empty_graph(store: Store) -> None:
    await store.apply(GRAPH, batch(*NODES, edge("a_1", "b_1"), hyperedge("a_1", "b_1", "c_1")))
    await store.apply(GRAPH, batch(*(delete(one) for one in NODES)))
    after = await everything(store)
    assert (await replica(store)).nodes == {}
    assert after["revision"] == 2
    assert (await store.counts(GRAPH)).nodes == 0
