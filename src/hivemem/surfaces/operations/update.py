"""hm_update: change some fields of a node, or an edge."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from hivemem.domain.access import Principal
from hivemem.domain.text import JsonObject
from hivemem.errors import InvalidInput
from hivemem.service.remember import UpdateRequest
from hivemem.surfaces.answers import BinaryEdge, NodeRecord, WriteAnswer
from hivemem.surfaces.inputs import Input
from hivemem.surfaces.operations.operation import Access, Operation, RestRoute
from hivemem.surfaces.operations.target import one_target
from hivemem.surfaces.presentation import edge_entry, node_record, with_warnings
from hivemem.surfaces.services import Services
from hivemem.surfaces.shortening import fit_node_entry

_ROOM_BESIDE_NODE = 1_000


class UpdateInput(Input):
    """Arguments of hm_update."""

    key: str | None = Field(None, description="Node to change; either this or edge_id.")
    edge_id: str | None = Field(None, description="Edge to change; hyperedges never change.")
    edge_version: int | None = Field(
        None, ge=0, description="write_version that the edge must still have; with edge_id only."
    )
    description: str | None = Field(None, description="New text; replaces the stored one.")
    node_type: str | None = Field(None, description="New type of a node, as in hm_store.")
    data: dict[str, Any] | None = Field(
        None,
        description="Node: replaces the stored object. Edge: merged; its semantic_relationship is the label.",
    )
    assets: list[str] | None = Field(None, description="Ids of uploaded files, or URLs; replaces the list.")
    search_text: str | None = Field(None, description="Further text to find the node by; not shown.")


class UpdateAnswer(WriteAnswer):
    """Answer of hm_update: the node or the edge as it is now."""

    status: Literal["updated"]
    key: str | None = None
    updated: str | None = Field(None, description="Same as key.")
    node: NodeRecord | None = None
    edge_id: str | None = None
    edge: BinaryEdge | None = None
    write_version: int
    warnings: list[str] | None = None


async def _update(services: Services, principal: Principal, sent: UpdateInput) -> JsonObject:
    if one_target(sent.key, sent.edge_id, sent.edge_version) == "key":
        return await _update_node(services, principal, sent)
    for name in ("node_type", "assets", "search_text"):
        if getattr(sent, name) is not None:
            raise InvalidInput(f"/{name} belongs to nodes; an edge has a description and data.")
    edge = await services.change.update_edge(
        principal,
        sent.edge_id or "",
        expected=sent.edge_version,
        description=sent.description,
        data=sent.data,
    )
    return {
        "status": "updated",
        "edge_id": edge.edge_id,
        "edge": edge_entry(edge, edge.from_key),
        "write_version": edge.write_version,
    }


async def _update_node(services: Services, principal: Principal, sent: UpdateInput) -> JsonObject:
    result = await services.remember.update(
        principal,
        UpdateRequest(
            key=sent.key or "",
            description=sent.description,
            node_type=sent.node_type,
            data=sent.data,
            assets=None if sent.assets is None else tuple(sent.assets),
            search_text=sent.search_text,
        ),
    )
    node = result.node
    room = services.settings.max_answer_bytes - _ROOM_BESIDE_NODE
    entry = fit_node_entry({"node": node_record(node)}, room, "hm_get_nodes with this key alone has all")
    answer: JsonObject = {
        "status": "updated",
        "key": node.key,
        "updated": node.key,
        "node": entry["node"],
        "write_version": node.write_version,
    }
    return with_warnings(answer, result.warnings)


UPDATE = Operation(
    name="hm_update",
    summary="Change fields of a node (key) or of an edge (edge_id). Only what is sent changes; earlier "
    "versions are kept.",
    input=UpdateInput,
    output=UpdateAnswer,
    access=Access.WRITE,
    idempotent=True,
    routes=(RestRoute(method="POST", path="/update"),),
    verb="update",
    handler=_update,
)
