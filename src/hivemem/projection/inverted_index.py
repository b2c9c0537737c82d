"""Which documents hold which words, how often; a document comes and goes in microseconds."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hivemem.projection.arrays import with_room
from hivemem.projection.numbers import NodeNumbers
from hivemem.retrieval.analyse import DocumentTerms

_COMPACT_MINIMUM = 64
_COMPACT_BLOCK = 1 << 20
_FEW_REMOVALS = 16
_FORWARD_LIMIT = 1 << 22
"""Bytes of forward lists beyond which frequencies are looked up in the posting lists."""
_TERM_BYTES = 340
"""A vocabulary entry: dict slot, string, posting array object, list slots (measured)."""
_DOCUMENT_BYTES = 30
"""A document: its cells in the arrays, which have room for as many again at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Compacted:
    """The content of an index without what was removed; fields as in `InvertedIndex`."""

    terms: list[str]
    term_numbers: dict[str, int]
    largest_tf: list[int]
    postings: list[array[int]]
    forward: array[int]
    starts: NDArray[np.int64]
    lengths: NDArray[np.int32]
    node_of: NDArray[np.int32]


class InvertedIndex:
    """The words of a set of documents, each under its key, by word and by document.

    A document has an ordinal, which rises with each one that is put; `_alive` says which still count.
    Not thread-safe; `GraphIndex` holds the lock.

    Args:
        nodes: The numbers of keys, shared with the other parts of an index.
    """

    def __init__(self, nodes: NodeNumbers | None = None) -> None:
        self._nodes = NodeNumbers() if nodes is None else nodes
        self._term_numbers: dict[str, int] = {}
        self._terms: list[str] = []
        # Per term one integer a document, ordinal << 32 | tf, ordinals ascending; those of removed
        # documents stay until compaction and are counted in `_removed_from`.
        self._postings: list[array[int]] = []
        self._removed_from: list[int] = []
        self._largest_tf: list[int] = []
        # The forward lists one after the other, pairs of term number and tf: what `remove` has to take
        # back. In one array, since a search reads those of some hundred documents, which lie far apart.
        self._forward = array("i")
        # Per document, by ordinal; the list of one ends where that of the next begins.
        self._starts = np.zeros(1, dtype=np.int64)
        self._ordinals = 0
        self._lengths = np.zeros(0, dtype=np.int32)
        self._alive = np.zeros(0, dtype=np.bool_)
        self._node_of = np.zeros(0, dtype=np.int32)
        self._documents = 0
        self._total_length = 0
        # Per node its ordinal + 1; 0 for a node without words.
        self._place_of = np.zeros(0, dtype=np.int32)
        # All zero between calls: each touches only the cells that it needs.
        self._slots = np.zeros(0, dtype=np.int16)
        self._posting_count = 0
        self._string_bytes = 0

    def __len__(self) -> int:
        return self._documents

    def __contains__(self, key: str) -> bool:
        return self._ordinal(key) is not None

    @property
    def size_bytes(self) -> int:
        """Memory held, estimated from counts; the table of keys is counted apart."""
        return (
            16 * self._posting_count
            + _TERM_BYTES * len(self._terms)
            + _DOCUMENT_BYTES * self._ordinals
            + self._string_bytes
        )

    def put(self, key: str, document: DocumentTerms) -> bool:
        """Add or replace a document; False when it was there with exactly these terms.

        Cost: microseconds per distinct term.
        """
        known = self._term_numbers
        numbers = [known.get(term, -1) for term in document.frequencies]
        if -1 in numbers:
            numbers = [
                self._add_term(term) if number < 0 else number
                for term, number in zip(document.frequencies, numbers, strict=True)
            ]
        pairs = list(zip(numbers, document.frequencies.values(), strict=True))
        forward = array("i", [value for pair in pairs for value in pair])
        old = self._ordinal(key)
        if old is not None:
            if self._lengths[old] == document.length and _same_terms(self._forward_list(old), forward):
                return False
            node = int(self._node_of[old])
            self._forget(old)
        else:
            node = self._nodes.take(key)
        ordinal = self._ordinals
        if ordinal == len(self._lengths):
            self._lengths = with_room(self._lengths, ordinal + 1)
            self._alive = with_room(self._alive, ordinal + 1)
            self._node_of = with_room(self._node_of, ordinal + 1)
        self._starts = with_room(self._starts, ordinal + 2)
        self._place_of = with_room(self._place_of, node + 1)
        self._place_of[node] = ordinal + 1
        self._forward += forward
        self._ordinals += 1
        self._starts[ordinal + 1] = len(self._forward)
        self._lengths[ordinal] = document.length
        self._alive[ordinal] = True
        self._node_of[ordinal] = node
        self._documents += 1
        self._total_length += document.length
        postings, largest, high = self._postings, self._largest_tf, ordinal << 32
        for number, frequency in pairs:
            postings[number].append(high | frequency)
            if frequency > largest[number]:
                largest[number] = frequency
        self._posting_count += len(pairs)
        return True

    def remove(self, key: str) -> bool:
        """Take a document out; False when it is not there."""
        ordinal = self._ordinal(key)
        if ordinal is None:
            return False
        node = int(self._node_of[ordinal])
        self._forget(ordinal)
        self._place_of[node] = 0
        self._nodes.release(node)
        return True

    def terms_of(self, key: str) -> DocumentTerms | None:
        """The terms a document was put with, None when it is not there."""
        ordinal = self._ordinal(key)
        if ordinal is None:
            return None
        frequencies = {self._terms[number]: count for number, count in _pairs(self._forward_list(ordinal))}
        return DocumentTerms(frequencies=frequencies, length=int(self._lengths[ordinal]))

    def holds(self, nodes: NDArray[np.intp]) -> NDArray[np.bool_]:
        """Whether each node is a document here."""
        return self._places(nodes) > 0

    def _frequencies(self, numbers: Sequence[int], ordinals: NDArray[np.intp]) -> NDArray[np.int32]:
        """How often each term stands in each present document, shape (terms, documents)."""
        starts = self._starts[ordinals]
        ends = np.cumsum((self._starts[ordinals + 1] - starts) >> 1)
        if not len(ends) or 8 * ends[-1] > _FORWARD_LIMIT:
            return np.stack([self._looked_up(number, ordinals) for number in numbers])
        # Two numbers as one: whole pairs are taken, from the places that lie in the lists asked for.
        whole = np.frombuffer(self._forward, dtype=np.int64)
        sizes = np.diff(ends, prepend=0)
        at = np.repeat((starts >> 1) - ends + sizes, sizes)
        at += np.arange(len(at))
        pairs = whole.take(at).view(np.int32).reshape(-1, 2)
        asked = np.array(numbers, dtype=np.intp)
        self._slots = with_room(self._slots, len(self._terms))
        self._slots[asked] = np.arange(1, len(asked) + 1)
        slots = self._slots.take(pairs[:, 0])
        self._slots[asked] = 0
        at = np.flatnonzero(slots)
        document = np.searchsorted(ends, at, side="right")
        table = np.zeros((len(asked), len(ordinals)), dtype=np.int32)
        table[slots.take(at) - 1, document] = pairs[at, 1]
        return table

    def _looked_up(self, number: int, ordinals: NDArray[np.intp]) -> NDArray[np.int32]:
        holds, frequencies = self._look_up(number, ordinals)
        return np.where(holds, frequencies, 0).astype(np.int32)

    def _look_up(
        self, number: int, ordinals: NDArray[np.int64]
    ) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
        """Which documents hold a term, and how often those that do."""
        # A view is gone before the array can grow; a copy of a frequent term's list would cost more than
        # all else here.
        packed = np.frombuffer(self._postings[number], dtype=np.int64)
        if not len(packed):
            return np.zeros(len(ordinals), dtype=np.bool_), np.ones(len(ordinals), dtype=np.int64)
        at = np.searchsorted(packed, ordinals << 32)
        found = packed[np.minimum(at, len(packed) - 1)]
        return found >> 32 == ordinals, found & 0xFFFFFFFF

    def _present(self, term: str) -> int:
        """The number of a term that some document holds, else -1."""
        number = self._term_numbers.get(term, -1)
        return number if number >= 0 and len(self._postings[number]) > self._removed_from[number] else -1

    def _present_ones(self, ordinals: NDArray[np.int64]) -> NDArray[np.int64]:
        """Those of documents that were not removed."""
        return ordinals if self._documents == self._ordinals else ordinals[self._alive[ordinals]]

    def _ordinal(self, key: str) -> int | None:
        node = self._nodes.find(key)
        if node is None or node >= len(self._place_of):
            return None
        return int(self._place_of[node]) - 1 if self._place_of[node] else None

    def _places(self, nodes: NDArray[np.intp]) -> NDArray[np.int64]:
        """Ordinal + 1 of each node, 0 for one without words."""
        self._place_of = with_room(self._place_of, self._nodes.room)
        return self._place_of[nodes].astype(np.int64)

    def _add_term(self, term: str) -> int:
        number = len(self._terms)
        self._term_numbers[term] = number
        self._terms.append(term)
        self._postings.append(array("q"))
        self._removed_from.append(0)
        self._largest_tf.append(1)
        self._string_bytes += len(term)
        return number

    def _forget(self, ordinal: int) -> None:
        for number, _ in _pairs(self._forward_list(ordinal)):
            self._removed_from[number] += 1
        self._alive[ordinal] = False
        self._documents -= 1
        self._total_length -= int(self._lengths[ordinal])

    def _forward_list(self, ordinal: int) -> array[int]:
        return self._forward[int(self._starts[ordinal]) : int(self._starts[ordinal + 1])]

    @property
    def compacts_soon(self) -> bool:
        """Whether some more removals would clear up, which takes long where there is much."""
        return self._compacts(_FEW_REMOVALS)

    def _compacts(self, further: int) -> bool:
        # Half, so that each removed document has paid for its share of the work.
        dead = self._ordinals - self._documents + further
        return dead > _COMPACT_MINIMUM and dead > self._documents - further

    @property
    def compacts(self) -> bool:
        """Whether so much was removed that clearing up is worth it; whoever makes changes then does it."""
        return self._compacts(0)

    def compacted(self) -> Compacted:
        """What stays without removed documents and terms that nobody holds any more, in the same order.

        Searches may go on meanwhile, changes may not.
        """
        alive = self._alive[: self._ordinals]
        new_ordinal = np.cumsum(alive, dtype=np.int64) - 1
        sizes = np.fromiter(map(len, self._postings), dtype=np.int64, count=len(self._postings))
        kept_sizes = sizes - np.array(self._removed_from, dtype=np.int64)
        held = kept_sizes > 0
        new_number = (np.cumsum(held) - 1).astype(np.int32)
        postings: list[array[int]] = []
        start = 0
        ends = np.cumsum(sizes)
        while start < len(sizes):
            # Many short lists at once: most words are rare, and a call for each would take seconds.
            before = int(ends[start] - sizes[start])
            stop = max(start + 1, int(np.searchsorted(ends, before + _COMPACT_BLOCK, side="right")))
            packed = np.frombuffer(b"".join(self._postings[start:stop]), dtype=np.int64)
            ordinals = packed >> 32
            kept = alive[ordinals]
            moved = ((new_ordinal[ordinals[kept]] << 32) | (packed[kept] & 0xFFFFFFFF)).tobytes()
            at = 0
            for size in kept_sizes[start:stop].tolist():
                if size:
                    postings.append(array("q", moved[at : at + 8 * size]))
                    at += 8 * size
            start = stop
        list_sizes = np.diff(self._starts[: self._ordinals + 1])
        pairs = np.frombuffer(self._forward, dtype=np.int32).reshape(-1, 2)
        pairs = pairs[np.repeat(alive, list_sizes >> 1)]
        pairs[:, 0] = new_number[pairs[:, 0]]
        kept_terms = np.flatnonzero(held).tolist()
        terms = [self._terms[number] for number in kept_terms]
        return Compacted(
            terms=terms,
            term_numbers={term: number for number, term in enumerate(terms)},
            largest_tf=[self._largest_tf[number] for number in kept_terms],
            postings=postings,
            forward=array("i", pairs.tobytes()),
            starts=np.concatenate(([0], np.cumsum(list_sizes[alive]))),
            lengths=self._lengths[: len(alive)][alive],
            node_of=self._node_of[: len(alive)][alive],
        )

    def adopt(self, compacted: Compacted) -> None:
        """Go on with what `compacted` gave, with no change in between; takes milliseconds."""
        self._terms = compacted.terms
        self._term_numbers = compacted.term_numbers
        self._largest_tf = compacted.largest_tf
        self._postings = compacted.postings
        self._removed_from = [0] * len(self._postings)
        self._forward = compacted.forward
        self._starts = compacted.starts
        self._lengths = compacted.lengths
        self._node_of = compacted.node_of
        self._ordinals = len(self._lengths)
        self._alive = np.ones(self._ordinals, dtype=np.bool_)
        self._place_of[self._node_of] = np.arange(1, self._ordinals + 1)
        self._slots = self._slots[:0]
        self._posting_count = len(self._forward) // 2
        self._string_bytes = sum(map(len, self._terms))


def _pairs(forward: array[int]) -> list[tuple[int, int]]:
    """Term numbers and their frequencies of a document."""
    values = forward.tolist()
    return list(zip(values[::2], values[1::2], strict=True))


def _same_terms(left: array[int], right: array[int]) -> bool:
    """Whether two forward lists hold the same terms equally often, in any order."""
    if len(left) != len(right):
        return False
    return left == right or dict(_pairs(left)) == dict(_pairs(right))
