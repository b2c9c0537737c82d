"""hm_find_related: what lies around a node."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from hivemem.domain.access import Principal
from hivemem.domain.text import JsonObject
from hivemem.service.find_related import FindRelatedRequest, RelatedNode
from hivemem.surfaces.answers import Answer
from hivemem.surfaces.inputs import Input
from hivemem.surfaces.operations.operation import Access, Operation, RestRoute
from hivemem.surfaces.presentation import with_warnings
from hivemem.surfaces.services import Services
from hivemem.surfaces.shortening import Item, fit_items, shorten_label, shorten_text
from hivemem.surfaces.wire_json import json_size

_MIN_ITEM_BYTES = 450
_ROOM_BESIDE_RESULTS = 600


class FindRelatedInput(Input):
    """Arguments of hm_find_related."""

    start_node: str = Field(description="Key of the node to start from.")
    query: str | None = Field(None, description="What you look for: orders the nodes, drops none.")
    max_nodes: int = Field(50, ge=1, le=500, description="Most nodes to return.")
    max_depth: int = Field(2, ge=1, description="Farthest distance in relationships; at most 5 are walked.")
    relationship_pattern: str | None = Field(
        None, description="Follow only labels that match this regular expression, or contain this text."
    )
    lens: str | None = Field(None, description="Node types to prefer, such as 'decision person'.")
    session_id: str = Field("default", description="Conversation that this call belongs to.")
    organization_id: str | None = Field(
        None, description="Walk in this organization's graph instead; 'none' for your own."
    )


class RelatedItem(Answer):
    """A node near the start, and the relationship that reached it."""

    key: str
    node_type: str
    description: str
    placeholder: bool | None = Field(None, description="True when nobody has described the node yet.")
    hop: int = Field(description="Distance from the start node; 1 is a neighbour.")
    rel: str = Field(description="Same as relationship.")
    relationship: str
    direction: Literal["outgoing", "incoming"]
    edge_id: str
    edge_kind: Literal["edge", "hyperedge"]
    write_version: int = Field(description="Of the relationship.")
    score: float


class FindRelatedAnswer(Answer):
    """Answer of hm_find_related; the start node is not in `results`."""

    start_node: str
    results: list[RelatedItem] = Field(description="Best first.")
    count: int
    strategy: Literal["chain", "decay", "type_boosted"]
    truncated: bool = Field(description="There are more nodes within that distance.")
    results_omitted: int | None = Field(None, description="Results left out to keep the answer short.")
    warnings: list[str] | None = None


async def _find(services: Services, principal: Principal, sent: FindRelatedInput) -> JsonObject:
    result = await services.find_related.find_related(
        principal.for_reading(sent.organization_id),
        FindRelatedRequest(
            start_node=sent.start_node,
            query=sent.query,
            max_nodes=sent.max_nodes,
            max_depth=sent.max_depth,
            relationship_pattern=sent.relationship_pattern,
            lens=sent.lens,
            session_id=sent.session_id,
        ),
    )
    warnings = list(result.warnings)
    room = services.settings.max_answer_bytes - _ROOM_BESIDE_RESULTS - json_size(warnings)
    items = [_item(related) for related in result.found]
    kept, omitted = fit_items(items, room, _MIN_ITEM_BYTES, _fit)
    answer: JsonObject = {
        "start_node": result.start_node,
        "results": list(kept),
        "count": len(kept),
        "strategy": result.strategy,
        "truncated": result.truncated or omitted > 0,
    }
    if omitted:
        answer["results_omitted"] = omitted
        warnings.append(f"{omitted} of {len(items)} nodes were left out to keep the answer short")
    return with_warnings(answer, warnings)


def _item(related: RelatedNode) -> Item:
    node = related.node
    item: Item = {
        "key": node.key,
        "node_type": node.node_type,
        "description": node.description,
        "hop": related.hop,
        "rel": related.relationship,
        "relationship": related.relationship,
        "direction": related.direction,
        "edge_id": related.edge_id,
        "edge_kind": related.edge_kind,
        "write_version": related.write_version,
        "score": float(f"{related.score:.6g}"),
    }
    if node.placeholder:
        item["placeholder"] = True
    return item


def _fit(item: Item, size: int) -> Item:
    label = shorten_label(item["relationship"])
    bare = {**item, "rel": label, "relationship": label, "description": ""}
    return {**bare, "description": shorten_text(item["description"], max(0, size - json_size(bare)))}


FIND_RELATED = Operation(
    name="hm_find_related",
    summary="Walk along the relationships from one node: neighbours, their neighbours, and how each was "
    "reached. Use it when you know a key and want what belongs to it.",
    input=FindRelatedInput,
    output=FindRelatedAnswer,
    access=Access.READ,
    routes=(RestRoute(method="POST", path="/find-related"),),
    verb="find",
    arguments=("start_node",),
    handler=_find,
)
