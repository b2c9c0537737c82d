"""Which nodes are related, and how strongly, as flat arrays."""

from __future__ import annotations

import heapq
import math
from array import array
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import numpy as np
from numpy.typing import NDArray

from hivemem.domain.edge import Edge, Hyperedge
from hivemem.domain.graph import Kind
from hivemem.projection.arrays import at_least_kth, with_room
from hivemem.projection.hits import Neighbour

MAX_NODE_LABELS = 20
"""Labels of one node that count as its words; more would drown its own text."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_COMPACT_MINIMUM = 1024
_FEW_ROWS = 12
"""Up to this many relationships a loop is faster than array operations (measured: 6 against 20 µs)."""
_ROW_BYTES = 190
"""A relationship: two dict or list slots, its id's string, its cells in the arrays (measured)."""
_NODE_BYTES = 260
"""A related node: dict slot, key, array object, list slots (measured)."""


class Adjacency:
    """Edges and hyperedges of one graph by node key; session hyperedges are left out.

    A relationship is a row: a label, a time, and a stretch of the flat member list (two members of an
    edge, source first; the participants of a hyperedge in order). A node keeps the numbers of its
    rows. All questions about a node are vector operations over its rows, so a hub of 10,000 edges
    answers in about half a millisecond and needs no cache that a write would have to refresh.
    Not thread-safe; `GraphIndex` holds the lock.
    """

    def __init__(self) -> None:
        self._node_numbers: dict[str, int] = {}
        self._node_keys: list[str] = []
        self._node_rows: list[array[int]] = []
        self._degrees = np.zeros(0, dtype=np.int32)
        self._label_numbers: dict[str, int] = {}
        self._labels: list[str] = []
        self._label_counts = np.zeros(0, dtype=np.int32)
        self._row_numbers: dict[str, int] = {}
        self._row_ids: list[str] = []
        self._row_is_hyperedge = np.zeros(0, dtype=np.bool_)
        self._row_alive = np.zeros(0, dtype=np.bool_)
        self._row_label = np.zeros(0, dtype=np.int32)
        self._row_created = np.zeros(0, dtype=np.int64)
        self._row_start = np.zeros(0, dtype=np.int64)
        self._row_members = np.zeros(0, dtype=np.int32)
        self._members = np.zeros(0, dtype=np.int32)
        self._member_count = 0
        self._label_bytes = 0

    def __len__(self) -> int:
        return len(self._row_numbers)

    @property
    def size_bytes(self) -> int:
        """Memory held, estimated from counts."""
        return (
            _ROW_BYTES * len(self._row_ids)
            + _NODE_BYTES * len(self._node_keys)
            + 8 * self._member_count
            + self._label_bytes
        )

    def put_edge(self, edge: Edge) -> set[str]:
        """Add or replace an edge and return the keys whose labels may have changed."""
        return self._put(
            edge.edge_id, (edge.from_key, edge.to_key), edge.relationship, edge.created_at, hyperedge=False
        )

    def put_hyperedge(self, hyperedge: Hyperedge) -> set[str]:
        """Add or replace a hyperedge, and return the keys whose labels may have changed."""
        if hyperedge.is_session:
            return self.remove(hyperedge.hyperedge_id)
        return self._put(
            hyperedge.hyperedge_id,
            hyperedge.keys,
            hyperedge.relationship,
            hyperedge.created_at,
            hyperedge=True,
        )

    def remove(self, edge_id: str) -> set[str]:
        """Take an edge or hyperedge out and return the keys it joined; empty when it is not there."""
        row = self._row_numbers.pop(edge_id, None)
        if row is None:
            return set()
        self._row_alive[row] = False
        self._label_counts[self._row_label[row]] -= 1
        members = self._members_of(row).tolist()
        self._degrees[members] -= 1
        keys = {self._node_keys[member] for member in members}
        dead = len(self._row_ids) - len(self._row_numbers)
        if dead > _COMPACT_MINIMUM and 2 * dead > len(self._row_ids):
            self._compact()
        return keys

    def degree(self, key: str) -> int:
        """The number of edges and hyperedges that `key` takes part in."""
        node = self._node_numbers.get(key)
        return 0 if node is None else int(self._degrees[node])

    def top_degree(self, n: int) -> list[tuple[str, int]]:
        """The `n` keys with the most relationships and their degree, most first, ties by key."""
        degrees = self._degrees[: len(self._node_keys)]
        related = np.flatnonzero(degrees > 0)
        if n <= 0 or not len(related):
            return []
        chosen = related[at_least_kth(degrees[related], n)]
        pairs: list[tuple[str, int]] = [
            (self._node_keys[node], int(degrees[node])) for node in chosen.tolist()
        ]
        pairs.sort(key=lambda pair: (-pair[1], pair[0]))
        return pairs[:n]

    def labels(self, key: str) -> tuple[str, ...]:
        """The distinct labels of a node's relationships in code-point order, at most `MAX_NODE_LABELS`.

        Of more, those stay that this node has least often, of these the newest: a hub is found by
        what is particular about it. The choice depends on the node's own relationships alone, so a
        write elsewhere in the graph never changes it.
        """
        rows = self._rows(key)
        if not len(rows):
            return ()
        if len(rows) <= MAX_NODE_LABELS:
            return tuple(sorted({self._labels[number] for number in self._row_label[rows].tolist()}))
        numbers, inverse, counts = np.unique(self._row_label[rows], return_inverse=True, return_counts=True)
        if len(numbers) > MAX_NODE_LABELS:
            newest = np.full(len(numbers), np.iinfo(np.int64).min)
            np.maximum.at(newest, inverse, self._row_created[rows])
            certain, tied = _first_by(MAX_NODE_LABELS, -counts, newest)
            names = heapq.nsmallest(MAX_NODE_LABELS - len(certain), self._label_names(numbers[tied]))
            return tuple(sorted((*names, *self._label_names(numbers[certain]))))
        return tuple(sorted(self._label_names(numbers)))

    def neighbours(self, key: str, limit: int) -> list[Neighbour]:
        """The other nodes of a node's relationships, strongest first, at most `limit`.

            strength = ln(1 + R / count(label)) / ln(1 + R) / (1 + ln(degree(other)))

        with R relationships in the graph: a label that occurs once weighs 1, a mass label little, and
        a neighbour counts the less the more it is connected. A hyperedge gives one entry for each
        other participant. Ties: newest relationship first, then id descending, then participant order.
        """
        rows = self._rows(key)
        if not len(rows) or limit <= 0:
            return []
        node = self._node_numbers[key]
        if len(rows) <= _FEW_ROWS:
            return self._few_neighbours(node, rows.tolist(), limit)
        sizes = self._row_members[rows]
        owner = np.repeat(rows, sizes)
        offset = np.arange(len(owner)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        others = self._members[self._row_start[owner] + offset]
        is_self = others == node
        own_offset = np.repeat(offset[is_self], sizes)
        keep = ~is_self
        owner, offset, others, own_offset = owner[keep], offset[keep], others[keep], own_offset[keep]
        strength = self._strength(owner, others)
        certain, tied = _first_by(limit, strength, self._row_created[owner])
        if len(certain) + len(tied) > limit:
            # Thousands can tie after an import; their ids alone are compared, without a key object each.
            ids = [self._row_ids[row] for row in owner[tied].tolist()]
            last = heapq.nlargest(limit - len(certain), ids)[-1]
            tied = tied[[id >= last for id in ids]]
        ranked = sorted(
            (*certain.tolist(), *tied.tolist()),
            key=lambda at: (
                -float(strength[at]),
                -int(self._row_created[owner[at]]),
                _Descending(self._row_ids[owner[at]]),
                int(offset[at]),
            ),
        )
        return [
            Neighbour(
                edge_id=self._row_ids[owner[at]],
                kind=Kind.HYPEREDGE if self._row_is_hyperedge[owner[at]] else Kind.EDGE,
                key=self._node_keys[others[at]],
                relationship=self._labels[self._row_label[owner[at]]],
                direction="outgoing" if own_offset[at] < offset[at] else "incoming",
                strength=float(strength[at]),
            )
            for at in ranked[:limit]
        ]

    def _few_neighbours(self, node: int, rows: Sequence[int], limit: int) -> list[Neighbour]:
        """What `neighbours` says of a node with few relationships."""
        relationships = len(self._row_numbers)
        entries: list[tuple[float, int, _Descending, int, int, int, int]] = []
        for row in rows:
            members = self._members_of(row).tolist()
            own_offset = members.index(node)
            created = int(self._row_created[row])
            count = int(self._label_counts[self._row_label[row]])
            specificity = math.log1p(relationships / count) / math.log1p(relationships)
            for offset, other in enumerate(members):
                if offset != own_offset:
                    strength = specificity / (1.0 + math.log(self._degrees[other]))
                    edge_id = _Descending(self._row_ids[row])
                    entries.append((-strength, -created, edge_id, offset, own_offset, row, other))
        entries.sort()
        return [
            Neighbour(
                edge_id=self._row_ids[row],
                kind=Kind.HYPEREDGE if self._row_is_hyperedge[row] else Kind.EDGE,
                key=self._node_keys[other],
                relationship=self._labels[self._row_label[row]],
                direction="outgoing" if own_offset < offset else "incoming",
                strength=-negative,
            )
            for negative, _, _, offset, own_offset, row, other in entries[:limit]
        ]

    def _label_names(self, numbers: NDArray[np.int32]) -> list[str]:
        return [self._labels[number] for number in numbers.tolist()]

    def _strength(self, rows: NDArray[np.intp], others: NDArray[np.int32]) -> NDArray[np.float64]:
        relationships = len(self._row_numbers)
        counts = self._label_counts[self._row_label[rows]]
        specificity = np.log1p(relationships / counts) / np.log1p(relationships)
        return specificity / (1.0 + np.log(self._degrees[others]))

    def _rows(self, key: str) -> NDArray[np.intp]:
        """The present rows of a node, oldest number first; forgets removed ones on the way."""
        node = self._node_numbers.get(key)
        if node is None:
            return np.zeros(0, dtype=np.intp)
        rows = np.array(self._node_rows[node], dtype=np.intp)
        if len(rows) == self._degrees[node]:
            return rows
        rows = rows[self._row_alive[rows]]
        self._node_rows[node] = array("i", rows.astype(np.int32).tobytes())
        return rows

    def _members_of(self, row: int) -> NDArray[np.int32]:
        start = int(self._row_start[row])
        return self._members[start : start + int(self._row_members[row])]

    def _put(
        self, edge_id: str, keys: Sequence[str], label: str, created: datetime, *, hyperedge: bool
    ) -> set[str]:
        changed = self.remove(edge_id)
        row = len(self._row_ids)
        self._row_numbers[edge_id] = row
        self._row_ids.append(edge_id)
        if row == len(self._row_alive):
            self._row_is_hyperedge = with_room(self._row_is_hyperedge, row + 1)
            self._row_alive = with_room(self._row_alive, row + 1)
            self._row_label = with_room(self._row_label, row + 1)
            self._row_created = with_room(self._row_created, row + 1)
            self._row_start = with_room(self._row_start, row + 1)
            self._row_members = with_room(self._row_members, row + 1)
        number = self._label_number(label)
        self._label_counts[number] += 1
        self._row_is_hyperedge[row] = hyperedge
        self._row_alive[row] = True
        self._row_label[row] = number
        self._row_created[row] = (created - _EPOCH) // _MICROSECOND
        self._row_start[row] = self._member_count
        self._row_members[row] = len(keys)
        end = self._member_count + len(keys)
        self._members = with_room(self._members, end)
        for position, key in enumerate(keys, start=self._member_count):
            node = self._node_number(key)
            self._members[position] = node
            self._node_rows[node].append(row)
            self._degrees[node] += 1
        self._member_count = end
        return changed.union(keys)

    def _label_number(self, label: str) -> int:
        number = self._label_numbers.get(label)
        if number is None:
            number = self._label_numbers[label] = len(self._labels)
            self._labels.append(label)
            self._label_counts = with_room(self._label_counts, number + 1)
            self._label_bytes += len(label) + 200
        return number

    def _node_number(self, key: str) -> int:
        node = self._node_numbers.get(key)
        if node is None:
            node = self._node_numbers[key] = len(self._node_keys)
            self._node_keys.append(key)
            self._node_rows.append(array("i"))
            self._degrees = with_room(self._degrees, node + 1)
        return node

    def _compact(self) -> None:
        """Rebuild without removed rows, and without nodes and labels that no row names."""
        fresh = Adjacency()
        for edge_id, row in self._row_numbers.items():
            fresh._put(
                edge_id,
                [self._node_keys[member] for member in self._members_of(row).tolist()],
                self._labels[self._row_label[row]],
                _EPOCH + int(self._row_created[row]) * _MICROSECOND,
                hyperedge=bool(self._row_is_hyperedge[row]),
            )
        self.__dict__.update(fresh.__dict__)


class _Descending(str):
    """A string that sorts the other way round."""

    __slots__ = ()

    def __lt__(self, other: str) -> bool:
        return str.__gt__(self, other)


def _first_by(
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
