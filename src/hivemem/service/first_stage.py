"""The first stage of recall: both text legs, their fusion, and one step along the relationships.

Everything but the models, in one call on the projection of a graph: no storage, no waiting.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hivemem.projection.graph_index import GraphIndex
from hivemem.projection.hits import Neighbour, PassageHit, TermScore
from hivemem.retrieval.analyse import AnalysedQuery
from hivemem.retrieval.fuse import FusedHit, reciprocal_rank_fusion
from hivemem.retrieval.ranking import Calibration, Evidence, evidence_points, support_points

LEG_DEPTH = 100
"""Hits that each leg hands to the fusion."""

SPREADING = 40
"""The best candidates by their own evidence, whose neighbours become candidates as well."""

MAX_NEIGHBOURS = 4
HUB_DEGREE = 32
"""A node with more relationships neither gives nor gets support: it is beside everything."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A node that may answer, with all that is known before the cross-encoder reads it.

    `points` come from its own text, `support` from its neighbours; both in logit points.
    `rrf` is None for a node that no text leg returned. `respelled` is the share of the informative
    words that it holds in another spelling or form alone.
    """

    key: str
    points: float
    support: float
    rrf: float | None
    respelled: float
    terms: TermScore
    passage: PassageHit | None
    neighbours: tuple[Neighbour, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Leg:
    """What one retriever did: `hits` is None when it did not run."""

    hits: int | None
    milliseconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstStage:
    """Candidates by `points + support`, best first, ties by key; and how they were found.

    `names_known` says whether all that the question names occurs in the graph; None when it names nothing.
    """

    candidates: tuple[Candidate, ...]
    names_known: bool | None
    fused: int
    bm25: Leg
    dense: Leg
    milliseconds: float


def first_stage(
    index: GraphIndex,
    query: AnalysedQuery,
    vector: NDArray[np.float32] | None,
    calibration: Calibration,
    *,
    keep: int | None = None,
) -> FirstStage:
    """Search by word and by meaning, fuse, and step once along the relationships.

    Args:
        index: The graph, brought up to date by the caller.
        query: The analysed question.
        vector: Its embedding, shape (dimension,); None leaves the dense leg out.
        calibration: Weights of the evidence.
        keep: How many of the best candidates are returned; all by default.
    """
    started = time.perf_counter()
    bm25_hits = index.search_terms(query, LEG_DEPTH)
    after_bm25 = time.perf_counter()
    dense_hits = [] if vector is None else index.search_vectors(vector, LEG_DEPTH)
    after_dense = time.perf_counter()
    fused = reciprocal_rank_fusion(
        {"bm25": [hit.key for hit in bm25_hits], "dense": [hit.key for hit in dense_hits]}
    )
    scored = _Scored(index, query, vector, calibration, known={hit.key: hit for hit in dense_hits})
    scored.add(hit.key for hit in fused)
    related = _spread(index, scored)
    candidates = _candidates(query, fused, scored, related, calibration, keep)
    return FirstStage(
        candidates=candidates,
        names_known=_names_known(index, query),
        fused=len(fused),
        bm25=Leg(hits=len(bm25_hits), milliseconds=1000 * (after_bm25 - started)),
        dense=Leg(
            hits=None if vector is None else len(dense_hits),
            milliseconds=1000 * (after_dense - after_bm25),
        ),
        milliseconds=1000 * (time.perf_counter() - started),
    )


class _Scored:
    """The exact evidence of each node that was asked about. `known` are hits of the dense leg."""

    def __init__(
        self,
        index: GraphIndex,
        query: AnalysedQuery,
        vector: NDArray[np.float32] | None,
        calibration: Calibration,
        known: dict[str, PassageHit],
    ) -> None:
        self._index = index
        self._query = query
        self._vector = vector
        self._calibration = calibration
        self.terms: dict[str, TermScore] = {}
        self.passages = known
        self.points: dict[str, float] = {}

    def add(self, keys: Iterable[str]) -> None:
        """Score the keys that are new."""
        fresh = [key for key in keys if key not in self.points]
        if not fresh:
            return
        self.terms.update(self._index.score_terms(self._query, fresh))
        if self._vector is not None:
            unseen = [key for key in fresh if key not in self.passages]
            self.passages.update(self._index.cosine(self._vector, unseen))
        for key in fresh:
            terms, passage = self.terms[key], self.passages.get(key)
            self.points[key] = evidence_points(
                Evidence(
                    cosine=None if passage is None else passage.score, bm25=terms.bm25, ideal=terms.ideal
                ),
                self._calibration,
            )


def _spread(index: GraphIndex, scored: _Scored) -> dict[str, dict[str, Neighbour]]:
    """The neighbours of the best candidates, by node and both ways; their evidence is scored too."""
    best = sorted(scored.points, key=lambda key: (-scored.points[key], key))[:SPREADING]
    related: dict[str, dict[str, Neighbour]] = defaultdict(dict)
    for key in best:
        if index.degree(key) > HUB_DEGREE:
            continue
        for neighbour in index.neighbours(key, MAX_NEIGHBOURS):
            if index.degree(neighbour.key) <= HUB_DEGREE:
                related[key].setdefault(neighbour.key, neighbour)
    scored.add([other for others in related.values() for other in others])
    for key, others in list(related.items()):
        for other, neighbour in others.items():
            related[other].setdefault(key, _reversed(neighbour, key))
    return related


def _reversed(neighbour: Neighbour, key: str) -> Neighbour:
    return Neighbour(
        edge_id=neighbour.edge_id,
        kind=neighbour.kind,
        key=key,
        relationship=neighbour.relationship,
        direction="incoming" if neighbour.direction == "outgoing" else "outgoing",
        strength=neighbour.strength,
    )


def _candidates(
    query: AnalysedQuery,
    fused: list[FusedHit],
    scored: _Scored,
    related: Mapping[str, Mapping[str, Neighbour]],
    calibration: Calibration,
    keep: int | None,
) -> tuple[Candidate, ...]:
    rrf = {hit.key: hit.score for hit in fused}
    support = {
        key: support_points([scored.points[other] for other in others], calibration)
        for key, others in related.items()
    }
    best = sorted(scored.points, key=lambda key: (-(scored.points[key] + support.get(key, 0.0)), key))
    return tuple(
        Candidate(
            key=key,
            points=scored.points[key],
            support=support.get(key, 0.0),
            rrf=rrf.get(key),
            respelled=_respelled_share(query, scored.terms[key]),
            terms=scored.terms[key],
            passage=scored.passages.get(key),
            neighbours=tuple(related[key].values()) if key in related else (),
        )
        for key in best[:keep]
    )


def _names_known(index: GraphIndex, query: AnalysedQuery) -> bool | None:
    names = query.names
    if not any(names):
        return None
    return all(known for named, known in zip(names, index.known_words(query), strict=True) if named)


def _respelled_share(query: AnalysedQuery, terms: TermScore) -> float:
    informative = respelled = 0
    for word, held, as_spelled in zip(query.words, terms.held, terms.as_spelled, strict=True):
        if word.informative:
            informative += 1
            respelled += held and not as_spelled
    return respelled / informative if respelled else 0.0
