"""hm_recall: what the memory knows about a question, and beside it what an organization's does."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from hivemem.domain.access import Principal
from hivemem.domain.text import JsonObject
from hivemem.ports.observer import Recalled
from hivemem.service.organization_memory import AllRecalled, OrganizationMemory, recall_everywhere
from hivemem.service.recall import RecallHit, RecallRequest
from hivemem.surfaces.answers import Answer, OrganizationName
from hivemem.surfaces.inputs import Input
from hivemem.surfaces.operations.operation import Access, Operation, RestRoute
from hivemem.surfaces.presentation import organization_entries, with_warnings
from hivemem.surfaces.services import Services
from hivemem.surfaces.shortening import Item, fit_items, fit_recall_item, water_level
from hivemem.surfaces.wire_json import json_size

_MIN_RESULT_BYTES = 320


class RecallInput(Input):
    """Arguments of hm_recall."""

    query: str = Field(
        description="What to look for, in plain language; a regular expression with force_regex."
    )
    max_results: int = Field(10, ge=1, le=50, description="Most results to return.")
    organization_id: str | None = Field(
        None,
        description="Organization whose memory is searched too, needed only when you belong to several; "
        "'none' for your own memory alone.",
    )
    session_id: str = Field("default", description="Conversation that this recall belongs to.")
    force_regex: bool = Field(
        False, description="Match query as a regular expression against keys, descriptions and data."
    )


class ExpansionEntry(Answer):
    """A strong relationship of a result."""

    direction: Literal["outgoing", "incoming"]
    key: str
    relationship: str


class RecallItem(Answer):
    """A memory that answers the query."""

    key: str
    node_type: str
    description: str
    data: dict[str, Any]
    score: float = Field(ge=0, le=1, description="Relevance; comparable between queries.")
    scores: dict[str, float] = Field(description="Scores of each step that found the node.")
    enrichment_status: str
    expansion_context: list[ExpansionEntry]
    expansion_omitted: int | None = Field(None, description="Further relationships not listed.")
    reasons: list[str] | None = Field(None, description="Why the node was found.")


class OrganizationMemoryPart(Answer):
    """What was done about organization memory; which fields are present depends on `status`."""

    status: Literal["included", "selection_required", "excluded", "selected_graph", "failed"] = Field(
        description="included: its results are here. selection_required: you belong to several, send one's "
        "organization_id. excluded: you sent 'none'. selected_graph: the results above are its memory. "
        "failed: it could not be searched, the results above are valid."
    )
    organizations: list[OrganizationName] = Field(description="All that you belong to.")
    organization_id: str | None = None
    name: str | None = None
    graph_id: str | None = None
    count: int | None = None
    results: list[RecallItem] | None = Field(None, description="Best first; from this memory alone.")
    search_meta: dict[str, Any] | None = Field(None, alias="_search_meta")
    error: str | None = Field(None, description="Why it could not be searched.")


class RecallAnswer(Answer):
    """Answer of hm_recall."""

    results: list[RecallItem] = Field(description="Best first; empty when nothing is relevant.")
    count: int
    organization_memory: OrganizationMemoryPart | None = Field(
        None, description="Present when you belong to an organization."
    )
    search_meta: dict[str, Any] = Field(alias="_search_meta", description="What ran, and how long.")
    results_omitted: int | None = Field(None, description="Results left out to keep the answer short.")
    warnings: list[str] | None = None


def recall_answer(recalled: AllRecalled, principal: Principal, budget: int) -> JsonObject:
    """The answer of hm_recall in at most about `budget` bytes, which both memories share."""
    own, memory = recalled.own, recalled.organization
    other = None if memory is None else memory.result
    answer: JsonObject = {"results": [], "count": 0}
    part: JsonObject = {}
    if memory is not None:
        part = _organization_part(memory, principal)
        answer["organization_memory"] = part
    answer["_search_meta"] = own.meta
    warnings = list(own.warnings)
    warnings += [] if other is None else [f"organization memory: {one}" for one in other.warnings]
    items = [_recall_item(hit) for hit in own.hits]
    others = [] if other is None else [_recall_item(hit) for hit in other.hits]
    room = budget - json_size(answer) - json_size(warnings)
    sizes = [json_size(items), json_size(others)]
    # Neither list takes room that the other needs while it has more than half itself.
    kept, omitted = _fit(items, room - min(sizes[1], water_level(sizes, room)))
    answer |= {"results": list(kept), "count": len(kept)}
    if omitted:
        answer["results_omitted"] = omitted
        warnings.append(_omission("", omitted, len(items)))
    if other is not None:
        kept, omitted = _fit(others, room - json_size(kept))
        part |= {"count": len(kept), "results": list(kept), "_search_meta": other.meta}
        if omitted:
            warnings.append(_omission("organization memory: ", omitted, len(others)))
    return with_warnings(answer, warnings)


def _organization_part(memory: OrganizationMemory, principal: Principal) -> JsonObject:
    """`organization_memory` without results, in whose place empty ones stand."""
    part: JsonObject = {"status": memory.status.value, "organizations": organization_entries(principal)}
    chosen = memory.organization
    if memory.error is not None:
        part |= {"error": memory.error} if chosen is None else {"name": chosen.name, "error": memory.error}
    elif chosen is not None:
        part |= {"organization_id": chosen.organization_id, "name": chosen.name, "graph_id": chosen.graph_id}
    if memory.result is not None:
        part |= {"count": 0, "results": [], "_search_meta": memory.result.meta}
    return part


def _fit(items: list[Item], room: int) -> tuple[list[Item], int]:
    return fit_items(items, room, _MIN_RESULT_BYTES, fit_recall_item)


def _omission(where: str, omitted: int, total: int) -> str:
    return f"{where}{omitted} of {total} results were left out to keep the answer short; ask more narrowly"


def _recall_item(hit: RecallHit) -> Item:
    item: Item = {
        "key": hit.node.key,
        "node_type": hit.node.node_type,
        "description": hit.node.description,
        "data": hit.node.data,
        "score": _rounded(hit.score),
        "scores": {name: _rounded(score) for name, score in hit.scores.items()},
        "enrichment_status": hit.node.enrichment_status.value,
        "expansion_context": [
            {"direction": entry.direction, "key": entry.key, "relationship": entry.relationship}
            for entry in hit.expansion
        ],
    }
    if hit.expansion_omitted:
        item["expansion_omitted"] = hit.expansion_omitted
    if hit.reasons:
        item["reasons"] = list(hit.reasons)
    return item


def _rounded(score: float) -> float:
    """Six significant digits: more are noise, and cost an agent tokens."""
    return float(f"{score:.6g}")


def degraded_parts(meta: JsonObject) -> tuple[str, ...]:
    """Which parts the notes of `_search_meta.degraded` are about, each once."""
    notes = meta.get("degraded")
    if not isinstance(notes, list):
        return ()
    return tuple(dict.fromkeys(str(note).partition(":")[0] for note in notes))


async def _recall(services: Services, principal: Principal, sent: RecallInput) -> JsonObject:
    request = RecallRequest(
        query=sent.query,
        max_results=sent.max_results,
        session_id=sent.session_id,
        force_regex=sent.force_regex,
        organization_id=sent.organization_id,
    )
    with services.observers.work("recall"):
        recalled = await recall_everywhere(services.recall, principal, request)
    own = recalled.own
    services.observers.note(Recalled(results=len(own.hits), degraded=degraded_parts(own.meta)))
    return recall_answer(recalled, principal, services.settings.max_answer_bytes)


RECALL = Operation(
    name="hm_recall",
    summary="Search the memory before you answer: by meaning, by word and along relationships. Returns "
    "the relevant memories, best first, with their strongest relationships; an empty list when nothing "
    "is relevant. Long texts come shortened: hm_get_nodes returns the whole record. What your organization "
    "knows is in `organization_memory`, apart from your own results.",
    input=RecallInput,
    output=RecallAnswer,
    access=Access.READ,
    routes=(RestRoute(method="POST", path="/recall"),),
    verb="recall",
    arguments=("query",),
    handler=_recall,
)
