"""The real services on a temporary SQLite file, with models whose time is recorded."""

from __future__ import annotations

import contextlib
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from hivemem.app import OpenServices, open_services
from hivemem.domain.access import Principal
from hivemem.errors import HivememError
from hivemem.ports.models import Embedder, Reranker, Span, is_immediate
from hivemem.service.remember import StoreRequest
from hivemem.settings import load_settings
from hivemem.surfaces.readiness import wait_for_models

Interval = tuple[float, float]


class ModelTimes:
    """The stretches of time, by `time.perf_counter`, in which a model computed."""

    def __init__(self) -> None:
        self.intervals: list[Interval] = []

    def take(self) -> list[Interval]:
        """What was recorded since the last call."""
        taken, self.intervals = self.intervals, []
        return taken

    @contextlib.contextmanager
    def recorded(self) -> Any:
        started = time.perf_counter()
        try:
            yield
        finally:
            self.intervals.append((started, time.perf_counter()))


class TimedEmbedder:
    """An embedder that records when it computes; tokenising belongs to the model."""

    def __init__(self, inner: Embedder, times: ModelTimes) -> None:
        self._inner, self._times = inner, times
        self.model_id, self.dimension = inner.model_id, inner.dimension
        self.immediate = is_immediate(inner)

    def passages(self, text: str) -> list[Span]:
        return self._inner.passages(text)

    def embed_passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        with self._times.recorded():
            return self._inner.embed_passages(texts)

    def embed_query(self, text: str) -> NDArray[np.float32]:
        with self._times.recorded():
            return self._inner.embed_query(text)


class TimedReranker:
    """A reranker that records when it computes."""

    def __init__(self, inner: Reranker, times: ModelTimes) -> None:
        self._inner, self._times = inner, times
        self.model_id, self.window_characters = inner.model_id, inner.window_characters

    def score(self, query: str, texts: Sequence[str]) -> NDArray[np.float32]:
        with self._times.recorded():
            return self._inner.score(query, texts)


class WordReranker:
    """Logits from shared words, at nearly no cost: lets all of recall's own code run without a network."""

    model_id = "words"
    window_characters = 1000

    def score(self, query: str, texts: Sequence[str]) -> NDArray[np.float32]:
        words = set(query.lower().split())
        return np.array([len(words & set(text.lower().split())) - 2.0 for text in texts], np.float32)


class Opened:
    """Open services, who asks, and the recorded times of the models."""

    def __init__(self, services: OpenServices, principal: Principal, times: ModelTimes, folder: Path) -> None:
        self.services = services
        self.principal = principal
        self.times = times
        self.folder = folder

    def models(self) -> dict[str, Any]:
        """The ids of the models, for a result file."""
        embedder, reranker = self.services.executor.embedder, self.services.executor.reranker
        return {
            "embedder": None if embedder is None else embedder.model_id,
            "reranker": None if reranker is None else reranker.model_id,
        }

    async def store(self, requests: Sequence[StoreRequest]) -> float:
        """Store all and return the seconds; a request that fails ends the benchmark."""
        started = time.perf_counter()
        with tqdm(
            total=len(requests), desc="storing", unit="node", file=sys.stderr, disable=None
        ) as progress:
            outcomes = await self.services.remember.store_many(
                self.principal, requests, on_progress=lambda done, _: progress.update(done - progress.n)
            )
        for outcome in outcomes:
            if isinstance(outcome, HivememError):
                raise outcome
        return time.perf_counter() - started


@contextlib.asynccontextmanager
async def opened(
    settings: Mapping[str, Any], *, stand_in: Reranker | None = None, folder: Path | None = None
) -> AsyncIterator[Opened]:
    """The services over a new database, which is removed afterwards.

    Args:
        settings: As for `--set`; the environment does not count, so that runs are comparable.
        stand_in: Used instead of the reranker that the settings name.
        folder: Where the temporary data directory is made; the system's by default.
    """
    with tempfile.TemporaryDirectory(prefix="hivemem-bench-", dir=folder) as data_dir:
        loaded = load_settings({"data_dir": data_dir, **settings}, {})
        services = await open_services(loaded.settings)
        try:
            await wait_for_models(services)
            executor, times = services.executor, ModelTimes()
            for problem in (executor.embedder_problem, executor.reranker_problem):
                if problem:
                    raise SystemExit(problem)
            if executor.embedder is not None:
                executor.use_embedder(TimedEmbedder(executor.embedder, times))
            inner = stand_in or executor.reranker
            if inner is not None:
                executor.use_reranker(TimedReranker(inner, times))
            principal = await services.access.local_principal()
            yield Opened(services, principal, times, Path(data_dir))
        finally:
            await services.close()
