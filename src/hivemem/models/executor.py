"""The async, bounded front of the models.

One worker thread runs the models, so the event loop never blocks and the cores are never
oversubscribed. Work is done in turns of a few texts:

    questions to embed    first, one at a time: every recall waits for its own
    pairs to re-rank      next, those of the recall that came first until it is done
    passages to embed     when nothing else waits, and in every fifth turn in any case

So a recall is not held up by an import, and an import goes on under constant recalls. Recalls need about
the same time each; one after the other, half of them wait less than they would if all shared the turns,
and none waits longer.
"""

from __future__ import annotations

import asyncio
import math
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hivemem.errors import HivememError, InvalidInput, Overloaded, Unavailable
from hivemem.ports.models import Embedder, Reranker, is_immediate
from hivemem.ports.observer import Observers
from hivemem.waiting import answer

# Turns for pairs in a row before passages that wait get one.
_RERANK_TURNS = 4

# Passages may fill this share of the queue; the rest is kept for recalls, which are short.
_PASSAGE_SHARE = 0.75

# An immediate embedder (`is_immediate`) does so much on the spot: a fifth of a millisecond.
_CHARACTERS_ON_THE_SPOT = 1_000

# Weight of the newest turn in the measured seconds a text, and a first guess before any turn.
_RATE_WEIGHT = 0.2
_FIRST_SECONDS_A_TEXT = 0.01

_STOPPING = "the models are closed: the server is stopping"


@dataclass(frozen=True, slots=True)
class Reranked:
    """What a re-ranking reached within its budget.

    Attributes:
        logits: One a text, in the order given, shape (n,); NaN where there was no time.
        scored: How many are not NaN.
        cut: Whether the budget, or the longest waiting, ended it.
        seconds: In which the model computed for this call.
    """

    logits: NDArray[np.float32]
    scored: int
    cut: bool
    seconds: float


@dataclass(frozen=True, slots=True)
class ModelWork:
    """How many texts a model has computed, and in how many seconds."""

    texts: int = 0
    seconds: float = 0.0

    def plus(self, texts: int, seconds: float) -> ModelWork:
        """The two together."""
        return ModelWork(self.texts + texts, self.seconds + seconds)


def _future() -> asyncio.Future[Any]:
    """What the caller awaits, in the loop that it runs in."""
    return asyncio.get_running_loop().create_future()


@dataclass(slots=True, kw_only=True, eq=False)
class _Query:
    """A question to embed."""

    embedder: Embedder
    text: str
    future: asyncio.Future[NDArray[np.float32]] = field(default_factory=_future)
    left: int = 1


@dataclass(slots=True, kw_only=True, eq=False)
class _Passages:
    """Passages to embed. `order` holds the positions still to do, shortest first: taken from the end."""

    embedder: Embedder
    texts: Sequence[str]
    order: list[int]
    vectors: NDArray[np.float32]
    future: asyncio.Future[NDArray[np.float32]] = field(default_factory=_future)
    left: int = 0


@dataclass(slots=True, kw_only=True, eq=False)
class _Pairs:
    """Pairs to score, best candidates first; `at` is the first one not scored yet.

    `since` is when its recall came, and `deadline` when it has waited too long, by `time.monotonic`.
    """

    reranker: Reranker
    query: str
    texts: Sequence[str]
    since: float
    budget: float
    deadline: float
    logits: NDArray[np.float32]
    seconds: float = 0.0
    at: int = 0
    future: asyncio.Future[Reranked] = field(default_factory=_future)
    left: int = 0


_Job = _Query | _Passages | _Pairs
_now = time.monotonic
_Parts = list[tuple[_Passages, list[int]]]


