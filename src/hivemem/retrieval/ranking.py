"""From evidence to relevance: how word, meaning, relationships and the cross-encoder join.

Everything here is a function of one (query, node) pair and of that node's relationships, never of the
other candidates: a score belongs to the pair, not to the company it is found in.
`benchmarks/quality/fit.py` fits the numbers of `Calibration`; docs/retrieval.md explains them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from hivemem.retrieval.analyse import AnalysedQuery, QueryWord
from hivemem.retrieval.language import is_foreign, readable_share
from hivemem.retrieval.words import is_han_or_kana

REFERENCE_NODES = 1000
"""The size of graph for which `Calibration.floor` is meant."""


PLAIN_QUESTION_WORDS = 12
"""Up to so many words a question asks for one thing, as those do that the cross-encoder learned from."""


LEAST_SEEN_TRUST = 0.5
"""How far an opinion on the best passage of a very long text counts."""

FOREIGN_TRUST = 0.2
"""How far models for English are trusted in another language of the same script."""

CHANCE_WORDS = 3
"""So many informative words of a question, names included, an unrelated text may hold by chance."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """The numbers of the ranking formula, in units of the cross-encoder's logit.

    Attributes:
        bm25: Weight of `bm25 / ideal`, a share in [0, 1).
        cosine: Weight of the cosine above `cosine_zero`, what unrelated texts have in this space.
        support: Share of its best two neighbours' evidence that a node inherits.
        context: Share of the logit of the text read with its neighbours, the rest is the text alone.
        read_slope: With `read_offset`, the logit expected from the evidence alone, where the
            cross-encoder did not or cannot read the text.
        scale: With `offset`, Platt scaling: relevance = sigmoid(scale * points + offset).
        asks: Points taken from a text that merely asks.
        answers: Points given to a text that stands directly after a question.
        respelled: Points taken from a text that holds the words only in another spelling or form: "nam"
            asks for "Nam" rather than "Năm", which the models cannot tell apart.
        floor: A recall whose best relevance is below this returns nothing; as it is for a graph of
            `REFERENCE_NODES`, see `floor_points`.
        floor_growth: Points by which the floor rises when the graph is e times as large.
        known_names: Points by which it falls for a question whose every name the graph knows.
        strange_names: Points by which it rises for a question with names that the graph does not know, in
            proportion where it knows some of them.
        held_words: Points by which it falls for a hit with each informative word that it holds beyond
            `CHANCE_WORDS`.
        least_floor: Points below which the floor never falls, however small the graph.
        tail: How far further hits may lie below the floor: a share of its distance to `least_floor`.
        english_embedder: Whether the embedder understands Latin script alone.
        english_reranker: Whether the cross-encoder does.
    """

    bm25: float = 7.0
    cosine: float = 6.0
    cosine_zero: float = 0.5
    support: float = 0.35
    context: float = 0.5
    read_slope: float = 4.0
    read_offset: float = -16.0
    scale: float = 0.686
    offset: float = 0.938
    asks: float = 2.0
    answers: float = 1.2
    respelled: float = 3.0
    floor: float = 0.048
    floor_growth: float = 1.5
    known_names: float = 2.0
    strange_names: float = 5.3
    held_words: float = 1.5
    least_floor: float = -9.9
    tail: float = 0.8
    english_embedder: bool = True
    english_reranker: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What the two text legs say of a node.

    Attributes:
        cosine: Of its best passage; None without a vector or without an embedder.
        bm25: At least 0.
        ideal: The upper bound of `bm25` for this query, at least 0.
    """

    cosine: float | None
    bm25: float
    ideal: float


def evidence_points(evidence: Evidence, calibration: Calibration) -> float:
    """The evidence of the text legs in logit points, at least 0.

        bm25_weight * bm25 / ideal + cosine_weight * max(0, cosine - cosine_zero)

    Example:
        >>> c = Calibration(bm25=4.0, cosine=6.0, cosine_zero=0.4)
        >>> evidence_points(Evidence(cosine=0.9, bm25=5.0, ideal=10.0), c)
        5.0
    """
    points = calibration.bm25 * evidence.bm25 / evidence.ideal if evidence.ideal > 0 else 0.0
    if evidence.cosine is not None:
        points += calibration.cosine * max(0.0, evidence.cosine - calibration.cosine_zero)
    return points


def support_points(neighbours: Iterable[float], calibration: Calibration) -> float:
    """What a node inherits from its two best neighbours' evidence points.

    In a conversation the answer often stands beside the words of the question; one step along the
    relationships finds it.
    """
    return calibration.support * math.fsum(sorted(neighbours, reverse=True)[:2])


