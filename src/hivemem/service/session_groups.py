"""The hyperedge that groups what a conversation touched, from its fifth tool call on."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
from dataclasses import replace
from datetime import datetime
from typing import Protocol

from hivemem.domain.edge import MIN_SESSION_PARTICIPANTS, SESSION_LABEL_PREFIX, Hyperedge, Participant
from hivemem.domain.graph import GraphId, HyperedgeWrite, WriteBatch
from hivemem.errors import HivememError
from hivemem.ports.clock import Clock
from hivemem.ports.store import GraphStore, SessionStore
from hivemem.service.limits import DEFAULT_SESSION
from hivemem.service.planned_writes import PlannedWrites

MIN_TOOL_CALLS = 5
MAX_GROUPED = 200
"""The nodes touched last are grouped; a conversation that touches more drops the oldest."""


class SessionGroupStore(GraphStore, SessionStore, Protocol):
    """What of a store this use case needs."""


def session_hyperedge_id(session_id: str) -> str:
    """The id of a conversation's hyperedge, the same in every process."""
    return f"session_{hashlib.sha256(session_id.encode()).hexdigest()[:20]}"


class SessionGroups:
    """Keeps the groups of conversations up to date, beside the calls that touch them.

    Calls that follow quickly are answered by one write. A store that is too busy is asked again at the next
    call; the touches themselves are already stored.

    Args:
        store: Where conversations and hyperedges are.
        clock: The time of a change.
        delay_seconds: How long to wait for further calls.
    """

    def __init__(self, *, store: SessionGroupStore, clock: Clock, delay_seconds: float = 0.5) -> None:
        self._store = store
        self._clock = clock
        self._delay = delay_seconds
        self._writes = PlannedWrites(store)
        self._waiting: set[tuple[GraphId, str]] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._hurry = asyncio.Event()

    def called(self, graph_id: GraphId, session_id: str) -> None:
        """Note that a call of the conversation was stored.

        Calls without a session of their own share one, which is no conversation and gets no group.
        """
        place = (graph_id, session_id)
        if session_id == DEFAULT_SESSION or place in self._waiting:
            return
        task = asyncio.create_task(self._later(place), name=f"group of {session_id}")
        self._waiting.add(place)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def written(self) -> None:
        """Return when every conversation noted so far has its group."""
        self._hurry.set()
        while self._tasks:
            await asyncio.wait([*self._tasks])
        self._hurry.clear()

    async def group(self, graph_id: GraphId, session_id: str) -> None:
        """Bring a conversation's hyperedge up to date; nothing for less than five calls or two nodes."""
        session = await self._store.session(graph_id, session_id)
        if session is None or session.tool_calls < MIN_TOOL_CALLS:
            return

        async def plan() -> tuple[WriteBatch | None, None]:
            touched = await self._store.touched(graph_id, session_id, limit=MAX_GROUPED)
            keys = sorted(touched, key=lambda touch: (touch.first_touched_at, touch.key))
            wanted = tuple(touch.key for touch in keys)
            id = session_hyperedge_id(session_id)
            present = (await self._store.hyperedges(graph_id, [id])).get(id)
            if len(wanted) < MIN_SESSION_PARTICIPANTS or (present and set(present.keys) == set(wanted)):
                return None, None
            changed = _grouping(session_id, present, wanted, self._clock.now())
            write = HyperedgeWrite(hyperedge=changed, expected=present.write_version if present else 0)
            return WriteBatch(at=changed.updated_at, hyperedges=(write,)), None

        await self._writes.run(graph_id, f"the group of {session_id!r} was not stored", plan)

    async def _later(self, place: tuple[GraphId, str]) -> None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._hurry.wait(), self._delay)
        # A call from now on may be too late for the reading below, and is noted anew.
        self._waiting.discard(place)
        with contextlib.suppress(HivememError):
            await self.group(*place)


def _grouping(session_id: str, present: Hyperedge | None, keys: tuple[str, ...], at: datetime) -> Hyperedge:
    participants = tuple(Participant(node_key=key, ordinal=ordinal) for ordinal, key in enumerate(keys))
    if present is not None:
        version = present.write_version + 1
        return replace(present, participants=participants, write_version=version, updated_at=at)
    return Hyperedge(
        hyperedge_id=session_hyperedge_id(session_id),
        relationship=SESSION_LABEL_PREFIX + session_id,
        participants=participants,
        description=f"What the conversation {session_id} touched",
        created_at=at,
        updated_at=at,
    )
