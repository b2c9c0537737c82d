"""The cross-encoder's part of recall: which candidates it reads, and what of them.

It is by far the costliest step, about four milliseconds a pair of short texts on two cores. So it
reads the best candidates of the first stage alone, one passage of each, and then the best of these
once more among their neighbours: an answer often leans on what stands beside it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from hivemem.domain.graph import GraphId
from hivemem.domain.node import Node
from hivemem.errors import HivememError, Overloaded
from hivemem.models.executor import ModelExecutor
from hivemem.ports.store import GraphStore
from hivemem.retrieval.analyse import AnalysedQuery, analyse_query
from hivemem.retrieval.language import ends_with_question, merely_asks
from hivemem.retrieval.ranking import reading_trust
from hivemem.retrieval.reading import (
    among_neighbours,
    best_window,
    closing_question,
    shortened_head,
    telling_facts,
)
from hivemem.service.first_stage import Candidate
from hivemem.service.recall_trace import Trace

_CHARACTERS_A_TOKEN = 4
_ALWAYS_READ = 5
_MOST_WAITING = 10.0
"""Budgets that a recall waits for others at most, before it answers by word and meaning."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RerankLimits:
    """How much the cross-encoder may read in one recall.

    Attributes:
        depth: Candidates that it reads alone.
        context_depth: Best of these that it reads again among their neighbours.
        tokens: Estimated tokens of all pairs of both readings; with longer texts fewer candidates
            are read, at least five.
        passage_characters: Of one text; of a longer one it reads the best passage.
        neighbour_characters: Of each neighbour's text.
        budget_seconds: Of the model's own time; after this the rest stays unread and the answer says
            `degraded`. Waiting for other recalls does not count, so that the answer to a question does not
            depend on who else asks. It ends after ten times the budget, or at once with `Overloaded`.
    """

    depth: int = 24
    context_depth: int = 20
    tokens: int = 3400
    passage_characters: int = 700
    neighbour_characters: int = 200
    budget_seconds: float = 1.0


@dataclass(slots=True, kw_only=True)
class ReadCandidate:
    """A candidate with its record and what the cross-encoder said: all that the ranking is made of.

    Attributes:
        text: The passage that the cross-encoder is given, with the entries of `data` that tell more;
            empty for a candidate that it does not read.
        among: The text between its neighbours, where that was chosen to be read; the same as `text`
            without neighbours.
        trust: How far its opinion counts, in [0, 1].
        asks: Whether the description merely asks.
        follows_question: Whether its strongest incoming neighbour ends with a question, where known.
        own: Its logit for the text alone; None where it did not read.
        context: Its logit for the text among its neighbours; None where it did not read that.
    """

    candidate: Candidate
    node: Node
    text: str
    trust: float
    among: str = ""
    asks: bool = False
    follows_question: bool = False
    own: float | None = None
    context: float | None = None