def combined_logit(own: float | None, context: float | None, calibration: Calibration) -> float | None:
    """The cross-encoder's opinion of a text alone and of the text among its neighbours, as one logit."""
    if own is None or context is None:
        return own if context is None else context
    return (1.0 - calibration.context) * own + calibration.context * context


def manner_points(*, asks: bool, follows_question: bool, calibration: Calibration) -> float:
    """What the form of a text says of it, whatever the question.

    In conversations most short texts that end with a question hold no fact, and what follows one is the
    reply.

    Args:
        asks: From `merely_asks`.
        follows_question: Whether its strongest incoming neighbour ends with a question.
        calibration: The fitted numbers.
    """
    return calibration.answers * follows_question - calibration.asks * asks


def ranking_points(
    *,
    logit: float | None,
    trust: float,
    evidence: float,
    support: float,
    respelled: float,
    manner: float = 0.0,
    calibration: Calibration,
) -> float:
    """The sum that orders the hits of one recall.

        trust * logit + (1 - trust) * (read_slope * (evidence + support) + read_offset)
            + evidence + support + manner - respelled_weight * respelled

    Args:
        logit: Of the cross-encoder; None when it did not run, the same as `trust` 0.
        trust: How much of the text the cross-encoder could read, in [0, 1]; see `reading_trust`.
        evidence: From `evidence_points`.
        support: From `support_points`.
        respelled: Share of the query's informative words that the text holds in another form alone.
        manner: From `manner_points`.
        calibration: The fitted numbers.
    """
    expected = calibration.read_slope * (evidence + support) + calibration.read_offset
    read = expected if logit is None else trust * logit + (1.0 - trust) * expected
    return read + evidence + support + manner - calibration.respelled * respelled


def relevance(points: float, calibration: Calibration) -> float:
    """The probability that the graph answers the query, judged by this hit alone, in (0, 1).

    Fitted on the best hits of questions that have an answer in their graph and of questions that belong
    to another one, both weighing the same: 0.5 is the strength that both have equally often.

    Source: Platt, "Probabilistic outputs for support vector machines", 1999.
    """
    exponent = calibration.scale * points + calibration.offset
    # Written for both signs, so that exp never overflows.
    if exponent >= 0:
        return 1.0 / (1.0 + math.exp(-exponent))
    power = math.exp(exponent)
    return power / (1.0 + power)


def tail_points(calibration: Calibration, floor: float) -> float:
    """How many points further hits may lie below the floor once the best one has passed it, at least 0.

    Where an answer exists, weaker pieces of evidence beside it are worth more than a clean list; in a small
    graph, whose floor is the least, nothing below it is evidence.
    """
    return calibration.tail * max(0.0, floor - calibration.least_floor) if math.isfinite(floor) else 0.0


def floor_points(calibration: Calibration, nodes: int, *, names_known: float | None = None) -> float:
    """The least `ranking_points` of a best hit that counts as an answer in a graph of this size.

        max(least_floor, points of `floor` + floor_growth * ln(nodes / REFERENCE_NODES)
            - known_names or + strange_names * share of names that the graph does not know)

    The more texts are searched, the better the best of the unrelated ones looks: on questions that
    belong to another conversation, the 95th percentile of the best hit rises by 1.5 points with each
    factor of e, from 5 to 900 nodes (docs/decisions/ranking.md). A fixed floor would be too strict for
    small graphs or too lax for large ones.

    A question whose every name occurs in the graph is about it before any text is looked at: its hits
    need less evidence. Of the questions to a foreign graph none is of that kind, of those to their own
    graph nearly all are.

    Args:
        calibration: The fitted numbers; a `floor` of 0 keeps everything, one of 1 nothing.
        nodes: Described nodes in the graph.
        names_known: Share of the question's names that the graph holds; None for one without names.
    """
    if not 0.0 < calibration.floor < 1.0:
        return -math.inf if calibration.floor <= 0.0 else math.inf
    odds = math.log(calibration.floor / (1.0 - calibration.floor))
    reference = (odds - calibration.offset) / calibration.scale
    growth = calibration.floor_growth * math.log(max(1, nodes) / REFERENCE_NODES)
    if names_known is None:
        shift = 0.0
    elif names_known >= 1.0:
        shift = -calibration.known_names
    else:
        shift = calibration.strange_names * (1.0 - names_known)
    return max(calibration.least_floor, reference + growth + shift)


