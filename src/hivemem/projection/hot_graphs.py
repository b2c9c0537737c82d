"""The graphs that are in memory, each brought up to date when it is asked for."""

from __future__ import annotations

import asyncio
from collections import OrderedDict

from hivemem.domain.graph import GraphId
from hivemem.ports.store import GraphStore
from hivemem.projection.graph_index import GraphIndex


class HotGraphs:
    """A cache of graph indexes, bounded in bytes, that never answers with an old state.

    Belongs to one event loop. Applying changes runs in a thread, so the loop stays free; but for a page so
    small that handing it to a thread would take longer.

    Args:
        store: The truth.
        model_id: Whose vectors are loaded.
        dimension: Length of these vectors; 0 when there is no embedder.
        max_bytes: Above this the least recently used graphs are dropped; one always stays.
        page_rows: Rows asked for at a time while catching up.

    Attributes:
        loads: Indexes begun so far.
        evictions: Indexes dropped so far to keep within `max_bytes`.
    """

    def __init__(
        self,
        store: GraphStore,
        model_id: str,
        dimension: int,
        max_bytes: int,
        *,
        page_rows: int = 1000,
    ) -> None:
        self._store = store
        self._model_id = model_id
        self._dimension = dimension
        self._max_bytes = max_bytes
        self._page_rows = page_rows
        self._indexes: OrderedDict[GraphId, GraphIndex] = OrderedDict()
        self._catching_up: dict[GraphId, asyncio.Task[GraphIndex]] = {}
        # Indexes of an earlier model have another number.
        self._generation = 0
        self.loads = 0
        self.evictions = 0

    @property
    def size_bytes(self) -> int:
        """Memory held by all hot graphs, estimated. May be asked for in any thread."""
        return sum(index.size_bytes for index in list(self._indexes.values()))

    @property
    def graph_ids(self) -> tuple[GraphId, ...]:
        """The hot graphs, least recently used first."""
        return tuple(self._indexes)

    async def fresh(self, graph_id: GraphId) -> GraphIndex:
        """The index of a graph, showing every write that had returned before this call.

        Costs one indexed read when nothing changed. Calls for one graph share one catch-up.

        Raises:
            Unavailable: The store does not answer; the same call can succeed later.
            Corruption: A stored vector does not fit the model.
        """
        known = self._indexes.get(graph_id)
        shown = known.revision if known is not None else 0
        wanted = await self._store.revision(graph_id)
        if known is not None and wanted < shown and self._indexes.get(graph_id) is known:
            # The database was put back to an earlier state, from a backup for example.
            self.drop(graph_id)
        index = self._indexes.get(graph_id)
        while index is None or index.revision < wanted:
            # A catch-up that was already running may have read before a write this caller knows of;
            # then a second one follows.
            generation = self._generation
            index = await self._caught_up(graph_id)
            if generation != self._generation:
                index = None
            elif index.revision < wanted:
                wanted = await self._store.revision(graph_id)
        if graph_id in self._indexes:
            self._indexes.move_to_end(graph_id)
        self._evict(keep=graph_id)
        return index

    def use_model(self, model_id: str, dimension: int) -> None:
        """Follow the vectors of another model from now on; all indexes are loaded anew."""
        if (model_id, dimension) == (self._model_id, self._dimension):
            return
        self._model_id, self._dimension = model_id, dimension
        self._generation += 1
        self._indexes.clear()
        # A catch-up that is running builds an index of the old model; nobody new may wait for it.
        self._catching_up.clear()

    def drop(self, graph_id: GraphId) -> None:
        """Forget the index of a graph; the next `fresh` loads it anew."""
        self._indexes.pop(graph_id, None)

    async def _caught_up(self, graph_id: GraphId) -> GraphIndex:
        task = self._catching_up.get(graph_id)
        # One that is done and not yet taken out is awaited without a pause: a caller who knows of a later
        # write would join it again and again, and nothing else would ever run.
        if task is None or task.done():
            task = asyncio.create_task(self._catch_up(graph_id), name=f"catch-up {graph_id}")
            self._catching_up[graph_id] = task
            task.add_done_callback(lambda done: self._finish(graph_id, done))
        # A caller that is cancelled must not take the others' work with it.
        return await asyncio.shield(task)

    def _finish(self, graph_id: GraphId, task: asyncio.Task[GraphIndex]) -> None:
        if self._catching_up.get(graph_id) is task:
            del self._catching_up[graph_id]
        if not task.cancelled():
            # Every waiter may have been cancelled; an error nobody fetches would only be logged.
            task.exception()

    async def _catch_up(self, graph_id: GraphId) -> GraphIndex:
        model_id = self._model_id
        index = self._indexes.get(graph_id)
        if index is None:
            index = self._indexes[graph_id] = GraphIndex(self._dimension)
            self.loads += 1
        more = True
        while more:
            page = await self._store.changes(
                graph_id, index.revision, model_id=model_id, limit=self._page_rows
            )
            try:
                if not index.apply_at_once(page):
                    await asyncio.to_thread(index.apply, page)
            except BaseException:
                # Applied in part: nothing that it says can be trusted.
                if self._indexes.get(graph_id) is index:
                    self.drop(graph_id)
                raise
            self._evict(keep=graph_id)
            more = page.more
        return index

    def _evict(self, *, keep: GraphId) -> None:
        excess = self.size_bytes - self._max_bytes
        for graph_id in list(self._indexes):
            if excess <= 0:
                return
            if graph_id != keep and graph_id not in self._catching_up:
                excess -= self._indexes[graph_id].size_bytes
                self.drop(graph_id)
                self.evictions += 1