class CrossReading:
    """Fetches candidates and has the best of them read.

    Args:
        store: Where the texts are.
        executor: Runs the cross-encoder.
        limits: How much it may read.
        points: Orders candidates by what is known of them so far, larger is better.
        english: Whether the cross-encoder understands Latin script alone.
        since: When the recall came, by `time.monotonic`; when it begins to read by default.
        waiting_seconds: How long a recall waits for others; ten times its budget by default.
    """

    def __init__(
        self,
        *,
        store: GraphStore,
        executor: ModelExecutor,
        limits: RerankLimits,
        points: Callable[[ReadCandidate], float],
        english: bool = True,
        since: float | None = None,
        waiting_seconds: float | None = None,
    ) -> None:
        self._store = store
        self._executor = executor
        self._limits = limits
        self._points = points
        self._english = english
        self._since = since
        self._waiting_seconds = (
            _MOST_WAITING * limits.budget_seconds if waiting_seconds is None else waiting_seconds
        )

    def within(self, limits: RerankLimits, *, since: float) -> CrossReading:
        """The same with other limits, for a recall that came at `since`."""
        return CrossReading(
            store=self._store,
            executor=self._executor,
            limits=limits,
            points=self._points,
            english=self._english,
            since=since,
            waiting_seconds=self._waiting_seconds,
        )

    async def fetch(self, graph_id: GraphId, candidates: Sequence[Candidate]) -> dict[str, Node]:
        """The records of the candidates, and of the neighbours that the first of them are read among.

        Raises:
            Unavailable: The store does not answer.
        """
        keys = dict.fromkeys(candidate.key for candidate in candidates)
        for candidate in candidates[: self._limits.depth]:
            sides: set[str] = set()
            for neighbour in candidate.neighbours:
                if neighbour.direction not in sides:
                    sides.add(neighbour.direction)
                    keys.setdefault(neighbour.key)
        return await self._store.nodes(graph_id, list(keys))

    async def read(
        self,
        query: str,
        analysed: AnalysedQuery,
        candidates: Sequence[Candidate],
        nodes: Mapping[str, Node],
        trace: Trace,
    ) -> list[ReadCandidate]:
        """The candidates that still exist, in the order given, the first of them read.

        A failure or the end of the time budget leaves logits out and is noted in `trace`.

        Args:
            query: The question.
            analysed: Its words.
            candidates: Best first.
            nodes: From `fetch`.
            trace: Takes up times and failures.

        Raises:
            Overloaded: The model queue is full.
        """
        # Text pasted before the question would mislead the reader, and use up its tokens.
        question = closing_question(query)
        if question != query:
            query, analysed = question, analyse_query(question)
        present = [
            (candidate, nodes[candidate.key])
            for candidate in candidates
            if candidate.key in nodes and not nodes[candidate.key].placeholder
        ]
        reads = [
            self._with_passage(query, analysed, candidate, node)
            for candidate, node in present[: self._limits.depth]
        ]
        # The rest is ranked by its evidence alone.
        reads += [
            ReadCandidate(candidate=candidate, node=node, text="", trust=0.0)
            for candidate, node in present[self._limits.depth :]
        ]
        for read in reads:
            read.asks = merely_asks(read.node.description)
            before = _neighbours_by_side(read, nodes).get("incoming")
            read.follows_question = before is not None and ends_with_question(before.description)
        if self._executor.reranker is None:
            # A reranker that is absent by choice has no problem to tell.
            if self._executor.reranker_problem:
                trace.reranker_failed(self._executor.reranker_problem)
            return reads
        started = time.perf_counter()
        try:
            await self._read_all(query, analysed, reads, nodes, trace)
        except Overloaded:
            raise
        except HivememError as error:
            trace.reranker_failed(error.message)
        trace.rerank_ms = 1000 * (time.perf_counter() - started)
        return reads

    def _with_passage(
        self, query: str, analysed: AnalysedQuery, candidate: Candidate, node: Node
    ) -> ReadCandidate:
        """Choose what to read of a node: a short text whole, of a long one the nearest passage."""
        width = self._limits.passage_characters
        passage = candidate.passage
        source = node.description
        if passage is not None and passage.source == "search_text" and node.search_text is not None:
            source = node.search_text
        start, end = 0, len(source)
        if end > width:
            # Offsets that a damaged row or another program wrote mean nothing.
            if passage is not None and passage.end <= end:
                start, end = passage.start, passage.end
            if end - start > 2 * width:
                offset, stop = best_window(source[start:end], analysed, width=width)
                start, end = start + offset, start + stop
        text = source[start:end]
        trust = reading_trust(
            query if self._english else "",
            text if self._english else "",
            query_words=len(analysed.words),
            seen_characters=len(text),
            all_characters=len(source),
        )
        return ReadCandidate(candidate=candidate, node=node, text=text, trust=trust)

    async def _read_all(
        self,
        query: str,
        analysed: AnalysedQuery,
        reads: Sequence[ReadCandidate],
        nodes: Mapping[str, Node],
        trace: Trace,
    ) -> None:
        since = time.monotonic() if self._since is None else self._since
        tokens = float(self._limits.tokens)
        alone: list[ReadCandidate] = []
        for read in reads[: self._limits.depth]:
            facts = telling_facts(read.node.data, analysed, read.text)
            if facts:
                read.text = f"{read.text} {facts}"
            tokens -= _tokens(query, read.text)
            if tokens < 0 and len(alone) >= _ALWAYS_READ:
                break
            if read.trust > 0.0:
                alone.append(read)
        logits = await self._logits(query, [read.text for read in alone], since, trace)
        for read, logit in zip(alone, logits, strict=True):
            read.own = logit
        trace.read = sum(1 for read in alone if read.own is not None)
        again: list[ReadCandidate] = []
        best = sorted(alone, key=lambda read: (-self._points(read), read.candidate.key))
        for read in best[: self._limits.context_depth]:
            read.among = self._among_neighbours(read, nodes)
            tokens -= _tokens(query, read.among)
            if tokens < 0:
                break
            if read.own is not None and read.among != read.text:
                again.append(read)
        logits = await self._logits(query, [read.among for read in again], since, trace)
        for read, logit in zip(again, logits, strict=True):
            read.context = logit
        trace.read_in_context = sum(1 for read in again if read.context is not None)

    async def _logits(
        self, query: str, texts: Sequence[str], since: float, trace: Trace
    ) -> list[float | None]:
        """A logit for each text, None for those that the time did not suffice for."""
        if not texts or trace.cut:
            return [None] * len(texts)
        budget = self._limits.budget_seconds
        outcome = await self._executor.rerank(
            query,
            texts,
            budget_seconds=budget - trace.model_seconds,
            since=since,
            wait_seconds=self._waiting_seconds,
        )
        trace.model_seconds += outcome.seconds
        if outcome.cut:
            trace.cut = True
            spent = trace.model_seconds >= budget
            what = f"the budget of {budget:g} s" if spent else "the time of waiting for other recalls"
            trace.reranker_failed(
                f"{what} ended before all candidates were read; the rest is ranked by word and meaning"
            )
        return [None if math.isnan(logit) else logit for logit in outcome.logits.tolist()]

    def _among_neighbours(self, read: ReadCandidate, nodes: Mapping[str, Node]) -> str:
        """The text between its strongest neighbour on either side."""
        sides = {
            side: shortened_head(node.description, self._limits.neighbour_characters)
            for side, node in _neighbours_by_side(read, nodes).items()
        }
        return among_neighbours(sides.get("incoming", ""), read.text, sides.get("outgoing", ""))


def _neighbours_by_side(read: ReadCandidate, nodes: Mapping[str, Node]) -> dict[str, Node]:
    """The strongest neighbour on either side, `incoming` and `outgoing`, as far as it was fetched."""
    sides: dict[str, Node] = {}
    for neighbour in read.candidate.neighbours:
        node = nodes.get(neighbour.key)
        if node is not None and not node.placeholder:
            sides.setdefault(neighbour.direction, node)
    return sides


def _tokens(query: str, text: str) -> float:
    return (len(query) + len(text)) / _CHARACTERS_A_TOKEN
