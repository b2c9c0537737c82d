"""The first stage of recall: both text legs, their fusion, and one step along the relationships.

Everything but the models, in one call on the projection of a graph: no storage, no waiting. It works on
node numbers; keys and texts' places are looked up for the candidates that are handed on.
"""

from __future__ import annotations

import itertools
import time
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hivemem.projection.adjacency import Link
from hivemem.projection.arrays import largest_first
from hivemem.projection.graph_index import GraphIndex, GraphParts
from hivemem.projection.hits import Neighbour, PassageHit, TermScore
from hivemem.projection.postings import QueryPlan
from hivemem.projection.vectors import BestPassages
from hivemem.retrieval.analyse import AnalysedQuery
from hivemem.retrieval.evidence import evidence_of_nodes
from hivemem.retrieval.fuse import reciprocal_rank_fusion
from hivemem.retrieval.ranking import Calibration, support_points

LEG_DEPTH = 100
"""Hits that each leg hands to the fusion."""

SPREADING = 40
"""The best candidates by their own evidence, whose neighbours become candidates as well."""

MAX_NEIGHBOURS = 4
HUB_DEGREE = 32
"""A node with more relationships neither gives nor gets support: it is beside everything."""


class Candidate(NamedTuple):
    """A node that may answer, with all that is known before the cross-encoder reads it.

    `points` come from its own text, `support` from its neighbours; both in logit points.
    `rrf` is None for a node that no text leg returned. `respelled` is the share of the informative
    words that it holds in another spelling or form alone. `revision` is that of the node whose text
    this is about.
    """

    key: str
    points: float
    support: float
    rrf: float | None
    respelled: float
    terms: TermScore
    passage: PassageHit | None
    neighbours: tuple[Neighbour, ...]
    revision: int

    def without_evidence(self) -> Candidate:
        """The same node when its text is not the one that was searched any more."""
        none = (False,) * len(self.terms.held)
        terms = self.terms._replace(bm25=0.0, held=none, as_spelled=none)
        return self._replace(points=0.0, rrf=None, respelled=0.0, terms=terms, passage=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Leg:
    """What one retriever did: `hits` is None when it did not run."""

    hits: int | None
    milliseconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstStage:
    """Candidates by `points + support`, best first, ties by key; and how they were found.

    `names_known` is the share of the question's names that occur in the graph; None for one without names.
    """

    candidates: tuple[Candidate, ...]
    names_known: float | None
    fused: int
    bm25: Leg
    dense: Leg
    milliseconds: float


class TextLegs(NamedTuple):
    """What both text legs found: nodes by BM25, best passages, and all nodes in order with their RRF score.

    Milliseconds are those of each leg. `dense` is None without a vector.
    """

    bm25: NDArray[np.intp]
    bm25_scores: NDArray[np.float64]
    dense: BestPassages | None
    nodes: NDArray[np.intp]
    rrf: NDArray[np.float64]
    bm25_ms: float
    dense_ms: float


def text_legs(graph: GraphParts, plan: QueryPlan, vector: NDArray[np.float32] | None) -> TextLegs:
    """Search by word and by meaning, and join both lists by rank."""
    started = time.perf_counter()
    nodes, scores = graph.postings.best(plan, LEG_DEPTH)
    after_bm25 = time.perf_counter()
    dense = None if vector is None else graph.vectors.best(vector, LEG_DEPTH)
    after_dense = time.perf_counter()
    fused, rrf = reciprocal_rank_fusion([nodes] if dense is None else [nodes, dense.nodes])
    return TextLegs(
        nodes,
        scores,
        dense,
        fused,
        rrf,
        1000 * (after_bm25 - started),
        1000 * (after_dense - after_bm25),
    )


def first_stage(
    index: GraphIndex,
    query: AnalysedQuery,
    vector: NDArray[np.float32] | None,
    calibration: Calibration,
    *,
    named: str | None = None,
    keep: int | None = None,
) -> FirstStage:
    """Search by word and by meaning, fuse, and step once along the relationships.

    Args:
        index: The graph, brought up to date by the caller.
        query: The analysed question.
        vector: Its embedding, shape (dimension,); None leaves the dense leg out.
        calibration: Weights of the evidence.
        named: A key; its node is a candidate in any case, if it is described.
        keep: How many of the best candidates are returned beside that one; all by default.
    """
    started = time.perf_counter()
    with index.reading() as graph:
        plan = graph.postings.plan(query)
        legs = text_legs(graph, plan, vector)
        scored = _Scored(graph, plan, vector, calibration, legs)
        related = _spread(graph, scored)
        chosen = _named(graph, named)
        scored.add(chosen)
        candidates = _candidates(graph, query, plan, legs, scored, related, calibration, chosen, keep)
    return FirstStage(
        candidates=candidates,
        names_known=_names_known(plan, query),
        fused=len(legs.nodes),
        bm25=Leg(hits=len(legs.bm25), milliseconds=legs.bm25_ms),
        dense=Leg(hits=None if legs.dense is None else len(legs.dense.nodes), milliseconds=legs.dense_ms),
        milliseconds=1000 * (time.perf_counter() - started),
    )


class _Scored:
    """The exact evidence of each node that was asked about; those of the legs first, in their order.

    Arrays of one length: the `nodes`, their `points` and `bm25`, the `cosine` of the best passage (NaN for a
    node without vectors) and the `row` where it lies (-1).
    """

    def __init__(
        self,
        graph: GraphParts,
        plan: QueryPlan,
        vector: NDArray[np.float32] | None,
        calibration: Calibration,
        legs: TextLegs,
    ) -> None:
        self._graph = graph
        self._plan = plan
        self._vector = vector
        self._calibration = calibration
        self.nodes = legs.nodes
        self.place = dict(zip(legs.nodes.tolist(), range(len(legs.nodes)), strict=True))
        self.bm25 = np.zeros(len(legs.nodes))
        unscored = np.ones(len(legs.nodes), dtype=np.bool_)
        by_word = np.searchsorted(legs.nodes, legs.bm25)
        self.bm25[by_word] = legs.bm25_scores
        unscored[by_word] = False
        self.bm25[unscored] = graph.postings.scores_of(plan, legs.nodes[unscored])
        self.cosine = np.full(len(legs.nodes), np.nan)
        self.row = np.full(len(legs.nodes), -1, dtype=np.intp)
        if vector is not None and legs.dense is not None:
            _note(legs.dense, self.nodes, self.cosine, self.row)
            unseen = legs.nodes[self.row < 0]
            _note(graph.vectors.best_of(vector, unseen), self.nodes, self.cosine, self.row)
        self.points = self._evidence(self.bm25, self.cosine)

    def add(self, nodes: set[int]) -> None:
        """Score the nodes that are new."""
        fresh = np.array(sorted(nodes - self.place.keys()), dtype=np.intp)
        if not len(fresh):
            return
        known = len(self.nodes)
        self.place.update(zip(fresh.tolist(), range(known, known + len(fresh)), strict=True))
        bm25 = self._graph.postings.scores_of(self._plan, fresh)
        cosine, row = np.full(len(fresh), np.nan), np.full(len(fresh), -1, dtype=np.intp)
        if self._vector is not None:
            _note(self._graph.vectors.best_of(self._vector, fresh), fresh, cosine, row)
        self.nodes = np.concatenate((self.nodes, fresh))
        self.bm25 = np.concatenate((self.bm25, bm25))
        self.cosine = np.concatenate((self.cosine, cosine))
        self.row = np.concatenate((self.row, row))
        self.points = np.concatenate((self.points, self._evidence(bm25, cosine)))

    def best_first(self, points: NDArray[np.float64], count: int | None) -> list[int]:
        """Places of the nodes with the most points, most first, ties by key."""
        numbers = self._graph.numbers
        return largest_first(
            points, len(points) if count is None else count, lambda at: numbers.key(int(self.nodes[at]))
        )

    def _evidence(self, bm25: NDArray[np.float64], cosine: NDArray[np.float64]) -> NDArray[np.float64]:
        meaning = None if self._vector is None else cosine
        return evidence_of_nodes(bm25, self._plan.ideal, meaning, self._calibration)


def _note(
    found: BestPassages, nodes: NDArray[np.intp], cosine: NDArray[np.float64], row: NDArray[np.intp]
) -> None:
    """Keep the best passages of some of `nodes`, which are in order."""
    places = np.searchsorted(nodes, found.nodes)
    cosine[places] = found.scores
    row[places] = found.rows


def _spread(graph: GraphParts, scored: _Scored) -> dict[int, dict[int, Link]]:
    """The neighbours of the best candidates, by node and both ways; their evidence is scored too."""
    best = scored.nodes[scored.best_first(scored.points, SPREADING)]
    adjacency = graph.adjacency
    best = best[adjacency.degrees_of(best) <= HUB_DEGREE].tolist()
    links = adjacency.links(best, MAX_NEIGHBOURS)
    others = np.array([link.node for of_node in links for link in of_node], dtype=np.intp)
    # A node that is not described yet has nothing to give, and nothing to be read.
    takes_part = (adjacency.degrees_of(others) <= HUB_DEGREE) & graph.postings.holds(others)
    partners = set(others[takes_part].tolist())
    related: dict[int, dict[int, Link]] = defaultdict(dict)
    for node, of_node in zip(best, links, strict=True):
        for link in of_node:
            if link.node in partners:
                related[node].setdefault(link.node, link)
    scored.add(partners)
    for node, of_node in list(related.items()):
        for other, link in of_node.items():
            of_other = related[other]
            if node not in of_other:
                of_other[node] = Link(link.row, node, not link.outgoing, link.strength)
    return related


def _candidates(
    graph: GraphParts,
    query: AnalysedQuery,
    plan: QueryPlan,
    legs: TextLegs,
    scored: _Scored,
    related: Mapping[int, Mapping[int, Link]],
    calibration: Calibration,
    chosen: set[int],
    keep: int | None,
) -> tuple[Candidate, ...]:
    place = scored.place
    points = scored.points.tolist()
    support = [0.0] * len(points)
    for node, others in related.items():
        support[place[node]] = support_points([points[place[other]] for other in others], calibration)
    best = scored.best_first(scored.points + np.array(support), keep)
    best += {place[node] for node in chosen}.difference(best)
    nodes = scored.nodes[best]
    numbers: list[int] = nodes.tolist()
    terms = graph.postings.described(plan, nodes, scored.bm25[best].tolist())
    row = scored.row[best]
    embedded = row >= 0
    passages = iter(
        graph.vectors.described(
            BestPassages(nodes[embedded], scored.cosine[best][embedded], row[embedded]),
        )
    )
    rrf = legs.rrf.tolist()
    beside = [list(related[node].values()) if node in related else [] for node in numbers]
    neighbours = iter(graph.adjacency.named([link for links in beside for link in links]))
    return tuple(
        Candidate(
            key,
            points[at],
            support[at],
            rrf[at] if at < len(rrf) else None,
            _respelled_share(query, of_node),
            of_node,
            next(passages) if has_passage else None,
            tuple(itertools.islice(neighbours, len(links))),
            revision,
        )
        for at, links, key, of_node, has_passage, revision in zip(
            best,
            beside,
            graph.numbers.keys(numbers),
            terms,
            embedded.tolist(),
            graph.revisions.of(numbers),
            strict=True,
        )
    )


def _named(graph: GraphParts, key: str | None) -> set[int]:
    """The node of a key, if there is one that is described."""
    node = None if key is None else graph.numbers.find(key)
    if node is None or not graph.postings.holds(np.array([node], dtype=np.intp))[0]:
        return set()
    return {node}


def _names_known(plan: QueryPlan, query: AnalysedQuery) -> float | None:
    known = [known for named, known in zip(query.names, plan.known, strict=True) if named]
    return sum(known) / len(known) if known else None


def _respelled_share(query: AnalysedQuery, terms: TermScore) -> float:
    if terms.held == terms.as_spelled:
        return 0.0
    informative = respelled = 0
    for word, held, as_spelled in zip(query.words, terms.held, terms.as_spelled, strict=True):
        if word.informative:
            informative += 1
            respelled += held and not as_spelled
    return respelled / informative if respelled else 0.0
