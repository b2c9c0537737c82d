"""Which conversation touched which memories, written beside the answer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection

from hivemem.domain.graph import GraphId
from hivemem.errors import NotFound, Unavailable
from hivemem.ports.clock import Clock
from hivemem.ports.store import SessionStore


class SessionTouches:
    """Records touches after the call that made them: a write to disk must not delay an answer.

    A touch is a hint for ranking and for the picture of a conversation. Use cases that read touches
    wait for `written` first, so a conversation always sees its own. A store too busy for a touch says
    so to the next call that needs it; the hint is then lost, the memory is not.

    Args:
        store: Where touches are kept.
        clock: When they happened.
        on_call: Told graph and session of each stored call.
    """

    def __init__(
        self,
        *,
        store: SessionStore,
        clock: Clock,
        on_call: Callable[[GraphId, str], None] | None = None,
    ) -> None:
        self._store = store
        self._clock = clock
        self._on_call = on_call
        self._writing: set[asyncio.Task[None]] = set()

    def record(self, graph_id: GraphId, session_id: str, keys: Collection[str]) -> None:
        """Note that one call of the conversation touched `keys`; nothing for no keys."""
        if not keys:
            return
        task = asyncio.create_task(
            self._write(graph_id, session_id, tuple(keys)), name=f"touches of {session_id}"
        )
        self._writing.add(task)
        task.add_done_callback(self._writing.discard)

    async def written(self) -> None:
        """Return when every touch recorded so far is stored or lost."""
        if self._writing:
            await asyncio.wait(set(self._writing))

    async def _write(self, graph_id: GraphId, session_id: str, keys: Collection[str]) -> None:
        try:
            await self._store.touch(graph_id, session_id, keys, self._clock.now())
        except (Unavailable, NotFound):
            # Too busy, or the graph was deleted meanwhile.
            return
        if self._on_call is not None:
            self._on_call(graph_id, session_id)
