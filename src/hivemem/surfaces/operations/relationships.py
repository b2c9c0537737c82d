"""hm_add_relationships, and the relationships of one node."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from hivemem.domain.access import Principal
from hivemem.domain.text import JsonObject
from hivemem.surfaces.answers import (
    Answer,
    BinaryEdge,
    HyperedgeEntry,
    RelationshipError,
    RelationshipReceipt,
    WriteAnswer,
)
from hivemem.surfaces.inputs import Input
from hivemem.surfaces.operations.operation import Access, Operation, RestRoute
from hivemem.surfaces.presentation import edge_entry, hyperedge_entry, relationship_results, with_warnings
from hivemem.surfaces.services import Services
from hivemem.surfaces.shortening import take_fitting
from hivemem.surfaces.wire_json import json_size

_MAX_PARTICIPANTS = 100
_ROOM_BESIDE_LISTS = 300


class AddRelationshipsInput(Input):
    """Arguments of hm_add_relationships."""

    relationships: list[dict[str, Any]] = Field(
        min_length=1,
        description="Edges {from_key, to_key, relationship, description?, data?} and hyperedges "
        "{participant_keys: three or more, relationship, description}. All nodes must exist. relationship "
        "is a short sentence that says why.",
    )


class AddRelationshipsAnswer(WriteAnswer):
    """Answer of hm_add_relationships: each item of the request is in one of the lists."""

    created: list[RelationshipReceipt]
    replayed: list[RelationshipReceipt] = Field(description="They existed already, unchanged.")
    errors: list[RelationshipError]
    omitted: int | None = Field(None, description="Entries left out to keep the answer short.")
    warnings: list[str] | None = None


async def _add(services: Services, principal: Principal, sent: AddRelationshipsInput) -> JsonObject:
    result = await services.relate.relate(principal, sent.relationships)
    budget = services.settings.max_answer_bytes
    answer, omitted = relationship_results(result.created, result.replayed, result.errors, budget)
    warnings = list(result.warnings)
    if omitted:
        warnings.append(f"{omitted} entries were left out to keep the answer short; send fewer at a time")
    return with_warnings(answer, warnings)


class RelationshipsInput(Input):
    """Arguments of the relationships route."""

    key: str = Field(description="Node whose relationships are listed.")
    pattern: str | None = Field(
        None, description="Only labels that match this regular expression, or contain this text."
    )


class RelationshipsAnswer(Answer):
    """Relationships of a node, newest first; in_node is the source of an edge, out_node its target."""

    key: str
    binary_edges: list[BinaryEdge]
    hyperedges: list[HyperedgeEntry]
    truncated: bool = Field(description="There are more, or participants are left out.")
    warnings: list[str] | None = None


async def _list(services: Services, principal: Principal, sent: RelationshipsInput) -> JsonObject:
    result = await services.relationships.of(principal, sent.key, sent.pattern)
    edges = [edge_entry(edge, result.key) for edge in result.edges]
    hyperedges = [hyperedge_entry(hyperedge, _MAX_PARTICIPANTS) for hyperedge in result.hyperedges]
    room = services.settings.max_answer_bytes - _ROOM_BESIDE_LISTS
    # Each list may use what the other leaves, and has half when both are long.
    kept_hyperedges = take_fitting(hyperedges, max(room // 2, room - json_size(edges)))
    kept_edges = take_fitting(edges, room - json_size(kept_hyperedges))
    left_out = len(edges) + len(hyperedges) - len(kept_edges) - len(kept_hyperedges)
    answer: JsonObject = {
        "key": result.key,
        "binary_edges": list(kept_edges),
        "hyperedges": list(kept_hyperedges),
        "truncated": result.truncated or left_out > 0,
    }
    notes = [f"{left_out} relationships were left out to keep the answer short; filter them by pattern"]
    return with_warnings(answer, notes if left_out else [])


ADD_RELATIONSHIPS = Operation(
    name="hm_add_relationships",
    summary="Join nodes that exist, by edges or by hyperedges over three or more. What exists already is "
    "reported as replayed, what is refused with the reason.",
    input=AddRelationshipsInput,
    output=AddRelationshipsAnswer,
    access=Access.WRITE,
    idempotent=True,
    routes=(RestRoute(method="POST", path="/relationships"),),
    verb="relate",
    handler=_add,
)

RELATIONSHIPS = Operation(
    name="list_relationships",
    summary="All relationships of one node, newest first.",
    input=RelationshipsInput,
    output=RelationshipsAnswer,
    access=Access.READ,
    idempotent=True,
    tool=False,
    routes=(RestRoute(method="GET", path="/relationships/{key}"),),
    verb="relationships",
    arguments=("key",),
    handler=_list,
)
