"""Growing numpy arrays and selecting their largest values."""

from __future__ import annotations

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
