"""Relationship requests: two forms, and the policy by number of participants."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hivemem.domain.relationships import (
    GENERIC_LABELS,
    EdgeRequest,
    HyperedgeRequest,
    parse_relationship,
)
from hivemem.errors import InvalidInput

WHERE = "/relationships/0"
LABEL = "was decided in one meeting"
LONG = "d" * 80


def parse(**item: Any) -> EdgeRequest | HyperedgeRequest:
    return parse_relationship(item, WHERE, default_from="fact_here")


def participants(count: int) -> list[str]:
    return [f"fact_{number}" for number in range(count)]


def test_an_edge_starts_at_the_stored_node_by_default() -> None:
    assert parse(to_key="fact_b", relationship="explains") == EdgeRequest(
        from_key="fact_here", to_key="fact_b", relationship="explains"
    )


def test_without_a_default_the_source_is_required() -> None:
    with pytest.raises(InvalidInput, match=r"^/relationships/0/from_key"):
        parse_relationship({"to_key": "fact_b", "relationship": "explains"}, WHERE)


def test_target_key_is_an_alias_of_to_key() -> None:
    assert parse(target_key="fact_b", relationship="explains").keys == ("fact_here", "fact_b")


def test_nodes_is_an_alias_of_participant_keys() -> None:
    request = parse(nodes=participants(12), relationship=LABEL)
    assert isinstance(request, HyperedgeRequest)
    assert request.keys == tuple(participants(12))


def test_null_fields_are_like_absent_ones() -> None:
    request = parse(
        to_key="fact_b", relationship="explains", participant_keys=None, description=None, data=None
    )
    assert isinstance(request, EdgeRequest)
    assert request.data == {}


def test_both_ends_are_normalised() -> None:
    request = parse(from_key=" cafe\u0301 ", to_key="fact_b ", relationship="explains")
    assert request.keys == ("café", "fact_b")


@pytest.mark.parametrize("label", ["uses", "knows", "relates_to"])
def test_bare_verbs_are_not_refused_on_edges(label: str) -> None:
    assert parse(to_key="fact_b", relationship=label).relationship == label


@pytest.mark.parametrize(
    ("item", "message"),
    [
        ({"to_key": "fact_b"}, "/relationship is missing"),
        ({"to_key": "fact_b", "relationship": "  "}, "/relationship is missing"),
        ({"to_key": "fact_b", "relationship": 7}, '/relationship is not of type "string"'),
        ({"relationship": "explains"}, "/to_key is missing"),
        ({"to_key": "fact_here", "relationship": "explains"}, "an edge joins two nodes"),
        ({"to_key": "", "relationship": "explains"}, "/to_key is missing"),
        ({"to_key": "fact_b", "relationship": "explains", "weight": 1}, "unknown field 'weight'"),
        ({"to_key": "fact_b", "relationship": "explains", "data": []}, '/data is not of type "object"'),
        ({"to_key": "fact_b", "relationship": "chat_monday"}, "reserved"),
        ({"to_key": "fact_b", "relationship": "CHAT_monday"}, "reserved"),
        ({"participant_keys": "fact_b", "relationship": LABEL}, 'not of type "array"'),
        (
            {"participant_keys": ["fact_b", 3], "relationship": LABEL},
            'participant_keys/1 is not of type "string"',
        ),
    ],
)
def test_a_broken_item_is_refused_with_a_pointer(item: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput) as refusal:
        parse(**item)
    assert refusal.value.message.startswith(WHERE)
    assert message in refusal.value.message


@pytest.mark.parametrize("keys", [[], ["fact_a"], ["fact_a", "fact_a", " fact_a"]])
def test_fewer_than_two_distinct_participants_are_refused(keys: list[str]) -> None:
    with pytest.raises(InvalidInput, match="a relationship needs two"):
        parse(participant_keys=keys, relationship=LABEL, description=LONG)


def test_two_participants_become_an_edge_from_the_first_to_the_second() -> None:
    request = parse(participant_keys=["fact_a", "fact_b", "fact_a"], relationship=LABEL)
    assert isinstance(request, EdgeRequest)
    assert request.keys == ("fact_a", "fact_b")


def test_duplicate_participants_are_removed_in_order() -> None:
    request = parse(
        participant_keys=["fact_a", "fact_b", " fact_a", "fact_c"], relationship=LABEL, description=LONG
    )
    assert request.keys == ("fact_a", "fact_b", "fact_c")


def test_three_participants_need_a_description_of_80_characters() -> None:
    assert parse(participant_keys=participants(3), relationship="joint", description="d" * 80)
    with pytest.raises(InvalidInput, match="79 characters"):
        parse(participant_keys=participants(3), relationship=LABEL, description="d" * 79)
    with pytest.raises(InvalidInput, match="0 characters"):
        parse(participant_keys=participants(3), relationship=LABEL)


def test_white_space_does_not_lengthen_a_description() -> None:
    with pytest.raises(InvalidInput, match="1 characters"):
        parse(participant_keys=participants(3), relationship=LABEL, description=" " * 90 + "d")


@pytest.mark.parametrize("count", [4, 5])
def test_four_and_five_participants_need_a_label_of_10_characters(count: int) -> None:
    assert parse(participant_keys=participants(count), relationship="0123456789")
    with pytest.raises(InvalidInput, match="9 characters"):
        parse(participant_keys=participants(count), relationship="012345678")


@pytest.mark.parametrize("count", [6, 9, 10, 40])
def test_from_six_participants_on_any_specific_label_will_do(count: int) -> None:
    assert parse(participant_keys=participants(count), relationship="crew").keys == tuple(participants(count))


@pytest.mark.parametrize("count", [2, 3, 4, 6, 10])
@pytest.mark.parametrize("label", [*sorted(GENERIC_LABELS), "Relates_To", "LINKED"])
def test_generic_labels_are_refused_with_participants(label: str, count: int) -> None:
    with pytest.raises(InvalidInput, match="write a specific label"):
        parse(participant_keys=participants(count), relationship=label, description=LONG)


@pytest.mark.parametrize("count", [2, 3, 10])
def test_labels_of_sessions_are_reserved(count: int) -> None:
    with pytest.raises(InvalidInput, match="reserved"):
        parse(participant_keys=participants(count), relationship="chat_tuesday", description=LONG)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
ITEMS = st.fixed_dictionaries(
    {},
    optional={
        "from_key": st.one_of(st.text(max_size=6), JSON),
        "to_key": st.one_of(st.sampled_from(["fact_a", "fact_b"]), JSON),
        "participant_keys": st.one_of(st.lists(st.sampled_from("abcdef"), max_size=8), JSON),
        "relationship": st.one_of(st.just(LABEL), st.text(max_size=12), JSON),
        "description": st.one_of(st.just(LONG), JSON),
        "data": JSON,
    },
)


@given(ITEMS)
def test_any_json_item_is_refused_or_gives_at_least_two_distinct_keys(item: dict[str, object]) -> None:
    try:
        request = parse_relationship(item, WHERE, default_from="fact_here")
    except InvalidInput as refusal:
        assert refusal.message.startswith(WHERE)
        return
    assert len(set(request.keys)) == len(request.keys) >= 2
    assert (len(request.keys) >= 3) is isinstance(request, HyperedgeRequest)
