"""hm_recall: what the memory knows about a question."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from hivemem.domain.access import Principal
from hivemem.domain.text import JsonObject
from hivemem.ports.observer import Recalled
from hivemem.service.recall import RecallHit, RecallRequest, RecallResult
from hivemem.surfaces.answers import Answer
from hivemem.surfaces.inputs import Input
from hivemem.surfaces.operations.operation import Access, Operation, RestRoute
from hivemem.surfaces.presentation import with_warnings
from hivemem.surfaces.services import Services
from hivemem.surfaces.shortening import Item, fit_items, fit_recall_item
from hivemem.surfaces.wire_json import json_size

_MIN_RESULT_BYTES = 320


class RecallInput(Input):
    """Arguments of hm_recall."""

    query: str = Field(
        description="What to look for, in plain language; a regular expression with force_regex."
    )
    max_results: int = Field(10, ge=1, le=50, description="Most results to return.")
    organization_id: str | None = Field(
        None, description="Organization whose memory is searched too; 'none' for your own memory alone."
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


class RecallAnswer(Answer):
    """Answer of hm_recall."""

    results: list[RecallItem] = Field(description="Best first; empty when nothing is relevant.")
    count: int
    search_meta: dict[str, Any] = Field(alias="_search_meta", description="What ran, and how long.")
    results_omitted: int | None = Field(None, description="Results left out to keep the answer short.")
    warnings: list[str] | None = None


def recall_answer(result: RecallResult, budget: int) -> JsonObject:
    """The answer of hm_recall in at most about `budget` bytes."""
    answer: JsonObject = {"results": [], "count": 0, "_search_meta": result.meta}
    warnings = list(result.warnings)
    room = budget - json_size(answer) - json_size(warnings)
    items = [_recall_item(hit) for hit in result.hits]
    kept, omitted = fit_items(items, room, _MIN_RESULT_BYTES, fit_recall_item)
    answer["results"] = list(kept)
    answer["count"] = len(kept)
    if omitted:
        answer["results_omitted"] = omitted
        warnings.append(
            f"{omitted} of {len(items)} results were left out to keep the answer short; ask more narrowly"
        )
    return with_warnings(answer, warnings)


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
        result = await services.recall.recall(principal, request)
    services.observers.note(Recalled(results=len(result.hits), degraded=degraded_parts(result.meta)))
    return recall_answer(result, services.settings.max_answer_bytes)


RECALL = Operation(
    name="hm_recall",
    summary="Search the memory before you answer: by meaning, by word and along relationships. Returns "
    "the relevant memories, best first, with their strongest relationships; an empty list when nothing "
    "is relevant. Long texts come shortened: hm_get_nodes returns the whole record.",
    input=RecallInput,
    output=RecallAnswer,
    access=Access.READ,
    routes=(RestRoute(method="POST", path="/recall"),),
    verb="recall",
    arguments=("query",),
    handler=_recall,
)
