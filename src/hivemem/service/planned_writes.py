"""Plan on what is there now, apply, and plan again when somebody else was faster."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import TypeVar
from weakref import WeakValueDictionary

from hivemem.domain.graph import GraphId, WriteBatch
from hivemem.errors import StaleWrite, Unavailable
from hivemem.ports.store import GraphStore

MAX_ATTEMPTS = 20
JITTER_SECONDS = 0.002

PlanT = TypeVar("PlanT")


class PlannedWrites:
    """Writes of one process that read before they write.

    Most do not touch each other's rows, and a store commits them in groups. One that lost a race takes
    turns with the other losers of its graph, so that callers of this process do not use up each other's
    attempts.
    """

    def __init__(self, store: GraphStore) -> None:
        self._store = store
        self._turns: WeakValueDictionary[GraphId, asyncio.Lock] = WeakValueDictionary()

    async def run(
        self, graph_id: GraphId, what: str, plan: Callable[[], Awaitable[tuple[WriteBatch | None, PlanT]]]
    ) -> PlanT:
        """Apply what `plan` returns, and return its second part; see `apply`."""
        planned, _ = await self.apply(graph_id, what, plan)
        return planned

    async def apply(
        self, graph_id: GraphId, what: str, plan: Callable[[], Awaitable[tuple[WriteBatch | None, PlanT]]]
    ) -> tuple[PlanT, int | None]:
        """Apply what `plan` returns; its second part, and the revision, None when nothing was written.

        Args:
            graph_id: The graph to write.
            what: For the message, such as "'fact_a' was not forgotten".
            plan: Reads the present state and plans on it; a batch of None writes nothing. What it raises
                ends the write. Others may wait for it: it should do nothing that takes long.

        Raises:
            Unavailable: Others were faster every time, or the store is down.
        """
        turn = self._turns.setdefault(graph_id, asyncio.Lock())
        for attempt in range(MAX_ATTEMPTS):
            if attempt:
                await asyncio.sleep(random.uniform(0, JITTER_SECONDS * attempt))
                await turn.acquire()
            try:
                batch, planned = await plan()
                return planned, None if batch is None else await self._store.apply(graph_id, batch)
            except StaleWrite:
                continue
            finally:
                if attempt:
                    turn.release()
        raise outrun(what)


def outrun(what: str) -> Unavailable:
    """The error of a write that others were faster than, every time."""
    return Unavailable(
        f"{what}: other writers changed the same things {MAX_ATTEMPTS} times in a row. Send it again."
    )
