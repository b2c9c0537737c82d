"""A graph with everything that recall needs: the hashing embedder and a reranker that counts words."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from hivemem.domain.access import Principal
from hivemem.models.executor import ModelExecutor
from hivemem.models.hashing import HashingEmbedder
from hivemem.ports.models import Embedder, Reranker
from hivemem.ports.store import Store
from hivemem.projection.hot_graphs import HotGraphs
from hivemem.retrieval.ranking import Calibration
from hivemem.service.limits import Limits
from hivemem.service.recall import Recall, RecallRequest, RecallResult, RerankLimits
from hivemem.service.remember import Remember, StoreRequest
from tests.service.conftest import GRAPH, OWNER
from tests.support.builders import FixedClock, batch, delete
from tests.support.calibration import CALIBRATION

READS = RerankLimits(
    depth=24,
    context_depth=16,
    tokens=4000,
    passage_characters=700,
    neighbour_characters=120,
    budget_seconds=60.0,
)

_SMALL_WORDS = frozenset(
    ("and", "are", "at", "for", "in", "is", "of", "on", "the", "to", "was", "which", "who")
)


def told_words(text: str) -> set[str]:
    return {word for word in re.findall(r"\w+", text.lower()) if word not in _SMALL_WORDS}


class OverlapReranker:
    """The logit runs from -6 to 6 with the share of the question's words that the text holds."""

    model_id = "overlap"
    window_characters = 2_000

    def __init__(self) -> None:
        self.read: list[str] = []

    def score(self, query: str, texts: Sequence[str]) -> NDArray[np.float32]:
        self.read.extend(texts)
        wanted = told_words(query)
        shares = [len(wanted & told_words(text)) / max(1, len(wanted)) for text in texts]
        return np.array([12.0 * share - 6.0 for share in shares], np.float32)


class RecallWorld:
    """The two use cases on one store, and short ways to use them."""

    def __init__(
        self,
        store: Store,
        *,
        embedder: Embedder | None,
        reranker: Reranker | None,
        embedder_problem: str | None = None,
        reranker_problem: str | None = None,
        executor: ModelExecutor | None = None,
        calibration: Calibration = CALIBRATION,
        reads: RerankLimits = READS,
        limits: Limits | None = None,
        regex_seconds: float = 60.0,
    ) -> None:
        self.store = store
        self.clock = FixedClock()
        self.embedder = embedder
        self.reranker = reranker
        self.executor = executor or ModelExecutor(
            embedder, reranker, embedder_problem=embedder_problem, reranker_problem=reranker_problem
        )
        self.hot = HotGraphs(
            store,
            model_id=embedder.model_id if embedder else "",
            dimension=embedder.dimension if embedder else 0,
            max_bytes=1 << 30,
        )
        limits = limits or Limits()
        self.remember = Remember(store=store, executor=self.executor, clock=self.clock, limits=limits)
        self.service = Recall(
            store=store,
            hot=self.hot,
            executor=self.executor,
            clock=self.clock,
            limits=limits,
            calibration=calibration,
            rerank=reads,
            regex_seconds=regex_seconds,
        )

    async def put(self, key: str, description: str, *relationships: Any, **fields: Any) -> None:
        self.clock.advance(seconds=1)
        request = StoreRequest(key=key, description=description, relationships=relationships, **fields)
        await self.remember.store(OWNER, request)

    async def put_all(self, texts: dict[str, str]) -> None:
        for key, text in texts.items():
            await self.put(key, text)

    async def delete(self, *keys: str) -> None:
        nodes = await self.store.nodes(GRAPH, keys)
        await self.store.apply(GRAPH, batch(*(delete(nodes[key]) for key in keys)))

    async def recall(self, query: str, *, by: Principal = OWNER, **fields: Any) -> RecallResult:
        return await self.service.recall(by, RecallRequest(query=query, **fields))

    async def keys(self, query: str, **fields: Any) -> list[str]:
        return keys_of(await self.recall(query, **fields))

    async def close(self) -> None:
        await self.service.close()
        self.executor.close()


def keys_of(result: RecallResult) -> list[str]:
    return [hit.node.key for hit in result.hits]


def to(key: str, label: str = "belongs to") -> dict[str, str]:
    """A relationship of the node that is being stored."""
    return {"to_key": key, "relationship": label}


Build = Callable[..., RecallWorld]


@pytest.fixture
async def build(store: Store) -> AsyncIterator[Build]:
    """Makes worlds on the store; what is not given is the embedder and reranker of these tests."""
    made: list[RecallWorld] = []

    def make(**parts: Any) -> RecallWorld:
        parts = {"embedder": HashingEmbedder(64), "reranker": OverlapReranker(), **parts}
        made.append(RecallWorld(parts.pop("store", store), **parts))
        return made[-1]

    yield make
    for one in made:
        await one.close()


HARBOUR = {
    "place_harbour": "The harbour office opens at seven and sells day tickets for the jetty.",
    "person_ola": "Ola repairs outboard motors in the shed behind the harbour.",
    "fact_tide": "High tide on Sunday is at noon, low tide in the evening.",
    "fact_rope": "The blue rope is for the anchor, the white rope for the sails.",
    "decision_paint": "We decided to paint the hull green after the winter.",
    "event_race": "The summer race starts at the lighthouse in July.",
}
