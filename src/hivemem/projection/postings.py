"""Exact BM25 over an inverted index."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hivemem.projection.arrays import largest_first, with_room
from hivemem.projection.hits import TermHit, TermScore
from hivemem.projection.inverted_index import Compacted, InvertedIndex
from hivemem.projection.numbers import NodeNumbers
from hivemem.retrieval.analyse import AnalysedQuery

LEAST_DOCUMENTS = 100
"""A graph counts as at least so many documents: among five texts, which word is rare is chance, and a
score would change with every text that is stored."""

_PRUNE_MINIMUM = 2_000
"""A posting list shorter than this is added up whole: to look for what can be left out costs more."""
_FREQUENCY_CLASSES = 4
_LONGEST = np.iinfo(np.int32).max
_LOOKED_UP = 10
"""Looking a document up in a posting list costs as much as reading so many postings (measured)."""
_ROUNDING = 1e-5
"""More than float32 sums of a query's terms differ from exact ones by, as a share."""


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


class Postings(InvertedIndex):
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
        super().__init__(nodes)
        self._k1 = k1
        self._b = b
        # By ordinal, all zero between searches: a search touches only the cells that it needs.
        self._sums = np.zeros(0, dtype=np.float32)
        # Of each long posting list: how many postings were looked at, and the least length of a document
        # that holds the term once, twice, three times, more often.
        self._least_lengths: dict[int, tuple[int, NDArray[np.float64]]] = {}

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
            terms.append(QueryTerm(number, factor, factor * self._largest_share(number)))
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
        self._sums = with_room(self._sums, self._ordinals)
        parts: list[NDArray[np.int64]] = []
        added, given = 0, 0.0
        for term in terms:
            length = len(self._postings[term.number])
            reached = sum(map(len, parts))
            if length >= _PRUNE_MINIMUM and reached >= k and 8 * length > reached:
                enough = left * (1.0 + _ROUNDING)
                # No sum exceeds all bounds so far: without that to begin with, none has to be looked at.
                if given > enough and self._above(parts, enough) >= k:
                    break
            parts.append(self._add_up(term))
            given += term.bound
            left -= term.bound
            added += 1
        touched = np.concatenate(parts)
        found = self._present_ones(touched)
        for term in terms[added:]:
            sums = self._sums.take(found)
            found = found[sums >= (_kth(sums, k) - left) * (1.0 - _ROUNDING)]
            self._add_to(term, found)
            left = max(0.0, left - term.bound)
        sums = self._sums.take(found)
        self._sums[touched] = 0.0
        return found[sums >= _kth(sums, k) * (1.0 - _ROUNDING)]

    def _above(self, parts: Sequence[NDArray[np.int64]], least: float) -> int:
        """How many present documents of the parts have a larger sum."""
        return sum(int(np.count_nonzero(self._sums.take(self._present_ones(part)) > least)) for part in parts)

    def _largest_share(self, number: int) -> float:
        """The most that tf / (tf + norm) can be in a document that holds the term, removed ones included.

        Of a long list the documents are looked at, each once: with the shortest that hold the term once,
        twice and so on, the bound lies a third lower than what a document of no length would give.
        """
        largest = self._largest_tf[number]
        base, slope = self._norm_line()
        postings = self._postings[number]
        if len(postings) < _PRUNE_MINIMUM:
            return largest / (largest + base)
        seen, least = self._least_lengths.get(number, (0, np.full(_FREQUENCY_CLASSES, np.inf)))
        if seen < len(postings):
            packed = np.frombuffer(postings, dtype=np.int64)[seen:]
            lengths = self._lengths.take(packed >> 32)
            often = np.minimum(packed.astype(np.int32), _FREQUENCY_CLASSES)
            further = [lengths[often == tf].min(initial=_LONGEST) for tf in range(1, _FREQUENCY_CLASSES + 1)]
            least = np.minimum(least, further)
            self._least_lengths[number] = len(postings), least
        frequencies = np.arange(1.0, _FREQUENCY_CLASSES + 1)
        frequencies[-1] = max(largest, _FREQUENCY_CLASSES)
        return float((frequencies / (frequencies + base + slope * least)).max())

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

    def adopt(self, compacted: Compacted) -> None:
        """See `InvertedIndex.adopt`: terms have other numbers afterwards."""
        super().adopt(compacted)
        self._least_lengths.clear()

    def _exact(self, plan: QueryPlan, ordinals: NDArray[np.intp]) -> NDArray[np.float64]:
        """BM25 of present documents, added up in the order of the query's terms."""
        frequencies = self._frequencies([term.number for term in plan.terms], ordinals)
        norm = self._norm(ordinals)
        total = np.zeros(len(ordinals))
        for term, of_term in zip(plan.terms, frequencies, strict=True):
            total += term.factor * (of_term / (of_term + norm))
        return total

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


def _kth(values: NDArray[np.float32], k: int) -> float:
    """The `k`-th largest value; the smallest when there are fewer, 0.0 when there is none."""
    if k < len(values):
        return float(np.partition(values, len(values) - k)[len(values) - k])
    return float(values.min()) if len(values) and k == len(values) else 0.0
