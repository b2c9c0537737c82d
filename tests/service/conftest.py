"""Services on every store that the suite can open, with the hashing embedder."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from hivemem.domain.access import Principal, Scope
from hivemem.domain.node import Node
from hivemem.errors import Unavailable
from hivemem.models.executor import ModelExecutor
from hivemem.models.hashing import HashingEmbedder
from hivemem.ports.models import Span
from hivemem.ports.store import Store
from hivemem.service.limits import Limits
from hivemem.service.remember import Remember, StoreRequest, StoreResult
from hivemem.storage.memory import MemoryStore
from hivemem.storage.sqlite import SqliteStore
from tests.support.builders import FixedClock

GRAPH = "graph_one"
OWNER = Principal(user_id="user_one", graph_id=GRAPH, scope=Scope.OWNER)
READER = Principal(user_id="user_one", graph_id=GRAPH, scope=Scope.MEMBER)
LONG = "Three nodes are described at length here, so that the policy for three lets them be joined."


class CountingEmbedder:
    """A hashing embedder that remembers what it embedded, and can be told to fail."""

    def __init__(self, dimension: int = 64) -> None:
        self._inner = HashingEmbedder(dimension)
        self.embedded: list[str] = []
        self.fails = False

    @property
    def model_id(self) -> str:
        return self._inner.model_id

    @property
    def dimension(self) -> int:
        return self._inner.dimension

    def passages(self, text: str) -> list[Span]:
        return self._inner.passages(text)

    def embed_passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        if self.fails:
            raise Unavailable("the model does not answer.")
        self.embedded.extend(texts)
        return self._inner.embed_passages(texts)

    def embed_query(self, text: str) -> NDArray[np.float32]:
        return self._inner.embed_query(text)


async def open_store(kind: str, folder: Path) -> Store:
    return MemoryStore() if kind == "memory" else await SqliteStore.open(folder / "hivemem.db")


STORES = ["memory", "sqlite"]


@pytest.fixture(params=STORES)
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    opened = await open_store(request.param, tmp_path)
    yield opened
    await opened.close()


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock(step=timedelta(milliseconds=1))


@pytest.fixture
def embedder() -> CountingEmbedder:
    return CountingEmbedder()


@pytest.fixture
def executor(embedder: CountingEmbedder) -> Iterator[ModelExecutor]:
    made = ModelExecutor(embedder, None)
    yield made
    made.close()


@dataclass
class World:
    """A graph with the service that writes it, and short ways to use both."""

    store: Store
    remember: Remember
    clock: FixedClock
    embedder: CountingEmbedder
    executor: ModelExecutor

    async def put(
        self, key: str = "fact_a", description: str = "The ferry leaves at nine.", *items: Any, **fields: Any
    ) -> StoreResult:
        request = StoreRequest(key=key, description=description, relationships=items, **fields)
        return await self.remember.store(OWNER, request)

    async def node(self, key: str) -> Node:
        return (await self.store.nodes(GRAPH, [key]))[key]

    async def passages(self, key: str) -> list[str]:
        """The source of each stored passage of a node, in the present model's space."""
        page = await self.store.changes(GRAPH, 0, model_id=self.embedder.model_id, limit=100_000)
        [found] = [changed for changed in page.nodes if changed.node.key == key]
        return [passage.source for passage in found.passages]


@pytest.fixture
def world(store: Store, executor: ModelExecutor, embedder: CountingEmbedder, clock: FixedClock) -> World:
    remember = Remember(store=store, executor=executor, clock=clock, limits=Limits())
    return World(store=store, remember=remember, clock=clock, embedder=embedder, executor=executor)
