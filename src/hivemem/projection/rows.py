"""A float32 matrix that grows without being copied."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hivemem.projection.arrays import with_room

BLOCK_ROWS = 65_536
"""Rows of a block. A matrix of one piece would be copied when it is full, a gigabyte at a time."""

_GATHER_ROWS = 256


class VectorRows:
    """Rows of `dimension` numbers in blocks; the last block grows by doubling, full ones stay in place."""

    def __init__(self, dimension: int) -> None:
        self._dimension = dimension
        self._blocks: list[NDArray[np.float32]] = []
        self._rows = 0

    def __len__(self) -> int:
        return self._rows

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return sum(block.nbytes for block in self._blocks)

    def append(self, vectors: NDArray[np.float32]) -> int:
        """Take up further rows, and return the number of the first."""
        start = self._rows
        while len(vectors):
            at = self._rows % BLOCK_ROWS
            if not at:
                # Of a large matrix whole blocks: memory that is not written yet takes no room.
                rows = BLOCK_ROWS if self._blocks else 0
                self._blocks.append(np.zeros((rows, self._dimension), dtype=np.float32))
            part = vectors[: BLOCK_ROWS - at]
            block = with_room(self._blocks[-1], at + len(part))[:BLOCK_ROWS]
            block[at : at + len(part)] = part
            self._blocks[-1] = block
            self._rows += len(part)
            vectors = vectors[len(part) :]
        return start

    def replace(self, start: int, vectors: NDArray[np.float32]) -> None:
        """Overwrite the rows from `start` on."""
        for row, vector in enumerate(vectors, start=start):
            self._blocks[row // BLOCK_ROWS][row % BLOCK_ROWS] = vector

    def between(self, start: int, stop: int) -> NDArray[np.float32]:
        """The rows from `start` to `stop`; a view where they lie in one block."""
        if start >= stop:
            return np.zeros((0, self._dimension), dtype=np.float32)
        parts = [
            self._blocks[number][max(0, start - number * BLOCK_ROWS) : stop - number * BLOCK_ROWS]
            for number in range(start // BLOCK_ROWS, (stop - 1) // BLOCK_ROWS + 1)
        ]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def take(self, rows: NDArray[np.intp]) -> NDArray[np.float32]:
        """A copy of the rows with these numbers, which are in ascending order."""
        found = np.empty((len(rows), self._dimension), dtype=np.float32)
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
        gathered = np.empty((_GATHER_ROWS, self._dimension), dtype=np.float32)
        for block, first, last, inside in self._by_block(rows):
            for start in range(first, last, _GATHER_ROWS):
                part = inside[start - first : start - first + _GATHER_ROWS]
                np.take(block, part, axis=0, out=gathered[: len(part)], mode="clip")
                np.vecdot(gathered[: len(part)], query, out=found[start : start + len(part)])
        return found

    def keep(self, rows: NDArray[np.intp]) -> None:
        """Drop all rows but those numbered in ascending order, which move together."""
        kept = VectorRows(self._dimension)
        for start in range(0, len(rows), BLOCK_ROWS):
            kept.append(self.take(rows[start : start + BLOCK_ROWS]))
        self._blocks, self._rows = kept._blocks, kept._rows

    def _by_block(
        self, rows: NDArray[np.intp]
    ) -> list[tuple[NDArray[np.float32], int, int, NDArray[np.intp]]]:
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
