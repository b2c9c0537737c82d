"""Fusion by rank: what it promises for every set of lists."""

from __future__ import annotations

import doctest
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hivemem.errors import InvalidInput
from hivemem.retrieval import fuse
from hivemem.retrieval.fuse import RRF_K, reciprocal_rank_fusion

ranked_lists = st.dictionaries(
    st.sampled_from(["bm25", "dense", "regex", "graph"]),
    st.lists(st.text("abcdefgh", min_size=1, max_size=2), unique=True, max_size=12),
)


def test_the_example_in_the_docstring() -> None:
    outcome = doctest.testmod(fuse)
    assert (outcome.failed, outcome.attempted > 0) == (0, True)


def test_scores_are_the_sums_of_the_formula() -> None:
    hits = reciprocal_rank_fusion({"one": ["a", "b"], "two": ["b"], "three": ["c", "d", "b"]})
    scores = {hit.key: hit.score for hit in hits}
    assert scores["b"] == pytest.approx(1 / 62 + 1 / 61 + 1 / 63)
    assert scores["d"] == pytest.approx(1 / 62)
    assert next(hit.ranks for hit in hits if hit.key == "b") == {"one": 2, "two": 1, "three": 3}


def test_equal_scores_are_ordered_by_key() -> None:
    hits = reciprocal_rank_fusion({"one": ["z", "m"], "two": ["a", "k"]})
    assert [hit.key for hit in hits] == ["a", "z", "k", "m"]


def test_no_lists_and_empty_lists_give_no_hits() -> None:
    assert reciprocal_rank_fusion({}) == []
    assert reciprocal_rank_fusion({"bm25": [], "dense": []}) == []


def test_a_larger_k_flattens() -> None:
    steep = reciprocal_rank_fusion({"one": ["a", "b"]}, k=1)
    flat = reciprocal_rank_fusion({"one": ["a", "b"]}, k=1000)
    assert steep[0].score / steep[1].score > flat[0].score / flat[1].score > 1


@pytest.mark.parametrize("k", [0, -1])
def test_k_must_be_positive(k: int) -> None:
    with pytest.raises(InvalidInput, match=rf"k is {k};"):
        reciprocal_rank_fusion({"one": ["a"]}, k=k)


def test_a_key_twice_in_one_list_is_refused_by_name() -> None:
    with pytest.raises(InvalidInput, match="'dense' returned 'a' twice"):
        reciprocal_rank_fusion({"bm25": ["a"], "dense": ["a", "b", "a"]})


@given(ranked_lists, st.randoms(use_true_random=False))
@settings(max_examples=60)
def test_the_order_of_the_legs_does_not_matter(lists: dict[str, list[str]], shuffler: random.Random) -> None:
    legs = list(lists)
    shuffler.shuffle(legs)
    assert reciprocal_rank_fusion({leg: lists[leg] for leg in legs}) == reciprocal_rank_fusion(lists)


@given(ranked_lists)
@settings(max_examples=60)
def test_each_key_once_falling_scores_within_the_bounds(lists: dict[str, list[str]]) -> None:
    hits = reciprocal_rank_fusion(lists)
    assert sorted(hit.key for hit in hits) == sorted({key for keys in lists.values() for key in keys})
    order = [(-hit.score, hit.key) for hit in hits]
    assert order == sorted(order)
    for hit in hits:
        assert 0.0 < hit.score <= len(lists) / (RRF_K + 1) + 1e-12
        assert {leg: lists[leg].index(hit.key) + 1 for leg in hit.ranks} == dict(hit.ranks)


@given(ranked_lists, st.data())
@settings(max_examples=60)
def test_a_better_rank_never_lowers_a_score(lists: dict[str, list[str]], data: st.DataObject) -> None:
    long = [leg for leg, keys in lists.items() if len(keys) > 1]
    if not long:
        return
    leg = data.draw(st.sampled_from(long))
    position = data.draw(st.integers(1, len(lists[leg]) - 1))
    key = lists[leg][position]
    better = lists[leg].copy()
    better.insert(data.draw(st.integers(0, position - 1)), better.pop(position))

    def score(of: dict[str, list[str]]) -> float:
        return next(hit.score for hit in reciprocal_rank_fusion(of) if hit.key == key)

    assert score({**lists, leg: better}) > score(lists)
