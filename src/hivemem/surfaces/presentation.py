"""Results of use cases as JSON objects of a bounded size."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from hivemem.domain.edge import Edge, Hyperedge
from hivemem.domain.graph import Relationships, Version
from hivemem.domain.node import Node
from hivemem.domain.node_types import PROTECTED_TYPES
from hivemem.domain.text import JsonObject
from hivemem.domain.writing import RelationshipOutcome
from hivemem.service.nodes import NodeDetail, NodesRequest, NodesResult
from hivemem.service.overview import OverviewResult
from hivemem.service.recall import RecallHit, RecallResult
from hivemem.service.remember import StoreResult
from hivemem.surfaces.shortening import (
    Item,
    fit_items,
    fit_node_entry,
    fit_recall_item,
    shorten_text,
    take_fitting,
)
from hivemem.surfaces.wire_json import json_size

TOP_NODE_DESCRIPTION_BYTES = 200
_MIN_RESULT_BYTES = 320
_MIN_NODE_BYTES = 700
_HISTORY_DESCRIPTION_BYTES = 400


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
    return _with_warnings(answer, warnings)


def store_answer(result: StoreResult, budget: int) -> JsonObject:
    """The answer of hm_store: refusals are always listed, receipts as far as they fit."""
    node = result.node
    warnings = list(result.warnings)
    errors: list[Item] = [
        {"index": refusal.index, "error": refusal.code, "detail": shorten_text(refusal.detail, 600)}
        for refusal in result.errors
    ]
    errors_kept = take_fitting(errors, budget // 2)
    created = [_receipt(outcome) for outcome in result.created]
    replayed = [_receipt(outcome) for outcome in result.replayed]
    created_kept = take_fitting(created, budget - json_size(errors_kept) - 1_000)
    room = budget - json_size(errors_kept) - json_size(created_kept) - 1_000
    replayed_kept = take_fitting(replayed, room)
    results: JsonObject = {
        "created": list(created_kept),
        "replayed": list(replayed_kept),
        "errors": list(errors_kept),
    }
    omitted = len(errors) + len(created) + len(replayed)
    omitted -= len(errors_kept) + len(created_kept) + len(replayed_kept)
    if omitted:
        results["omitted"] = omitted
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
        "relationships": len(created),
        "relationship_results": results,
        "enrichment_status": node.enrichment_status.value,
        "write_version": node.write_version,
    }
    if result.possible_duplicates:
        answer["possible_duplicates"] = list(result.possible_duplicates)
    return _with_warnings(answer, warnings)


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
    return _with_warnings(answer, warnings)


def node_record(node: Node) -> JsonObject:
    """The full record of a node."""
    return {
        "key": node.key,
        "node_type": node.node_type,
        "description": node.description,
        "data": node.data,
        "assets": list(node.assets),
        "search_text": node.search_text,
        "enrichment_status": node.enrichment_status.value,
        "write_version": node.write_version,
        "placeholder": node.placeholder,
        "created_at": timestamp(node.created_at),
        "updated_at": timestamp(node.updated_at),
    }


def timestamp(moment: datetime) -> str:
    """ISO 8601 in UTC with a final Z."""
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


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


def _receipt(outcome: RelationshipOutcome) -> Item:
    receipt: Item = {
        "index": outcome.index,
        "entity_id": outcome.entity_id,
        "kind": outcome.kind,
        "relationship": outcome.relationship,
    }
    if outcome.kind == "edge":
        receipt["from_key"], receipt["to_key"] = outcome.keys
    else:
        receipt["participant_keys"] = list(outcome.keys)
    receipt["write_version"] = outcome.write_version
    return receipt


def _node_entry(detail: NodeDetail, request: NodesRequest, include_duplicates: bool) -> Item:
    entry: Item = {"node": node_record(detail.node)}
    if detail.relationships is not None:
        entry.update(_relationships(detail.node.key, detail.relationships, request))
    if include_duplicates:
        # Keys are unique in a graph, so there is never a second node under one key.
        entry["duplicates"] = []
    if request.include_enrichment_history:
        entry["enrichment_history"] = [_history(version) for version in detail.history]
    return entry


def _relationships(key: str, related: Relationships, request: NodesRequest) -> Item:
    limit = request.shown_participants
    return {
        "binary_edges": [edge_entry(edge, key) for edge in related.edges],
        "hyperedges": [hyperedge_entry(hyperedge, limit) for hyperedge in related.hyperedges],
        "edge_total": related.edge_total,
        "hyperedge_total": related.hyperedge_total,
    }


def edge_entry(edge: Edge, seen_from: str) -> Item:
    """An edge as a list entry of the node `seen_from`."""
    entry: Item = {
        "id": edge.edge_id,
        "edge_id": edge.edge_id,
        "relationship": edge.relationship,
        "direction": "outgoing" if edge.from_key == seen_from else "incoming",
        "description": edge.description,
        "in_node": edge.from_key,
        "out_node": edge.to_key,
        "write_version": edge.write_version,
    }
    if edge.data:
        entry["data"] = edge.data
    return entry


def hyperedge_entry(hyperedge: Hyperedge, participant_limit: int) -> Item:
    """A hyperedge as a list entry with its first participants."""
    participants = hyperedge.participants
    entry: Item = {
        "id": hyperedge.hyperedge_id,
        "hyperedge_id": hyperedge.hyperedge_id,
        "relationship": hyperedge.relationship,
        "description": hyperedge.description,
        "participants": [
            {"node_key": one.node_key, "role": one.role, "ordinal": one.ordinal}
            for one in participants[:participant_limit]
        ],
        "participant_count": len(participants),
        "participants_truncated": len(participants) > participant_limit,
        "write_version": hyperedge.write_version,
    }
    if hyperedge.data:
        entry["data"] = hyperedge.data
    return entry


def _history(version: Version) -> Item:
    entry: Item = {
        "revision": version.revision,
        "recorded_at": timestamp(version.recorded_at),
        "removed": version.state is None,
    }
    if isinstance(version.state, Node):
        entry.update(
            write_version=version.state.write_version,
            node_type=version.state.node_type,
            description=shorten_text(
                version.state.description, _HISTORY_DESCRIPTION_BYTES, "an earlier version"
            ),
            enrichment_status=version.state.enrichment_status.value,
        )
    return entry


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


def _with_warnings(answer: JsonObject, warnings: Sequence[str]) -> JsonObject:
    """`answer` with the field `warnings`, which is left out when there are none."""
    if warnings:
        answer["warnings"] = list(warnings)
    return answer


def add_warnings(answer: JsonObject, warnings: Sequence[str]) -> JsonObject:
    """`answer` with further warnings in front."""
    present: Any = answer.get("warnings") or []
    return _with_warnings(answer, [*warnings, *present])
