"""hm_list_orphans: nodes that nothing is related to."""

from __future__ import annotations

from pydantic import Field

from hivemem.domain.access import Principal
from hivemem.domain.text import JsonObject
from hivemem.service.orphans import cursor_after
from hivemem.surfaces.answers import Answer
from hivemem.surfaces.inputs import Input
from hivemem.surfaces.operations.operation import Access, Operation, RestRoute
from hivemem.surfaces.presentation import timestamp
from hivemem.surfaces.services import Services
from hivemem.surfaces.shortening import Item, fit_items, shorten_text
from hivemem.surfaces.wire_json import json_size

_MIN_ITEM_BYTES = 300
_ROOM_BESIDE_ORPHANS = 500


class OrphansInput(Input):
    """Arguments of hm_list_orphans."""

    limit: int = Field(50, ge=1, le=200, description="Most nodes on a page.")
    cursor: str | None = Field(None, description="next_cursor of the page before.")
    organization_id: str | None = Field(
        None, description="Look in this organization's graph instead; 'none' for your own."
    )


class OrphanItem(Answer):
    """A node without relationships."""

    key: str
    node_type: str
    description: str
    created_at: str
    enrichment_status: str


class OrphansAnswer(Answer):
    """Answer of hm_list_orphans, in key order."""

    orphans: list[OrphanItem]
    count: int
    next_cursor: str | None = Field(description="Null on the last page; a page before it may be short.")
    warnings: list[str] | None = None


async def _orphans(services: Services, principal: Principal, sent: OrphansInput) -> JsonObject:
    reading = principal.for_reading(sent.organization_id)
    result = await services.orphans.orphans(reading, limit=sent.limit, cursor=sent.cursor)
    items: list[Item] = [
        {
            "key": node.key,
            "node_type": node.node_type,
            "description": node.description,
            "created_at": timestamp(node.created_at),
            "enrichment_status": node.enrichment_status.value,
        }
        for node in result.orphans
    ]
    room = services.settings.max_answer_bytes - _ROOM_BESIDE_ORPHANS
    kept, omitted = fit_items(items, room, _MIN_ITEM_BYTES, _fit)
    # Nothing is lost by a short page: the next one begins behind its last node.
    cursor = cursor_after(kept[-1]["key"]) if omitted else result.next_cursor
    return {"orphans": list(kept), "count": len(kept), "next_cursor": cursor}


def _fit(item: Item, size: int) -> Item:
    room = size - json_size({**item, "description": ""})
    return {**item, "description": shorten_text(item["description"], max(0, room))}


ORPHANS = Operation(
    name="hm_list_orphans",
    summary="Nodes that no relationship joins to anything, page by page: relate them, or forget them.",
    input=OrphansInput,
    output=OrphansAnswer,
    access=Access.READ,
    idempotent=True,
    routes=(RestRoute(method="GET", path="/orphans"),),
    verb="orphans",
    handler=_orphans,
)
