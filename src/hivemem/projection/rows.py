"""A matrix of vectors that grows without being copied, and one of a quarter of its size."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from hivemem.projection.arrays import with_room

BLOCK_ROWS = 65_536
"""Rows of a block. A matrix of one piece would be copied when it is full, a gigabyte at a time."""

_GATHER_ROWS = 256


class VectorRows:
    """Rows of `dimension` numbers in blocks; the last block grows by doubling, full ones stay in place."""

    def __init__(self, dimension: int, dtype: DTypeLike = np.float32) -> None:
        self._dimension = dimension
        self._dtype = dtype
        self._blocks: list[NDArray[Any]] = []
        self._rows = 0

    def __len__(self) -> int:
        return self._rows

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return sum(block.nbytes for block in self._blocks)

    def append(self, vectors: NDArray[Any]) -> int:
        """Take up further rows, and return the number of the first."""
        start = self._rows
        while len(vectors):
            at = self._rows % BLOCK_ROWS
            if not at:
                # Of a large matrix whole blocks: memory that is not written yet takes no room.
                rows = BLOCK_ROWS if self._blocks else 0
                self._blocks.append(np.zeros((rows, self._dimension), dtype=self._dtype))
            part = vectors[: BLOCK_ROWS - at]
            block = with_room(self._blocks[-1], at + len(part))[:BLOCK_ROWS]
            block[at : at + len(part)] = part
            self._blocks[-1] = block
            self._rows += len(part)
            vectors = vectors[len(part) :]
        return start

    def replace(self, start: int, vectors: NDArray[Any]) -> None:
        """Overwrite the rows from `start` on."""
        for row, vector in enumerate(vectors, start=start):
            self._blocks[row // BLOCK_ROWS][row % BLOCK_ROWS] = vector

    def between(self, start: int, stop: int) -> NDArray[Any]:
        """The rows from `start` to `stop`; a view where they lie in one block."""
        if start >= stop:
            return np.zeros((0, self._dimension), dtype=self._dtype)
        parts = [
            self._blocks[number][max(0, start - number * BLOCK_ROWS) : stop - number * BLOCK_ROWS]
            for number in range(start // BLOCK_ROWS, (stop - 1) // BLOCK_ROWS + 1)
        ]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def take(self, rows: NDArray[np.intp]) -> NDArray[Any]:
        """A copy of the rows with these numbers, which are in ascending order."""
        found = np.empty((len(rows), self._dimension), dtype=self._dtype)
        for block, first, last, inside in self._by_block(rows):
            np.take(block, inside, axis=0, out=found[first:last], mode="clip")
        return found

    def dots(self, query: NDArray[np.float32], rows: NDArray[np.intp] | None = None) -> NDArray[np.float32]:
        """The product of `query` with each row, or with those numbered in ascending order.

        Row by row (vecdot) and not as a matrix product, which BLAS would spread over all cores: where
        these are busy with a model, it takes eight times as long and burns the model's time waiting.
        """
        if rows is None:
            found = np.empty(self._rows, dtype=np.float32)
            for number, block in enumerate(self._blocks):
                out = found[number * BLOCK_ROWS : (number + 1) * BLOCK_ROWS]
                np.vecdot(block[: len(out)], query, out=out)
            return found
        found = np.empty(len(rows), dtype=np.float32)
        # Into one small buffer: a fresh copy of all rows would cost more in page faults.
        gathered = np.empty((_GATHER_ROWS, self._dimension), dtype=self._dtype)
        numbers = gathered.astype(np.float32, copy=False)
        for block, first, last, inside in self._by_block(rows):
            for start in range(first, last, _GATHER_ROWS):
                part = inside[start - first : start - first + _GATHER_ROWS]
                np.take(block, part, axis=0, out=gathered[: len(part)], mode="clip")
                if numbers is not gathered:
                    numbers[: len(part)] = gathered[: len(part)]
                np.vecdot(numbers[: len(part)], query, out=found[start : start + len(part)])
        return found

    def keep(self, rows: NDArray[np.intp]) -> None:
        """Drop all rows but those numbered in ascending order, which move together."""
        kept = VectorRows(self._dimension, self._dtype)
        for start in range(0, len(rows), BLOCK_ROWS):
            kept.append(self.take(rows[start : start + BLOCK_ROWS]))
        self._blocks, self._rows = kept._blocks, kept._rows

    def _by_block(self, rows: NDArray[np.intp]) -> list[tuple[NDArray[Any], int, int, NDArray[np.intp]]]:
        """For each block that holds some of `rows`: it, their stretch in `rows`, their numbers inside."""
        if len(self._blocks) <= 1:
            return [(block, 0, len(rows), rows) for block in self._blocks]
        borders = np.searchsorted(rows, np.arange(1, len(self._blocks)) * BLOCK_ROWS).tolist()
        return [
            (block, first, last, rows[first:last] - number * BLOCK_ROWS)
            for number, (block, first, last) in enumerate(
                zip(self._blocks, [0, *borders], [*borders, len(rows)], strict=True)
            )
            if first < last
        ]


class RoundedRows:
    """The rows of a matrix with each number as one byte, to look at many of them quickly.

    A row is a whole number of steps of its own: its largest number is 127 of them. What decides is how much
    memory a look takes: a row is a quarter as long as the original.
    """

    def __init__(self, dimension: int) -> None:
        self._rows = VectorRows(dimension, np.int8)
        self._steps = np.zeros(0, dtype=np.float32)

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return self._rows.nbytes + self._steps.nbytes

    def append(self, vectors: NDArray[np.float32]) -> None:
        """Take up further rows."""
        rounded, steps = _rounded(vectors)
        start = self._rows.append(rounded)
        self._steps = with_room(self._steps, len(self._rows))
        self._steps[start : len(self._rows)] = steps

    def replace(self, rows: NDArray[np.intp], vectors: NDArray[np.float32]) -> None:
        """Exchange rows that are here by others."""
        rounded, self._steps[rows] = _rounded(vectors)
        for row, numbers in zip(rows.tolist(), rounded, strict=True):
            self._rows.replace(row, numbers[None, :])

    def dots(self, query: NDArray[np.float32], rows: NDArray[np.intp]) -> tuple[NDArray[np.float32], float]:
        """Products of a unit vector with rows numbered in ascending order, and how far they may be off.

        Rounding is off by a uniform share of half a step in each dimension, so a product by a nearly normal
        share with the deviation step / sqrt(12). Four deviations are told, which one of 16,000 exceeds.
        """
        steps = self._steps.take(rows)
        found = self._rows.dots(query, rows)
        found *= steps
        return found, 4.0 / 12.0**0.5 * float(steps.max(initial=0.0))


def _rounded(vectors: NDArray[np.float32]) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """Each row in whole steps, and the size of its step."""
    steps = np.maximum(np.abs(vectors).max(axis=1, initial=0.0), np.finfo(np.float32).tiny) / 127
    return np.rint(vectors / steps[:, None]).astype(np.int8), steps.astype(np.float32)
