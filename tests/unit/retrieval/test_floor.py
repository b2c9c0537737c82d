"""The floor: what the size of the graph and the names of a question do to it."""

from __future__ import annotations

import math

import pytest

from hivemem.retrieval.analyse import analyse_query
from hivemem.retrieval.ranking import (
    CHANCE_WORDS,
    Calibration,
    floor_points,
    floor_relief,
    held_words,
    relevance,
    tail_points,
)

C = Calibration()


def test_at_the_reference_size_it_is_the_setting() -> None:
    assert relevance(floor_points(C, 1000), C) == pytest.approx(C.floor)


def test_it_grows_with_the_logarithm_of_the_size() -> None:
    assert floor_points(C, 10_000) - floor_points(C, 1000) == pytest.approx(C.floor_growth * math.log(10))
    assert floor_points(C, 1) == C.least_floor


def test_known_names_lower_it_and_strange_ones_raise_it() -> None:
    known, none, strange = (floor_points(C, 5000, names_known=n) for n in (1.0, None, 0.0))
    assert (none - known, strange - none) == (
        pytest.approx(C.known_names),
        pytest.approx(C.strange_names),
    )


def test_of_names_known_in_part_the_strange_share_counts() -> None:
    none, part = floor_points(C, 5000), floor_points(C, 5000, names_known=0.75)
    assert part - none == pytest.approx(0.25 * C.strange_names)


def test_words_held_by_chance_ease_nothing_and_each_further_one_does() -> None:
    assert [floor_relief(held, C) for held in (0.0, 1.0, CHANCE_WORDS)] == [0.0, 0.0, 0.0]
    assert floor_relief(CHANCE_WORDS + 2.0, C) == pytest.approx(2.0 * C.held_words)


def test_stop_words_are_not_held_and_a_pair_of_characters_counts_half() -> None:
    english = analyse_query("which fitter services the boiler?")
    assert held_words(english, [True] * len(english.words)) == 3.0
    assert held_words(english, [False] * len(english.words)) == 0.0
    chinese = analyse_query("备用钥匙")
    assert held_words(chinese, [True, False, True]) == 1.0


@pytest.mark.parametrize(("floor", "points"), [(0.0, -math.inf), (1.0, math.inf)])
def test_the_ends_of_the_scale_keep_everything_and_nothing(floor: float, points: float) -> None:
    c = Calibration(floor=floor)
    assert floor_points(c, 1000, names_known=0.0) == points
    assert tail_points(c, points) == 0.0


def test_in_the_smallest_graphs_nothing_below_the_floor_is_kept() -> None:
    assert tail_points(C, C.least_floor) == 0.0
    assert 0.0 < tail_points(C, floor_points(C, 1000)) < floor_points(C, 1000) - C.least_floor
