"""Parts of answers that several operations share, as JSON objects."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from hivemem.domain.access import Principal
from hivemem.domain.edge import Edge, Hyperedge
from hivemem.domain.node import Node
from hivemem.domain.text import JsonObject, JsonValue
from hivemem.domain.writing import RelationshipOutcome, RelationshipRefusal
from hivemem.surfaces.shortening import Item, shorten_text, take_fitting
from hivemem.surfaces.wire_json import json_size

_REFUSAL_BYTES = 600
_ROOM_BESIDE_RECEIPTS = 1_000


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


def organization_entries(principal: Principal) -> list[JsonValue]:
    """The caller's organizations, by name."""
    return [{"organization_id": one.organization_id, "name": one.name} for one in principal.organizations]


def add_write_target(answer: JsonObject, writing: Principal) -> JsonObject:
    """`answer` with the field `write_target` when the graph that was written is an organization's."""
    target = writing.membership(writing.organization_id)
    if target is not None:
        answer["write_target"] = {
            "organization_id": target.organization_id,
            "name": target.name,
            "graph_id": writing.graph_id,
        }
    return answer


def timestamp(moment: datetime) -> str:
    """ISO 8601 in UTC with a final Z."""
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


def relationship_results(
    created: Sequence[RelationshipOutcome],
    replayed: Sequence[RelationshipOutcome],
    errors: Sequence[RelationshipRefusal],
    budget: int,
) -> tuple[JsonObject, int]:
    """What became of each relationship, refusals first in half of `budget`, and how many are left out."""
    refused: list[Item] = [
        {
            "index": refusal.index,
            "error": refusal.code,
            "detail": shorten_text(refusal.detail, _REFUSAL_BYTES),
        }
        for refusal in errors
    ]
    kept_errors = take_fitting(refused, budget // 2)
    room = budget - json_size(kept_errors) - _ROOM_BESIDE_RECEIPTS
    kept_created = take_fitting([_receipt(outcome) for outcome in created], room)
    room -= json_size(kept_created)
    kept_replayed = take_fitting([_receipt(outcome) for outcome in replayed], room)
    results: JsonObject = {
        "created": list(kept_created),
        "replayed": list(kept_replayed),
        "errors": list(kept_errors),
    }
    omitted = len(errors) + len(created) + len(replayed)
    omitted -= len(kept_errors) + len(kept_created) + len(kept_replayed)
    if omitted:
        results["omitted"] = omitted
    return results, omitted


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


def with_warnings(answer: JsonObject, warnings: Sequence[str]) -> JsonObject:
    """`answer` with the field `warnings`, which is left out when there are none."""
    if warnings:
        answer["warnings"] = list(warnings)
    return answer


def add_warnings(answer: JsonObject, warnings: Sequence[str]) -> JsonObject:
    """`answer` with further warnings in front."""
    present: Any = answer.get("warnings") or []
    return with_warnings(answer, [*warnings, *present])
