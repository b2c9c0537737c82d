"""hm_recall: what the graph knows about a question.

    analyse -> legs, fusion, one step along relationships (`first_stage`) -> cross-encoder
    (`cross_reading`) -> relevance and floor (`hivemem.retrieval.ranking`) -> session -> expand

Model work waits in the bounded executor, index work runs in a thread; the event loop never blocks. A
part that fails or runs out of time is left out, and `_search_meta.degraded` says so.
"""

from __future__ import annotations

import asyncio
import functools
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hivemem.domain.access import Principal
from hivemem.domain.graph import GraphId
from hivemem.domain.keys import normalise_key
from hivemem.domain.node import EnrichmentStatus, Node
from hivemem.domain.text import JsonObject, storable_text
from hivemem.errors import HivememError, InvalidInput, Overloaded
from hivemem.models.executor import ModelExecutor
from hivemem.ports.clock import Clock
from hivemem.ports.observer import Observers
from hivemem.ports.store import Store
from hivemem.projection.graph_index import GraphIndex
from hivemem.projection.hot_graphs import HotGraphs
from hivemem.retrieval.analyse import AnalysedQuery, analyse_query
from hivemem.retrieval.explain import holds_every_word, holds_identifier, reasons
from hivemem.retrieval.operators import without_operators
from hivemem.retrieval.ranking import (
    Calibration,
    apply_floor,
    combined_logit,
    floor_points,
    floor_relief,
    held_words,
    manner_points,
    pair_share,
    ranking_points,
    relevance,
    relying_on_words,
    tail_points,
    understood_share,
)
from hivemem.retrieval.session import session_boost
from hivemem.service.cross_reading import CrossReading, ReadCandidate, RerankLimits
from hivemem.service.first_stage import FirstStage, first_stage
from hivemem.service.limits import DEFAULT_SESSION, Limits, checked_session_id
from hivemem.service.pattern_search import PatternSearch
from hivemem.service.recall_trace import Trace, milliseconds, search_meta
from hivemem.service.session_touches import SessionTouches
from hivemem.service.shared_reading import ReadingSide, SharedReading

MAX_RESULTS = 50
MAX_EXPANSIONS = 5
KEY_POINTS = 40.0

_QUICK_RELATIONSHIPS = 500
"""Of so many the strongest are found in less time than a thread takes to begin."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallRequest:
    """A question to a graph. With `force_regex`, `query` is a regular expression."""

    query: str
    max_results: int = 10
    session_id: str = DEFAULT_SESSION
    force_regex: bool = False
    organization_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Expansion:
    """One of a hit's strongest relationships; `direction` is `outgoing` or `incoming` seen from the hit."""

    direction: str
    key: str
    relationship: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallHit:
    """A memory that answers. `score` in [0, 1] orders the hits of one answer.

    `scores` holds `relevance` in [0, 1] and, where they exist, `dense` (cosine), `bm25` (at least 0)
    and `rrf`. `expansion_omitted` counts the relationships that are not in `expansion`.
    """

    node: Node
    score: float
    scores: Mapping[str, float]
    expansion: tuple[Expansion, ...]
    expansion_omitted: int
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallResult:
    """The hits, best first, and how they were found.

    `dropped` are the keys that the floor took from the first `max_results`; they are for measuring and
    never part of an answer.
    """

    hits: tuple[RecallHit, ...]
    meta: JsonObject
    warnings: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ranked:
    read: ReadCandidate
    relevance: float
    points: float
    relief: float
    exact: bool

    def order(self, boosts: Mapping[str, float]) -> tuple[float, float, str]:
        """Sorts by the final score, then by what tells saturated scores apart, then by key."""
        key = self.read.node.key
        return (-min(1.0, self.relevance + boosts.get(key, 0.0)), -self.points, key)


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """All that is known of a question before ranking and floor; `reads` in first-stage order."""

    analysed: AnalysedQuery
    index: GraphIndex
    vector: NDArray[np.float32] | None
    stage: FirstStage
    reads: list[ReadCandidate]


