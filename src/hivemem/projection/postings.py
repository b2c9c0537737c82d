"""Exact BM25 over an inverted index that takes one document in microseconds."""

from __future__ import annotations

import math
from array import array
from collections.abc import Collection, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hivemem.projection.arrays import largest_first, with_room
from hivemem.projection.hits import TermHit, TermScore
from hivemem.projection.numbers import NodeNumbers
from hivemem.retrieval.analyse import AnalysedQuery, DocumentTerms

LEAST_DOCUMENTS = 100
"""A graph counts as at least so many documents: among five texts, which word is rare is chance, and a
score would change with every text that is stored."""

_COMPACT_MINIMUM = 64
_COMPACT_BLOCK = 1 << 20
_FEW_REMOVALS = 16
_PRUNE_MINIMUM = 2_000
"""A posting list shorter than this is added up whole: to look for what can be left out costs more."""
_LOOKED_UP = 10
"""Looking a document up in a posting list costs as much as reading so many postings (measured)."""
_FORWARD_LIMIT = 1 << 22
"""Bytes of forward lists beyond which exact scores come from the posting lists."""
_ROUNDING = 1e-5
"""More than float32 sums of a query's terms differ from exact ones by, as a share."""
_TERM_BYTES = 340
"""A vocabulary entry: dict slot, string, posting array object, list slots (measured)."""
_DOCUMENT_BYTES = 110
"""A document: list slots, forward list object, its cells in the arrays."""


class QueryTerm(NamedTuple):
    """A distinct index term of a query that some document holds.

    `factor` is weight x idf x (k1 + 1); `bound` what no document can get for the term.
    """

    number: int
    factor: float
    bound: float


