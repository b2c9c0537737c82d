"""Growing numpy arrays, and selecting and ordering by their values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

Scalar = TypeVar("Scalar", bound=np.generic)


def with_room(array: NDArray[Scalar], rows: int) -> NDArray[Scalar]:
    """`array` itself when it has `rows` rows, else a copy with at least twice its rows.

    New rows are zero. Doubling makes the mean cost of an appended row constant.
    """
    if rows <= len(array):
        return array
    grown = np.zeros((max(rows, 2 * len(array), 16), *array.shape[1:]), dtype=array.dtype)
    grown[: len(array)] = array
    return grown


def at_least_kth(values: NDArray[Any], k: int) -> NDArray[np.intp]:
    """Positions of the `k` largest values and of every value equal to the smallest of them.

    In ascending position. Ties at the border are all returned, so that the caller breaks them by
    something that does not depend on positions.
    """
    if k >= len(values):
        return np.arange(len(values))
    border = np.partition(values, len(values) - k)[len(values) - k]
    return np.flatnonzero(values >= border)


def at_least_kth_by(
    k: int, first: NDArray[np.number], then: NDArray[np.number]
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Positions of the `k` largest by (`first`, `then`): the certain ones, and all that tie for the rest.

    At least one ties, unless there are at most `k` values: then all are certain.
    """
    candidates = at_least_kth(first, k)
    if len(candidates) <= k:
        return candidates, candidates[:0]
    border = first[candidates].min()
    above = candidates[first[candidates] > border]
    level = candidates[first[candidates] == border]
    level = level[at_least_kth(then[level], k - len(above))]
    border = then[level].min()
    certain = np.concatenate((above, level[then[level] > border]))
    return certain, level[then[level] == border]


def largest_first(values: NDArray[np.float64], k: int, name: Callable[[int], str]) -> list[int]:
    """Positions of the `k` largest values, largest first, equal ones in the order of their names.

    Args:
        values: Any number of values.
        k: How many are wanted, at least 0.
        name: Of the value at a position; asked for values that equal another one alone.
    """
    chosen = at_least_kth(values, k)
    order = chosen[np.argsort(-values[chosen], kind="stable")]
    ordered = values[order]
    positions: list[int] = order.tolist()
    ties = np.flatnonzero(ordered[1:] == ordered[:-1]).tolist()
    start = 0
    while start < len(ties):
        end = start
        while end + 1 < len(ties) and ties[end + 1] == ties[end] + 1:
            end += 1
        first, last = ties[start], ties[end] + 2
        positions[first:last] = sorted(positions[first:last], key=name)
        start = end + 1
    return positions[:k]
