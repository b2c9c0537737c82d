"""From evidence to relevance: how word, meaning, relationships and the cross-encoder join.

Everything here is a function of one (query, node) pair and of that node's relationships, never of the
other candidates: a score belongs to the pair, not to the company it is found in.
`benchmarks/quality/fit.py` fits the numbers of `Calibration`; docs/retrieval.md explains them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass


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
        floor: A recall whose best relevance is below this returns nothing.
        tail_floor: Further hits below this are dropped.
    """

    bm25: float = 4.0
    cosine: float = 6.0
    cosine_zero: float = 0.4
    support: float = 0.3
    context: float = 0.5
    read_slope: float = 3.0
    read_offset: float = -10.0
    scale: float = 0.6
    offset: float = 0.0
    floor: float = 0.3
    tail_floor: float = 0.05


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


def ranking_points(
    *, logit: float | None, trust: float, evidence: float, support: float, calibration: Calibration
) -> float:
    """The sum that orders the hits of one recall.

        trust * logit + (1 - trust) * (read_slope * evidence + read_offset) + evidence + support

    Args:
        logit: Of the cross-encoder; None when it did not run, the same as `trust` 0.
        trust: How much of the text the cross-encoder could read, in [0, 1]; see `reading_trust`.
        evidence: From `evidence_points`.
        support: From `support_points`.
        calibration: The fitted numbers.
    """
    expected = calibration.read_slope * (evidence + support) + calibration.read_offset
    read = expected if logit is None else trust * logit + (1.0 - trust) * expected
    return read + evidence + support


def relevance(points: float, calibration: Calibration) -> float:
    """The calibrated probability that a hit answers the query, in (0, 1).

    Source: Platt, "Probabilistic outputs for support vector machines", 1999.
    """
    exponent = calibration.scale * points + calibration.offset
    # Written for both signs, so that exp never overflows.
    if exponent >= 0:
        return 1.0 / (1.0 + math.exp(-exponent))
    power = math.exp(exponent)
    return power / (1.0 + power)


def reading_trust(query: str, text: str, *, seen_characters: int, all_characters: int) -> float:
    """How far the cross-encoder's opinion counts, in [0, 1].

    The bundled one reads Latin script only: the share of Latin letters in query and text, 0 below a
    half. Of a long text it saw one passage: the square root of the share that it saw, so that half a
    text still counts for 0.71.

    Args:
        query: The question as it was asked.
        text: What the cross-encoder was given.
        seen_characters: Length of the passage that it was given.
        all_characters: Length of the whole text, at least `seen_characters`.
    """
    latin = min(_latin_share(query), _latin_share(text))
    if latin < 0.5:
        return 0.0
    seen = 1.0 if all_characters <= 0 else min(1.0, seen_characters / all_characters)
    return latin * math.sqrt(seen)


def _latin_share(text: str) -> float:
    letters = [character for character in text[:2000] if character.isalpha()]
    if not letters:
        return 1.0
    # Latin letters, IPA and the extensions lie below U+0250 and in one later block.
    latin = sum(1 for letter in letters if letter < "\u0250" or "\u1e00" <= letter <= "\u1eff")
    return latin / len(letters)


@dataclass(frozen=True, slots=True, kw_only=True)
class FloorDecision:
    """Which hits stay, by position in the input, and how many fell below the floor."""

    kept: tuple[int, ...]
    below_floor: int


def apply_floor(
    relevances: Sequence[float], exact: Sequence[bool], *, floor: float, tail: float
) -> FloorDecision:
    """Drop what is not relevant.

    The floor is judged on the best hit: a query that the graph cannot answer has no hit above it and
    gets an empty list. A query that it can answer keeps the other hits above the lower `tail`, since
    the best evidence often stands beside weaker pieces of it. Exact hits always stay.

    Args:
        relevances: Calibrated, any order, each in [0, 1].
        exact: For each whether it holds every informative word of the query, its key, or an exact
            identifier.
        floor: In [0, 1].
        tail: In [0, floor]; larger values count as `floor`.
    """
    answered = max(relevances, default=0.0) >= floor
    bar = min(tail, floor) if answered else math.inf
    kept = tuple(position for position, value in enumerate(relevances) if exact[position] or value >= bar)
    return FloorDecision(kept=kept, below_floor=len(relevances) - len(kept))
