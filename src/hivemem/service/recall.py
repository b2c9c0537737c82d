"""hm_recall: what the graph knows about a question.

    analyse -> legs, fusion, one step along relationships (first_stage) -> re-rank -> floor -> session
    -> expand

Model work waits in the bounded executor, index work runs in a thread; the event loop never blocks. A
part that fails or runs out of time is left out, and `_search_meta.degraded` says so.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from hivemem.domain.access import Principal
from hivemem.domain.graph import GraphId, SessionTouch
from hivemem.domain.keys import normalise_key
from hivemem.domain.node import Node
from hivemem.domain.text import JsonObject, JsonValue, storable_text
from hivemem.errors import HivememError, InvalidInput, InvalidRequest, Overloaded
from hivemem.models.executor import ModelExecutor
from hivemem.ports.clock import Clock
from hivemem.ports.store import Store
from hivemem.projection.graph_index import GraphIndex
from hivemem.projection.hot_graphs import HotGraphs
from hivemem.retrieval.analyse import AnalysedQuery, analyse_query
from hivemem.retrieval.explain import holds_every_word, holds_identifier, reasons
from hivemem.retrieval.fuse import RRF_K
from hivemem.retrieval.ranking import (
    Calibration,
    apply_floor,
    combined_logit,
    ranking_points,
    reading_trust,
    relevance,
)
from hivemem.retrieval.reading import among_neighbours, best_window, shortened_head
from hivemem.retrieval.session import session_boost
from hivemem.service.first_stage import Candidate, FirstStage, first_stage
from hivemem.service.limits import DEFAULT_SESSION, Limits, checked_session_id
from hivemem.service.pattern_search import PatternSearch

MAX_RESULTS = 50
MAX_EXPANSIONS = 5
_CHARACTERS_A_TOKEN = 4


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
class RerankLimits:
    """How much the cross-encoder may read in one recall.

    Attributes:
        depth: Candidates that it reads alone.
        context_depth: Best of these that it reads again among their neighbours.
        tokens: Estimated tokens of all pairs; fewer candidates are read when texts are long. At
            least five are.
        passage_characters: Of one text; more is cut to its best passage.
        neighbour_characters: Of each neighbour's text.
        budget_seconds: After this the rest stays unread and the answer says `degraded`.
    """

    depth: int = 24
    context_depth: int = 16
    tokens: int = 4000
    passage_characters: int = 700
    neighbour_characters: int = 120
    budget_seconds: float = 1.0


@dataclass(slots=True, kw_only=True)
class ReadCandidate:
    """A candidate with its record and what the cross-encoder said: all that the ranking is made of.

    Attributes:
        text: The passage that the cross-encoder is given.
        trust: How far its opinion counts, in [0, 1].
        own: Its logit for the text alone; None where it did not read.
        context: Its logit for the text among its neighbours; None where it did not read that.
    """

    candidate: Candidate
    node: Node
    text: str
    trust: float
    own: float | None = None
    context: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ranked:
    read: ReadCandidate
    relevance: float
    points: float
    exact: bool

    def order(self, boosts: Mapping[str, float]) -> tuple[float, float, str]:
        """Sorts by the final score, then by what tells saturated scores apart, then by key."""
        key = self.read.node.key
        return (-min(1.0, self.relevance + boosts.get(key, 0.0)), -self.points, key)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    analysed: AnalysedQuery
    index: GraphIndex
    stage: FirstStage
    reads: list[ReadCandidate]


@dataclass(slots=True, kw_only=True)
class _Trace:
    """What `_search_meta` tells, collected on the way."""

    started: float
    degraded: list[str] = field(default_factory=list[str])
    warnings: list[str] = field(default_factory=list[str])
    embed_ms: float = 0.0
    index_ms: float = 0.0
    rerank_ms: float = 0.0
    read: int = 0
    read_in_context: int = 0
    cut: bool = False


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
    ) -> None:
        self._store = store
        self._hot = hot
        self._executor = executor
        self._clock = clock
        self._limits = limits
        self._calibration = calibration
        self._rerank = rerank
        self._patterns = PatternSearch(store=store, max_seconds=regex_seconds)
        self._touching: set[asyncio.Task[None]] = set()

    async def recall(self, principal: Principal, request: RecallRequest) -> RecallResult:
        """The memories that answer `request.query`, best first; none when nothing is relevant.

        Raises:
            InvalidInput: A blank or too long query, `max_results` outside 1 to 50, a bad pattern.
            InvalidRequest: An organization that is not the caller's.
            Overloaded: The model queue is full.
            Unavailable: The store does not answer.
        """
        started = time.perf_counter()
        query, session_id = self._checked(request)
        graph_id = principal.graph_id
        if request.force_regex:
            result = await self._recall_pattern(graph_id, query, request.max_results, started)
        else:
            await self._touches_written()
            result = await self._recall_text(graph_id, query, request.max_results, session_id, started)
        self._touch(graph_id, session_id, [hit.node.key for hit in result.hits])
        return result

    async def close(self) -> None:
        """Wait until the session touches of answered recalls are stored."""
        await self._touches_written()

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
        if request.organization_id not in (None, "none"):
            raise InvalidRequest(
                f"/organization_id {request.organization_id!r} is not one of your organizations; "
                "leave it out or send 'none'."
            )
        return query, checked_session_id(request.session_id)

    async def _recall_text(
        self, graph_id: GraphId, query: str, max_results: int, session_id: str, started: float
    ) -> RecallResult:
        trace = _Trace(started=started)
        found, touched = await asyncio.gather(
            self._found(graph_id, query, trace), self._touched(graph_id, session_id)
        )
        analysed, index, calibration = found.analysed, found.index, self._calibration
        boosts = {key: session_boost(touch.touch_count) for key, touch in touched.items()}
        ranked = self._ranked(query, analysed, found.reads)
        ranked.sort(key=lambda entry: entry.order(boosts))
        decision = apply_floor(
            [entry.relevance for entry in ranked],
            [entry.exact for entry in ranked],
            floor=calibration.floor,
            tail=calibration.tail_floor,
        )
        kept = [ranked[position] for position in decision.kept][:max_results]
        expansions = await asyncio.to_thread(_expansions, index, [entry.read.node.key for entry in kept])
        hits = tuple(
            self._hit(query, analysed, entry, boosts.get(entry.read.node.key, 0.0), expansion)
            for entry, expansion in zip(kept, expansions, strict=True)
        )
        self._note_missing_vectors(index, trace)
        return RecallResult(
            hits=hits,
            meta=self._meta(found.stage, trace, below_floor=decision.below_floor),
            warnings=tuple(trace.warnings),
            dropped=tuple(
                entry.read.node.key
                for position, entry in enumerate(ranked[:max_results])
                if position not in decision.kept
            ),
        )

    async def read_candidates(self, principal: Principal, query: str) -> list[ReadCandidate]:
        """The candidates of a question before ranking and floor, for fitting and measuring the ranking."""
        found = await self._found(principal.graph_id, query, _Trace(started=time.perf_counter()))
        return found.reads

    async def _found(self, graph_id: GraphId, query: str, trace: _Trace) -> _Found:
        """Everything up to the cross-encoder's opinions."""
        analysed = analyse_query(query)
        if analysed.shortened:
            trace.warnings.append("the query is long: its last words alone were searched for by word")
        index, vector = await asyncio.gather(self._hot.fresh(graph_id), self._query_vector(query, trace))
        if vector is not None and index.dimension != len(vector):
            # The model was exchanged between the two; the next recall sees both.
            vector = None
        stage = await asyncio.to_thread(first_stage, index, analysed, vector, self._calibration)
        reads = await self._read(graph_id, query, analysed, stage, trace)
        return _Found(analysed=analysed, index=index, stage=stage, reads=reads)

    async def _query_vector(self, query: str, trace: _Trace) -> NDArray[np.float32] | None:
        started = time.perf_counter()
        if self._executor.embedder is None:
            trace.degraded.append(f"dense: {self._executor.embedder_problem or 'no embedder'}")
            return None
        try:
            return await self._executor.embed_query(query)
        except Overloaded:
            raise
        except HivememError as error:
            trace.degraded.append(f"dense: {error.message}")
            return None
        finally:
            trace.embed_ms = 1000 * (time.perf_counter() - started)

    async def _touched(self, graph_id: GraphId, session_id: str) -> dict[str, SessionTouch]:
        # Calls without a session of their own share one; it says nothing about a conversation.
        if session_id == DEFAULT_SESSION:
            return {}
        return {touch.key: touch for touch in await self._store.touched(graph_id, session_id)}

    async def _read(
        self,
        graph_id: GraphId,
        query: str,
        analysed: AnalysedQuery,
        stage: FirstStage,
        trace: _Trace,
    ) -> list[ReadCandidate]:
        """The candidates with their records, and the cross-encoder's opinion of the best of them."""
        limits = self._rerank
        # Beyond what can be read or returned there is nothing to fetch.
        wanted = stage.candidates[: max(limits.depth, MAX_RESULTS)]
        neighbour_keys = {
            neighbour.key for candidate in wanted[: limits.depth] for neighbour in candidate.neighbours
        }
        nodes = await self._store.nodes(
            graph_id, [*(candidate.key for candidate in wanted), *sorted(neighbour_keys)]
        )
        reads = [
            self._reading(query, analysed, candidate, nodes[candidate.key])
            for candidate in wanted
            if candidate.key in nodes and not nodes[candidate.key].placeholder
        ]
        chosen = _within(reads[: limits.depth], query, limits.tokens)
        if self._executor.reranker is None:
            problem = self._executor.reranker_problem
            if problem:
                trace.degraded.append(f"reranker: {problem}")
            return reads
        if not chosen:
            return reads
        started = time.perf_counter()
        try:
            await self._read_alone(query, chosen, trace)
            await self._read_in_context(query, chosen, nodes, trace, started)
        except Overloaded:
            raise
        except HivememError as error:
            trace.degraded.append(f"reranker: {error.message}")
        trace.rerank_ms = 1000 * (time.perf_counter() - started)
        return reads

    def _reading(
        self, query: str, analysed: AnalysedQuery, candidate: Candidate, node: Node
    ) -> ReadCandidate:
        width = self._rerank.passage_characters
        passage = candidate.passage
        source = node.description
        start, end = 0, len(source)
        if passage is not None and passage.source == "search_text" and node.search_text is not None:
            source = node.search_text
            start, end = 0, len(source)
        if end > width:
            if passage is not None and passage.end <= len(source):
                start, end = passage.start, passage.end
            if passage is None or end - start > 2 * width:
                offset, stop = best_window(source[start:end], analysed, width=width)
                start, end = start + offset, start + stop
        text = source[start:end]
        trust = reading_trust(query, text, seen_characters=len(text), all_characters=len(source))
        return ReadCandidate(candidate=candidate, node=node, text=text, trust=trust)

    async def _read_alone(self, query: str, chosen: Sequence[ReadCandidate], trace: _Trace) -> None:
        readable = [read for read in chosen if read.trust > 0.0]
        if not readable:
            return
        outcome = await self._executor.rerank(
            query, [read.text for read in readable], budget_seconds=self._rerank.budget_seconds
        )
        for read, logit in zip(readable, outcome.logits.tolist(), strict=True):
            read.own = None if math.isnan(logit) else logit
        trace.read = outcome.scored
        self._note_cut(outcome.cut, trace)

    async def _read_in_context(
        self,
        query: str,
        chosen: Sequence[ReadCandidate],
        nodes: Mapping[str, Node],
        trace: _Trace,
        started: float,
    ) -> None:
        """Read the best again among their neighbours: an answer often leans on what stands beside it."""
        if trace.cut or not self._rerank.context_depth:
            return
        best = sorted(chosen, key=lambda read: (-self._points(read), read.candidate.key))
        pairs: list[tuple[ReadCandidate, str]] = []
        for read in best[: self._rerank.context_depth]:
            text = self._in_context(read, nodes)
            if read.own is not None and text != read.text:
                pairs.append((read, text))
        if not pairs:
            return
        left = self._rerank.budget_seconds - (time.perf_counter() - started)
        if left <= 0:
            self._note_cut(True, trace)
            return
        outcome = await self._executor.rerank(query, [text for _, text in pairs], budget_seconds=left)
        for (read, _), logit in zip(pairs, outcome.logits.tolist(), strict=True):
            read.context = None if math.isnan(logit) else logit
        trace.read_in_context = outcome.scored
        self._note_cut(outcome.cut, trace)

    def _in_context(self, read: ReadCandidate, nodes: Mapping[str, Node]) -> str:
        """The text between its best neighbour on either side."""
        sides: dict[str, str] = {}
        for neighbour in read.candidate.neighbours:
            node = nodes.get(neighbour.key)
            if node is not None and not node.placeholder and neighbour.direction not in sides:
                sides[neighbour.direction] = shortened_head(
                    node.description, self._rerank.neighbour_characters
                )
        return among_neighbours([sides.get("incoming", "")], read.text, [sides.get("outgoing", "")])

    def _note_cut(self, cut: bool, trace: _Trace) -> None:
        if cut:
            trace.cut = True
            trace.degraded.append(
                f"reranker: the budget of {self._rerank.budget_seconds:g} s ended before all candidates "
                "were read; the rest is ranked by word and meaning"
            )

    def _points(self, read: ReadCandidate) -> float:
        return ranking_points(
            logit=combined_logit(read.own, read.context, self._calibration),
            trust=read.trust,
            evidence=read.candidate.points,
            support=read.candidate.support,
            calibration=self._calibration,
        )

    def _ranked(self, query: str, analysed: AnalysedQuery, reads: Sequence[ReadCandidate]) -> list[_Ranked]:
        named = _as_key(query)
        ranked: list[_Ranked] = []
        for read in reads:
            points = self._points(read)
            held = read.candidate.terms.held
            exact = (
                read.node.key == named or holds_every_word(analysed, held) or holds_identifier(analysed, held)
            )
            ranked.append(
                _Ranked(
                    read=read,
                    relevance=relevance(points, self._calibration),
                    points=points,
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
        return RecallHit(
            node=read.node,
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

    def _note_missing_vectors(self, index: GraphIndex, trace: _Trace) -> None:
        missing = index.node_count - index.embedded_count
        if missing and self._executor.embedder is not None:
            trace.degraded.append(
                f"dense: {missing} of {index.node_count} nodes have no vector of "
                f"{self._executor.embedder.model_id!r} yet; `hivemem reembed` makes them"
            )

    def _meta(self, stage: FirstStage, trace: _Trace, *, below_floor: int) -> JsonObject:
        ran = stage.dense.hits is not None
        dense: JsonObject = {
            "ran": ran,
            "hits": stage.dense.hits or 0,
            "ms": _ms(stage.dense.milliseconds),
            "embed_ms": _ms(trace.embed_ms),
        }
        error = next((note for note in trace.degraded if note.startswith("dense: ")), None)
        if error and not ran:
            dense["error"] = error.removeprefix("dense: ")
        reranker = self._executor.reranker
        rerank: JsonObject = {
            "ran": trace.read > 0,
            "model": None if reranker is None else reranker.model_id,
            "candidates": trace.read,
            "in_context": trace.read_in_context,
            "ms": _ms(trace.rerank_ms),
        }
        degraded: list[JsonValue] = list(trace.degraded)
        meta: JsonObject = {
            "search_source": "hybrid",
            "legs": {
                "dense": dense,
                "bm25": {"ran": True, "hits": stage.bm25.hits, "ms": _ms(stage.bm25.milliseconds)},
            },
            "fusion": {"method": "rrf", "k": RRF_K, "candidates": stage.fused},
            "rerank": rerank,
            "relevance_floor": self._calibration.floor,
            "below_floor": below_floor,
            "first_stage_ms": _ms(stage.milliseconds),
            "total_ms": _ms(1000 * (time.perf_counter() - trace.started)),
        }
        if degraded:
            meta["degraded"] = degraded
        return meta

    async def _recall_pattern(
        self, graph_id: GraphId, pattern: str, max_results: int, started: float
    ) -> RecallResult:
        found = await self._patterns.search(graph_id, pattern, max_results=max_results)
        index = await self._hot.fresh(graph_id)
        expansions = await asyncio.to_thread(_expansions, index, [match.node.key for match in found.matches])
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
            "total_ms": _ms(1000 * (time.perf_counter() - started)),
        }
        if found.cut:
            meta["degraded"] = [
                f"regex: stopped after {self._patterns.max_seconds:g} s and {found.searched} nodes; "
                "use a simpler pattern"
            ]
        return RecallResult(hits=hits, meta=meta)

    def _touch(self, graph_id: GraphId, session_id: str, keys: list[str]) -> None:
        """Record the conversation's touches after the answer: they must not delay it.

        The next recall waits for them, so a conversation always sees its own.
        """
        if not keys:
            return
        task = asyncio.create_task(
            self._store.touch(graph_id, session_id, keys, self._clock.now()), name="session touch"
        )
        self._touching.add(task)
        task.add_done_callback(self._touched_done)

    def _touched_done(self, task: asyncio.Task[None]) -> None:
        self._touching.discard(task)
        if not task.cancelled():
            # A touch is a hint for ranking; a store too busy for it answers the next call with that.
            task.exception()

    async def _touches_written(self) -> None:
        if self._touching:
            await asyncio.wait(set(self._touching))


def _within(reads: Sequence[ReadCandidate], query: str, tokens: int) -> list[ReadCandidate]:
    """The best candidates that fit the token budget, at least five."""
    left = float(tokens)
    chosen: list[ReadCandidate] = []
    for read in reads:
        left -= (len(query) + len(read.text)) / _CHARACTERS_A_TOKEN
        if left < 0 and len(chosen) >= 5:
            break
        chosen.append(read)
    return chosen


def _as_key(query: str) -> str | None:
    try:
        return normalise_key(query)
    except InvalidInput:
        return None


def _expansions(index: GraphIndex, keys: Sequence[str]) -> list[tuple[tuple[Expansion, ...], int]]:
    """For each key its strongest relationships, and how many are left out."""
    found: list[tuple[tuple[Expansion, ...], int]] = []
    for key in keys:
        neighbours = index.neighbours(key, MAX_EXPANSIONS)
        shown = len({neighbour.edge_id for neighbour in neighbours})
        found.append(
            (
                tuple(
                    Expansion(
                        direction=neighbour.direction,
                        key=neighbour.key,
                        relationship=neighbour.relationship,
                    )
                    for neighbour in neighbours
                ),
                max(0, index.degree(key) - shown),
            )
        )
    return found


def _ms(value: float) -> float:
    return round(value, 2)