class ModelExecutor:
    """Runs an embedder and a reranker for many callers at once. Use it from one event loop or several.

    Args:
        embedder: None when it could not be loaded; then embedding raises `Unavailable`.
        reranker: None when it could not be loaded; then re-ranking raises `Unavailable`.
        embedder_problem: Why there is no embedder, with the remedy; shown to callers. None when there
            is none by choice.
        reranker_problem: The same for the reranker.
        max_queued_texts: How many texts may wait; more are refused with `Overloaded`. One request
            of any size is accepted when nothing waits.
        batch_texts: Texts a turn. Fewer answer a question sooner that comes in the middle of a turn,
            more waste less at the end of each turn.
        observers: Told of each call: `model.embed_query`, `model.embed_passages`, `model.rerank`.
    """

    def __init__(
        self,
        embedder: Embedder | None,
        reranker: Reranker | None,
        *,
        embedder_problem: str | None = None,
        reranker_problem: str | None = None,
        max_queued_texts: int = 2000,
        batch_texts: int = 8,
        observers: Observers | None = None,
    ) -> None:
        if max_queued_texts < 1 or batch_texts < 1:
            raise InvalidInput(f"{max_queued_texts=} and {batch_texts=} must be positive")
        self._embedder = embedder
        self._reranker = reranker
        self._embedder_problem = embedder_problem
        self._reranker_problem = reranker_problem
        self._max_queued_texts = max_queued_texts
        self._batch_texts = batch_texts
        self._observers = observers or Observers()
        self._done_work = {kind: ModelWork() for kind in ("query", "passages", "pairs")}
        self._queries: deque[_Query] = deque()
        self._passages: deque[_Passages] = deque()
        self._pairs: deque[_Pairs] = deque()
        self._queued_texts = 0
        self._rerank_turns = 0
        self._seconds_a_text = _FIRST_SECONDS_A_TEXT
        self._closed = False
        self._changed = threading.Condition()  # guards everything above
        self._thread = threading.Thread(target=self._work, name="hivemem-models", daemon=True)
        self._thread.start()

    @property
    def embedder(self) -> Embedder | None:
        """The embedder, for its id, dimension and `passages`, which are safe in any thread."""
        return self._embedder

    @property
    def reranker(self) -> Reranker | None:
        """The reranker, for its id and window, which are safe in any thread."""
        return self._reranker

    @property
    def embedder_problem(self) -> str | None:
        """Why there is no embedder, as it was told; None when there is one, or none by choice."""
        return None if self._embedder else self._embedder_problem

    @property
    def reranker_problem(self) -> str | None:
        """Why there is no reranker, as it was told; None when there is one, or none by choice."""
        return None if self._reranker else self._reranker_problem

    @property
    def queued_texts(self) -> int:
        """How many texts wait or are being computed now."""
        return self._queued_texts

    @property
    def done_work(self) -> Mapping[str, ModelWork]:
        """What the models have computed so far: of `query`, `passages` and `pairs`."""
        return self._done_work

    def use_embedder(self, embedder: Embedder | None, problem: str | None = None) -> None:
        """Take another embedder for all later calls: after a repaired file, or for a migration."""
        self._embedder, self._embedder_problem = embedder, problem

    def use_reranker(self, reranker: Reranker | None, problem: str | None = None) -> None:
        """Take another reranker for all later calls."""
        self._reranker, self._reranker_problem = reranker, problem

    async def embed_query(self, text: str) -> NDArray[np.float32]:
        """Unit vector of a question, shape (dimension,).

        Raises:
            Unavailable: There is no embedder, or the executor is closed.
            Overloaded: Too much work waits; `retry_after_seconds` is a measured guess.
        """
        embedder = self._need_embedder()
        with self._observers.work("model.embed_query", texts=1):
            if is_immediate(embedder) and len(text) <= _CHARACTERS_ON_THE_SPOT:
                return self._on_the_spot("query", 1, lambda: embedder.embed_query(text))
            return await self._result(_Query(embedder=embedder, text=text), self._queries)

    async def embed_passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Unit vectors of stored texts, shape (len(texts), dimension), in the order given.

        Raises:
            Unavailable: There is no embedder, or the executor is closed.
            Overloaded: Too much work waits; `retry_after_seconds` is a measured guess.
        """
        embedder = self._need_embedder()
        if texts and is_immediate(embedder) and sum(map(len, texts)) <= _CHARACTERS_ON_THE_SPOT:
            with self._observers.work("model.embed_passages", texts=len(texts)):
                return self._on_the_spot("passages", len(texts), lambda: embedder.embed_passages(texts))
        vectors = np.zeros((len(texts), embedder.dimension), np.float32)
        if not texts:
            return vectors
        # By length, so that the texts of one turn cost about the same and the cores end together.
        order = sorted(range(len(texts)), key=lambda position: len(texts[position]))
        job = _Passages(embedder=embedder, texts=texts, order=order, vectors=vectors, left=len(texts))
        with self._observers.work("model.embed_passages", texts=len(texts)):
            return await self._result(job, self._passages)

    async def rerank(
        self,
        query: str,
        texts: Sequence[str],
        *,
        budget_seconds: float | None,
        since: float | None = None,
        wait_seconds: float | None = None,
    ) -> Reranked:
        """Logits of the texts for the query, as many as the budget allows.

        Args:
            query: The question.
            texts: Best candidates first: they are scored in this order.
            budget_seconds: Of the model's own time for these texts, so that the answer does not depend on
                who else asks; None for no limit. The first few texts are scored in any case, and a turn
                that has begun is finished.
            since: When the recall came that this is part of, by `time.monotonic`: the earliest is served
                first. Now by default.
            wait_seconds: From `since` on, after which no further turn is waited for; None for no limit.

        Raises:
            Unavailable: There is no reranker, or the executor is closed.
            Overloaded: Too much work waits; `retry_after_seconds` is a measured guess.
        """
        reranker = self._reranker
        if reranker is None:
            problem = self._reranker_problem or "no re-ranking model is configured"
            raise Unavailable(problem, code="reranker_unavailable")
        logits = np.full(len(texts), np.nan, np.float32)
        if not texts:
            return Reranked(logits, 0, False, 0.0)
        since = _now() if since is None else since
        job = _Pairs(
            reranker=reranker,
            query=query,
            texts=texts,
            since=since,
            budget=math.inf if budget_seconds is None else budget_seconds,
            deadline=math.inf if wait_seconds is None else since + wait_seconds,
            logits=logits,
            left=len(texts),
        )
        with self._observers.work("model.rerank", texts=len(texts)):
            return await self._result(job, self._pairs)

    def close(self) -> None:
        """End the worker after the turn it is in. Whoever still waits gets `Unavailable`."""
        with self._changed:
            self._closed = True
            waiting: list[_Job] = [*self._queries, *self._passages, *self._pairs]
            for queue in (self._queries, self._passages, self._pairs):
                queue.clear()
            self._changed.notify()
        for job in waiting:
            _fail(job, Unavailable("the models were closed while this request waited"))
        self._thread.join(timeout=30)

    def _need_embedder(self) -> Embedder:
        embedder = self._embedder
        if embedder is None:
            problem = self._embedder_problem or "no embedding model is configured"
            raise Unavailable(problem, code="embedder_unavailable")
        return embedder

    def _on_the_spot(
        self, kind: str, texts: int, compute: Callable[[], NDArray[np.float32]]
    ) -> NDArray[np.float32]:
        """What `compute` returns, in the caller's thread, counted like the work of a turn."""
        started = time.perf_counter()
        try:
            vectors = compute()
        except HivememError:
            raise
        except Exception as error:
            raise _as_ours(error) from error
        with self._changed:
            if self._closed:
                raise Unavailable(_STOPPING)
            self._done_work[kind] = self._done_work[kind].plus(texts, time.perf_counter() - started)
        return vectors

    async def _result(self, job: Any, queue: deque[Any]) -> Any:
        """Queue the job and wait for it. A caller that is cancelled cancels the job's future."""
        share = _PASSAGE_SHARE if isinstance(job, _Passages) else 1.0
        with self._changed:
            if self._closed:
                raise Unavailable(_STOPPING)
            if self._queued_texts and self._queued_texts + job.left > share * self._max_queued_texts:
                self._drop_cancelled()
            if self._queued_texts and self._queued_texts + job.left > share * self._max_queued_texts:
                seconds = math.ceil(self._queued_texts * self._seconds_a_text)
                raise Overloaded(
                    f"{self._queued_texts} texts wait for the models, and {job.left} more would pass the "
                    f"limit of {self._max_queued_texts}; repeat the request later",
                    retry_after_seconds=min(max(seconds, 1), 60),
                )
            self._queued_texts += job.left
            queue.append(job)
            self._changed.notify()
        return await job.future

    def _drop_cancelled(self) -> None:
        """Forget jobs that nobody waits for. The caller holds the lock."""
        for queue in (self._queries, self._passages, self._pairs):
            for job in [job for job in queue if job.future.cancelled()]:
                queue.remove(job)  # type: ignore[arg-type]
                self._queued_texts -= job.left

    # The worker thread.

    def _work(self) -> None:
        while True:
            with self._changed:
                turn = self._next_turn()
                while turn is None:
                    if self._closed:
                        return
                    self._changed.wait()
                    turn = self._next_turn()
            started = time.perf_counter()
            kind, compute = turn
            texts = compute()
            seconds = time.perf_counter() - started
            with self._changed:
                self._done_work[kind] = self._done_work[kind].plus(texts, seconds)
            if texts:
                newest = seconds / texts
                self._seconds_a_text += _RATE_WEIGHT * (newest - self._seconds_a_text)
            # Not kept while waiting for the next job: it may hold megabytes of texts.
            del turn, compute

    def _next_turn(self) -> tuple[str, Callable[[], int]] | None:
        """Choose the next few texts; the caller holds the lock.

        Returns:
            What kind of texts, and what computes them and returns how many it computed.
        """
        self._drop_cancelled()
        if self._queries:
            query = self._queries.popleft()
            return "query", lambda: self._embed_query(query)
        if self._pairs and not (self._passages and self._rerank_turns >= _RERANK_TURNS):
            self._rerank_turns += 1
            pairs = min(self._pairs, key=lambda job: job.since)
            self._pairs.remove(pairs)
            return "pairs", lambda: self._score_pairs(pairs)
        self._rerank_turns = 0
        if self._passages:
            parts = self._take_passages()
            return "passages", lambda: self._embed_parts(parts)
        return None

    def _take_passages(self) -> _Parts:
        """The same number of texts from each waiting request that has one embedder, a turn in all."""
        embedder = self._passages[0].embedder
        jobs = [job for job in self._passages if job.embedder is embedder][: self._batch_texts]
        parts: _Parts = [(job, []) for job in jobs]
        room = self._batch_texts
        while room and any(job.order for job in jobs):
            for job, taken in parts:
                if room and job.order:
                    taken.append(job.order.pop())
                    room -= 1
        for job in jobs:
            self._passages.remove(job)
            if job.order:
                self._passages.append(job)  # behind those that had no turn
        return parts

    def _embed_query(self, job: _Query) -> int:
        try:
            vector = job.embedder.embed_query(job.text)
        except Exception as error:
            self._end(job, error=error)
            return 0
        self._end(job, result=vector)
        return 1

    def _embed_parts(self, parts: _Parts) -> int:
        texts = [job.texts[position] for job, taken in parts for position in taken]
        try:
            vectors = parts[0][0].embedder.embed_passages(texts)
            at = 0
            for job, taken in parts:
                job.vectors[taken] = vectors[at : at + len(taken)]
                at += len(taken)
        except Exception as error:
            if len(parts) == 1:
                self._end(parts[0][0], error=error)
                return 0
            # Each request once more alone: one caller's text must not fail the others.
            return sum(self._embed_parts([part]) for part in parts)
        for job, taken in parts:
            self._done(job, len(taken))
            if not job.left:
                self._end(job, result=job.vectors)
        return len(texts)

    def _score_pairs(self, job: _Pairs) -> int:
        started = _now()
        if job.at and (job.seconds >= job.budget or started >= job.deadline):
            self._end(job, result=Reranked(job.logits, job.at, True, job.seconds))
            return 0
        stop = min(job.at + self._batch_texts, len(job.texts))
        try:
            job.logits[job.at : stop] = job.reranker.score(job.query, job.texts[job.at : stop])
        except Exception as error:
            self._end(job, error=error)
            return 0
        count, job.at = stop - job.at, stop
        job.seconds += _now() - started
        self._done(job, count)
        if stop == len(job.texts):
            self._end(job, result=Reranked(job.logits, stop, False, job.seconds))
        else:
            with self._changed:
                closed = self._closed
                if not closed:
                    self._pairs.appendleft(job)
            if closed:
                _fail(job, Unavailable("the models were closed while this request waited"))
        return count

    def _done(self, job: _Job, texts: int) -> None:
        with self._changed:
            job.left -= texts
            self._queued_texts -= texts

    def _end(self, job: _Job, *, result: Any = None, error: Exception | None = None) -> None:
        """Answer the caller and take what is left of the job out of the queue's count."""
        self._done(job, job.left)
        if isinstance(job, _Passages):
            with self._changed:
                if job in self._passages:
                    self._passages.remove(job)
        if error is not None:
            _fail(job, error)
        else:
            answer(job.future, result)


def _fail(job: _Job, error: Exception) -> None:
    # Nothing for one that was answered already: closed, or failed, while its last turn was running.
    answer(job.future, error=_as_ours(error))


def _as_ours(error: Exception) -> HivememError:
    if isinstance(error, HivememError):
        return error
    wrapped = HivememError(f"the model failed: {error}")
    wrapped.__cause__ = error
    return wrapped
