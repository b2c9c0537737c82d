"""One bit per dimension of each vector: a coarse distance thirty times cheaper to scan."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

from hivemem.projection.arrays import with_room

_BLOCK = 16_384
"""Rows at a time, so that intermediate results stay in the processor's cache."""
_SHARED_ROWS = 150_000
"""From so many rows on two threads share a scan (measured: below, handing over costs what it saves)."""
_SHARED_BLOCK = 65_536
"""Then larger blocks: threads that hand over the interpreter too often wait for each other."""
_FAR = np.iinfo(np.uint16).max


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

        In ascending order. Cost: about 0.3 ms for 64,000 rows of 384 dimensions, 3 ms for a million.
        """
        rows = self._rows
        if len(self._distances) < rows:
            # Kept: fresh memory of this size costs as much as the scan, page by page.
            self._distances = np.zeros(max(rows, 2 * len(self._distances)), dtype=np.uint16)
        distances = self._distances[:rows]
        code = self._encode(query[None, :])[0]
        if rows < _SHARED_ROWS or _pool is None:
            self._scan(code, 0, rows, _BLOCK)
        else:
            half = rows // 2
            other = _pool.submit(self._scan, code, half, rows, _SHARED_BLOCK)
            self._scan(code, 0, half, _SHARED_BLOCK)
            other.result()
        distances[dead] = _FAR
        count = min(count, rows - len(dead))
        if not count:
            return np.zeros(0, dtype=np.intp)
        return np.flatnonzero(distances <= np.partition(distances, count - 1)[count - 1])

    def _scan(self, code: NDArray[np.uint64], first: int, last: int, rows: int) -> None:
        """Count the signs that differ from `code` in the rows from `first` to `last`."""
        differing = np.empty(min(last - first, rows), dtype=np.uint64)
        counted = np.empty(len(differing), dtype=np.uint8)
        for start in range(first, last, rows):
            stop = min(start + rows, last)
            block = self._distances[start:stop]
            block[:] = 0
            for word, bits in zip(self._words, code, strict=True):
                np.bitwise_xor(word[start:stop], bits, out=differing[: stop - start])
                np.bitwise_count(differing[: stop - start], out=counted[: stop - start])
                block += counted[: stop - start]

    def _encode(self, vectors: NDArray[np.float32]) -> NDArray[np.uint64]:
        bits = np.packbits(vectors > 0, axis=1)
        padded = np.zeros((len(vectors), 8 * len(self._words)), dtype=np.uint8)
        padded[:, : bits.shape[1]] = bits
        return padded.view(np.uint64)


_pool = ThreadPoolExecutor(1, thread_name_prefix="hivemem-signs") if (os.cpu_count() or 1) > 1 else None
