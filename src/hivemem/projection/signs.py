"""One bit per dimension of each vector: a coarse distance thirty times cheaper to scan."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from hivemem.projection.arrays import with_room

_BLOCK = 65_536
"""Rows at a time: intermediate results stay in the processor's cache, and few calls do much (measured;
two threads that share a scan wait for the interpreter as long as they save)."""
_WORDS_A_BYTE = 3
"""Words of 64 signs whose count a byte holds: sums of bytes take a fifth of the time of longer ones."""
_FAR = np.iinfo(np.uint16).max
_SAMPLED = 16
"""Of so many rows one is looked at to guess how near the nearest are."""


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
        self._distances = np.zeros(0, dtype=np.uint16)

    def __len__(self) -> int:
        return self._rows

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return sum(word.nbytes for word in self._words)

    def append(self, vectors: NDArray[np.float32]) -> None:
        """Take up further rows."""
        start, end = self._rows, self._rows + len(vectors)
        encoded = self._encode(vectors)
        for at, word in enumerate(self._words):
            self._words[at] = with_room(word, end)
            self._words[at][start:end] = encoded[:, at]
        self._rows = end

    def replace(self, rows: NDArray[np.intp], vectors: NDArray[np.float32]) -> None:
        """Exchange rows that are here by others."""
        encoded = self._encode(vectors)
        for at, word in enumerate(self._words):
            word[rows] = encoded[:, at]

    def nearest(self, query: NDArray[np.float32], dead: NDArray[np.intp], count: int) -> NDArray[np.intp]:
        """The `count` rows, but for the `dead` ones, with the fewest differing signs, and all that tie.

        In ascending order. Cost: about 0.2 ms for 64,000 rows of 384 dimensions, 4 ms for a million.
        """
        rows = self._rows
        if len(self._distances) < rows:
            # Kept: fresh memory of this size costs as much as the scan, page by page.
            self._distances = np.zeros(max(rows, 2 * len(self._distances)), dtype=np.uint16)
        distances = self._distances[:rows]
        code = self._encode(query[None, :])[0]
        self._scan(code)
        distances[dead] = _FAR
        count = min(count, rows - len(dead))
        if not count:
            return np.zeros(0, dtype=np.intp)
        return _smallest(distances, count)

    def _scan(self, code: NDArray[np.uint64]) -> None:
        """Count for each row the signs that differ from `code`."""
        size = min(self._rows, _BLOCK)
        whole_differing = np.empty(size, dtype=np.uint64)
        whole_counted, whole_total = np.empty((2, size), dtype=np.uint8)
        for start in range(0, self._rows, _BLOCK):
            stop = min(start + _BLOCK, self._rows)
            differing = whole_differing[: stop - start]
            counted, total = whole_counted[: stop - start], whole_total[: stop - start]
            block = self._distances[start:stop]
            for at, (word, bits) in enumerate(zip(self._words, code, strict=True)):
                first = at % _WORDS_A_BYTE == 0
                np.bitwise_xor(word[start:stop], bits, out=differing)
                np.bitwise_count(differing, out=total if first else counted)
                if not first:
                    total += counted
                if at % _WORDS_A_BYTE == _WORDS_A_BYTE - 1 or at == len(code) - 1:
                    np.add(block if at >= _WORDS_A_BYTE else 0, total, out=block)

    def _encode(self, vectors: NDArray[np.float32]) -> NDArray[np.uint64]:
        bits = np.packbits(vectors > 0, axis=1)
        padded = np.zeros((len(vectors), 8 * len(self._words)), dtype=np.uint8)
        padded[:, : bits.shape[1]] = bits
        return padded.view(np.uint64)


def _smallest(distances: NDArray[np.uint16], count: int) -> NDArray[np.intp]:
    """Positions of the `count` smallest, and of all that equal the last of these; in ascending order.

    Few processors have an instruction that helps to partition numbers of 16 bits: of all distances it took
    longer than the scan. A sample tells a border with some more than `count` within it, and only these are
    partitioned; where the sample misled, all are.
    """
    expected = count / _SAMPLED
    guess = math.ceil(expected + 6.0 * math.sqrt(expected))
    sample = distances[::_SAMPLED]
    if guess < len(sample):
        within = np.flatnonzero(distances <= np.partition(sample, guess)[guess])
        if len(within) >= count:
            near = distances.take(within)
            return within[near <= np.partition(near, count - 1)[count - 1]]
    return np.flatnonzero(distances <= np.partition(distances, count - 1)[count - 1])
