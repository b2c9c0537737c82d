"""Cosine search over passage vectors, best passage per node, with exact scores."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hivemem.domain.graph import Passage
from hivemem.errors import Corruption, InvalidInput
from hivemem.projection.arrays import largest_first, with_room
from hivemem.projection.hits import PassageHit
from hivemem.projection.numbers import NodeNumbers
from hivemem.projection.rows import RoundedRows, VectorRows
from hivemem.projection.signs import Signs

_COMPACT_MINIMUM = 64
_FEW_REMOVALS = 64
EXACT_ROWS = 25_000
"""Up to this many passages every one is scored; more are sifted by their signs first (measured)."""
_SIFTED = 2_000
_SIFTED_PER_HIT = 20
_SIFTED_SHARE = 70
_SIFTED_MOST = 8_000
_ROUNDING = 1e-5
"""More than float32 products of unit vectors of up to some thousand dimensions differ by."""


class BestPassages(NamedTuple):
    """Of each of some nodes the passage nearest to a query: node numbers, cosines, rows; same length."""

    nodes: NDArray[np.intp]
    scores: NDArray[np.float64]
    rows: NDArray[np.intp]


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
        nodes: The numbers of keys, shared with the other parts of an index.
    """

    def __init__(
        self, dimension: int, *, exact_rows: int = EXACT_ROWS, nodes: NodeNumbers | None = None
    ) -> None:
        self._dimension = dimension
        self._exact_rows = exact_rows
        self._nodes = NodeNumbers() if nodes is None else nodes
        self._matrix = VectorRows(dimension)
        # Of large matrices: what finds rows that are worth an exact look.
        self._signs = Signs(dimension)
        self._rounded = RoundedRows(dimension)
        # Rows that were overwritten since their signs were taken.
        self._unsigned: list[int] = []
        # Per row, and per node its first row + 1 (0 for none) and the number of its rows.
        self._owner = np.zeros(0, dtype=np.int32)
        self._source = np.zeros(0, dtype=np.int16)
        self._span = np.zeros((0, 2), dtype=np.int32)
        self._place_of = np.zeros(0, dtype=np.int32)
        self._size_of = np.zeros(0, dtype=np.int32)
        self._sources: list[str] = []
        self._node_count = 0
        self._live_rows = 0
        # First rows of gaps by their length: the next node with so many passages goes there.
        self._gaps: defaultdict[int, list[int]] = defaultdict(list)
        self._dead: NDArray[np.intp] | None = None

    def __len__(self) -> int:
        return self._live_rows

    @property
    def node_count(self) -> int:
        """Nodes that have at least one passage."""
        return self._node_count

    @property
    def size_bytes(self) -> int:
        """Memory held; the table of keys is counted apart."""
        arrays = (self._owner, self._source, self._span, self._place_of, self._size_of)
        return (
            sum(array.nbytes for array in arrays)
            + self._matrix.nbytes
            + self._signs.nbytes
            + self._rounded.nbytes
        )

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
        node = self._nodes.take(key)
        start = self._placed(vectors)
        end = start + len(passages)
        self._owner = with_room(self._owner, end)
        self._source = with_room(self._source, end)
        self._span = with_room(self._span, end)
        self._owner[start:end] = node
        for row, passage in enumerate(passages, start=start):
            self._source[row] = self._source_number(passage.source)
            self._span[row] = (passage.start, passage.end)
        self._place_of = with_room(self._place_of, node + 1)
        self._size_of = with_room(self._size_of, node + 1)
        self._place_of[node] = start + 1
        self._size_of[node] = len(passages)
        self._node_count += 1
        self._live_rows += len(passages)

    def remove(self, key: str) -> bool:
        """Take the passages of a node out; False when it has none."""
        rows = self._rows_of(key)
        if not rows:
            return False
        node = int(self._owner[rows.start])
        self._owner[rows.start : rows.stop] = -1
        self._gaps[len(rows)].append(rows.start)
        self._dead = None
        self._place_of[node] = self._size_of[node] = 0
        self._nodes.release(node)
        self._node_count -= 1
        self._live_rows -= len(rows)
        if self._compacts(0):
            self._compact()
        return True

    @property
    def compacts_soon(self) -> bool:
        """Whether some more removals would clear up, which takes long where there is much."""
        return self._compacts(_FEW_REMOVALS)

    def _compacts(self, further: int) -> bool:
        dead = len(self._matrix) - self._live_rows + further
        return dead > _COMPACT_MINIMUM and dead > self._live_rows - further

    def settle(self) -> None:
        """Take the signs of new vectors, when there are so many that a search needs them.

        A search does it too; whoever adds many vectors calls this, so that no search has to wait for it.
        """
        if self._live_rows <= self._exact_rows:
            return
        if self._unsigned:
            rows = np.unique(np.array(self._unsigned, dtype=np.intp))
            rows = rows[rows < len(self._signs)]
            vectors = self._matrix.take(rows)
            self._signs.replace(rows, vectors)
            self._rounded.replace(rows, vectors)
            self._unsigned.clear()
        for start in range(len(self._signs), len(self._matrix), 4096):
            vectors = self._matrix.between(start, min(start + 4096, len(self._matrix)))
            self._signs.append(vectors)
            self._rounded.append(vectors)

    def search(self, vector: NDArray[np.float32], k: int) -> list[PassageHit]:
        """The `k` nodes nearest to `vector` by their best passage, best first, ties by key.

        Raises:
            InvalidInput: `vector` has another length than the model's.
        """
        return self.described(self.best(vector, k))

    def cosine(self, vector: NDArray[np.float32], keys: Collection[str]) -> dict[str, PassageHit]:
        """The best passage of each given node, equal to what `search` gives; without vectors: left out."""
        nodes = [node for key in dict.fromkeys(keys) if (node := self._nodes.find(key)) is not None]
        hits = self.described(self.best_of(vector, np.array(nodes, dtype=np.intp)))
        return {hit.key: hit for hit in hits}

    def best(self, vector: NDArray[np.float32], k: int) -> BestPassages:
        """The `k` nodes nearest to `vector` by their best passage, best first, ties by key."""
        query = self._query(vector)
        wanted, nodes = k, min(k, self._node_count)
        near = np.zeros(0, dtype=np.intp)
        while nodes > 0:
            rows, approximate, off = self._candidates(query, wanted)
            near = rows[_near_kth(approximate, wanted, off)]
            if self._one_each or len(np.unique(self._owner[near])) >= nodes:
                break
            # Several passages of one node took places; ask for more.
            wanted *= 4
        found = self._best_per_node(near, query)
        chosen = largest_first(found.scores, k, lambda at: self._nodes.key(int(found.nodes[at])))
        return BestPassages(found.nodes[chosen], found.scores[chosen], found.rows[chosen])

    def best_of(self, vector: NDArray[np.float32], nodes: NDArray[np.intp]) -> BestPassages:
        """The best passage of each of these different nodes, in any order; without vectors: left out."""
        query = self._query(vector)
        self._place_of = with_room(self._place_of, self._nodes.room)
        self._size_of = with_room(self._size_of, self._nodes.room)
        sizes = self._size_of[nodes].astype(np.intp)
        offsets = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        rows = np.repeat(self._place_of[nodes].astype(np.intp) - 1, sizes) + offsets
        return self._best_per_node(np.sort(rows), query)

    def described(self, found: BestPassages) -> list[PassageHit]:
        """The hits with their keys and where in the texts they stand."""
        return [
            PassageHit(key, score, self._sources[source], start, end)
            for key, score, source, (start, end) in zip(
                self._nodes.keys(found.nodes.tolist()),
                found.scores.tolist(),
                self._source[found.rows].tolist(),
                self._span[found.rows].tolist(),
                strict=True,
            )
        ]

    def _candidates(
        self, query: NDArray[np.float32], count: int
    ) -> tuple[NDArray[np.intp], NDArray[np.float32], float]:
        """Rows that hold (nearly always) the best `count`, their cosines, and how far these may be off."""
        least = max(_SIFTED, _SIFTED_PER_HIT * count)
        sifted = max(least, min(_SIFTED_MOST, self._live_rows // _SIFTED_SHARE))
        if self._live_rows <= max(self._exact_rows, sifted):
            approximate = self._matrix.dots(query)
            if self._live_rows == len(self._matrix):
                return np.arange(len(self._matrix)), approximate, _ROUNDING
            rows = np.flatnonzero(self._owner[: len(self._matrix)] >= 0)
            return rows, approximate[rows], _ROUNDING
        self.settle()
        if self._dead is None:
            self._dead = np.flatnonzero(self._owner[: len(self._matrix)] < 0)
        rows = self._signs.nearest(query, self._dead, sifted)
        return rows, *self._rounded.dots(query, rows)

    def _best_per_node(self, rows: NDArray[np.intp], query: NDArray[np.float32]) -> BestPassages:
        # Row by row, not a matrix product: its rounding would depend on the number of rows.
        scores = np.vecdot(self._matrix.take(rows).astype(np.float64), query.astype(np.float64))
        owners = self._owner[rows].astype(np.intp)
        if self._one_each:
            return BestPassages(owners, scores, rows)
        # The first passage wins a tie; rows of a node are in reading order.
        order = np.lexsort((rows, -scores, owners))
        owners = owners[order]
        first = np.ones(len(order), dtype=np.bool_)
        first[1:] = owners[1:] != owners[:-1]
        chosen = order[first]
        return BestPassages(owners[first], scores[chosen], rows[chosen])

    @property
    def _one_each(self) -> bool:
        """Whether no node has more than one passage, as in most graphs of short texts."""
        return self._live_rows == self._node_count

    def _query(self, vector: NDArray[np.float32]) -> NDArray[np.float32]:
        if vector.shape != (self._dimension,):
            raise InvalidInput(f"the query vector has shape {vector.shape}, not ({self._dimension},).")
        return np.asarray(vector, dtype=np.float32)

    def _placed(self, vectors: NDArray[np.float32]) -> int:
        """Write the rows into a gap that they fill, or else at the end; the number of the first."""
        gaps = self._gaps.get(len(vectors))
        if not gaps:
            return self._matrix.append(vectors)
        start = gaps.pop()
        self._dead = None
        self._matrix.replace(start, vectors)
        self._unsigned.extend(range(start, start + len(vectors)))
        return start

    def _source_number(self, source: str) -> int:
        if source not in self._sources:
            self._sources.append(source)
        return self._sources.index(source)

    def _rows_of(self, key: str) -> range:
        node = self._nodes.find(key)
        if node is None or node >= len(self._place_of) or not self._size_of[node]:
            return range(0)
        first = int(self._place_of[node]) - 1
        return range(first, first + int(self._size_of[node]))

    def _is_stored(self, key: str, passages: Sequence[Passage], vectors: NDArray[np.float32]) -> bool:
        rows = self._rows_of(key)
        if not rows or len(rows) != len(passages):
            return False
        spans = [
            (self._sources[self._source[row]], int(self._span[row, 0]), int(self._span[row, 1]))
            for row in rows
        ]
        return spans == [(p.source, p.start, p.end) for p in passages] and np.array_equal(
            self._matrix.between(rows.start, rows.stop), vectors
        )

    def _compact(self) -> None:
        """Drop the gaps; rows keep their order, so those of a node stay together."""
        alive = np.flatnonzero(self._owner[: len(self._matrix)] >= 0)
        self._matrix.keep(alive)
        self._signs = Signs(self._dimension)
        self._rounded = RoundedRows(self._dimension)
        self._unsigned.clear()
        self._owner = self._owner[alive]
        self._source = self._source[alive]
        self._span = self._span[alive]
        owners, first = np.unique(self._owner, return_index=True)
        self._place_of[owners] = first + 1
        self._gaps.clear()
        self._dead = None


def _near_kth(approximate: NDArray[np.float32], k: int, off: float) -> NDArray[np.intp]:
    """Positions that can be among the `k` largest once they are computed exactly."""
    if k >= len(approximate):
        return np.arange(len(approximate))
    border = np.partition(approximate, len(approximate) - k)[len(approximate) - k]
    return np.flatnonzero(approximate >= border - off)
