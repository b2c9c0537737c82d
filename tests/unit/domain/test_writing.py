"""Planning a write: pure, on a snapshot, one request after the other."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hivemem.domain.edge import Edge, Hyperedge
from hivemem.domain.graph import NodeVectors, Snapshot
from hivemem.domain.node import EnrichmentStatus, Node
from hivemem.domain.relationships import parse_relationship
from hivemem.domain.writing import (
    IfExists,
    NodeDraft,
    NodeText,
    NumberedRelationship,
    PlannedStore,
    WritePlanner,
    identities,
)
from hivemem.errors import Conflict
from tests.support import builders as make

LONG = "Three nodes are described at length here, so that the policy for three lets them be joined."
VECTOR = make.vectors(make.passage(1.0))
NO_VECTORS = make.vectors()


def snapshot(*things: Node | Edge | Hyperedge) -> Snapshot:
    profile = make.placeholder("user_profile", node_type="user")
    nodes = [thing for thing in things if isinstance(thing, Node)]
    return Snapshot(
        nodes={node.key: node for node in [profile, *nodes]},
        edges={edge.identity: edge for edge in things if isinstance(edge, Edge)},
        hyperedges={hyper.identity: hyper for hyper in things if isinstance(hyper, Hyperedge)},
    )


def planner(present: Snapshot) -> WritePlanner:
    numbers = itertools.count(1)
    return WritePlanner(present, at=make.minutes(5), new_id=lambda prefix: f"{prefix}_{next(numbers)}")


class AnyVectors(dict[NodeText, NodeVectors]):
    def __missing__(self, text: NodeText) -> NodeVectors:
        return VECTOR


def wishes(key: str, *items: dict[str, Any]) -> list[NumberedRelationship]:
    return [
        NumberedRelationship(
            index=i, request=parse_relationship(item, f"/relationships/{i}", default_from=key)
        )
        for i, item in enumerate(items)
    ]


def plan(
    plan_on: WritePlanner, key: str = "fact_a", description: str = "A.", *items: dict[str, Any], **draft: Any
) -> PlannedStore:
    return plan_on.store(
        NodeDraft(key=key, description=description, **draft), wishes(key, *items), AnyVectors()
    )


def test_a_new_node_gets_version_one_and_its_vectors() -> None:
    on = planner(snapshot())
    planned = plan(on, "person_alice", "Alice.", data={"age": 3}, search_text="ally", assets=("f1",))
    [write] = on.batch().nodes
    assert planned.status == "created"
    assert (write.expected, write.vectors) == (0, VECTOR)
    assert write.node == planned.node
    assert planned.node == make.node(
        "person_alice",
        "Alice.",
        node_type="person",
        data={"age": 3},
        search_text="ally",
        assets=("f1",),
        enrichment_status=EnrichmentStatus.SKIPPED,
        created_at=make.minutes(5),
        updated_at=make.minutes(5),
    )


def test_an_update_changes_the_given_fields_only() -> None:
    stored = make.node(
        "fact_a", "Old.", node_type="event", data={"a": 1}, search_text="s", assets=("f",), write_version=4
    )
    on = planner(snapshot(stored))
    planned = plan(on, "fact_a", "New.")
    assert planned.status == "updated"
    assert planned.node.description == "New."
    assert (planned.node.node_type, planned.node.data) == ("event", {"a": 1})
    assert (planned.node.search_text, planned.node.assets) == ("s", ("f",))
    assert (planned.node.write_version, planned.node.created_at) == (5, stored.created_at)
    assert on.batch().nodes[0].expected == 4


def test_given_fields_replace_the_stored_ones_whole() -> None:
    stored = make.node("fact_a", data={"a": 1, "b": 2}, search_text="s", assets=("f", "g"))
    planned = plan(
        planner(snapshot(stored)),
        "fact_a",
        "A.",
        data={"b": 3},
        search_text="",
        assets=(),
        node_type="decision",
    )
    assert planned.node.data == {"b": 3}
    assert planned.node.search_text is None
    assert planned.node.assets == ()
    assert planned.node.node_type == "decision"


def test_keep_leaves_the_node_and_adds_the_relationships() -> None:
    stored = make.node("fact_a", "Old.")
    on = planner(snapshot(stored, make.node("fact_b")))
    planned = plan(
        on, "fact_a", "New.", {"to_key": "fact_b", "relationship": "explains"}, if_exists=IfExists.KEEP
    )
    assert (planned.status, planned.node) == ("kept", stored)
    assert on.batch().nodes == ()
    assert len(on.batch().edges) == 1


def test_error_refuses_an_existing_node_and_plans_nothing() -> None:
    on = planner(snapshot(make.node("fact_a")))
    with pytest.raises(Conflict) as refusal:
        plan(on, "fact_a", "New.", {"to_key": "b", "relationship": "explains"}, if_exists=IfExists.ERROR)
    assert refusal.value.code == "already_exists"
    assert on.batch().nodes == on.batch().edges == on.batch().timeline == ()


@pytest.mark.parametrize("if_exists", IfExists)
def test_a_placeholder_counts_as_not_existing(if_exists: IfExists) -> None:
    on = planner(snapshot(make.placeholder("person_bob", write_version=2, node_type="fact")))
    planned = plan(on, "person_bob", "Bob.", if_exists=if_exists)
    assert planned.status == "created"
    assert (planned.node.node_type, planned.node.write_version) == ("person", 3)
    assert planned.node.created_at == make.minutes(5)
    assert on.batch().nodes[0].expected == 2


def test_missing_ends_become_placeholders_typed_by_their_prefix() -> None:
    on = planner(snapshot())
    planned = plan(on, "fact_a", "A.", {"to_key": "person_bob", "relationship": "was told by"})
    writes = {write.node.key: write for write in on.batch().nodes}
    assert set(writes) == {"fact_a", "person_bob"}
    assert writes["person_bob"].node.placeholder
    assert writes["person_bob"].node.node_type == "person"
    assert writes["person_bob"].vectors is None
    assert "'person_bob'" in planned.warnings[0]


def test_many_placeholders_are_one_short_warning() -> None:
    items = [{"to_key": f"fact_{n}", "relationship": "lists"} for n in range(40)]
    planned = plan(planner(snapshot()), "fact_a", "A.", *items)
    assert len(planned.warnings) == 1
    assert "and 35 more" in planned.warnings[0]


def test_a_missing_user_profile_is_created_with_the_first_store() -> None:
    on = planner(Snapshot(nodes={}, edges={}, hyperedges={}))
    planned = plan(on, "fact_a", "A.")
    writes = {write.node.key: write.node for write in on.batch().nodes}
    assert writes["user_profile"].placeholder
    assert writes["user_profile"].node_type == "user"
    assert planned.warnings == ()


def test_the_label_is_kept_verbatim_and_in_the_data() -> None:
    on = planner(snapshot())
    label = "Was chosen because it needs no daemon, said José."
    plan(on, "fact_a", "A.", {"to_key": "b", "relationship": label, "data": {"since": 2024}})
    edge = on.batch().edges[0].edge
    assert edge.relationship == label
    assert edge.data == {"since": 2024, "semantic_relationship": label}


def test_a_label_for_readers_that_the_caller_sends_is_kept() -> None:
    on = planner(snapshot())
    sent = {"semantic_relationship": "reworded"}
    plan(on, "fact_a", "A.", {"to_key": "b", "relationship": "explains", "data": sent})
    assert on.batch().edges[0].edge.data == sent


def test_an_identical_edge_is_a_replay_with_the_same_id() -> None:
    present = make.edge("fact_a", "fact_b", "explains", description="Why.", write_version=3)
    on = planner(snapshot(make.node("fact_a"), make.node("fact_b"), present))
    item = {"to_key": "fact_b", "relationship": "explains"}
    planned = plan(on, "fact_a", "A.", item, {**item, "description": "Why."})
    assert [(one.entity_id, one.write_version) for one in planned.replayed] == [(present.edge_id, 3)] * 2
    assert planned.created == ()
    assert planned.warnings == ()
    assert on.batch().edges == ()


def test_a_replayed_edge_keeps_its_description_and_says_so() -> None:
    present = make.edge("fact_a", "fact_b", "explains", description="Why.")
    on = planner(snapshot(make.node("fact_a"), make.node("fact_b"), present))
    planned = plan(
        on, "fact_a", "A.", {"to_key": "fact_b", "relationship": "explains", "description": "Other."}
    )
    assert len(planned.replayed) == 1
    assert repr(present.edge_id) in planned.warnings[0]
    assert on.batch().edges == ()


def test_the_opposite_direction_is_another_edge() -> None:
    present = make.edge("fact_a", "fact_b", "explains")
    on = planner(snapshot(make.node("fact_a"), make.node("fact_b"), present))
    planned = plan(on, "fact_a", "A.", {"from_key": "fact_b", "to_key": "fact_a", "relationship": "explains"})
    assert [one.keys for one in planned.created] == [("fact_b", "fact_a")]


def test_the_same_wish_twice_in_one_call_is_created_once() -> None:
    edge = {"to_key": "b", "relationship": "explains"}
    hyper = {"participant_keys": ["x", "y", "z"], "relationship": "joined", "description": LONG}
    planned = plan(planner(snapshot()), "fact_a", "A.", edge, edge, hyper, hyper)
    assert [one.index for one in planned.created] == [0, 2]
    assert [one.index for one in planned.replayed] == [1, 3]
    assert [one.entity_id for one in planned.created] == [one.entity_id for one in planned.replayed]


def test_a_hyperedge_with_the_same_participants_in_another_order_is_a_replay() -> None:
    present = make.hyperedge("a", "b", "c", relationship="joined", description=LONG)
    on = planner(snapshot(make.node("a"), make.node("b"), make.node("c"), present))
    item = {"participant_keys": ["c", "a", "b"], "relationship": "joined", "description": LONG}
    planned = plan(on, "fact_a", "A.", item)
    assert [one.entity_id for one in planned.replayed] == [present.hyperedge_id]


def test_a_hyperedge_with_another_description_is_refused_and_the_node_is_not() -> None:
    present = make.hyperedge("a", "b", "c", relationship="joined", description=LONG)
    on = planner(snapshot(make.node("a"), make.node("b"), make.node("c"), present))
    item = {"participant_keys": ["a", "b", "c"], "relationship": "joined", "description": LONG + "!"}
    planned = plan(on, "fact_a", "A.", item)
    assert [(one.index, one.code) for one in planned.errors] == [(0, "hyperedge_conflict")]
    assert present.hyperedge_id in planned.errors[0].detail
    assert [write.node.key for write in on.batch().nodes] == ["fact_a"]
    assert on.batch().hyperedges == ()


def test_the_same_label_over_other_participants_is_a_new_hyperedge() -> None:
    present = make.hyperedge("a", "b", "c", relationship="joined", description=LONG)
    on = planner(snapshot(*(make.node(key) for key in "abcd"), present))
    item = {"participant_keys": ["a", "b", "d"], "relationship": "joined", "description": LONG}
    planned = plan(on, "fact_a", "A.", item)
    [created] = planned.created
    assert created.entity_id != present.hyperedge_id
    assert (created.kind, created.keys) == ("hyperedge", ("a", "b", "d"))
    assert [p.ordinal for p in on.batch().hyperedges[0].hyperedge.participants] == [0, 1, 2]


def test_a_placeholder_of_an_earlier_request_is_filled_in_the_same_batch() -> None:
    on = planner(snapshot())
    plan(on, "fact_a", "A.", {"to_key": "person_bob", "relationship": "was told by"})
    second = plan(on, "person_bob", "Bob.")
    writes = {write.node.key: write for write in on.batch().nodes}
    assert second.status == "created"
    assert not writes["person_bob"].node.placeholder
    assert (writes["person_bob"].node.write_version, writes["person_bob"].expected) == (1, 0)


def test_one_batch_describes_a_key_once() -> None:
    on = planner(snapshot())
    plan(on, "fact_a", "First.")
    with pytest.raises(ValueError, match="already described"):
        plan(on, "fact_a", "Second.")


def test_unchanged_text_keeps_its_vectors() -> None:
    stored = make.node("fact_a", "Same.", enrichment_status=EnrichmentStatus.SKIPPED)
    on = planner(snapshot(stored))
    plan(on, "fact_a", "Same.", data={"x": 1})
    assert on.batch().nodes[0].vectors is None
    assert on.batch().nodes[0].node.enrichment_status is EnrichmentStatus.SKIPPED


def test_text_without_vectors_clears_the_old_ones_and_waits() -> None:
    stored = make.node("fact_a", "Old.", enrichment_status=EnrichmentStatus.SKIPPED)
    on = planner(snapshot(stored))
    draft = NodeDraft(key="fact_a", description="New.")
    text = draft.missing_text(stored)
    assert text == NodeText(description="New.", search_text=None)
    on.store(draft, (), {text: NO_VECTORS})
    assert on.batch().nodes[0].vectors == NO_VECTORS
    assert on.batch().nodes[0].node.enrichment_status is EnrichmentStatus.PENDING


def test_text_that_waits_is_embedded_by_the_next_store_of_the_node() -> None:
    stored = make.node("fact_a", "Same.", enrichment_status=EnrichmentStatus.PENDING)
    on = planner(snapshot(stored))
    planned = plan(on, "fact_a", "Same.")
    assert on.batch().nodes[0].vectors == VECTOR
    assert planned.node.enrichment_status is EnrichmentStatus.SKIPPED


def test_a_new_search_text_is_embedded_again() -> None:
    stored = make.node("fact_a", "Same.", search_text="s", enrichment_status=EnrichmentStatus.SKIPPED)
    same = NodeDraft(key="fact_a", description="Same.")
    other = NodeDraft(key="fact_a", description="Same.", search_text="t")
    assert same.missing_text(stored) is None
    assert other.missing_text(stored) == NodeText(description="Same.", search_text="t")


def test_every_store_is_one_readable_line_in_the_diary() -> None:
    on = planner(snapshot(make.node("fact_old")))
    plan(on, "fact_a", "First\nline.", {"to_key": "secret_b", "relationship": "explains"})
    plan(on, "fact_old", "x " * 500)
    first, second = on.batch().timeline
    assert first.summary == "Created fact_a: First line. (+1 relationship)"
    assert (first.tool, first.node_key, first.source) == ("hm_store", "fact_a", "agent")
    assert second.summary.startswith("Updated fact_old: x x x")
    assert len(second.summary) < 200
    assert first.at == make.minutes(5)


KEYS = st.sampled_from(["a", "b", "c", "d", "e", "f"])
ITEMS = st.one_of(
    st.builds(
        lambda to, label: {"to_key": to, "relationship": label}, KEYS, st.sampled_from(["explains", "blocks"])
    ),
    st.builds(
        lambda keys, tail: {
            "participant_keys": sorted(keys),
            "relationship": "were joined",
            "description": LONG + tail,
        },
        st.sets(KEYS, min_size=3),
        st.sampled_from(["", "!"]),
    ),
)
CALLS = st.lists(
    st.tuples(KEYS, st.sampled_from(IfExists), st.lists(ITEMS, max_size=3)),
    max_size=6,
    unique_by=lambda c: c[0],
)
STORED = st.lists(st.tuples(KEYS, st.booleans()), max_size=4, unique_by=lambda pair: pair[0])


@given(STORED, CALLS)
def test_a_batch_can_be_applied_to_the_snapshot_it_was_planned_on(
    stored: list[tuple[str, bool]], calls: list[tuple[str, IfExists, list[dict[str, Any]]]]
) -> None:
    present = snapshot(*(make.placeholder(key) if blank else make.node(key) for key, blank in stored))
    on = planner(present)
    for key, if_exists, items in calls:
        items = [item for item in items if item.get("to_key") != key]
        try:
            planned = plan(on, key, "New.", *items, if_exists=if_exists)
        except Conflict:
            continue
        assert len(planned.created) + len(planned.replayed) + len(planned.errors) == len(items)
    batch = on.batch()
    keys = [write.node.key for write in batch.nodes]
    assert len(set(keys)) == len(keys)
    for write in batch.nodes:
        before = present.nodes.get(write.node.key)
        assert write.expected == (before.write_version if before else 0)
        assert write.node.write_version == write.expected + 1
    existing = set(keys) | set(present.nodes)
    for edge_write in batch.edges:
        assert {edge_write.edge.from_key, edge_write.edge.to_key} <= existing
    for hyper_write in batch.hyperedges:
        assert set(hyper_write.hyperedge.keys) <= existing
    edges = [write.edge.identity for write in batch.edges]
    assert len(set(edges)) == len(edges)
    hyperedges = [write.hyperedge.identity for write in batch.hyperedges]
    assert len(set(hyperedges)) == len(hyperedges)


def test_identities_name_what_a_plan_must_see() -> None:
    hyper = {"participant_keys": ["x", "y", "z"], "relationship": "joined", "description": LONG}
    keys, edges, hyperedges = identities(wishes("a", {"to_key": "b", "relationship": "explains"}, hyper))
    assert keys == ["a", "b", "x", "y", "z"]
    assert edges == [("a", "b", "explains")]
    assert hyperedges == [("joined", frozenset("xyz"))]
