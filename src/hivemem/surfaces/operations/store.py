"""hm_store: remember one thing and how it belongs to others."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from hivemem.domain.access import Principal
from hivemem.domain.text import JsonObject
from hivemem.domain.writing import IfExists
from hivemem.service.remember import StoreRequest, StoreResult
from hivemem.surfaces.answers import RelationshipResults, WriteAnswer
from hivemem.surfaces.inputs import Input
from hivemem.surfaces.operations.operation import Access, Operation, RestRoute
from hivemem.surfaces.presentation import relationship_results, with_warnings
from hivemem.surfaces.services import Services


class StoreInput(Input):
    """Arguments of hm_store."""

    key: str = Field(description="Permanent name, {type}_{name} in lower snake case: decision_jwt_auth.")
    description: str = Field(description="The memory itself, as one or more full sentences.")
    node_type: str | None = Field(
        None,
        description="One of user, person, organization, component, event, decision, concept, artifact, "
        "project, technology, preference, fact, skill. Left out: taken from the key.",
    )
    data: dict[str, Any] | None = Field(None, description="Structured details; replaces the stored object.")
    relationships: list[dict[str, Any]] | None = Field(
        None,
        description="Edges {to_key, relationship, from_key?, description?, data?} from this node, and "
        "hyperedges {participant_keys: three or more, relationship, description}. relationship is a short "
        "sentence that says why. Nodes that do not exist yet are made as placeholders.",
    )
    assets: list[str] | None = Field(None, description="Ids of uploaded files, or URLs.")
    search_text: str | None = Field(None, description="Further text to find the node by; not shown.")
    session_id: str = Field("default", description="Conversation that this memory comes from.")
    if_exists: Literal["update", "keep", "error"] = Field(
        "update", description="What to do when the key exists: change it, leave it, or refuse."
    )


class StoreAnswer(WriteAnswer):
    """Answer of hm_store."""

    status: Literal["created", "updated", "kept"]
    key: str
    stored: str = Field(description="Same as key.")
    type: str = Field(description="Same as node_type.")
    node_type: str
    detected: list[str]
    relationships: int = Field(description="Number of relationships created.")
    relationship_results: RelationshipResults
    enrichment_status: str
    write_version: int
    possible_duplicates: list[str] | None = Field(None, description="Similar nodes; nothing was merged.")
    warnings: list[str] | None = None


def store_answer(result: StoreResult, budget: int) -> JsonObject:
    """The answer of hm_store: refusals are always listed, receipts as far as they fit."""
    node = result.node
    results, omitted = relationship_results(result.created, result.replayed, result.errors, budget)
    warnings = list(result.warnings)
    if omitted:
        warnings.append(
            f"{omitted} relationship receipts were left out to keep the answer short; hm_get_nodes with the "
            f"key {node.key!r} lists the relationships"
        )
    answer: JsonObject = {
        "status": result.status,
        "key": node.key,
        "stored": node.key,
        "type": node.node_type,
        "node_type": node.node_type,
        "detected": [],
        "relationships": len(result.created),
        "relationship_results": results,
        "enrichment_status": node.enrichment_status.value,
        "write_version": node.write_version,
    }
    if result.possible_duplicates:
        answer["possible_duplicates"] = list(result.possible_duplicates)
    return with_warnings(answer, warnings)


def store_request(sent: StoreInput) -> StoreRequest:
    """The use case's request for a valid input; an import uses it too."""
    return StoreRequest(
        key=sent.key,
        description=sent.description,
        node_type=sent.node_type,
        data=sent.data,
        relationships=tuple(sent.relationships or ()),
        assets=None if sent.assets is None else tuple(sent.assets),
        search_text=sent.search_text,
        session_id=sent.session_id,
        if_exists=IfExists(sent.if_exists),
    )


async def _store(services: Services, principal: Principal, sent: StoreInput) -> JsonObject:
    result = await services.remember.store(principal, store_request(sent))
    return store_answer(result, services.settings.max_answer_bytes)


STORE = Operation(
    name="hm_store",
    summary="Remember something: one node with its relationships to other nodes. The same key again "
    "changes the node; nothing else is ever overwritten or merged.",
    input=StoreInput,
    output=StoreAnswer,
    access=Access.WRITE,
    idempotent=True,
    routes=(RestRoute(method="POST", path="/store"),),
    verb="store",
    arguments=("key", "description"),
    handler=_store,
)
