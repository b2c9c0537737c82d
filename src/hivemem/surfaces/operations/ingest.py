"""hm_ingest: a whole text as memories."""

from __future__ import annotations

from pydantic import Field

from hivemem.domain.access import Principal
from hivemem.domain.text import JsonObject
from hivemem.surfaces.answers import WriteAnswer
from hivemem.surfaces.inputs import Input
from hivemem.surfaces.operations.operation import Access, Operation, RestRoute
from hivemem.surfaces.presentation import with_warnings
from hivemem.surfaces.services import Services

_MAX_LISTED = 500


class IngestInput(Input):
    """Arguments of hm_ingest."""

    text: str = Field(description="Prose or Markdown to remember.")
    context: str | None = Field(None, description="Where the text comes from, or what it is about.")


class IngestAnswer(WriteAnswer):
    """Answer of hm_ingest."""

    nodes_created: int
    nodes_updated: int
    edges_created: int
    hyperedges_created: int
    created_keys: list[str] = Field(description="Facts and what they name, at most 500.")
    message: str
    warnings: list[str] | None = None


async def _ingest(services: Services, principal: Principal, sent: IngestInput) -> JsonObject:
    result = await services.ingest.ingest(principal, sent.text, sent.context)
    created = len(result.created_keys)
    answer: JsonObject = {
        "nodes_created": created,
        "nodes_updated": 0,
        "edges_created": result.edges_created,
        "hyperedges_created": 0,
        "created_keys": list(result.created_keys[:_MAX_LISTED]),
        "message": f"{created} nodes and {result.edges_created} edges were made; {result.nodes_kept} nodes "
        "existed already and were left as they are.",
    }
    return with_warnings(answer, result.warnings)


INGEST = Operation(
    name="hm_ingest",
    summary="Remember a longer text: its statements become facts, related to the people, things, days and "
    "links that they name. For a single memory hm_store is better.",
    input=IngestInput,
    output=IngestAnswer,
    access=Access.WRITE,
    ingests=True,
    idempotent=True,
    routes=(RestRoute(method="POST", path="/ingest"),),
    verb="ingest",
    arguments=("text",),
    handler=_ingest,
)
