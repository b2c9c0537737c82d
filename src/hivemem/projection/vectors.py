"""Cosine search over passage vectors, best passage per node, with exact scores."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
from numpy.typing import NDArray

from hivemem.domain.graph import Passage
from hivemem.errors import Corruption, InvalidInput
from hivemem.projection.arrays import at_least_kth, with_room
from hivemem.projection.hits import PassageHit
from hivemem.projection.signs import Signs

_COMPACT_SHARE = 0.25
_COMPACT_MINIMUM = 64
EXACT_ROWS = 25_000
"""Up to this many passages every one is scored; more are sifted by their signs first (measured)."""
_SIFTED = 4_000
_SIFTED_PER_HIT = 40
_SIFTED_SHARE = 64
_GATHER_ROWS = 256
_ROUNDING = 1e-5
"""More than float32 products of unit vectors of up to some thousand dimensions differ by."""


class Vectors:
    """The passages of a set of nodes as rows of one float32 matrix.

    Scores are cosines computed in float64 row by row, so a score depends on the two vectors alone,
    never on the place of the row or on the way candidates were found. Up to `exact_rows` passages the
    search is exact; beyond, candidates are the passages with the most signs in common with the query,
    which on text embeddings keeps recall@10 above 0.99 (docs/decisions/vector-search.md).
    Not thread-safe; `GraphIndex` holds the lock.

    Args:
        dimension: Length of every vector; all are unit vectors.
        exact_rows: Passages up to which all are scored.
    """

    def __init__(self, dimension: int, *, exact_rows: int = EXACT_ROWS) -> None:
        self._dimension = dimension
        self._exact_rows = exact_rows
        self._signs = Signs(dimension)
        self._rows_of: dict[str, range] = {}
        self._row_count = 0
        self._live_rows = 0
        self._matrix = np.zeros((0, dimension), dtype=np.float32)
        self._owner = np.zeros(0, dtype=np.int32)
        self._source = np.zeros(0, dtype=np.int16)
        self._span = np.zeros((0, 2), dtype=np.int32)
        self._keys: list[str] = []
        self._sources: list[str] = []

    def __len__(self) -> int:
        return self._live_rows

    @property
    def node_count(self) -> int:
        """Nodes that have at least one passage."""
        return len(self._rows_of)

    @property
    def size_bytes(self) -> int:
        """Memory held: the arrays, and an estimate of the key table."""
        arrays = (self._matrix, self._owner, self._source, self._span)
        return sum(a.nbytes for a in arrays) + self._signs.nbytes + 200 * len(self._keys)

    def put(self, key: str, passages: Sequence[Passage]) -> None:
        """Set the passages of a node; none removes them.

        Raises:
            Corruption: A vector has another length than the model's, or a number that is not finite.
        """
        for passage in passages:
            if len(passage.vector) != 4 * self._dimension:
                raise Corruption(
                    f"a vector of {key!r} has {len(passage.vector)} bytes, not {4 * self._dimension}; "
                    "run `hivemem reembed`."
                )
        joined = b"".join(passage.vector for passage in passages)
        vectors = np.frombuffer(joined, dtype="<f4").reshape(len(passages), self._dimension)
        if not np.isfinite(vectors).all():
            raise Corruption(f"a vector of {key!r} is not finite; run `hivemem reembed`.")
        if self._is_stored(key, passages, vectors):
            return
        self.remove(key)
        if not passages:
            return
        start, end = self._row_count, self._row_count + len(passages)
        if end > len(self._owner):
            self._matrix = with_room(self._matrix, end)
            self._owner = with_room(self._owner, end)
            self._source = with_room(self._source, end)
            self._span = with_room(self._span, end)
        self._matrix[start:end] = vectors
        self._owner[start:end] = len(self._keys)
        self._keys.append(key)
        for row, passage in enumerate(passages, start=start):
            self._source[row] = self._source_number(passage.source)
            self._span[row] = (passage.start, passage.end)
        self._rows_of[key] = range(start, end)
        self._row_count = end
        self._live_rows += len(passages)

    def remove(self, key: str) -> bool:
        """Take the passages of a node out; False when it has none."""
        rows = self._rows_of.pop(key, None)
        if rows is None:
            return False
        self._owner[rows.start : rows.stop] = -1
        self._live_rows -= len(rows)
        dead = self._row_count - self._live_rows
        if dead > _COMPACT_MINIMUM and dead > _COMPACT_SHARE * self._row_count:
            self._compact()
        return True

    def search(self, vector: NDArray[np.float32], k: int) -> list[PassageHit]:
        """The `k` nodes nearest to `vector` by their best passage, best first, ties by key.

        Raises:
            InvalidInput: `vector` has another length than the model's.
        """
        query = self._query(vector)
        if k <= 0 or not self._live_rows:
            return []
        nodes = min(k, len(self._rows_of))
        wanted = k
        while True:
            rows, approximate = self._candidates(query, wanted)
            near = rows[_near_kth(approximate, wanted)]
            if len(np.unique(self._owner[near])) >= nodes:
                return self._best_per_node(near, query)[:k]
            # Several passages of one node took places; ask for more.
            wanted *= 4

    def cosine(self, vector: NDArray[np.float32], keys: Collection[str]) -> dict[str, PassageHit]:
        """The best passage of each given node, equal to what `search` gives; without vectors: left out."""
        query = self._query(vector)
        rows = [row for key in dict.fromkeys(keys) for row in self._rows_of.get(key, ())]
        hits = self._best_per_node(np.array(rows, dtype=np.intp), query) if rows else []
        return {hit.key: hit for hit in hits}

    def _candidates(
        self, query: NDArray[np.float32], count: int
    ) -> tuple[NDArray[np.intp], NDArray[np.float32]]:
        """Rows that hold (nearly always) the best `count`, and their cosines within `_ROUNDING`."""
        # Row by row (vecdot) and not as a matrix product, which BLAS would spread over all cores: where
        # these are busy with a model, it takes eight times as long and burns the model's time waiting.
        alive = self._owner[: self._row_count] >= 0
        sifted = max(_SIFTED, _SIFTED_PER_HIT * count, self._live_rows // _SIFTED_SHARE)
        if self._live_rows <= max(self._exact_rows, sifted):
            approximate = np.vecdot(self._matrix[: self._row_count], query)
            rows = np.flatnonzero(alive)
            return rows, approximate if len(rows) == self._row_count else approximate[rows]
        self._signs.extend(self._matrix[: self._row_count])
        rows = self._signs.nearest(query, alive, sifted)
        approximate = np.empty(len(rows), dtype=np.float32)
        gathered = np.empty((_GATHER_ROWS, self._dimension), dtype=np.float32)
        for start in range(0, len(rows), _GATHER_ROWS):
            part = rows[start : start + _GATHER_ROWS]
            # Into one small buffer: a fresh copy of all rows would cost more in page faults.
            np.take(self._matrix, part, axis=0, out=gathered[: len(part)], mode="clip")
            np.vecdot(gathered[: len(part)], query, out=approximate[start : start + len(part)])
        return rows, approximate

    def _best_per_node(self, rows: NDArray[np.intp], query: NDArray[np.float32]) -> list[PassageHit]:
        # Multiply and sum, not a matrix product: its rounding would depend on the number of rows.
        products = self._matrix[rows].astype(np.float64) * query.astype(np.float64)
        scores = products.sum(axis=1).tolist()
        best: dict[int, tuple[float, int]] = {}
        for row, owner, score in zip(rows.tolist(), self._owner[rows].tolist(), scores, strict=True):
            # The first passage wins a tie; rows of a node are in reading order.
            if owner not in best or score > best[owner][0]:
                best[owner] = (score, row)
        best_rows = [row for _, row in best.values()]
        hits = [
            PassageHit(key=self._keys[owner], score=score, source=self._sources[source], start=start, end=end)
            for (owner, (score, _)), source, (start, end) in zip(
                best.items(), self._source[best_rows].tolist(), self._span[best_rows].tolist(), strict=True
            )
        ]
        return sorted(hits, key=lambda hit: (-hit.score, hit.key))

    def _query(self, vector: NDArray[np.float32]) -> NDArray[np.float32]:
        if vector.shape != (self._dimension,):
            raise InvalidInput(f"the query vector has shape {vector.shape}, not ({self._dimension},).")
        return np.asarray(vector, dtype=np.float32)

    def _source_number(self, source: str) -> int:
        if source not in self._sources:
            self._sources.append(source)
        return self._sources.index(source)

    def _is_stored(self, key: str, passages: Sequence[Passage], vectors: NDArray[np.float32]) -> bool:
        rows = self._rows_of.get(key)
        if rows is None or len(rows) != len(passages):
            return False
        spans = [
            (self._sources[self._source[row]], int(self._span[row, 0]), int(self._span[row, 1]))
            for row in rows
        ]
        return spans == [(p.source, p.start, p.end) for p in passages] and np.array_equal(
            self._matrix[rows.start : rows.stop], vectors
        )

    def _compact(self) -> None:
        alive = self._owner[: self._row_count] >= 0
        keys: list[str] = []
        owner = np.zeros(self._live_rows, dtype=np.int32)
        at = 0
        rows_of: dict[str, range] = {}
        # Rows of a node lie together and nodes are in row order, since rows are only appended.
        for key, rows in self._rows_of.items():
            owner[at : at + len(rows)] = len(keys)
            rows_of[key] = range(at, at + len(rows))
            keys.append(key)
            at += len(rows)
        self._matrix = self._matrix[: self._row_count][alive]
        self._signs = Signs(self._dimension)
        self._source = self._source[: self._row_count][alive]
        self._span = self._span[: self._row_count][alive]
        self._owner, self._keys, self._rows_of = owner, keys, rows_of
        self._row_count = self._live_rows


def _near_kth(approximate: NDArray[np.float32], k: int) -> NDArray[np.intp]:
    """Positions that can be among the `k` largest once they are computed exactly."""
    border = approximate[at_least_kth(approximate, k)].min() - _ROUNDING
    return np.flatnonzero(approximate >= border)
