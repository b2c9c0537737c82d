"""Edges and hyperedges cannot hold a broken state, and know when they are the same."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hivemem.errors import InvalidInput
from tests.support import builders as make


def test_an_edge_does_not_point_to_its_own_source() -> None:
    with pytest.raises(InvalidInput, match="is the node itself"):
        make.edge("fact_a", "fact_a")


def test_edges_are_the_same_by_ends_and_label() -> None:
    first, second = make.edge("fact_a", "fact_b", edge_id="x"), make.edge("fact_a", "fact_b", edge_id="y")
    assert first.identity == second.identity
    assert first.identity != make.edge("fact_b", "fact_a").identity
    assert first.identity != make.edge("fact_a", "fact_b", "blocks").identity


@pytest.mark.parametrize(
    "change",
    [
        {"edge_id": ""},
        {"relationship": " "},
        {"description": "nul\x00"},
        {"data": {"x": float("nan")}},
        {"created_at": datetime(2026, 1, 1)},  # naive
        {"updated_at": datetime(2026, 1, 1, tzinfo=timezone(timedelta(hours=2)))},
    ],
)
def test_an_edge_with_a_broken_field_cannot_exist(change: dict[str, object]) -> None:
    with pytest.raises(InvalidInput):
        make.edge("fact_a", "fact_b", **change)


def test_an_edge_holds_keys_in_their_stored_form() -> None:
    with pytest.raises(InvalidInput, match="not in its stored form"):
        make.edge(" fact_a", "fact_b")


@pytest.mark.parametrize("keys", [(), ("a",), ("a", "b"), ("a", "b", "a")])
def test_a_hyperedge_joins_at_least_three_different_nodes(keys: tuple[str, ...]) -> None:
    with pytest.raises(InvalidInput, match="at least 3 different nodes"):
        make.hyperedge(*keys)


@given(st.permutations(["a", "b", "c", "d"]))
def test_hyperedges_are_the_same_in_any_order_of_participants(order: list[str]) -> None:
    assert make.hyperedge(*order).identity == make.hyperedge("a", "b", "c", "d").identity


def test_session_hyperedges_are_told_by_their_label() -> None:
    assert make.hyperedge("a", "b", "c", relationship="chat_monday").is_session
    assert not make.hyperedge("a", "b", "c").is_session


@given(st.sets(st.sampled_from("abcdef")))
def test_a_hyperedge_that_loses_nodes_keeps_the_rest_or_goes(lost: set[str]) -> None:
    before = make.hyperedge(*"abcdef")
    after = before.without(lost, make.minutes(1))
    remaining = [key for key in "abcdef" if key not in lost]
    if len(remaining) < 3:
        assert after is None
        return
    assert after is not None
    assert list(after.keys) == remaining
    assert [p.ordinal for p in after.participants] == ["abcdef".index(key) for key in remaining]
    assert after.write_version == before.write_version + 1
    assert after.updated_at == make.minutes(1)
