"""hm_get_nodes: whole records by key."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from hivemem.domain.access import Principal
from hivemem.domain.graph import Relationships
from hivemem.domain.text import JsonObject
from hivemem.service.nodes import NodeDetail, NodesRequest, NodesResult
from hivemem.surfaces.answers import Answer, BinaryEdge, HistoryEntry, HyperedgeEntry, NodeRecord
from hivemem.surfaces.inputs import Input
from hivemem.surfaces.operations.history import history_entry
from hivemem.surfaces.operations.operation import Access, Operation, RestRoute
from hivemem.surfaces.presentation import edge_entry, hyperedge_entry, node_record, with_warnings
from hivemem.surfaces.services import Services
from hivemem.surfaces.shortening import Item, fit_items, fit_node_entry, take_fitting
from hivemem.surfaces.wire_json import json_size

_MIN_NODE_BYTES = 700


class NodesInput(Input):
    """Arguments of hm_get_nodes."""

    keys: list[str] = Field(min_length=1, description="Keys to read; ask for one to get its whole text.")
    include_relationships: bool = Field(True, description="Also return edges and hyperedges.")
    include_duplicates: bool = Field(True, description="Also return nodes stored under the same key.")
    relationship_detail: Literal["summary", "full"] = Field(
        "summary", description="summary lists at most five participants of a hyperedge."
    )
    participant_limit: int = Field(20, ge=0, le=100, description="Participants listed of a hyperedge.")
    include_enrichment_history: bool = Field(False, description="Also return earlier versions.")
    include_session_relationships: bool = Field(
        False, description="Also return the hyperedges that group the nodes of a conversation."
    )
    organization_id: str | None = Field(
        None, description="Read this organization's graph instead; 'none' for your own."
    )


class NodeEntry(Answer):
    """A node with its relationships."""

    node: NodeRecord
    binary_edges: list[BinaryEdge] | None = None
    hyperedges: list[HyperedgeEntry] | None = None
    edge_total: int | None = None
    hyperedge_total: int | None = None
    duplicates: list[dict[str, Any]] | None = None
    enrichment_history: list[HistoryEntry] | None = None


class Truncation(Answer):
    """Which nodes of an answer are not whole; ask for them again, one by one."""

    shortened: list[str]
    left_out: list[str]


class NodesAnswer(Answer):
    """Answer of hm_get_nodes."""

    nodes: dict[str, NodeEntry]
    missing: list[str]
    count: int
    truncated: Truncation | None = None
    warnings: list[str] | None = None


def nodes_answer(
    result: NodesResult, request: NodesRequest, *, include_duplicates: bool, budget: int
) -> JsonObject:
    """The answer of hm_get_nodes.

    A node that is asked for alone comes with its whole text, and as many relationships as fit into
    `budget`. Several nodes share `budget`; what does not fit is cut or left out, and named in `truncated`.
    """
    entries: list[Item] = [
        {"key": key, "entry": _node_entry(detail, request, include_duplicates)}
        for key, detail in result.found.items()
    ]
    alone = len(request.keys) == 1
    room = budget - json_size(list(result.missing)) - 100
    hint = "ask hm_get_nodes for this key alone"

    def fit(item: Item, size: int) -> Item:
        return {"key": item["key"], "entry": fit_node_entry(item["entry"], size - 100, hint)}

    kept: list[Item]
    if alone:
        # The text itself was accepted under a limit, so it can be returned; the lists were not.
        kept = [{"key": item["key"], "entry": _fit_lists(item["entry"], room)} for item in entries]
        left_out = 0
    else:
        # Keys that may have to be named as left out take room as well.
        names = sum(json_size(item["key"]) + 1 for item in entries)
        full = sum(json_size(item) + 1 for item in entries) <= room
        kept, left_out = fit_items(entries, room if full else room - names, _MIN_NODE_BYTES, fit)
    answer: JsonObject = {
        "nodes": {item["key"]: item["entry"] for item in kept},
        "missing": list(result.missing),
        "count": len(result.found),
    }
    pairs = zip(entries, kept, strict=False)
    shortened = [after["key"] for before, after in pairs if before["entry"] != after["entry"]]
    warnings: list[str] = []
    if shortened or left_out:
        omitted = [item["key"] for item in entries[len(kept) :]]
        answer["truncated"] = {"shortened": list(shortened), "left_out": list(omitted)}
        warnings.append(_truncation_warning(len(shortened), left_out, alone))
    return with_warnings(answer, warnings)


def _node_entry(detail: NodeDetail, request: NodesRequest, include_duplicates: bool) -> Item:
    entry: Item = {"node": node_record(detail.node)}
    if detail.relationships is not None:
        entry.update(_relationships(detail.node.key, detail.relationships, request))
    if include_duplicates:
        # Keys are unique in a graph, so there is never a second node under one key.
        entry["duplicates"] = []
    if request.include_enrichment_history:
        entry["enrichment_history"] = [history_entry(version) for version in detail.history]
    return entry


def _relationships(key: str, related: Relationships, request: NodesRequest) -> Item:
    limit = request.shown_participants
    return {
        "binary_edges": [edge_entry(edge, key) for edge in related.edges],
        "hyperedges": [hyperedge_entry(hyperedge, limit) for hyperedge in related.hyperedges],
        "edge_total": related.edge_total,
        "hyperedge_total": related.hyperedge_total,
    }


def _fit_lists(entry: Item, budget: int) -> Item:
    """The entry with its lists cut to `budget`, and its texts whole."""
    lists = {
        name: entry[name] for name in ("binary_edges", "hyperedges", "enrichment_history") if name in entry
    }
    if sum(json_size(value) for value in lists.values()) <= budget:
        return entry
    share = budget // len(lists)
    return {**entry, **{name: take_fitting(value, share) for name, value in lists.items()}}


def _truncation_warning(shortened: int, left_out: int, alone: bool) -> str:
    if alone:
        return "not all relationships or versions are listed; edge_total and hyperedge_total count them"
    parts = [f"{shortened} nodes were shortened"] if shortened else []
    parts += [f"{left_out} nodes were left out"] if left_out else []
    return f"{' and '.join(parts)} to keep the answer short; ask for the keys in 'truncated' one by one"


async def _nodes(services: Services, principal: Principal, sent: NodesInput) -> JsonObject:
    reading = principal.for_reading(sent.organization_id)
    request = NodesRequest(
        keys=tuple(sent.keys),
        include_relationships=sent.include_relationships,
        relationship_detail=sent.relationship_detail,
        participant_limit=sent.participant_limit,
        include_enrichment_history=sent.include_enrichment_history,
        include_session_relationships=sent.include_session_relationships,
    )
    result = await services.nodes.nodes(reading, request)
    budget = services.settings.max_answer_bytes
    return nodes_answer(result, request, include_duplicates=sent.include_duplicates, budget=budget)


NODES = Operation(
    name="hm_get_nodes",
    summary="Full records of nodes by key, with their relationships; unknown keys are in `missing`.",
    input=NodesInput,
    output=NodesAnswer,
    access=Access.READ,
    idempotent=True,
    routes=(RestRoute(method="POST", path="/nodes"),),
    verb="nodes",
    arguments=("keys",),
    handler=_nodes,
)
