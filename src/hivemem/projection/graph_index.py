"""The search index of one graph: words, vectors and relationships of its present state."""

from __future__ import annotations

import functools
import threading
from collections.abc import Collection, Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hivemem.domain.graph import ChangePage, Kind
from hivemem.domain.node import Node
from hivemem.domain.text import string_values
from hivemem.projection.adjacency import Adjacency
from hivemem.projection.hits import Neighbour, PassageHit, TermHit, TermScore
from hivemem.projection.numbers import NodeNumbers
from hivemem.projection.postings import Postings
from hivemem.projection.revisions import RevisionTable
from hivemem.projection.vectors import Vectors
from hivemem.retrieval.analyse import AnalysedQuery, DocumentTerms, document_terms

_NO_TERMS = DocumentTerms(frequencies={}, length=0)

_QUICK_CHANGES = 8
_QUICK_CHARACTERS = 4_000
_QUICK_RELATIONSHIPS = 500
"""A page within these takes a third of a millisecond."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphParts:
    """The parts of an index, which name a node by the same number. `revisions` are those of `Node`."""

    numbers: NodeNumbers
    postings: Postings
    vectors: Vectors
    adjacency: Adjacency
    revisions: RevisionTable


class GraphIndex:
    """A disposable index that follows the store page by page.

    What it answers depends on the present state of the graph alone, not on the order of changes that
    led to it; ties are broken by key. All methods may be called from any thread; one lock makes each
    a whole.

    Args:
        dimension: Length of the vectors in the pages; 0 when there is no embedder.
    """

    def __init__(self, dimension: int) -> None:
        self._lock = threading.Lock()
        self._dimension = dimension
        self._applying = threading.Lock()
        self._revision = 0
        numbers = NodeNumbers()
        self._postings = Postings(nodes=numbers)
        self._vectors = Vectors(dimension, nodes=numbers)
        self._adjacency = Adjacency(numbers)
        self._revisions = RevisionTable(numbers)
        self._parts = GraphParts(
            numbers=numbers,
            postings=self._postings,
            vectors=self._vectors,
            adjacency=self._adjacency,
            revisions=self._revisions,
        )
        # The labels that are part of a described node's words now; nodes without labels are left out.
        self._labels_of: dict[str, tuple[str, ...]] = {}

    @property
    def revision(self) -> int:
        """The graph's revision that this index shows."""
        return self._revision

    @property
    def node_count(self) -> int:
        """The number of described nodes; placeholders are not searchable and not counted."""
        return len(self._postings)

    @property
    def embedded_count(self) -> int:
        """The number of described nodes that have a vector of the index's model."""
        return self._vectors.node_count

    @property
    def dimension(self) -> int:
        """Length of the vectors; 0 when the index has none."""
        return self._dimension

    @property
    def size_bytes(self) -> int:
        """Memory held, estimated."""
        parts = (
            self._parts.numbers,
            self._postings,
            self._vectors,
            self._adjacency,
            self._revisions,
        )
        return sum(part.size_bytes for part in parts) + 150 * len(self._labels_of)

    def apply(self, page: ChangePage) -> None:
        """Bring the index from the revision before the page to that of the page.

        Pages must come in the order of their revisions; one that is not newer than the index changes
        nothing. When this raises, the index is not usable any more and must be thrown away.

        Raises:
            Corruption: A vector in the page does not fit the model.
        """
        with self._applying:
            if page.revision <= self._revision:
                return
            # The costly part, done before searches have to wait.
            own_terms = _terms_of_nodes(page)
            with self._lock:
                self._apply(page, own_terms)
                self._revision = page.revision
            if self._postings.compacts:
                # Seconds in a large graph; searches go on meanwhile.
                compacted = self._postings.compacted()
                with self._lock:
                    self._postings.adopt(compacted)

    def apply_at_once(self, page: ChangePage) -> bool:
        """Do what `apply` does, if that takes less time than a thread needs to begin; else do nothing.

        False for a page with more than a few short texts and relationships, when the index has clearing
        up to do, and while a search or another change runs.

        Raises:
            Corruption: A vector in the page does not fit the model.
        """
        if not self._is_quick(page) or not self._applying.acquire(blocking=False):
            return False
        try:
            if not self._lock.acquire(blocking=False):
                return False
            try:
                if page.revision > self._revision:
                    self._apply(page, _terms_of_nodes(page))
                    self._revision = page.revision
                return True
            finally:
                self._lock.release()
        finally:
            self._applying.release()

    def _is_quick(self, page: ChangePage) -> bool:
        changes = len(page.nodes) + len(page.edges) + len(page.hyperedges) + len(page.removals)
        if changes > _QUICK_CHANGES or self._postings.compacts_soon or self._vectors.compacts_soon:
            return False
        characters = sum(
            len(changed.node.description) + len(changed.node.search_text or "") for changed in page.nodes
        )
        ends = {key for edge in page.edges for key in (edge.from_key, edge.to_key)}
        ends.update(key for hyperedge in page.hyperedges for key in hyperedge.keys)
        related = sum(map(self._adjacency.degree, ends))
        return characters <= _QUICK_CHARACTERS and related <= _QUICK_RELATIONSHIPS

    @contextmanager
    def reading(self) -> Generator[GraphParts, None, None]:
        """The parts of the index in one state; changes wait until the block is left.

        For what takes several steps. Node numbers mean nothing once the block is left.
        """
        with self._lock:
            yield self._parts

    def neighbours_at_once(
        self, keys: Sequence[str], limit: int, *, at_most: int
    ) -> list[tuple[list[Neighbour], int]] | None:
        """For each key its strongest relationships and how many it has, if that takes no time.

        None while a change is being applied or another search runs, or when the keys have more than
        `at_most` relationships together: then ask again in a thread, with `neighbours_of`.
        """
        if not self._lock.acquire(blocking=False):
            return None
        try:
            if sum(map(self._adjacency.degree, keys)) > at_most:
                return None
            return self._neighbours_of(keys, limit)
        finally:
            self._lock.release()

    def neighbours_of(self, keys: Sequence[str], limit: int) -> list[tuple[list[Neighbour], int]]:
        """For each key its strongest relationships, at most `limit`, and how many it has."""
        with self._lock:
            return self._neighbours_of(keys, limit)

    def search_vectors(self, vector: NDArray[np.float32], k: int) -> list[PassageHit]:
        """The `k` nodes nearest to `vector` by their best passage; cosine, best first, ties by key."""
        with self._lock:
            return self._vectors.search(vector, k)

    def cosine(self, vector: NDArray[np.float32], keys: Collection[str]) -> dict[str, PassageHit]:
        """The best passage of each of `keys`; nodes without vectors are left out."""
        with self._lock:
            return self._vectors.cosine(vector, keys)

    def search_terms(self, query: AnalysedQuery, k: int) -> list[TermHit]:
        """The `k` nodes with the largest BM25 above 0, best first, ties by key."""
        with self._lock:
            return self._postings.search(query, k)

    def score_terms(self, query: AnalysedQuery, keys: Collection[str]) -> dict[str, TermScore]:
        """The exact BM25 of each of `keys`, 0.0 for a node that holds no word or does not exist."""
        with self._lock:
            return self._postings.scores(query, keys)

    def known_words(self, query: AnalysedQuery) -> tuple[bool, ...]:
        """For each word of the query whether any node holds it in one of its forms."""
        with self._lock:
            return self._postings.known(query)

    def neighbours(self, key: str, limit: int) -> list[Neighbour]:
        """The other nodes of a node's relationships, strongest first, at most `limit`."""
        with self._lock:
            return self._adjacency.neighbours(key, limit)

    def degree(self, key: str) -> int:
        """The number of relationships of a node, session hyperedges not counted."""
        with self._lock:
            return self._adjacency.degree(key)

    def top_degree(self, n: int) -> list[tuple[str, int]]:
        """The `n` most connected keys and their degree, most first, ties by key."""
        with self._lock:
            return self._adjacency.top_degree(n)

    def _neighbours_of(self, keys: Sequence[str], limit: int) -> list[tuple[list[Neighbour], int]]:
        adjacency = self._adjacency
        known = {key: node for key in keys if (node := self._parts.numbers.find(key)) is not None}
        found = dict(zip(known, adjacency.links(list(known.values()), limit), strict=True))
        return [(adjacency.named(found[key]) if key in found else [], adjacency.degree(key)) for key in keys]

    def _apply(self, page: ChangePage, own_terms: list[DocumentTerms | None]) -> None:
        relabelled: set[str] = set()
        for removal in page.removals:
            if removal.kind is Kind.NODE:
                self._forget(removal.id)
            else:
                relabelled |= self._adjacency.remove(removal.id)
        for edge in page.edges:
            relabelled |= self._adjacency.put_edge(edge)
        for hyperedge in page.hyperedges:
            relabelled |= self._adjacency.put_hyperedge(hyperedge)
        for changed, own in zip(page.nodes, own_terms, strict=True):
            key = changed.node.key
            if own is None:
                self._forget(key)
                continue
            relabelled.discard(key)
            labels = self._adjacency.labels(key)
            self._remember_labels(key, labels)
            self._postings.put(key, _add(own, _terms_of_labels(labels)))
            self._vectors.put(key, changed.passages)
            self._revisions.put(key, changed.node.revision)
        for key in relabelled:
            self._relabel(key)
        self._vectors.settle()

    def _forget(self, key: str) -> None:
        self._postings.remove(key)
        self._vectors.remove(key)
        self._labels_of.pop(key, None)

    def _relabel(self, key: str) -> None:
        """Exchange the words that a node has from its relationships."""
        if key not in self._postings:
            return
        before = self._labels_of.get(key, ())
        after = self._adjacency.labels(key)
        if before == after:
            return
        whole = self._postings.terms_of(key)
        assert whole is not None
        own = _subtract(whole, _terms_of_labels(before))
        self._postings.put(key, _add(own, _terms_of_labels(after)))
        self._remember_labels(key, after)

    def _remember_labels(self, key: str, labels: tuple[str, ...]) -> None:
        if labels:
            self._labels_of[key] = labels
        else:
            self._labels_of.pop(key, None)


