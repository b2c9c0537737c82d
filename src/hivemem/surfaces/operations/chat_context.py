"""hm_get_chat_context: what a conversation touched."""

from __future__ import annotations

from pydantic import Field

from hivemem.domain.access import Principal
from hivemem.domain.graph import SessionTouch
from hivemem.domain.node import Node
from hivemem.domain.text import JsonObject
from hivemem.surfaces.answers import Answer, NodeRecord
from hivemem.surfaces.inputs import Input
from hivemem.surfaces.operations.operation import Access, Operation
from hivemem.surfaces.presentation import node_record, timestamp, with_warnings
from hivemem.surfaces.services import Services
from hivemem.surfaces.shortening import Item, fit_items, fit_node_entry

_MIN_NODE_BYTES = 450
_ROOM_BESIDE_NODES = 800


class ChatContextInput(Input):
    """Arguments of hm_get_chat_context."""

    session_id: str = Field("default", description="The conversation.")


class TouchedNode(NodeRecord):
    """A node that the conversation touched."""

    touch_count: int
    first_touched_at: str
    last_touched_at: str


class SessionHyperedge(Answer):
    """What groups the nodes of a conversation."""

    hyperedge_id: str
    relationship: str


class ChatContextAnswer(Answer):
    """Answer of hm_get_chat_context."""

    session_id: str
    nodes: list[TouchedNode] = Field(description="Last touched first.")
    count: int
    tool_calls: int
    hyperedge: SessionHyperedge | None = Field(description="Made after five tool calls.")
    nodes_omitted: int | None = Field(None, description="Nodes left out to keep the answer short.")
    warnings: list[str] | None = None


async def _context(services: Services, principal: Principal, sent: ChatContextInput) -> JsonObject:
    result = await services.chat_context.context(principal, sent.session_id)
    items = [_item(node, touch) for node, touch in result.nodes]
    room = services.settings.max_answer_bytes - _ROOM_BESIDE_NODES
    kept, omitted = fit_items(items, room, _MIN_NODE_BYTES, _fit)
    group = result.hyperedge
    answer: JsonObject = {
        "session_id": result.session_id,
        "nodes": list(kept),
        "count": len(kept),
        "tool_calls": result.tool_calls,
        "hyperedge": None
        if group is None
        else {"hyperedge_id": group.hyperedge_id, "relationship": group.relationship},
    }
    if omitted:
        answer["nodes_omitted"] = omitted
    notes = [f"{omitted} nodes touched earlier were left out to keep the answer short"]
    return with_warnings(answer, notes if omitted else [])


def _item(node: Node, touch: SessionTouch) -> Item:
    return {
        **node_record(node),
        "touch_count": touch.touch_count,
        "first_touched_at": timestamp(touch.first_touched_at),
        "last_touched_at": timestamp(touch.last_touched_at),
    }


def _fit(item: Item, size: int) -> Item:
    return fit_node_entry({"node": item}, size, "hm_get_nodes returns the whole record")["node"]


CHAT_CONTEXT = Operation(
    name="hm_get_chat_context",
    summary="What a conversation has read and written so far: call it to pick up a conversation again.",
    input=ChatContextInput,
    output=ChatContextAnswer,
    access=Access.READ,
    idempotent=True,
    # The documented service has no REST route for it.
    routes=(),
    verb="context",
    arguments=(),
    handler=_context,
)
