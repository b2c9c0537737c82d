"""hm_get_overview: how large the memory is and what it is about."""

from __future__ import annotations

from pydantic import Field

from hivemem.domain.access import Principal
from hivemem.domain.node_types import PROTECTED_TYPES
from hivemem.domain.text import JsonObject
from hivemem.service.overview import OverviewResult
from hivemem.surfaces.answers import Answer, OrganizationName
from hivemem.surfaces.inputs import Input
from hivemem.surfaces.operations.operation import Access, Operation, RestRoute
from hivemem.surfaces.presentation import organization_entries
from hivemem.surfaces.services import Services
from hivemem.surfaces.shortening import shorten_text

TOP_NODE_DESCRIPTION_BYTES = 200


class OverviewInput(Input):
    """Arguments of hm_get_overview."""

    organization_id: str | None = Field(
        None, description="Read this organization's graph instead; 'none' for your own."
    )


class Counts(Answer):
    """Sizes of a graph."""

    nodes: int
    edges: int
    hyperedges: int


class TopNode(Answer):
    """A well-connected node."""

    key: str
    description: str
    node_type: str
    connections: int


class TypeCount(Answer):
    """A node type in use."""

    name: str
    node_count: int
    protected: bool


class OverviewAnswer(Answer):
    """Answer of hm_get_overview."""

    nodes: int
    edges: int
    hyperedges: int
    total_nodes: int
    stats: Counts
    top_nodes: list[TopNode] = Field(description="Most connected first.")
    types: list[TypeCount]
    type_names: list[str]
    organizations: list[OrganizationName] | None = Field(
        None, description="Yours, by name; absent when you belong to none."
    )
    warnings: list[str] | None = None


def overview_answer(result: OverviewResult) -> JsonObject:
    """The answer of hm_get_overview."""
    counts = result.counts
    sizes: JsonObject = {
        "nodes": counts.nodes,
        "edges": counts.edges,
        "hyperedges": counts.hyperedges,
    }
    types = sorted(counts.types.items(), key=lambda item: (-item[1], item[0]))
    return {
        **sizes,
        "total_nodes": counts.nodes,
        "stats": dict(sizes),
        "top_nodes": [
            {
                "key": top.key,
                "description": shorten_text(top.description, TOP_NODE_DESCRIPTION_BYTES),
                "node_type": top.node_type,
                "connections": top.connections,
            }
            for top in result.top_nodes
        ],
        "types": [
            {"name": name, "node_count": number, "protected": name in PROTECTED_TYPES}
            for name, number in types
        ],
        "type_names": [name for name, _ in types],
    }


async def _overview(services: Services, principal: Principal, sent: OverviewInput) -> JsonObject:
    reading = principal.for_reading(sent.organization_id)
    answer = overview_answer(await services.overview.overview(reading))
    if principal.organizations:
        answer["organizations"] = organization_entries(principal)
    return answer


OVERVIEW = Operation(
    name="hm_get_overview",
    summary="Size of the memory, its node types and its best-connected nodes. A first look.",
    input=OverviewInput,
    output=OverviewAnswer,
    access=Access.READ,
    idempotent=True,
    routes=(RestRoute(method="GET", path="/overview"),),
    verb="overview",
    handler=_overview,
)
