"""Exact BM25 over an inverted index that takes one document in microseconds."""

from __future__ import annotations

import heapq
import math
from array import array
from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hivemem.projection.arrays import at_least_kth, with_room
from hivemem.projection.hits import TermHit, TermScore
from hivemem.retrieval.analyse import AnalysedQuery, DocumentTerms

LEAST_DOCUMENTS = 100
"""A graph counts as at least so many documents: among five texts, which word is rare is chance, and a
score would change with every text that is stored."""

_COMPACT_SHARE = 0.25
_COMPACT_MINIMUM = 64
_TERM_BYTES = 330
"""A vocabulary entry: dict slot, string, posting array object, list slots (measured)."""
_DOCUMENT_BYTES = 260
"""A document: dict slot, list slots, forward array object; the key's string is counted apart."""


@dataclass(frozen=True, slots=True)
class _QueryTerm:
    """A distinct index term of a query with the factor weight x idf x (k1 + 1)."""

    number: int
    factor: float


class Postings:
    """The words of a set of documents, each under its key.

        bm25(d, q) = sum over terms t of weight(t) * idf(t) * (k1 + 1) * tf / (tf + norm(d))
        norm(d)    = k1 * (1 - b + b * length(d) / mean length)
        idf(t)     = ln(1 + (N - df + 0.5) / (df + 0.5))

    N is the number of present documents, at least `LEAST_DOCUMENTS`; df and mean are theirs. Scores
    are float64 and summed in the
    order of the query's terms, so they are equal bit for bit however the present state was reached.
    Not thread-safe; `GraphIndex` holds the lock.

    Source: Robertson, Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond", 2009,
    doi:10.1561/1500000019, with the idf that never turns negative. The defaults of k1 and b suit
    short texts (docs/decisions/bm25-index.md).

    Args:
        k1: Saturation of term frequency, positive.
        b: Strength of length normalisation, 0 to 1.
    """

    def __init__(self, *, k1: float = 0.9, b: float = 0.4) -> None:
        self._k1 = k1
        self._b = b
        self._term_numbers: dict[str, int] = {}
        self._terms: list[str] = []
        # Per term one integer a document, ordinal << 32 | tf, ordinals ascending; those of removed
        # documents stay until compaction and are counted in `_removed_from`.
        self._postings: list[array[int]] = []
        self._removed_from: list[int] = []
        self._ordinals: dict[str, int] = {}
        self._keys: list[str | None] = []
        # Per document its term numbers and then their tf, as int32: what `remove` has to take back.
        # Bytes, since the garbage collector would walk through hundreds of thousands of arrays.
        self._forward: list[bytes | None] = []
        self._lengths = np.zeros(0, dtype=np.int32)
        self._alive = np.zeros(0, dtype=np.bool_)
        self._total_length = 0
        # All zero between searches: a search touches only the cells of documents that hold a term.
        self._sums = np.zeros(0, dtype=np.float64)
        self._posting_count = 0
        self._string_bytes = 0

    def __len__(self) -> int:
        return len(self._ordinals)

    def __contains__(self, key: str) -> bool:
        return key in self._ordinals

    @property
    def size_bytes(self) -> int:
        """Memory held, estimated from counts."""
        return (
            16 * self._posting_count
            + _TERM_BYTES * len(self._terms)
            + _DOCUMENT_BYTES * len(self._keys)
            + self._lengths.nbytes
            + self._alive.nbytes
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
        frequencies = list(document.frequencies.values())
        forward = array("i", numbers + frequencies).tobytes()
        old = self._ordinals.get(key)
        if old is not None:
            if self._lengths[old] == document.length and _same_terms(self._forward[old], forward):
                return False
            self._forget(old)
        ordinal = len(self._keys)
        if ordinal == len(self._lengths):
            self._lengths = with_room(self._lengths, ordinal + 1)
            self._alive = with_room(self._alive, ordinal + 1)
        self._ordinals[key] = ordinal
        self._keys.append(key)
        self._string_bytes += len(key)
        self._forward.append(forward)
        self._lengths[ordinal] = document.length
        self._alive[ordinal] = True
        self._total_length += document.length
        postings, high = self._postings, ordinal << 32
        for number, frequency in zip(numbers, frequencies, strict=True):
            postings[number].append(high | frequency)
        self._posting_count += len(numbers)
        self._compact_if_worth_it()
        return True

    def remove(self, key: str) -> bool:
        """Take a document out; False when it is not there."""
        ordinal = self._ordinals.pop(key, None)
        if ordinal is None:
            return False
        self._forget(ordinal)
        self._compact_if_worth_it()
        return True

    def terms_of(self, key: str) -> DocumentTerms | None:
        """The terms a document was put with, None when it is not there."""
        ordinal = self._ordinals.get(key)
        if ordinal is None:
            return None
        numbers, counts = _halves(self._forward[ordinal])
        frequencies = {self._terms[number]: count for number, count in zip(numbers, counts, strict=True)}
        return DocumentTerms(frequencies=frequencies, length=int(self._lengths[ordinal]))

    def search(self, query: AnalysedQuery, k: int) -> list[TermHit]:
        """The `k` documents with the largest BM25 above 0, best first, ties by key."""
        terms, _ = self._query_terms(query)
        if not terms or k <= 0:
            return []
        self._sums = with_room(self._sums, len(self._keys))
        touched: list[NDArray[np.int32]] = []
        for term in terms:
            ordinals, frequencies = self._posting(term.number)
            before = self._sums[ordinals]
            touched.append(ordinals[before == 0.0])
            self._sums[ordinals] = before + self._parts(term, ordinals, frequencies)
        candidates = np.concatenate(touched)
        sums = self._sums[candidates]
        self._sums[candidates] = 0.0
        present = self._alive[candidates]
        if not present.all():
            candidates, sums = candidates[present], sums[present]
        chosen = at_least_kth(sums, k)
        return self._ranked(candidates[chosen], sums[chosen], k)

    def scores(self, query: AnalysedQuery, keys: Collection[str]) -> dict[str, TermScore]:
        """BM25 of the given documents, equal bit for bit to what `search` gives them.

        A key that is not here scores 0.0 and holds nothing. Uninformative words are looked up for
        `held`, but give no score.
        """
        terms, ideal = self._query_terms(query)
        present = sorted({self._ordinals[key] for key in keys if key in self._ordinals})
        wanted = np.array(present, dtype=np.int32)
        total = np.zeros(len(wanted))
        holders: dict[int, NDArray[np.bool_]] = {}
        if present:
            for term in terms:
                holds, frequencies = self._look_up(term.number, wanted)
                total += np.where(holds, self._parts(term, wanted, frequencies), 0.0)
                holders[term.number] = holds
        held = np.zeros((len(query.words), len(wanted)), dtype=np.bool_)
        as_spelled = held.copy()
        for word, holds_word, spells_word in zip(query.words, held, as_spelled, strict=True):
            for position, term in enumerate(word.terms):
                number = self._term_numbers.get(term.text)
                if number is not None and present:
                    if number not in holders:
                        holders[number], _ = self._look_up(number, wanted)
                    holds_word |= holders[number]
                    if position == 0:
                        spells_word |= holders[number]
        none = (False,) * len(query.words)
        nothing = TermScore(bm25=0.0, ideal=ideal, held=none, as_spelled=none)
        result = dict.fromkeys(keys, nothing)
        for ordinal, score, words, spelled in zip(
            present, total.tolist(), held.T.tolist(), as_spelled.T.tolist(), strict=True
        ):
            key = self._keys[ordinal]
            assert key is not None
            result[key] = TermScore(bm25=score, ideal=ideal, held=tuple(words), as_spelled=tuple(spelled))
        return result

    def known(self, query: AnalysedQuery) -> tuple[bool, ...]:
        """For each word of the query whether any document holds it in one of its forms."""
        return tuple(any(self._frequency(term.text) for term in word.terms) for word in query.words)

    def _query_terms(self, query: AnalysedQuery) -> tuple[list[_QueryTerm], float]:
        """The distinct terms to score that some document holds, in order, and the ideal score.

        A word that no document holds in any form raises the ideal by its main form, so that the best
        hit of a query with unknown words is far from ideal.
        """
        weights: dict[str, float] = {}
        ideal: list[float] = []
        for word in query.words:
            if not word.informative:
                continue
            known = [term for term in word.terms if self._frequency(term.text)]
            for term in known:
                weights[term.text] = max(term.weight, weights.get(term.text, 0.0))
            if not known:
                ideal.append(self._factor(0))
        terms = [
            _QueryTerm(self._term_numbers[text], weight * self._factor(self._frequency(text)))
            for text, weight in weights.items()
        ]
        return terms, math.fsum((*ideal, *(term.factor for term in terms)))

    def _frequency(self, term: str) -> int:
        number = self._term_numbers.get(term)
        return 0 if number is None else len(self._postings[number]) - self._removed_from[number]

    def _factor(self, frequency: int) -> float:
        documents = max(len(self._ordinals), LEAST_DOCUMENTS)
        return math.log(1.0 + (documents - frequency + 0.5) / (frequency + 0.5)) * (self._k1 + 1.0)

    def _look_up(self, number: int, wanted: NDArray[np.int32]) -> tuple[NDArray[np.bool_], NDArray[np.int32]]:
        """Which of the `wanted` ordinals hold a term, and how often those that do."""
        # A view is gone before the array can grow; a copy of a frequent term's list would cost more than
        # all else here.
        packed = np.frombuffer(self._postings[number], dtype=np.int64)
        if not len(packed):
            return np.zeros(len(wanted), dtype=np.bool_), np.ones(len(wanted), dtype=np.int32)
        at = np.searchsorted(packed, wanted.astype(np.int64) << 32)
        found = packed[np.minimum(at, len(packed) - 1)]
        return found >> 32 == wanted, found.astype(np.int32)

    def _posting(self, number: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        # Copies: a view would forbid the array to grow.
        packed = np.frombuffer(self._postings[number], dtype=np.int64)
        return (packed >> 32).astype(np.int32), packed.astype(np.int32)

    def _parts(
        self, term: _QueryTerm, ordinals: NDArray[np.int32], frequencies: NDArray[np.int32]
    ) -> NDArray[np.float64]:
        mean_length = self._total_length / len(self._ordinals) or 1.0
        slope = self._k1 * self._b / mean_length
        norm = self._k1 * (1.0 - self._b) + slope * self._lengths[ordinals]
        return term.factor * (frequencies / (frequencies + norm))

    def _ranked(self, ordinals: NDArray[np.int32], scores: NDArray[np.float64], k: int) -> list[TermHit]:
        keys = [self._keys[ordinal] for ordinal in ordinals.tolist()]
        pairs = list(zip((-scores).tolist(), keys, strict=True))
        pairs = sorted(pairs) if len(pairs) < 4 * k else heapq.nsmallest(k, pairs)
        return [TermHit(key=key, score=-negative) for negative, key in pairs[:k]]

    def _add_term(self, term: str) -> int:
        number = len(self._terms)
        self._term_numbers[term] = number
        self._terms.append(term)
        self._postings.append(array("q"))
        self._removed_from.append(0)
        self._string_bytes += len(term)
        return number

    def _forget(self, ordinal: int) -> None:
        key = self._keys[ordinal]
        assert key is not None
        numbers, _ = _halves(self._forward[ordinal])
        for number in numbers:
            self._removed_from[number] += 1
        self._forward[ordinal] = None
        self._keys[ordinal] = None
        self._string_bytes -= len(key)
        self._alive[ordinal] = False
        self._total_length -= int(self._lengths[ordinal])

    def _compact_if_worth_it(self) -> None:
        dead = len(self._keys) - len(self._ordinals)
        if dead > _COMPACT_MINIMUM and dead > _COMPACT_SHARE * len(self._keys):
            self._compact()

    def _compact(self) -> None:
        """Drop removed documents and terms that nobody holds any more; ordinals keep their order."""
        alive = self._alive[: len(self._keys)]
        new_ordinal = np.cumsum(alive, dtype=np.int32) - np.int32(1)
        new_number = np.full(len(self._terms), -1, dtype=np.int32)
        terms: list[str] = []
        postings: list[array[int]] = []
        for number, term in enumerate(self._terms):
            if len(self._postings[number]) == self._removed_from[number]:
                continue
            new_number[number] = len(terms)
            terms.append(term)
            packed = np.frombuffer(self._postings[number], dtype=np.int64)
            ordinals = packed >> 32
            kept = alive[ordinals]
            moved = (new_ordinal[ordinals[kept]].astype(np.int64) << 32) | (packed[kept] & 0xFFFFFFFF)
            postings.append(array("q", moved.tobytes()))
        forward_of: list[bytes | None] = []
        for forward in self._forward:
            if forward is None:
                continue
            numbers = np.frombuffer(forward, dtype=np.int32, count=len(forward) // 8)
            forward_of.append(new_number[numbers].tobytes() + forward[len(forward) // 2 :])
        self._lengths = self._lengths[: len(alive)][alive]
        self._alive = np.ones(len(self._lengths), dtype=np.bool_)
        self._keys = [key for key in self._keys if key is not None]
        self._ordinals = {key: at for at, key in enumerate(self._keys) if key is not None}
        self._terms, self._postings, self._removed_from = terms, postings, [0] * len(terms)
        self._term_numbers = {term: number for number, term in enumerate(terms)}
        self._forward = forward_of
        self._posting_count = sum(map(len, postings))
        self._string_bytes = sum(map(len, terms)) + sum(map(len, self._ordinals))


def _halves(forward: bytes | None) -> tuple[list[int], list[int]]:
    """Term numbers and their frequencies of a document that is present."""
    assert forward is not None
    values = memoryview(forward).cast("i").tolist()
    return values[: len(values) // 2], values[len(values) // 2 :]


def _same_terms(left: bytes | None, right: bytes) -> bool:
    """Whether two forward lists hold the same terms equally often, in any order."""
    if left is None or len(left) != len(right):
        return False
    return left == right or dict(zip(*_halves(left), strict=True)) == dict(zip(*_halves(right), strict=True))