class Recall:
    """Answers questions from one database.

    Args:
        store: The truth.
        hot: The search indexes.
        executor: The models.
        clock: For session touches.
        limits: Sizes of requests.
        calibration: The fitted ranking formula.
        rerank: How much the cross-encoder reads.
        regex_seconds: Time limit of a pattern search.
        touches: Shared with the other use cases of the process; own ones when omitted.
        observers: Told of each step: `recall.index`, `first_stage`, `fetch` and `rerank`.
    """

    def __init__(
        self,
        *,
        store: Store,
        hot: HotGraphs,
        executor: ModelExecutor,
        clock: Clock,
        limits: Limits,
        calibration: Calibration,
        rerank: RerankLimits,
        regex_seconds: float = 5.0,
        touches: SessionTouches | None = None,
        observers: Observers | None = None,
    ) -> None:
        self._store = store
        self._hot = hot
        self._executor = executor
        self._observers = observers or Observers()
        self._touches = touches or SessionTouches(store=store, clock=clock)
        self._limits = limits
        self._calibration = calibration
        self._reading = CrossReading(
            store=store,
            executor=executor,
            limits=rerank,
            points=self._points,
            english=calibration.english_reranker,
        )
        self._rerank = rerank
        self._patterns = PatternSearch(store=store, max_seconds=regex_seconds)

    async def recall(
        self, principal: Principal, request: RecallRequest, *, shared: ReadingSide | None = None
    ) -> RecallResult:
        """The memories in `principal.graph_id` that answer, best first; none when nothing is relevant.

        Args:
            principal: The caller at the graph to search.
            request: The question; `organization_memory` is what heeds its `organization_id`.
            shared: With a search of another graph that runs at the same time.

        Raises:
            InvalidInput: A blank or too long query, `max_results` outside 1 to 50, a bad pattern.
            Overloaded: The model queue is full.
            Unavailable: The store does not answer.
        """
        trace = Trace()
        query, session_id = self._checked(request)
        graph_id = principal.graph_id
        if request.force_regex:
            result = await self._recall_pattern(graph_id, query, request.max_results, trace)
        else:
            await self._touches.written()
            result = await self._recall_text(graph_id, query, request.max_results, session_id, trace, shared)
        if principal.keeps_conversations:
            self._touches.record(graph_id, session_id, [hit.node.key for hit in result.hits])
        return result

    def shared_reading(self) -> SharedReading:
        """What the searches of one question in two graphs share."""
        return SharedReading(self._rerank)

    async def close(self) -> None:
        """Wait until the session touches of answered recalls are stored."""
        await self._touches.written()

    def _checked(self, request: RecallRequest) -> tuple[str, str]:
        query = storable_text(request.query, "/query")
        if len(query) > self._limits.max_query_characters:
            raise InvalidInput(
                f"/query has {len(query)} characters; at most {self._limits.max_query_characters} are "
                "searched. Ask a shorter question."
            )
        if not query.strip():
            raise InvalidInput("/query is blank; ask a question or name what you look for.")
        if not 1 <= request.max_results <= MAX_RESULTS:
            raise InvalidInput(f"/max_results is {request.max_results}; it must be 1 to {MAX_RESULTS}.")
        return query, checked_session_id(request.session_id)

    async def _recall_text(
        self,
        graph_id: GraphId,
        query: str,
        max_results: int,
        session_id: str,
        trace: Trace,
        shared: ReadingSide | None,
    ) -> RecallResult:
        if session_id == DEFAULT_SESSION:
            # Calls without a session of their own share one; it says nothing about a conversation.
            found, touched = await self._found(graph_id, query, max_results, trace, shared), ()
        else:
            found, touched = await asyncio.gather(
                self._found(graph_id, query, max_results, trace, shared),
                self._store.touched(graph_id, session_id),
            )
        analysed, index, calibration = found.analysed, found.index, self._calibration
        boosts = {touch.key: session_boost(touch.touch_count) for touch in touched}
        ranked = self._ranked(query, analysed, found.reads)
        ranked.sort(key=lambda entry: entry.order(boosts))
        floor = floor_points(calibration, index.node_count, names_known=found.stage.names_known)
        decision = apply_floor(
            [entry.points + entry.relief for entry in ranked],
            [entry.exact for entry in ranked],
            floor=floor,
            tail=tail_points(calibration, floor),
        )
        kept = [ranked[position] for position in decision.kept][:max_results]
        expansions = await _expansions(index, [entry.read.node.key for entry in kept])
        hits = tuple(
            self._hit(query, analysed, entry, boosts.get(entry.read.node.key, 0.0), expansion)
            for entry, expansion in zip(kept, expansions, strict=True)
        )
        self._note_missing_vectors(index, trace)
        return RecallResult(
            hits=hits,
            meta=search_meta(
                found.stage,
                trace,
                reranker=self._executor.reranker,
                floor=relevance(floor, calibration),
                below_floor=decision.below_floor,
            ),
            warnings=tuple(trace.warnings),
            dropped=tuple(
                entry.read.node.key
                for position, entry in enumerate(ranked[:max_results])
                if position not in decision.kept
            ),
        )

    async def read_candidates(self, principal: Principal, query: str) -> Found:
        """The candidates of a question before ranking and floor, for fitting and measuring the ranking."""
        return await self._found(principal.graph_id, query, MAX_RESULTS, Trace())

    async def _found(
        self,
        graph_id: GraphId,
        query: str,
        max_results: int,
        trace: Trace,
        shared: ReadingSide | None = None,
    ) -> Found:
        """Everything up to the cross-encoder's opinions."""
        query = without_operators(query)
        analysed = analyse_query(query)
        if analysed.shortened:
            trace.query_shortened = True
            trace.warnings.append("the query is long: its last words alone were searched for by word")
        vector = await self._query_vector(query, trace, shared)
        # After the embedding, so that as few writes as possible come between this and the reading.
        with self._observers.work("recall.index"):
            index = await self._hot.fresh(graph_id)
        if vector is not None and index.dimension != len(vector):
            # The model was exchanged between the two; the next recall sees both.
            vector = None
        if vector is None:
            understood = 0.0
        else:
            understood = understood_share(query) if self._calibration.english_embedder else 1.0
        calibration = relying_on_words(self._calibration, understood, pairs=pair_share(analysed))
        # Beyond what can be read or returned there is nothing to fetch.
        search = functools.partial(
            first_stage,
            query=analysed,
            vector=vector,
            calibration=calibration,
            named=_as_key(query),
            keep=max(self._rerank.depth, max_results),
        )
        stage, nodes = await self._searched(graph_id, index, search)
        reading = self._reading
        if shared is not None:
            part = await shared.part([one.points + one.support for one in stage.candidates])
            reading = reading.within(part.limits, since=part.since)
        with self._observers.work("recall.rerank"):
            reads = await reading.read(query, analysed, stage.candidates, nodes, trace)
        return Found(analysed=analysed, index=index, vector=vector, stage=stage, reads=reads)

    async def _searched(
        self, graph_id: GraphId, index: GraphIndex, search: Callable[[GraphIndex], FirstStage]
    ) -> tuple[FirstStage, Mapping[str, Node]]:
        """What a search found, with the records that it was about.

        A node that changed between the search and the reading of its record would be shown with the new
        text and the evidence of the old one. Then the search is repeated once; a node that changed
        again by then keeps its place as a candidate but loses the evidence.
        """
        with self._observers.work("recall.first_stage"):
            stage = await asyncio.to_thread(search, index)
        with self._observers.work("recall.fetch", nodes=len(stage.candidates)):
            nodes = await self._reading.fetch(graph_id, stage.candidates)
        if _changed(stage, nodes):
            stage = await asyncio.to_thread(search, await self._hot.fresh(graph_id))
            nodes = await self._reading.fetch(graph_id, stage.candidates)
            changed = _changed(stage, nodes)
            candidates = tuple(
                candidate.without_evidence() if candidate.key in changed else candidate
                for candidate in stage.candidates
            )
            stage = replace(stage, candidates=candidates)
        return stage, nodes

    async def _query_vector(
        self, query: str, trace: Trace, shared: ReadingSide | None
    ) -> NDArray[np.float32] | None:
        started = time.perf_counter()
        if self._executor.embedder is None:
            trace.dense_failed(self._executor.embedder_problem or "no embedder")
            return None
        try:
            if shared is not None:
                return await shared.embedded(lambda: self._executor.embed_query(query))
            return await self._executor.embed_query(query)
        except Overloaded:
            raise
        except HivememError as error:
            trace.dense_failed(error.message)
            return None
        finally:
            trace.embed_ms = 1000 * (time.perf_counter() - started)

    def _points(self, read: ReadCandidate) -> float:
        return ranking_points(
            logit=combined_logit(read.own, read.context, self._calibration),
            trust=read.trust,
            evidence=read.candidate.points,
            support=read.candidate.support,
            respelled=read.candidate.respelled,
            manner=manner_points(
                asks=read.asks, follows_question=read.follows_question, calibration=self._calibration
            ),
            calibration=self._calibration,
        )

    def _ranked(self, query: str, analysed: AnalysedQuery, reads: Sequence[ReadCandidate]) -> list[_Ranked]:
        named = _as_key(query)
        ranked: list[_Ranked] = []
        for read in reads:
            points = self._points(read)
            held = read.candidate.terms.held
            exact = holds_every_word(analysed, held) or holds_identifier(analysed, held)
            if read.node.key == named:
                # Whoever asks for a key means this node, whatever its text says.
                points, exact = max(points, KEY_POINTS), True
            ranked.append(
                _Ranked(
                    read=read,
                    relevance=relevance(points, self._calibration),
                    points=points,
                    relief=floor_relief(held_words(analysed, held), self._calibration),
                    exact=exact,
                )
            )
        return ranked

    def _hit(
        self,
        query: str,
        analysed: AnalysedQuery,
        entry: _Ranked,
        boost: float,
        expansion: tuple[tuple[Expansion, ...], int],
    ) -> RecallHit:
        read, candidate = entry.read, entry.read.candidate
        scores = {"bm25": candidate.terms.bm25} if candidate.terms.bm25 > 0 else {}
        if candidate.passage is not None:
            scores["dense"] = candidate.passage.score
        if candidate.rrf is not None:
            scores["rrf"] = candidate.rrf
        scores["relevance"] = entry.relevance
        beside = candidate.neighbours[0].key if candidate.support > 0.5 and candidate.neighbours else None
        node = read.node
        searched = candidate.revision == node.revision
        if candidate.passage is None and searched and self._executor.embedder is not None:
            # It has vectors of a former model at best: the record says what is so for the present one.
            node = replace(node, enrichment_status=EnrichmentStatus.PENDING)
        return RecallHit(
            node=node,
            score=min(1.0, entry.relevance + boost),
            scores=scores,
            expansion=expansion[0],
            expansion_omitted=expansion[1],
            reasons=reasons(
                analysed,
                candidate.terms.held,
                is_key=read.node.key == _as_key(query),
                cosine=None if candidate.passage is None else candidate.passage.score,
                logit=read.own,
                context_logit=read.context,
                supported_by=beside,
                touched=boost > 0,
            ),
        )

    def _note_missing_vectors(self, index: GraphIndex, trace: Trace) -> None:
        missing = index.node_count - index.embedded_count
        if missing and self._executor.embedder is not None:
            trace.dense_failed(
                f"{missing} of {index.node_count} nodes have no vector of "
                f"{self._executor.embedder.model_id!r} yet; `hivemem reembed` makes them"
            )

    async def _recall_pattern(
        self, graph_id: GraphId, pattern: str, max_results: int, trace: Trace
    ) -> RecallResult:
        found = await self._patterns.search(graph_id, pattern, max_results=max_results)
        index = await self._hot.fresh(graph_id)
        expansions = await _expansions(index, [match.node.key for match in found.matches])
        hits = tuple(
            RecallHit(
                node=match.node,
                score=match.score,
                scores={"relevance": match.score},
                expansion=expansion[0],
                expansion_omitted=expansion[1],
                reasons=(f"the pattern matches its {match.where}",),
            )
            for match, expansion in zip(found.matches, expansions, strict=True)
        )
        meta: JsonObject = {
            "search_source": "regex",
            "nodes_searched": found.searched,
            "matches": found.total,
            "total_ms": milliseconds(1000 * (time.perf_counter() - trace.started)),
        }
        if found.cut:
            meta["degraded"] = [
                f"regex: stopped after {self._patterns.max_seconds:g} s and {found.searched} nodes; "
                "use a simpler pattern"
            ]
        return RecallResult(hits=hits, meta=meta)


def _as_key(query: str) -> str | None:
    try:
        return normalise_key(query)
    except InvalidInput:
        return None


def _changed(stage: FirstStage, nodes: Mapping[str, Node]) -> set[str]:
    """The candidates whose record is not the one that was searched."""
    return {
        candidate.key
        for candidate in stage.candidates
        if (node := nodes.get(candidate.key)) is not None
        and not node.placeholder
        and node.revision != candidate.revision
    }


async def _expansions(index: GraphIndex, keys: Sequence[str]) -> list[tuple[tuple[Expansion, ...], int]]:
    """For each key its strongest relationships, and how many are left out."""
    found = index.neighbours_at_once(keys, MAX_EXPANSIONS, at_most=_QUICK_RELATIONSHIPS)
    if found is None:
        found = await asyncio.to_thread(index.neighbours_of, keys, MAX_EXPANSIONS)
    return [
        (
            tuple(
                Expansion(
                    direction=neighbour.direction, key=neighbour.key, relationship=neighbour.relationship
                )
                for neighbour in neighbours
            ),
            max(0, degree - len({neighbour.edge_id for neighbour in neighbours})),
        )
        for neighbours, degree in found
    ]
