"""Neighbours: specific labels first, hubs bounded, the same answer after any history."""

from __future__ import annotations

import math

import pytest

from hivemem.domain.edge import Edge, Hyperedge
from hivemem.domain.graph import Kind
from hivemem.projection.adjacency import MAX_NODE_LABELS, Adjacency
from tests.support.builders import edge, hyperedge, minutes


def build(*things: Edge | Hyperedge) -> Adjacency:
    graph = Adjacency()
    for thing in things:
        if isinstance(thing, Edge):
            graph.put_edge(thing)
        else:
            graph.put_hyperedge(thing)
    return graph


def seen(graph: Adjacency, key: str, limit: int = 50) -> list[tuple[str, str, str]]:
    return [(n.direction, n.key, n.relationship) for n in graph.neighbours(key, limit)]


def test_a_rare_label_is_not_crowded_out_by_a_mass_label() -> None:
    graph = build(edge("project_x", "person_maria", "owned by"))
    for number in range(3000):
        graph.put_edge(edge(f"log_{number}", "person_maria", "mentions", created_at=minutes(number)))
    assert seen(graph, "person_maria", 3) == [
        ("incoming", "project_x", "owned by"),
        ("incoming", "log_2999", "mentions"),
        ("incoming", "log_2998", "mentions"),
    ]
    assert graph.degree("person_maria") == 3001
    assert graph.top_degree(2) == [("person_maria", 3001), ("log_0", 1)]


def test_strength_follows_the_documented_formula() -> None:
    graph = build(edge("a", "b", "uses"), edge("a", "c", "uses"), edge("c", "d", "ships"))
    strengths = {n.key: n.strength for n in graph.neighbours("a", 5)}
    specificity = math.log1p(3 / 2) / math.log1p(3)
    assert strengths == pytest.approx({"b": specificity, "c": specificity / (1 + math.log(2))})
    assert graph.neighbours("d", 5)[0].strength == pytest.approx(1 / (1 + math.log(2)))


def test_a_hub_of_ten_thousand_edges_answers_the_strongest_of_all() -> None:
    graph = Adjacency()
    for number in range(10_000):
        label = "mentions" if number % 10 else f"explains part {number}"
        graph.put_edge(edge("hub", f"leaf_{number:05d}", label, created_at=minutes(number % 7)))
    complete = graph.neighbours("hub", 20_000)
    assert len(complete) == 10_000
    assert graph.neighbours("hub", 5) == complete[:5]
    order = [(-n.strength, n.edge_id) for n in complete]
    assert [strength for strength, _ in order] == sorted(strength for strength, _ in order)
    assert {n.relationship for n in complete[1000:]} == {"mentions"}
    labels = graph.labels("hub")
    assert len(labels) == MAX_NODE_LABELS
    # All but "mentions" occur once here; the newest of these stay.
    assert all(label.startswith("explains") for label in labels)


def test_a_hyperedge_is_one_neighbour_per_other_participant() -> None:
    graph = build(hyperedge("a", "b", "c", "d", relationship="shared a flat"))
    assert seen(graph, "b") == [
        ("incoming", "a", "shared a flat"),
        ("outgoing", "c", "shared a flat"),
        ("outgoing", "d", "shared a flat"),
    ]
    assert {n.kind for n in graph.neighbours("b", 5)} == {Kind.HYPEREDGE}
    assert graph.degree("b") == 1


def test_session_hyperedges_are_left_out() -> None:
    graph = build(hyperedge("a", "b", "c", relationship="chat_default"))
    assert (graph.degree("a"), graph.neighbours("a", 5), graph.labels("a"), len(graph)) == (0, [], (), 0)
    assert graph.top_degree(5) == []


def test_ties_are_the_newest_first_then_by_id() -> None:
    graph = build(
        edge("a", "d", "uses", edge_id="e1", created_at=minutes(1)),
        edge("a", "c", "uses", edge_id="e3", created_at=minutes(2)),
        edge("a", "b", "uses", edge_id="e2", created_at=minutes(2)),
    )
    assert [n.edge_id for n in graph.neighbours("a", 5)] == ["e3", "e2", "e1"]
    assert [n.edge_id for n in graph.neighbours("a", 1)] == ["e3"]


def test_ties_are_cut_at_the_limit_without_loss() -> None:
    graph = build(*(edge("a", f"b{n}", "uses", edge_id=f"e{n}") for n in (3, 1, 4, 2)))
    for limit in range(1, 6):
        assert [n.edge_id for n in graph.neighbours("a", limit)] == ["e4", "e3", "e2", "e1"][:limit]


def test_a_replaced_edge_moves() -> None:
    graph = build(edge("a", "b", "uses", edge_id="e1"))
    touched = graph.put_edge(edge("a", "c", "replaces", edge_id="e1"))
    assert touched == {"a", "b", "c"}
    assert seen(graph, "a") == [("outgoing", "c", "replaces")]
    assert graph.neighbours("b", 5) == []
    assert (graph.labels("a"), graph.labels("b")) == (("replaces",), ())


def test_a_removed_edge_is_gone_and_names_its_ends() -> None:
    graph = build(edge("a", "b", edge_id="e1"), hyperedge("a", "b", "c", hyperedge_id="h1"))
    assert graph.remove("e1") == {"a", "b"}
    assert graph.remove("e1") == set()
    assert graph.remove("h1") == {"a", "b", "c"}
    assert (graph.degree("a"), len(graph), graph.neighbours("a", 5)) == (0, 0, [])


def test_all_relationships_can_go_and_others_come() -> None:
    things = [edge(f"a_{number}", "hub", f"label {number}") for number in range(20)]
    graph = build(*things)
    for thing in things:
        graph.remove(thing.edge_id)
    assert (len(graph), seen(graph, "hub"), graph.top_degree(5)) == (0, [], [])
    graph.put_edge(edge("b_1", "hub", "comes after"))
    assert seen(graph, "hub") == [("incoming", "b_1", "comes after")]


def test_compaction_changes_no_answer() -> None:
    kept = [
        edge("hub", f"leaf_{number}", f"label {number % 3}", created_at=minutes(number))
        for number in range(9)
    ]
    graph = Adjacency()
    for number, thing in enumerate(kept):
        graph.put_edge(thing)
        for _ in range(4):
            graph.put_edge(edge("hub", f"gone_{number}", "passing", edge_id=f"gone_{number}"))
        graph.remove(f"gone_{number}")
    fresh = build(*kept)
    assert graph.neighbours("hub", 50) == fresh.neighbours("hub", 50)
    assert graph.labels("hub") == fresh.labels("hub")
    assert graph.top_degree(50) == fresh.top_degree(50)
    assert graph.size_bytes < 3 * fresh.size_bytes
