"""A whole memory in a temporary folder: the real composition root, the real models, SQLite."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from hivemem.app import OpenServices, open_services
from hivemem.domain.access import Principal
from hivemem.domain.graph import Deletion, Kind, WriteBatch
from hivemem.domain.keys import normalise_key
from hivemem.domain.node import Node
from hivemem.errors import HivememError
from hivemem.service.nodes import NodesRequest, NodesResult
from hivemem.service.overview import OverviewResult
from hivemem.service.recall import RecallRequest, RecallResult
from hivemem.service.remember import StoreRequest, StoreResult
from hivemem.settings import load_settings
from hivemem.surfaces.operations import OPERATIONS

_TURNS = 3_000
_TURN_SECONDS = 0.01


class Memory:
    """A memory that can be closed and opened again on the same folder."""

    def __init__(self, folder: Path, **settings: object) -> None:
        self.folder = folder
        self._settings = settings
        self._opened: OpenServices | None = None
        self._owner: Principal | None = None

    @property
    def services(self) -> OpenServices:
        assert self._opened is not None
        return self._opened

    @property
    def owner(self) -> Principal:
        assert self._owner is not None
        return self._owner

    async def open(self, *, background: bool = True) -> None:
        """Open the folder like a server does and wait for the models, which may fail to load."""
        loaded = load_settings({"data_dir": str(self.folder), **self._settings}, {})
        self._opened = await open_services(loaded.settings, background=background)
        self._owner = await self.services.access.local_principal()
        await until(lambda: not self.services.models_loading)

    async def close(self) -> None:
        if self._opened is not None:
            await self._opened.close()
            self._opened = None

    async def restart(self, *, background: bool = True) -> None:
        await self.close()
        await self.open(background=background)

    async def settled(self) -> None:
        """Wait until every node has a vector of the present model."""
        embedder = self.services.executor.embedder
        assert embedder is not None
        self.services.background.embed_pending(self.owner.graph_id)
        for _ in range(_TURNS):
            if not await self.services.store.without_vectors(self.owner.graph_id, embedder.model_id):
                return
            await asyncio.sleep(_TURN_SECONDS)
        raise AssertionError("some nodes still have no vector")

    async def store(self, key: str, description: str, *relationships: Any, **fields: Any) -> StoreResult:
        request = StoreRequest(key=key, description=description, relationships=relationships, **fields)
        return await self.services.remember.store(self.owner, request)

    async def store_all(self, requests: Sequence[StoreRequest]) -> list[StoreResult | HivememError]:
        return await self.services.remember.store_many(self.owner, requests)

    async def notes(self, texts: Mapping[str, str]) -> None:
        """Store one memory a key; all must succeed."""
        for outcome in await self.store_all([StoreRequest(key=k, description=t) for k, t in texts.items()]):
            assert isinstance(outcome, StoreResult), outcome

    async def recall(self, query: str, **fields: Any) -> RecallResult:
        return await self.services.recall.recall(self.owner, RecallRequest(query=query, **fields))

    async def keys(self, query: str, **fields: Any) -> list[str]:
        """The keys that answer, best first."""
        return keys_of(await self.recall(query, **fields))

    async def nodes(self, *keys: str, **fields: Any) -> NodesResult:
        return await self.services.nodes.nodes(self.owner, NodesRequest(keys=keys, **fields))

    async def node(self, key: str) -> Node:
        return (await self.nodes(key)).found[key].node

    async def overview(self) -> OverviewResult:
        return await self.services.overview.overview(self.owner)

    async def delete(self, key: str) -> None:
        await remove(self.services, self.owner, key)

    async def answer(self, tool: str, **arguments: object) -> dict[str, Any]:
        """What the surfaces answer, shortened as for an agent."""
        operation = next(one for one in OPERATIONS if one.name == tool)
        return await operation.run(self.services, self.owner, arguments)


async def remove(services: OpenServices, owner: Principal, key: str) -> None:
    """Take a node away through the store port, its key in its stored form as on every entrance."""
    store, graph_id, key = services.store, owner.graph_id, normalise_key(key)
    node = (await store.nodes(graph_id, [key]))[key]
    deletion = Deletion(kind=Kind.NODE, id=key, expected=node.write_version)
    await store.apply(graph_id, WriteBatch(at=services.clock.now(), deletions=(deletion,)))


def keys_of(result: RecallResult) -> list[str]:
    return [hit.node.key for hit in result.hits]


async def until(condition: Any) -> None:
    """Let others work until `condition()` is true."""
    for _ in range(_TURNS):
        if condition():
            return
        await asyncio.sleep(_TURN_SECONDS)
    raise AssertionError("what was waited for did not happen")


@asynccontextmanager
async def opened(folder: Path, **settings: object) -> AsyncIterator[Memory]:
    memory = Memory(folder, **settings)
    try:
        await memory.open()
        yield memory
    finally:
        await memory.close()
