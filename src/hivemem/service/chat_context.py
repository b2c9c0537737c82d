"""hm_get_chat_context: what a conversation touched."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from hivemem.domain.access import Principal
from hivemem.domain.edge import Hyperedge
from hivemem.domain.graph import SessionTouch
from hivemem.domain.node import Node
from hivemem.ports.store import GraphStore, SessionStore
from hivemem.service.limits import checked_session_id
from hivemem.service.session_groups import SessionGroups, session_hyperedge_id
from hivemem.service.session_touches import SessionTouches

MAX_NODES = 200


class ChatContextStore(GraphStore, SessionStore, Protocol):
    """What of a store this use case needs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatContextResult:
    """The nodes of a conversation, last touched first; nothing for one that is not known."""

    session_id: str
    nodes: tuple[tuple[Node, SessionTouch], ...]
    tool_calls: int
    hyperedge: Hyperedge | None


class ChatContext:
    """Rebuilds the picture of a conversation from what it touched."""

    def __init__(self, *, store: ChatContextStore, touches: SessionTouches, groups: SessionGroups) -> None:
        self._store = store
        self._touches = touches
        self._groups = groups

    async def context(self, principal: Principal, session_id: str) -> ChatContextResult:
        """What the calls of a conversation read and wrote, those of this moment included.

        Raises:
            InvalidInput: A session id that cannot exist.
            Unavailable: The store is busy or down.
        """
        session_id, graph_id = checked_session_id(session_id), principal.graph_id
        await self._touches.written()
        await self._groups.written()
        session = await self._store.session(graph_id, session_id)
        touched = await self._store.touched(graph_id, session_id, limit=MAX_NODES)
        nodes = await self._store.nodes(graph_id, [touch.key for touch in touched])
        id = session_hyperedge_id(session_id)
        return ChatContextResult(
            session_id=session_id,
            nodes=tuple((nodes[touch.key], touch) for touch in touched if touch.key in nodes),
            tool_calls=0 if session is None else session.tool_calls,
            hyperedge=(await self._store.hyperedges(graph_id, [id])).get(id),
        )