def _terms_of_nodes(page: ChangePage) -> list[DocumentTerms | None]:
    """The words of each node of a page, None for one that is not described."""
    return [None if changed.node.placeholder else _terms_of_node(changed.node) for changed in page.nodes]


def _terms_of_node(node: Node) -> DocumentTerms:
    return document_terms(node.key, node.description, node.search_text or "", *string_values(node.data))


@functools.lru_cache(maxsize=4096)
def _terms_of_label(label: str) -> DocumentTerms:
    return document_terms(label)


def _terms_of_labels(labels: Iterable[str]) -> DocumentTerms:
    return functools.reduce(_add, map(_terms_of_label, labels), _NO_TERMS)


def _add(left: DocumentTerms, right: DocumentTerms) -> DocumentTerms:
    if not right.frequencies:
        return left
    frequencies = dict(left.frequencies)
    for term, frequency in right.frequencies.items():
        frequencies[term] = frequencies.get(term, 0) + frequency
    return DocumentTerms(frequencies=frequencies, length=left.length + right.length)


def _subtract(left: DocumentTerms, right: DocumentTerms) -> DocumentTerms:
    rest = {
        term: frequency - right.frequencies.get(term, 0)
        for term, frequency in left.frequencies.items()
        if frequency > right.frequencies.get(term, 0)
    }
    return DocumentTerms(frequencies=rest, length=left.length - right.length)
