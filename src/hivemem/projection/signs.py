"""One bit per dimension of each vector: a coarse distance thirty times cheaper to scan."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hivemem.projection.arrays import with_room

_BLOCK = 16_384
"""Rows at a time, so that intermediate results stay in the processor's cache."""


class Signs:
    """The signs of a growing matrix of vectors, and the rows nearest to a query by them.

    The Hamming distance of sign vectors grows with the angle (random hyperplane rounding: Charikar,
    STOC 2002, doi:10.1145/509907.509965), so the rows with few differing signs hold nearly all rows
    with a large cosine; the caller scores these exactly. Depends on the present rows alone: no training, no
    graph to build, a new row costs microseconds.
    """

    def __init__(self, dimension: int) -> None:
        # One array per 64 dimensions: a scan then reads each from end to end.
        self._rows = 0
        self._words = [np.zeros(0, dtype=np.uint64) for _ in range(-(-dimension // 64))]

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return sum(word.nbytes for word in self._words)

    def extend(self, matrix: NDArray[np.float32]) -> None:
        """Take up the rows of `matrix` beyond those already here, which must not have changed."""
        start, end = self._rows, len(matrix)
        if start == end:
            return
        encoded = self._encode(matrix[start:])
        for at, word in enumerate(self._words):
            self._words[at] = with_room(word, end)
            self._words[at][start:end] = encoded[:, at]
        self._rows = end

    def nearest(self, query: NDArray[np.float32], alive: NDArray[np.bool_], count: int) -> NDArray[np.intp]:
        """The `count` rows marked `alive` with the fewest differing signs, and all that tie with the last.

        In ascending order. Cost: about 0.3 ms for 64,000 rows of 384 dimensions.
        """
        code = self._encode(query[None, :])[0]
        rows = len(alive)
        distance = np.zeros(rows, dtype=np.uint16)
        differing = np.empty(min(rows, _BLOCK), dtype=np.uint64)
        counted = np.empty(len(differing), dtype=np.uint8)
        for start in range(0, rows, _BLOCK):
            block = distance[start : start + _BLOCK]
            size = len(block)
            for word, bits in zip(self._words, code, strict=True):
                np.bitwise_xor(word[start : start + size], bits, out=differing[:size])
                np.bitwise_count(differing[:size], out=counted[:size])
                block += counted[:size]
        distance[~alive] = np.iinfo(np.uint16).max
        count = min(count, int(np.count_nonzero(alive)))
        if not count:
            return np.zeros(0, dtype=np.intp)
        return np.flatnonzero(distance <= np.partition(distance, count - 1)[count - 1])

    def _encode(self, vectors: NDArray[np.float32]) -> NDArray[np.uint64]:
        bits = np.packbits(vectors > 0, axis=1)
        padded = np.zeros((len(vectors), 8 * len(self._words)), dtype=np.uint8)
        padded[:, : bits.shape[1]] = bits
        return padded.view(np.uint64)