class QueryPlan(NamedTuple):
    """A query looked up in the vocabulary; good until the next change of the index.

    `terms` are those that give a score, in the order of the query. `words` has for each word of the
    query the numbers of its forms, -1 for one that no document holds, the main form first.
    """

    terms: list[QueryTerm]
    ideal: float
    words: list[list[int]]

    @property
    def known(self) -> tuple[bool, ...]:
        """For each word of the query whether any document holds it in one of its forms."""
        return tuple(max(numbers) >= 0 for numbers in self.words)


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
        nodes: The numbers of keys, shared with the other parts of an index.
    """

    def __init__(self, *, k1: float = 0.9, b: float = 0.4, nodes: NodeNumbers | None = None) -> None:
        self._k1 = k1
        self._b = b
        self._nodes = NodeNumbers() if nodes is None else nodes
        self._term_numbers: dict[str, int] = {}
        self._terms: list[str] = []
        # Per term one integer a document, ordinal << 32 | tf, ordinals ascending; those of removed
        # documents stay until compaction and are counted in `_removed_from`.
        self._postings: list[array[int]] = []
        self._removed_from: list[int] = []
        self._largest_tf: list[int] = []
        # Per document, by ordinal. The forward list holds pairs of term number and tf as int32: what
        # `remove` has to take back. Bytes, since the garbage collector would walk through arrays.
        self._forward: list[bytes | None] = []
        self._lengths = np.zeros(0, dtype=np.int32)
        self._alive = np.zeros(0, dtype=np.bool_)
        self._node_of = np.zeros(0, dtype=np.int32)
        self._documents = 0
        self._total_length = 0
        # Per node its ordinal + 1; 0 for a node without words.
        self._place_of = np.zeros(0, dtype=np.int32)
        # All zero between searches: a search touches only the cells that it needs.
        self._sums = np.zeros(0, dtype=np.float32)
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
            + _DOCUMENT_BYTES * len(self._forward)
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
        forward = array("i", [value for pair in pairs for value in pair]).tobytes()
        old = self._ordinal(key)
        if old is not None:
            if self._lengths[old] == document.length and _same_terms(self._forward[old], forward):
                return False
            node = int(self._node_of[old])
            self._forget(old)
        else:
            node = self._nodes.take(key)
        ordinal = len(self._forward)
        if ordinal == len(self._lengths):
            self._lengths = with_room(self._lengths, ordinal + 1)
            self._alive = with_room(self._alive, ordinal + 1)
            self._node_of = with_room(self._node_of, ordinal + 1)
        self._place_of = with_room(self._place_of, node + 1)
        self._place_of[node] = ordinal + 1
        self._forward.append(forward)
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
        self._compact_if_worth_it()
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
        self._compact_if_worth_it()
        return True

    def terms_of(self, key: str) -> DocumentTerms | None:
        """The terms a document was put with, None when it is not there."""
        ordinal = self._ordinal(key)
        if ordinal is None:
            return None
        frequencies = {self._terms[number]: count for number, count in _pairs(self._forward[ordinal])}
        return DocumentTerms(frequencies=frequencies, length=int(self._lengths[ordinal]))

    def search(self, query: AnalysedQuery, k: int) -> list[TermHit]:
        """The `k` documents with the largest BM25 above 0, best first, ties by key."""
        nodes, scores = self.best(self.plan(query), k)
        keys = self._nodes.keys(nodes.tolist())
        return [TermHit(key, score) for key, score in zip(keys, scores.tolist(), strict=True)]

    def scores(self, query: AnalysedQuery, keys: Collection[str]) -> dict[str, TermScore]:
        """BM25 of the given documents, equal bit for bit to what `search` gives them.

        A key that is not here scores 0.0 and holds nothing. Uninformative words are looked up for
        `held`, but give no score.
        """
        plan = self.plan(query)
        present = [key for key in dict.fromkeys(keys) if key in self]
        nodes = np.array([self._nodes.find(key) for key in present], dtype=np.intp)
        none = (False,) * len(query.words)
        result = dict.fromkeys(keys, TermScore(0.0, plan.ideal, none, none))
        if present:
            found = self.scores_of(plan, nodes).tolist()
            result |= zip(present, self.described(plan, nodes, found), strict=True)
        return result

    def known(self, query: AnalysedQuery) -> tuple[bool, ...]:
        """For each word of the query whether any document holds it in one of its forms."""
        return self.plan(query).known

    def plan(self, query: AnalysedQuery) -> QueryPlan:
        """Look a query up: the distinct terms to score, in order, and the ideal score.

        A word that no document holds in any form raises the ideal by its main form, so that the best
        hit of a query with unknown words is far from ideal.
        """
        weights: dict[int, float] = {}
        ideal: list[float] = []
        words: list[list[int]] = []
        for word in query.words:
            numbers = [self._present(term.text) for term in word.terms]
            words.append(numbers)
            if not word.informative:
                continue
            for term, number in zip(word.terms, numbers, strict=True):
                if number >= 0:
                    weights[number] = max(term.weight, weights.get(number, 0.0))
            if max(numbers) < 0:
                ideal.append(self._factor(0))
        terms: list[QueryTerm] = []
        for number, weight in weights.items():
            factor = weight * self._factor(len(self._postings[number]) - self._removed_from[number])
            largest = self._largest_tf[number]
            # A document of no length would have the least norm.
            bound = factor * (largest / (largest + self._k1 * (1.0 - self._b)))
            terms.append(QueryTerm(number, factor, bound))
        return QueryPlan(terms, math.fsum((*ideal, *(term.factor for term in terms))), words)

    def best(self, plan: QueryPlan, k: int) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
        """The nodes with the `k` largest BM25 above 0, best first, ties by key, and their scores."""
        if not plan.terms or k <= 0:
            return np.zeros(0, dtype=np.intp), np.zeros(0)
        ordinals = self._candidates(plan.terms, k)
        scores = self._exact(plan, ordinals)
        nodes = self._node_of[ordinals]
        chosen = largest_first(scores, k, lambda position: self._nodes.key(int(nodes[position])))
        return nodes[chosen].astype(np.intp), scores[chosen]

    def scores_of(self, plan: QueryPlan, nodes: NDArray[np.intp]) -> NDArray[np.float64]:
        """BM25 of each node, 0.0 for one without words."""
        places = self._places(nodes)
        scores = np.zeros(len(nodes))
        present = np.flatnonzero(places)
        if len(present) and plan.terms:
            scores[present] = self._exact(plan, places[present] - 1)
        return scores

    def holds(self, nodes: NDArray[np.intp]) -> NDArray[np.bool_]:
        """Whether each node is a document here."""
        return self._places(nodes) > 0

    def described(self, plan: QueryPlan, nodes: NDArray[np.intp], scores: Sequence[float]) -> list[TermScore]:
        """Everything that the words say of each node, whose scores are known from `scores_of`."""
        places = self._places(nodes)
        numbers = list(dict.fromkeys(n for forms in plan.words for n in forms if n >= 0))
        frequencies = np.zeros((len(numbers), len(nodes)), dtype=np.int32)
        present = np.flatnonzero(places)
        if len(present) and numbers:
            frequencies[:, present] = self._frequencies(numbers, places[present] - 1)
        holds = frequencies > 0
        row_of = {number: row for row, number in enumerate(numbers)}
        held = np.zeros((len(plan.words), len(nodes)), dtype=np.bool_)
        as_spelled = held.copy()
        for word, forms in enumerate(plan.words):
            rows = [row_of[number] for number in forms if number >= 0]
            if rows:
                np.any(holds[rows], axis=0, out=held[word])
                if forms[0] >= 0:
                    as_spelled[word] = holds[row_of[forms[0]]]
        words, spelled = held.T.tolist(), as_spelled.T.tolist()
        return [
            TermScore(score, plan.ideal, tuple(of_words), tuple(of_spelled))
            for score, of_words, of_spelled in zip(scores, words, spelled, strict=True)
        ]

    def _candidates(self, terms: Sequence[QueryTerm], k: int) -> NDArray[np.intp]:
        """Ordinals of present documents: the best `k`, those that tie with the last, and few others.

        Terms are added up from the one that can give most to the one that can give least. Once the
        k-th best sum exceeds what all further terms can give together, a document that holds none of
        the terms so far cannot be among the best: from then on the long lists of frequent words are
        not read any more, but looked up for the documents that still can.

        Source: Turtle, Flood, "Query evaluation: strategies and optimizations", 1995 (MaxScore).
        """
        terms = sorted(terms, key=lambda term: -term.bound)
        left = math.fsum(term.bound for term in terms)
        self._sums = with_room(self._sums, len(self._forward))
        found = np.zeros(0, dtype=np.int64)
        waiting: list[NDArray[np.int64]] = []
        added = 0
        for term in terms:
            length = len(self._postings[term.number])
            reached = len(found) + sum(map(len, waiting))
            if length >= _PRUNE_MINIMUM and reached >= k and 8 * length > reached:
                found, waiting = np.concatenate((found, *waiting)), []
                present = found[self._alive[found]]
                if _kth(self._sums.take(present), k) > left * (1.0 + _ROUNDING):
                    break
            waiting.append(self._add_up(term))
            left -= term.bound
            added += 1
        touched = found = np.concatenate((found, *waiting))
        found = found[self._alive[found]]
        for term in terms[added:]:
            sums = self._sums.take(found)
            found = found[sums >= (_kth(sums, k) - left) * (1.0 - _ROUNDING)]
            self._add_to(term, found)
            left = max(0.0, left - term.bound)
        sums = self._sums.take(found)
        self._sums[touched] = 0.0
        return found[sums >= _kth(sums, k) * (1.0 - _ROUNDING)]

    def _add_up(self, term: QueryTerm) -> NDArray[np.int64]:
        """Add a term to the sums of all documents that hold it; those that had no sum before."""
        packed = np.frombuffer(self._postings[term.number], dtype=np.int64)
        ordinals = packed >> 32
        parts = self._parts(term, ordinals, packed.astype(np.int32))
        before = self._sums.take(ordinals)
        parts += before
        self._sums[ordinals] = parts
        return ordinals[before == 0.0]

    def _add_to(self, term: QueryTerm, found: NDArray[np.int64]) -> None:
        """Add a term to the sums of the documents `found`; others that have a sum may get it too."""
        packed = np.frombuffer(self._postings[term.number], dtype=np.int64)
        if len(packed) > _LOOKED_UP * len(found):
            holds, frequencies = self._look_up(term.number, found)
            ordinals, frequencies = found[holds], frequencies[holds]
        else:
            ordinals = packed >> 32
            held = np.flatnonzero(self._sums.take(ordinals))
            ordinals, frequencies = ordinals[held], packed[held].astype(np.int32)
        self._sums[ordinals] += self._parts(term, ordinals, frequencies)

    def _exact(self, plan: QueryPlan, ordinals: NDArray[np.intp]) -> NDArray[np.float64]:
        """BM25 of present documents, added up in the order of the query's terms."""
        frequencies = self._frequencies([term.number for term in plan.terms], ordinals)
        norm = self._norm(ordinals)
        total = np.zeros(len(ordinals))
        for term, of_term in zip(plan.terms, frequencies, strict=True):
            total += term.factor * (of_term / (of_term + norm))
        return total

    def _frequencies(self, numbers: Sequence[int], ordinals: NDArray[np.intp]) -> NDArray[np.int32]:
        """How often each term stands in each present document, shape (terms, documents)."""
        lists = [self._forward[ordinal] for ordinal in ordinals.tolist()]
        sizes = [0 if one is None else len(one) // 8 for one in lists]
        if 8 * sum(sizes) > _FORWARD_LIMIT:
            return np.stack([self._looked_up(number, ordinals) for number in numbers])
        pairs = np.frombuffer(b"".join(one for one in lists if one is not None), dtype=np.int32)
        self._slots = with_room(self._slots, len(self._terms))
        self._slots[list(numbers)] = np.arange(1, len(numbers) + 1)
        slots = self._slots[pairs[::2]]
        self._slots[list(numbers)] = 0
        at = np.flatnonzero(slots)
        document = np.repeat(np.arange(len(ordinals)), sizes)[at]
        table = np.zeros((len(numbers), len(ordinals)), dtype=np.int32)
        table[slots[at] - 1, document] = pairs[1::2][at]
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

    def _parts(
        self, term: QueryTerm, ordinals: NDArray[np.int64], frequencies: NDArray[np.integer]
    ) -> NDArray[np.float32]:
        """What the term gives each document, in float32: only for finding candidates."""
        base, slope = self._norm_line()
        tf = frequencies.astype(np.float32)
        parts = self._lengths.take(ordinals).astype(np.float32)
        parts *= np.float32(slope)
        parts += np.float32(base)
        parts += tf
        np.divide(tf, parts, out=parts)
        parts *= np.float32(term.factor)
        return parts

    def _norm_line(self) -> tuple[float, float]:
        """The norm of a document of no length, and how much each word adds."""
        mean_length = self._total_length / self._documents or 1.0
        return self._k1 * (1.0 - self._b), self._k1 * self._b / mean_length

    def _norm(self, ordinals: NDArray[np.int64]) -> NDArray[np.float64]:
        base, slope = self._norm_line()
        return np.float64(base) + slope * self._lengths[ordinals].astype(np.float64)

    def _factor(self, frequency: int) -> float:
        documents = max(self._documents, LEAST_DOCUMENTS)
        return math.log(1.0 + (documents - frequency + 0.5) / (frequency + 0.5)) * (self._k1 + 1.0)

    def _present(self, term: str) -> int:
        """The number of a term that some document holds, else -1."""
        number = self._term_numbers.get(term, -1)
        return number if number >= 0 and len(self._postings[number]) > self._removed_from[number] else -1

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
        for number, _ in _pairs(self._forward[ordinal]):
            self._removed_from[number] += 1
        self._forward[ordinal] = None
        self._alive[ordinal] = False
        self._documents -= 1
        self._total_length -= int(self._lengths[ordinal])

    @property
    def compacts_soon(self) -> bool:
        """Whether some more removals would clear up, which takes long where there is much."""
        return self._compacts(_FEW_REMOVALS)

    def _compacts(self, further: int) -> bool:
        # Half, so that each removed document has paid for its share of the work.
        dead = len(self._forward) - self._documents + further
        return dead > _COMPACT_MINIMUM and dead > self._documents - further

    def _compact_if_worth_it(self) -> None:
        if self._compacts(0):
            self._compact()

    def _compact(self) -> None:
        """Drop removed documents and terms that nobody holds any more; ordinals keep their order."""
        alive = self._alive[: len(self._forward)]
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
        forward_of: list[bytes | None] = []
        for forward in self._forward:
            if forward is not None:
                pairs = np.frombuffer(forward, dtype=np.int32).copy()
                pairs[::2] = new_number[pairs[::2]]
                forward_of.append(pairs.tobytes())
        kept_terms = np.flatnonzero(held).tolist()
        self._terms = [self._terms[number] for number in kept_terms]
        self._largest_tf = [self._largest_tf[number] for number in kept_terms]
        self._term_numbers = {term: number for number, term in enumerate(self._terms)}
        self._postings, self._removed_from = postings, [0] * len(postings)
        self._lengths = self._lengths[: len(alive)][alive]
        self._node_of = self._node_of[: len(alive)][alive]
        self._alive = np.ones(len(self._lengths), dtype=np.bool_)
        self._place_of[self._node_of] = np.arange(1, len(self._node_of) + 1)
        self._forward = forward_of
        self._sums = self._sums[:0]
        self._slots = self._slots[:0]
        self._posting_count = int(kept_sizes.sum())
        self._string_bytes = sum(map(len, self._terms))


def _kth(values: NDArray[np.float32], k: int) -> float:
    """The `k`-th largest value; the smallest when there are fewer, 0.0 when there is none."""
    if k < len(values):
        return float(np.partition(values, len(values) - k)[len(values) - k])
    return float(values.min()) if len(values) and k == len(values) else 0.0


def _pairs(forward: bytes | None) -> list[tuple[int, int]]:
    """Term numbers and their frequencies of a document that is present."""
    assert forward is not None
    values = memoryview(forward).cast("i").tolist()
    return list(zip(values[::2], values[1::2], strict=True))


def _same_terms(left: bytes | None, right: bytes) -> bool:
    """Whether two forward lists hold the same terms equally often, in any order."""
    if left is None or len(left) != len(right):
        return False
    return left == right or dict(_pairs(left)) == dict(_pairs(right))
