"""Collected candidates as arrays, and the ranking formula over all queries of a set at once.

`features.py` writes what is read here. The formula is that of `hivemem.retrieval.ranking`, written for
arrays; `check` compares both.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hivemem.retrieval.ranking import (
    CHANCE_WORDS,
    Calibration,
    Evidence,
    combined_logit,
    evidence_points,
    floor_points,
    manner_points,
    ranking_points,
    relying_on_words,
    support_points,
    tail_points,
)
from hivemem.service.cross_reading import RerankLimits

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

CONVERSATIONS = ("locomo", "realtalk")
"""Scored by the mean over categories, on the queries of LMEB; the others by the mean over queries."""

_CHARACTERS_A_TOKEN = 4


@dataclass(slots=True, kw_only=True)
class Candidates:
    """The queries of one set (rows) with their candidates (columns, padded), in first-stage order.

    `here` marks real candidates. `beside_*` have a third axis, the neighbours. Logits are NaN where the
    cross-encoder did not read, cosines where there is no vector.
    """

    name: str
    query: list[str]
    graph: list[str]
    category: list[str]
    answerable: Flags
    counted: Flags
    ideal: Floats
    nodes: Floats
    names_known: list[float | None]
    understood: Floats
    pairs: Floats
    here: Flags
    grade: Floats
    bm25: Floats
    cosine: Floats
    beside_bm25: Floats
    beside_cosine: Floats
    rrf: Floats
    respelled: Floats
    own: Floats
    context: Floats
    trust: Floats
    held: Floats
    asks: Flags
    follows_question: Flags
    exact: Flags
    alone_tokens: Floats
    among_tokens: Floats

    @classmethod
    def read(cls, path: Path) -> Candidates:
        """The candidates of one file of `features.py`."""
        rows = [json.loads(line) for line in path.read_text().splitlines()]
        return cls._of(path.stem, [row for row in rows if row["candidates"]])

    @classmethod
    def _of(cls, name: str, rows: Sequence[Mapping[str, Any]]) -> Candidates:
        width = max(len(row["candidates"]) for row in rows)
        deep = max(1, *(len(c["beside"]) for row in rows for c in row["candidates"]))

        def column(field: str, empty: float = np.nan) -> Floats:
            out = np.full((len(rows), width), empty)
            for i, row in enumerate(rows):
                values = [c[field] for c in row["candidates"]]
                out[i, : len(values)] = [np.nan if value is None else value for value in values]
            return out

        beside = np.full((2, len(rows), width, deep), np.nan)
        for i, row in enumerate(rows):
            for j, candidate in enumerate(row["candidates"]):
                for k, (_, bm25, cosine, _) in enumerate(candidate["beside"]):
                    beside[:, i, j, k] = bm25, np.nan if cosine is None else cosine
        asked = np.array([[row["query_characters"]] for row in rows], float)
        return cls(
            name=name,
            query=[row["query"] for row in rows],
            graph=[row["graph"] for row in rows],
            category=[row["category"] for row in rows],
            answerable=np.array([row["answerable"] for row in rows]),
            counted=np.array([row["counted"] for row in rows]),
            ideal=np.array([float(_dcg(np.array([row["gold"][:10]]))[0]) for row in rows]),
            nodes=np.array([row["nodes"] for row in rows], float),
            names_known=[row["names_known"] for row in rows],
            understood=np.array([row["understood"] for row in rows], float),
            pairs=np.array([row["pairs"] for row in rows], float),
            here=~np.isnan(column("grade")),
            grade=column("grade", 0.0),
            bm25=column("bm25", 0.0),
            cosine=column("cosine"),
            beside_bm25=beside[0],
            beside_cosine=beside[1],
            rrf=np.nan_to_num(column("rrf")),
            respelled=column("respelled", 0.0),
            own=column("own"),
            context=column("context"),
            trust=column("trust", 0.0),
            held=column("held", 0.0),
            asks=column("asks", 0.0) > 0,
            follows_question=column("follows_question", 0.0) > 0,
            exact=column("exact", 0.0) > 0,
            alone_tokens=(asked + column("text_characters", 0.0)) / _CHARACTERS_A_TOKEN,
            among_tokens=(asked + column("among_characters", 0.0)) / _CHARACTERS_A_TOKEN,
        )

    def part(self, rows: Flags) -> Candidates:
        """The queries for which `rows` is true."""
        chosen = np.flatnonzero(rows)
        taken: dict[str, Any] = {"name": self.name}
        for field in self.__dataclass_fields__:
            value = getattr(self, field)
            if isinstance(value, np.ndarray):
                taken[field] = value[chosen]
            elif isinstance(value, list):
                taken[field] = [value[i] for i in chosen]
        return Candidates(**taken)


def evidence(s: Candidates, c: Calibration, bm25: Floats, cosine: Floats) -> Floats:
    """`evidence_points` with the weights of `relying_on_words`; 0 where `bm25` is NaN."""
    ones = [1] * (bm25.ndim - 1)
    share, pairs = s.understood.reshape(-1, *ones), s.pairs.reshape(-1, *ones)
    near = np.maximum(0.0, np.nan_to_num(cosine, nan=-1.0) - c.cosine_zero)
    weight = (1 + pairs) * (c.bm25 + (1 - share) * c.cosine)
    return np.nan_to_num(weight * bm25) + share * c.cosine * near


def first_points(s: Candidates, c: Calibration) -> Floats:
    """Evidence and support, what the first stage orders by; -inf beyond the candidates."""
    own = evidence(s, c, s.bm25, s.cosine)
    beside = np.sort(evidence(s, c, s.beside_bm25, s.beside_cosine), axis=2)[:, :, -2:]
    return np.where(s.here, own + c.support * beside.sum(axis=2), -np.inf)


def points(s: Candidates, c: Calibration, limits: RerankLimits | None = None) -> Floats:
    """`ranking_points` of every candidate, read as far as the limits allow; -inf beyond the candidates."""
    limits = limits or RerankLimits()
    first = first_points(s, c)
    own, left = _within(first, s.own, s.alone_tokens, limits.depth, np.full(len(first), limits.tokens), 5)
    alone = np.where(np.isnan(own), -np.inf, _joined(s, c, first, own))
    context, _ = _within(alone, s.context, s.among_tokens, limits.context_depth, left, 0)
    both = np.where(np.isnan(context) | np.isnan(own), own, (1 - c.context) * own + c.context * context)
    return np.where(s.here, _joined(s, c, first, both), -np.inf)


def _within(
    order: Floats, logit: Floats, tokens: Floats, depth: int, budget: Floats, always: int
) -> tuple[Floats, Floats]:
    """Logits of the `depth` best by `order` whose tokens fit, NaN for the rest; and what is left."""
    best = np.argsort(-order, axis=1, kind="stable")
    cost = np.where(np.isneginf(order), 0.0, tokens)
    spent = np.cumsum(np.take_along_axis(cost, best, axis=1), axis=1)
    rank = np.arange(order.shape[1])
    reads = (rank < depth) & ((spent <= budget[:, None]) | (rank < always))
    read = np.zeros_like(reads)
    np.put_along_axis(read, best, reads, axis=1)
    left = budget - np.sum(np.where(read, cost, 0.0), axis=1)
    return np.where(read & ~np.isneginf(order), logit, np.nan), left


def _joined(s: Candidates, c: Calibration, first: Floats, logit: Floats) -> Floats:
    expected = c.read_slope * first + c.read_offset
    weight = np.where(np.isnan(logit), 0.0, s.trust)
    read = weight * np.nan_to_num(logit) + (1 - weight) * expected
    manner = c.answers * s.follows_question - c.asks * s.asks
    return read + first + manner - c.respelled * s.respelled


def ndcg(s: Candidates, order: Floats, kept: Flags | None = None) -> Floats:
    """nDCG@10 of each query when its candidates are sorted by `order` and only those `kept` are returned."""
    value = np.where(s.here if kept is None else s.here & kept, order, -np.inf)
    best = np.argsort(-value, axis=1, kind="stable")[:, :10]
    gains = np.take_along_axis(np.where(np.isneginf(value), 0.0, s.grade), best, axis=1)
    return _dcg(gains) / np.maximum(s.ideal, 1e-9)


def _dcg(gains: Floats) -> Floats:
    return (gains / np.log2(np.arange(2, 2 + gains.shape[1]))).sum(axis=1)


def score(s: Candidates, per_query: Floats) -> float:
    """The figure a set is judged by: macro for conversations, else micro."""
    asked = s.answerable & s.counted
    if s.name not in CONVERSATIONS:
        return float(per_query[asked].mean())
    category = np.array(s.category)
    return float(np.mean([per_query[asked & (category == one)].mean() for one in sorted({*category[asked]})]))


def floors(s: Candidates, c: Calibration) -> Floats:
    """`floor_points` for each query."""
    return np.array(
        [
            floor_points(c, int(nodes), names_known=known)
            for nodes, known in zip(s.nodes, s.names_known, strict=True)
        ]
    )


def eased(s: Candidates, value: Floats, c: Calibration) -> Floats:
    """Points with `floor_relief`, as the floor judges them."""
    return value + c.held_words * np.maximum(0.0, s.held - CHANCE_WORDS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Floored:
    """What the floor leaves of a set: the score, and shares of queries (None where a set has none)."""

    score: float
    answered: float | None
    lost: float


def floored(s: Candidates, c: Calibration, limits: RerankLimits | None = None) -> Floored:
    """The score with the floor, the unanswerable questions answered, and those that lose all gold to it."""
    value = points(s, c, limits)
    floor = floors(s, c)
    tail = np.array([tail_points(c, one) for one in floor])
    judged = eased(s, value, c)
    passed = judged.max(axis=1) >= floor
    kept = s.here & (s.exact | (passed[:, None] & (judged >= (floor - tail)[:, None])))
    top = np.argsort(-value, axis=1, kind="stable")[:, :10]
    gold = np.take_along_axis(s.grade > 0, top, axis=1)
    before = gold.any(axis=1)
    after = (gold & np.take_along_axis(kept, top, axis=1)).any(axis=1)
    foreign = ~s.answerable
    return Floored(
        score=score(s, ndcg(s, value, kept)),
        answered=float(kept.any(axis=1)[foreign].mean()) if foreign.any() else None,
        lost=float((before & ~after)[s.answerable].mean()),
    )


def check(s: Candidates, c: Calibration) -> None:
    """Compare arrays and the product's own functions on the first candidates of the first queries.

    Raises:
        AssertionError: They differ.
    """
    everything = RerankLimits(depth=10_000, context_depth=10_000, tokens=10_000_000)
    ours = points(s, c, everything)
    for i in range(min(20, len(s.query))):
        weights = relying_on_words(c, float(s.understood[i]), pairs=float(s.pairs[i]))
        for j in np.flatnonzero(s.here[i])[:5]:

            def told(bm25: float, cosine: float, weights: Calibration = weights) -> float:
                near = None if np.isnan(cosine) else float(cosine)
                return evidence_points(Evidence(cosine=near, bm25=float(bm25), ideal=1.0), weights)

            beside = [
                told(b, n)
                for b, n in zip(s.beside_bm25[i, j], s.beside_cosine[i, j], strict=True)
                if not np.isnan(b)
            ]
            own, context = (None if np.isnan(v[i, j]) else float(v[i, j]) for v in (s.own, s.context))
            theirs = ranking_points(
                logit=combined_logit(own, None if own is None else context, c),
                trust=float(s.trust[i, j]),
                evidence=told(s.bm25[i, j], s.cosine[i, j]),
                support=support_points(beside, weights),
                respelled=float(s.respelled[i, j]),
                manner=manner_points(
                    asks=bool(s.asks[i, j]), follows_question=bool(s.follows_question[i, j]), calibration=c
                ),
                calibration=c,
            )
            if abs(theirs - ours[i, j]) > 1e-6:
                raise AssertionError(
                    f"{s.name} {s.query[i]}: {ours[i, j]} here, {theirs} in the product; mend candidates.py."
                )
