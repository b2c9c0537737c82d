"""Delete means delete: the content of removed graphs leaves the database, the files and the indexes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from hivemem.domain.access import Principal
from hivemem.domain.accounts import Leftovers
from hivemem.domain.graph import GraphId
from hivemem.ports.clock import Clock
from hivemem.ports.files import Files
from hivemem.ports.store import AccountStore, PurgeStore
from hivemem.service.audit import AuditLog

_AGAIN_FOR = timedelta(hours=1)
"""So long content is looked for again: a write under way when its graph was removed can come later."""

_FORGET_AGAIN_FOR = timedelta(minutes=5)


class HotIndexes(Protocol):
    """The search indexes in memory."""

    def drop(self, graph_id: GraphId) -> None:
        """Forget a graph."""
        ...


class RemovableStore(AccountStore, PurgeStore, Protocol):
    """What of a store this use case needs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PurgeResult:
    """How many graphs were emptied, and how many rows went."""

    graphs: int
    rows: int


class Purging:
    """Removes what is left of removed graphs, and shows that nothing is."""

    def __init__(
        self,
        *,
        store: RemovableStore,
        files_of: Callable[[GraphId], Files],
        hot: HotIndexes,
        audit: AuditLog,
        clock: Clock,
    ) -> None:
        self._store = store
        self._files_of = files_of
        self._hot = hot
        self._audit = audit
        self._clock = clock
        self._seen_until: datetime | None = None

    async def run(self) -> PurgeResult:
        """Remove all content of removed graphs, a few thousand rows at a time, so that writers get between.

        Several processes may do it at once. Raises what the store raises; what is left is found again.
        """
        graphs = rows = 0
        for deleted in await self._store.deleted_graphs(self._clock.now() - _AGAIN_FOR):
            self._hot.drop(deleted.graph_id)
            await self._files_of(deleted.graph_id).remove_all()
            removed = 0
            while step := await self._store.purge_graph(deleted.graph_id):
                removed += step
            rows += removed
            if deleted.purged_at is None:
                graphs += 1
                await self._store.graph_purged(deleted.graph_id, self._clock.now())
                await self._audit.record(
                    "graph.purge",
                    graph_id=deleted.graph_id,
                    target=deleted.graph_id,
                    detail={"rows": removed},
                )
        return PurgeResult(graphs=graphs, rows=rows)

    async def forget_removed(self) -> None:
        """Drop the indexes of graphs that were removed since the last call, through whichever replica."""
        now = self._clock.now()
        since = self._seen_until or now - _AGAIN_FOR
        # A search that was under way can have loaded an index again, and clocks of servers differ.
        self._seen_until = now - _FORGET_AGAIN_FOR
        for deleted in await self._store.deleted_graphs(since):
            self._hot.drop(deleted.graph_id)

    async def reclaim(self, actor: Principal) -> None:
        """Overwrite and give back the room of what was removed; takes long, and as much room again."""
        actor.require_operator()
        await self._store.reclaim()

    async def check(self, actor: Principal) -> Leftovers:
        """What belongs to no graph, user or organization: rows by table, and `files` for graphs' files.

        Empty when nothing is left of what was removed. Reads every table whole.
        """
        actor.require_operator()
        found = dict(await self._store.leftovers())
        files = 0
        for deleted in await self._store.deleted_graphs(
            datetime.min.replace(tzinfo=self._clock.now().tzinfo)
        ):
            kept = self._files_of(deleted.graph_id)
            left = len([blob async for blob in kept.list()])
            files += left
            if not left:
                await kept.remove_all()  # the empty folder that looking made
        if files:
            found["file bytes"] = files
        return found
