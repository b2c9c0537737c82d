"""The sieve of signs: exactly the rows with the fewest differing ones, however these are found."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from hivemem.projection.signs import Signs

ROWS, DIMENSION = 5_000, 128


def nearest_by_counting(
    vectors: NDArray[np.float32], query: NDArray[np.float32], dead: NDArray[np.intp], count: int
) -> NDArray[np.intp]:
    differing = ((vectors > 0) != (query > 0)).sum(axis=1)
    alive = np.setdiff1d(np.arange(len(vectors)), dead)
    if not count or not len(alive):
        return alive[:0]
    border = np.sort(differing[alive])[min(count, len(alive)) - 1]
    return alive[differing[alive] <= border]


def rows_of(order: str) -> NDArray[np.float32]:
    """Random rows; `near first` and `near apart` put the nearest where a sample of every n-th misleads."""
    vectors = np.random.default_rng(5).normal(size=(ROWS, DIMENSION)).astype(np.float32)
    nearness = (vectors > 0).sum(axis=1)
    if order == "near first":
        return vectors[np.argsort(-nearness, kind="stable")]
    if order == "near apart":
        # Every sixteenth row is one of the farthest, so a sample sees nothing of the near ones.
        by_distance = np.argsort(-nearness, kind="stable")
        sampled = np.zeros(ROWS, dtype=np.bool_)
        sampled[::16] = True
        placed = np.empty(ROWS, dtype=np.intp)
        placed[~sampled] = by_distance[: int((~sampled).sum())]
        placed[sampled] = by_distance[int((~sampled).sum()) :]
        return vectors[placed]
    return vectors


@pytest.mark.parametrize("order", ["random", "near first", "near apart"])
@pytest.mark.parametrize("count", [0, 1, 40, 700, ROWS - 1, ROWS, 2 * ROWS])
def test_exactly_the_nearest_and_all_that_tie(order: str, count: int) -> None:
    vectors = rows_of(order)
    signs = Signs(DIMENSION)
    signs.append(vectors)
    query = np.ones(DIMENSION, dtype=np.float32)
    for dead in (np.zeros(0, dtype=np.intp), np.arange(0, ROWS, 7)):
        found = signs.nearest(query, dead, count)
        np.testing.assert_array_equal(found, nearest_by_counting(vectors, query, dead, count))


def test_none_of_none() -> None:
    query = np.ones(DIMENSION, dtype=np.float32)
    assert not len(Signs(DIMENSION).nearest(query, np.zeros(0, dtype=np.intp), 10))
