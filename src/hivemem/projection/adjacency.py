"""Which nodes are related, and how strongly, as flat arrays."""

from __future__ import annotations

import heapq
from array import array
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hivemem.domain.edge import Edge, Hyperedge
from hivemem.domain.graph import Kind
from hivemem.projection.arrays import at_least_kth, at_least_kth_by, with_room
from hivemem.projection.hits import Neighbour
from hivemem.projection.numbers import NodeNumbers

MAX_NODE_LABELS = 20
"""Labels of one node that count as its words; more would drown its own text."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_COMPACT_MINIMUM = 1024
_NO_ROWS = array("i")
_HUB_ROWS = 64
"""A node with more relationships is ranked alone, and only its strongest are ordered by their ids."""
_ROW_BYTES = 190
"""A relationship: two dict or list slots, its id's string, its cells in the arrays (measured)."""
_NODE_BYTES = 110
"""A related node: array object, list slot, its cell in an array; its key is counted apart."""


class Link(NamedTuple):
    """One other node of one relationship, by number: what `Adjacency.neighbour` gives names to."""

    row: int
    node: int
    outgoing: bool
    strength: float


class Adjacency:
    """Edges and hyperedges of one graph by node; session hyperedges are left out.

    A relationship is a row: a label, a time, and a stretch of the flat member list (two members of an
    edge, source first; the participants of a hyperedge in order). A node keeps the numbers of its
    rows. All questions are vector operations over the rows of the nodes asked about, so forty nodes
    cost a tenth of a millisecond, a hub of 10,000 edges about half of one, and there is no cache that a
    write would have to refresh. Not thread-safe; `GraphIndex` holds the lock.

    Args:
        nodes: The numbers of keys, shared with the other parts of an index.
    """

    def __init__(self, nodes: NodeNumbers | None = None) -> None:
        self._nodes = NodeNumbers() if nodes is None else nodes
        # Per node the numbers of its rows, removed ones among them until somebody asks; None without any.
        self._node_rows: list[array[int] | None] = []
        self._degrees = np.zeros(0, dtype=np.int32)
        self._related = 0
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
        """Memory held, estimated from counts; the table of keys is counted apart."""
        return (
            _ROW_BYTES * len(self._row_ids)
            + _NODE_BYTES * self._related
            + 8 * len(self._node_rows)
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
        keys = set(self._nodes.keys(members))
        for node in members:
            self._degrees[node] -= 1
            if not self._degrees[node]:
                self._node_rows[node] = None
                self._related -= 1
                self._nodes.release(node)
        dead = len(self._row_ids) - len(self._row_numbers)
        if dead > _COMPACT_MINIMUM and 2 * dead > len(self._row_ids):
            self._compact()
        return keys

    def degree(self, key: str) -> int:
        """The number of edges and hyperedges that `key` takes part in."""
        node = self._nodes.find(key)
        return 0 if node is None or node >= len(self._degrees) else int(self._degrees[node])

    def degrees_of(self, nodes: NDArray[np.intp]) -> NDArray[np.int32]:
        """The number of edges and hyperedges of each node."""
        self._degrees = with_room(self._degrees, self._nodes.room)
        return self._degrees[nodes]

    def top_degree(self, n: int) -> list[tuple[str, int]]:
        """The `n` keys with the most relationships and their degree, most first, ties by key."""
        degrees = self._degrees
        related = np.flatnonzero(degrees > 0)
        if n <= 0 or not len(related):
            return []
        chosen = related[at_least_kth(degrees[related], n)]
        pairs: list[tuple[str, int]] = [
            (self._nodes.key(node), int(degrees[node])) for node in chosen.tolist()
        ]
        pairs.sort(key=lambda pair: (-pair[1], pair[0]))
        return pairs[:n]

    def labels(self, key: str) -> tuple[str, ...]:
        """The distinct labels of a node's relationships in code-point order, at most `MAX_NODE_LABELS`.

        Of more, those stay that this node has least often, of these the newest: a hub is found by
        what is particular about it. The choice depends on the node's own relationships alone, so a
        write elsewhere in the graph never changes it.
        """
        node = self._nodes.find(key)
        rows = np.zeros(0, dtype=np.intp) if node is None else self._rows(node)
        if not len(rows):
            return ()
        if len(rows) <= MAX_NODE_LABELS:
            return tuple(sorted({self._labels[number] for number in self._row_label[rows].tolist()}))
        numbers, inverse, counts = np.unique(self._row_label[rows], return_inverse=True, return_counts=True)
        if len(numbers) > MAX_NODE_LABELS:
            newest = np.full(len(numbers), np.iinfo(np.int64).min)
            np.maximum.at(newest, inverse, self._row_created[rows])
            certain, tied = at_least_kth_by(MAX_NODE_LABELS, -counts, newest)
            names = heapq.nsmallest(MAX_NODE_LABELS - len(certain), self._label_names(numbers[tied]))
            return tuple(sorted((*names, *self._label_names(numbers[certain]))))
        return tuple(sorted(self._label_names(numbers)))

    def neighbours(self, key: str, limit: int) -> list[Neighbour]:
        """The other nodes of a node's relationships, strongest first, at most `limit`; see `links`."""
        node = self._nodes.find(key)
        if node is None:
            return []
        return self.named(self.links([node], limit)[0])

    def named(self, links: Sequence[Link]) -> list[Neighbour]:
        """The links with their names, in their order."""
        rows = np.array([link.row for link in links], dtype=np.intp)
        return [
            Neighbour(
                self._row_ids[row],
                Kind.HYPEREDGE if is_hyperedge else Kind.EDGE,
                self._nodes.key(node),
                self._labels[label],
                "outgoing" if outgoing else "incoming",
                strength,
            )
            for (row, node, outgoing, strength), is_hyperedge, label in zip(
                links, self._row_is_hyperedge[rows].tolist(), self._row_label[rows].tolist(), strict=True
            )
        ]

    def links(self, nodes: Sequence[int], limit: int) -> list[list[Link]]:
        """For each node the other nodes of its relationships, strongest first, at most `limit`.

            strength = ln(1 + R / count(label)) / ln(1 + R) / (1 + ln(degree(other)))

        with R relationships in the graph: a label that occurs once weighs 1, a mass label little, and
        a neighbour counts the less the more it is connected. A hyperedge gives one entry for each
        other participant. Ties: newest relationship first, then id descending, then participant order.
        """
        found: list[list[Link]] = [[] for _ in nodes]
        if limit <= 0:
            return found
        few: list[int] = []
        for position, node in enumerate(nodes):
            rows = self._node_rows[node] if node < len(self._node_rows) else None
            if rows is not None and len(rows) > _HUB_ROWS and len(self._rows(node)) > _HUB_ROWS:
                found[position] = self._ranked([node], limit)[0]
            elif rows is not None:
                few.append(position)
        if few:
            ranked = self._ranked([nodes[position] for position in few], limit)
            for position, links in zip(few, ranked, strict=True):
                found[position] = links
        return found

    def _ranked(self, nodes: Sequence[int], limit: int) -> list[list[Link]]:
        """The strongest links of each of the nodes, which have some."""
        rows, degrees = self._rows_of(nodes)
        asked = np.repeat(np.arange(len(nodes)), degrees)
        sizes = self._row_members[rows]
        owner = np.repeat(rows, sizes)
        asked = np.repeat(asked, sizes)
        offset = np.arange(len(owner)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        others = self._members[self._row_start[owner] + offset]
        is_self = others == np.array(nodes)[asked]
        own_offset = np.repeat(offset[is_self], sizes)
        keep = ~is_self
        owner, asked, others = owner[keep], asked[keep], others[keep]
        outgoing = own_offset[keep] < offset[keep]
        strength = self._strength(owner, others)
        created = self._row_created[owner]
        if len(nodes) == 1 and len(owner) > limit:
            certain, tied = at_least_kth_by(limit, strength, created)
            if len(certain) + len(tied) > limit:
                # Thousands can tie after an import; their ids alone are compared.
                ids = [self._row_ids[row] for row in owner[tied].tolist()]
                last = heapq.nlargest(limit - len(certain), ids)[-1]
                tied = tied[[id >= last for id in ids]]
            chosen = np.sort(np.concatenate((certain, tied)))
            owner, asked, others = owner[chosen], asked[chosen], others[chosen]
            outgoing, strength, created = outgoing[chosen], strength[chosen], created[chosen]
        # Equal ids keep their order, which is that of the participants.
        ids = [self._row_ids[row] for row in owner.tolist()]
        by_id = np.empty(len(ids), dtype=np.intp)
        by_id[sorted(range(len(ids)), key=ids.__getitem__, reverse=True)] = np.arange(len(ids))
        order = np.lexsort((by_id, -created, -strength, asked))
        found: list[list[Link]] = [[] for _ in nodes]
        for at, link in zip(
            asked[order].tolist(),
            map(
                Link,
                owner[order].tolist(),
                others[order].tolist(),
                outgoing[order].tolist(),
                strength[order].tolist(),
            ),
            strict=True,
        ):
            if len(found[at]) < limit:
                found[at].append(link)
        return found

    def _label_names(self, numbers: NDArray[np.int32]) -> list[str]:
        return [self._labels[number] for number in numbers.tolist()]

    def _strength(self, rows: NDArray[np.intp], others: NDArray[np.int32]) -> NDArray[np.float64]:
        relationships = len(self._row_numbers)
        counts = self._label_counts[self._row_label[rows]]
        specificity = np.log1p(relationships / counts) / np.log1p(relationships)
        return specificity / (1.0 + np.log(self._degrees[others]))

    def _rows(self, node: int) -> NDArray[np.intp]:
        """The present rows of a node, oldest number first; forgets removed ones on the way."""
        held = self._node_rows[node] if node < len(self._node_rows) else None
        if held is None:
            return np.zeros(0, dtype=np.intp)
        rows = np.array(held, dtype=np.intp)
        if len(rows) == self._degrees[node]:
            return rows
        rows = rows[self._row_alive[rows]]
        self._node_rows[node] = array("i", rows.astype(np.int32).tobytes())
        return rows

    def _rows_of(self, nodes: Sequence[int]) -> tuple[NDArray[np.intp], NDArray[np.int32]]:
        """The present rows of several nodes one after the other, and how many each has."""
        degrees = self._degrees[np.array(nodes, dtype=np.intp)]
        held = [self._node_rows[node] or _NO_ROWS for node in nodes]
        if list(map(len, held)) == degrees.tolist():
            return np.frombuffer(b"".join(held), dtype=np.int32).astype(np.intp), degrees
        return np.concatenate([self._rows(node) for node in nodes]), degrees

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
            self._members[position] = self._joined(key, row)
        self._member_count = end
        return changed.union(keys)

    def _joined(self, key: str, row: int) -> int:
        """Note a further row of a node, and return the node's number."""
        node = self._nodes.find(key)
        if node is None or node >= len(self._node_rows) or self._node_rows[node] is None:
            node = self._nodes.take(key)
            self._related += 1
            self._degrees = with_room(self._degrees, node + 1)
            if node >= len(self._node_rows):
                self._node_rows += [None] * (node + 1 - len(self._node_rows))
        held = self._node_rows[node]
        if held is None:
            self._node_rows[node] = array("i", (row,))
        else:
            held.append(row)
        self._degrees[node] += 1
        return node

    def _label_number(self, label: str) -> int:
        number = self._label_numbers.get(label)
        if number is None:
            number = self._label_numbers[label] = len(self._labels)
            self._labels.append(label)
            self._label_counts = with_room(self._label_counts, number + 1)
            self._label_bytes += len(label) + 200
        return number

    def _compact(self) -> None:
        """Drop removed rows, and labels that no row has."""
        rows = len(self._row_ids)
        alive = self._row_alive[:rows]
        sizes = self._row_members[:rows]
        members = self._members[: self._member_count][np.repeat(alive, sizes)]
        sizes = sizes[alive]
        self._row_ids = [self._row_ids[row] for row in np.flatnonzero(alive).tolist()]
        self._row_numbers = {edge_id: row for row, edge_id in enumerate(self._row_ids)}
        used = self._label_counts[: len(self._labels)] > 0
        new_label = (np.cumsum(used) - 1).astype(np.int32)
        self._labels = [self._labels[number] for number in np.flatnonzero(used).tolist()]
        self._label_numbers = {label: number for number, label in enumerate(self._labels)}
        self._label_counts = self._label_counts[: len(used)][used]
        self._label_bytes = sum(len(label) + 200 for label in self._labels)
        self._row_label = new_label[self._row_label[:rows][alive]]
        self._row_is_hyperedge = self._row_is_hyperedge[:rows][alive]
        self._row_created = self._row_created[:rows][alive]
        self._row_members = sizes
        self._row_start = np.cumsum(sizes, dtype=np.int64) - sizes
        self._row_alive = np.ones(len(sizes), dtype=np.bool_)
        self._members, self._member_count = members, len(members)
        order = np.argsort(members, kind="stable")
        row_of = np.repeat(np.arange(len(sizes), dtype=np.int32), sizes)[order].tobytes()
        nodes, first = np.unique(members[order], return_index=True)
        # One end for each node, and none when no relationship is left.
        ends = np.append(first, len(members))[1:].tolist()
        for node, start, end in zip(nodes.tolist(), first.tolist(), ends, strict=True):
            self._node_rows[node] = array("i", row_of[4 * start : 4 * end])
