"""hm_list_orphans: nodes that nothing is related to."""

from __future__ import annotations

from pydantic import Field

from hivemem.domain.access import Principal
from hivemem.domain.text import JsonObject
from hivemem.surfaces.answers import Answer
from hivemem.surfaces.inputs import Input
from hivemem.surfaces.operations.operation import Access, Operation, RestRoute, require_own_memory
from hivemem.surfaces.presentation import timestamp
from hivemem.surfaces.services import Services
from hivemem.surfaces.shortening import shorten_text

_MIN_DESCRIPTION_BYTES = 60
_ITEM_BYTES = 400
"""Room that an item takes beside its description, with a long key."""


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
    require_own_memory(sent.organization_id)
    result = await services.orphans.orphans(principal, limit=sent.limit, cursor=sent.cursor)
    # A page is never cut, since its cursor stands behind its last node: texts give way instead.
    share = services.settings.max_answer_bytes // max(1, len(result.orphans)) - _ITEM_BYTES
    room = max(_MIN_DESCRIPTION_BYTES, share)
    return {
        "orphans": [
            {
                "key": node.key,
                "node_type": node.node_type,
                "description": shorten_text(node.description, room),
                "created_at": timestamp(node.created_at),
                "enrichment_status": node.enrichment_status.value,
            }
            for node in result.orphans
        ],
        "count": len(result.orphans),
        "next_cursor": result.next_cursor,
    }


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
