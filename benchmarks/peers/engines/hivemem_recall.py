"""hivemem's whole recall but for the models: the real services over a SQLite file.

Vectors come from a table instead of a model. For speed, a stand-in for the cross-encoder runs all of the
code around it; for quality there is none, so that the ranking compares with that of engines without one.
There is no floor, so that nothing that was found is held back.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Coroutine, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from opening import WordReranker

import hivemem
from engines.contract import Engine, Plan, Rows, Vector
from hivemem.app import open_services
from hivemem.domain.node import EnrichmentStatus
from hivemem.errors import HivememError
from hivemem.ports.models import Span
from hivemem.service.recall import RecallRequest
from hivemem.service.remember import StoreRequest
from hivemem.settings import load_settings
from hivemem.surfaces.readiness import wait_for_models

T = TypeVar("T")


class KnownVectors:
    """An embedder that looks vectors up; each text is one passage, as for the other engines."""

    model_id = "known"

    def __init__(self, dimension: int) -> None:
        self.dimension = dimension
        self.known: dict[str, Vector] = {}

    def passages(self, text: str) -> list[Span]:
        return [Span(0, len(text))] if text else []

    def embed_passages(self, texts: Sequence[str]) -> Vector:
        return np.array([self.known[text] for text in texts], np.float32)

    def embed_query(self, text: str) -> Vector:
        return self.known[text]


class HivememRecall(Engine):
    what = "recall of the real services on SQLite: legs, fusion, ranking, nodes read, no model"
    durability = "one commit with synchronous=FULL before the insert returns"
    version = hivemem.__version__

    def __init__(self, folder: Path, plan: Plan) -> None:
        self._plan = plan
        self._loop = asyncio.new_event_loop()
        self._embedder = KnownVectors(plan.dimension)
        self._run(self._open(folder))

    async def _open(self, folder: Path) -> None:
        settings = {
            "data_dir": str(folder),
            "embedder": f"hashing:{self._plan.dimension}",
            "reranker": "none",
            "max_import_batch": "1000",
            "projection_max_bytes": str(64 << 30),
            "rerank_budget_seconds": "60",
            "relevance_floor": "0",
        }
        self._services = await open_services(load_settings(settings, {}).settings)
        await wait_for_models(self._services)
        self._services.executor.use_embedder(self._embedder)
        self._services.hot.use_model(self._embedder.model_id, self._embedder.dimension)
        if self._plan.measure == "speed":
            self._services.executor.use_reranker(WordReranker())
        self._principal = await self._services.access.local_principal()

    def add(self, batches: Iterable[Rows]) -> None:
        for rows in batches:
            self._embedder.known = dict(zip(rows.texts, rows.vectors, strict=True))
            requests = [
                StoreRequest(key=id, description=text, node_type="fact")
                for id, text in zip(rows.ids, rows.texts, strict=True)
            ]
            for outcome in self._run(self._services.remember.store_many(self._principal, requests)):
                if isinstance(outcome, HivememError):
                    raise outcome
                if outcome.node.enrichment_status is EnrichmentStatus.PENDING:
                    raise RuntimeError(f"{outcome.node.key} has no vector: {outcome.warnings}")
        self._embedder.known = {}

    def ready(self) -> None:
        self._run(self._services.hot.fresh(self._principal.graph_id))

    def hybrid(self, text: str, vector: Vector, k: int) -> list[str]:
        self._embedder.known[text] = vector
        request = RecallRequest(query=text, max_results=k)
        result = self._run(self._services.recall.recall(self._principal, request))
        return [hit.node.key for hit in result.hits]

    def dense(self, vector: Vector, k: int) -> list[str]:
        index = self._run(self._services.hot.fresh(self._principal.graph_id))
        return [hit.key for hit in index.search_vectors(vector, self._plan.leg)[:k]]

    def insert(self, id: str, text: str, vector: Vector) -> None:
        self._embedder.known[text] = vector
        request = StoreRequest(key=id, description=text, node_type="fact")
        self._run(self._services.remember.store(self._principal, request))

    def settle(self) -> None:
        self._run(self._services.recall.close())

    def close(self) -> None:
        self._run(self._services.close())
        self._loop.close()

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return self._loop.run_until_complete(work)


ENGINE = HivememRecall
