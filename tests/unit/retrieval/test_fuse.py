"""Fusion by rank: what it promises for every set of lists."""

from __future__ import annotations

import doctest
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hivemem.errors import InvalidInput
from hivemem.retrieval import fuse
from hivemem.retrieval.fuse import RRF_K, reciprocal_rank_fusion

ranked_lists = st.lists(st.lists(st.integers(0, 20), unique=True, max_size=12), max_size=4)


def fused(lists: list[list[int]], **options: int) -> dict[int, float]:
    nodes, scores = reciprocal_rank_fusion([np.array(one, dtype=np.intp) for one in lists], **options)
    assert len(set(nodes.tolist())) == len(nodes)
    return dict(zip(nodes.tolist(), scores.tolist(), strict=True))


def test_the_example_in_the_docstring() -> None:
    outcome = doctest.testmod(fuse)
    assert (outcome.failed, outcome.attempted > 0) == (0, True)


def test_scores_are_the_sums_of_the_formula() -> None:
    scores = fused([[1, 2], [2], [3, 4, 2]])
    assert scores == pytest.approx({1: 1 / 61, 2: 1 / 62 + 1 / 61 + 1 / 63, 3: 1 / 61, 4: 1 / 62})


def test_no_lists_and_empty_lists_give_no_nodes() -> None:
    assert fused([]) == {}
    assert fused([[], []]) == {}


def test_a_larger_k_flattens() -> None:
    steep, flat = fused([[1, 2]], k=1), fused([[1, 2]], k=1000)
    assert steep[1] / steep[2] > flat[1] / flat[2] > 1


@pytest.mark.parametrize("k", [0, -1])
def test_k_must_be_positive(k: int) -> None:
    with pytest.raises(InvalidInput, match=rf"k is {k};"):
        fused([[1]], k=k)


def test_a_node_twice_in_one_list_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"twice: \[1, 2, 1\]"):
        fused([[1], [1, 2, 1]])


@given(ranked_lists, st.randoms(use_true_random=False))
@settings(max_examples=60)
def test_the_order_of_the_legs_does_not_matter(lists: list[list[int]], shuffler: random.Random) -> None:
    expected = fused(lists)
    shuffler.shuffle(lists)
    assert fused(lists) == expected


@given(ranked_lists)
@settings(max_examples=60)
def test_each_node_once_with_a_score_within_the_bounds(lists: list[list[int]]) -> None:
    scores = fused(lists)
    assert set(scores) == {node for one in lists for node in one}
    assert all(0.0 < score <= len(lists) / (RRF_K + 1) + 1e-12 for score in scores.values())


@given(ranked_lists, st.data())
@settings(max_examples=60)
def test_a_better_rank_never_lowers_a_score(lists: list[list[int]], data: st.DataObject) -> None:
    long = [leg for leg, nodes in enumerate(lists) if len(nodes) > 1]
    if not long:
        return
    leg = data.draw(st.sampled_from(long))
    position = data.draw(st.integers(1, len(lists[leg]) - 1))
    node = lists[leg][position]
    better = [one.copy() for one in lists]
    better[leg].insert(data.draw(st.integers(0, position - 1)), better[leg].pop(position))
    assert fused(better)[node] > fused(lists)[node]