def reading_trust(
    query: str, text: str, *, query_words: int, seen_characters: int, all_characters: int
) -> float:
    """How far the opinion of a cross-encoder for English web questions counts, in [0, 1].

        readable share * min(1, PLAIN_QUESTION_WORDS / query words) * max(LEAST_SEEN_TRUST, sqrt(seen / all))

    It counts less for scripts and languages that it cannot read, for questions of many words, which
    ask for several things that no single text answers, and for long texts of which it saw one passage:
    half of a text still counts for 0.71, and a passage of a book for one half, since it is the best one.

    Args:
        query: The question as the cross-encoder was given it; "" for one that reads every script.
        text: What it was given of the node; "" likewise.
        query_words: Distinct words of the question, stop words included.
        seen_characters: Length of the passage that it was given.
        all_characters: Length of the whole text, at least `seen_characters`.
    """
    seen = 1.0 if all_characters <= 0 else min(1.0, seen_characters / all_characters)
    plain = min(1.0, PLAIN_QUESTION_WORDS / max(1, query_words))
    readable = min(readable_share(query), readable_share(text))
    if is_foreign(query, text):
        readable *= FOREIGN_TRUST
    return readable * plain * max(LEAST_SEEN_TRUST, math.sqrt(seen))


def understood_share(query: str) -> float:
    """How much of a question an embedder for English understands, in [0, 1]."""
    return readable_share(query) * (FOREIGN_TRUST if is_foreign(query) else 1.0)


def pair_share(query: AnalysedQuery) -> float:
    """Which share of the informative words are pairs of Chinese or Japanese characters, in [0, 1]."""
    informative = [word for word in query.words if word.informative]
    return sum(map(_is_pair, informative)) / len(informative) if informative else 0.0


def _is_pair(word: QueryWord) -> bool:
    return len(word.surface) == 2 and is_han_or_kana(word.surface)


def relying_on_words(calibration: Calibration, share: float, *, pairs: float = 0.0) -> Calibration:
    """The formula for a question whose meaning is known to the embedder only in part.

    What meaning cannot tell, words must: the weight of the cosine moves to BM25. And of the pairs of
    characters that stand for the words of a script without spaces, every second one joins the ends of
    two words and is held by no text, so that `bm25 / ideal` is half of what it is elsewhere.

    Args:
        calibration: The fitted numbers.
        share: How much the embedder understands, in [0, 1]; 0 without an embedder.
        pairs: From `pair_share`.
    """
    return replace(
        calibration,
        bm25=(1.0 + pairs) * (calibration.bm25 + (1.0 - share) * calibration.cosine),
        cosine=share * calibration.cosine,
    )


def held_words(query: AnalysedQuery, held: Sequence[bool]) -> float:
    """How many informative words a text holds; a pair of Chinese or Japanese characters counts half."""
    return math.fsum(
        0.5 if _is_pair(word) else 1.0
        for word, has in zip(query.words, held, strict=True)
        if has and word.informative
    )


def floor_relief(held: float, calibration: Calibration) -> float:
    """By how many points a hit may miss the floor for the words that it holds, at least 0.

    Points count shares: of a claim of twelve words a good text holds the half, and reading tells little
    of long questions and texts. But half of twelve words is more than chance.

    Args:
        held: From `held_words`.
        calibration: The fitted numbers.
    """
    return calibration.held_words * max(0.0, held - CHANCE_WORDS)


@dataclass(frozen=True, slots=True, kw_only=True)
class FloorDecision:
    """Which hits stay, by position in the input, and how many fell below the floor."""

    kept: tuple[int, ...]
    below_floor: int


def apply_floor(
    points: Sequence[float], exact: Sequence[bool], *, floor: float, tail: float
) -> FloorDecision:
    """Drop what is not relevant.

    The floor is judged on the best hit: a query that the graph cannot answer has no hit above it and
    gets an empty list. A query that it can answer keeps the other hits down to `tail` points below the
    floor, since the best evidence often stands beside weaker pieces of it. Exact hits always stay.

    Args:
        points: From `ranking_points` with `floor_relief`, in any order.
        exact: For each whether it holds every informative word of the query, its key, or an exact
            identifier.
        floor: From `floor_points`.
        tail: In points, at least 0.
    """
    answered = max(points, default=-math.inf) >= floor
    bar = floor - tail if answered else math.inf
    kept = tuple(position for position, value in enumerate(points) if exact[position] or value >= bar)
    return FloorDecision(kept=kept, below_floor=len(points) - len(kept))
