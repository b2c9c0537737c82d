"""Past states of nodes, edges and hyperedges as JSON text: what the history keeps.

One format for every database, so that a history can move from one to another.
"""

from __future__ import annotations

import json
from typing import Any

from hivemem.domain.edge import Edge, Hyperedge, Participant
from hivemem.domain.graph import Kind
from hivemem.domain.node import EnrichmentStatus, Node
from hivemem.domain.text import JsonObject
from hivemem.storage.times import from_microseconds, to_microseconds

# One encoder for all: `json.dumps` with arguments makes a new one at each call.
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


def to_json(value: object) -> str:
    """JSON text that keeps 1 and 1.0 apart, large integers exact and the order of names."""
    return _ENCODER.encode(value)


def from_json(text: str) -> JsonObject:
    """The JSON object that `to_json` wrote."""
    # Most objects are empty: skipping the parser saves a fifth of reading a node.
    return {} if text == "{}" else json.loads(text)


def encode_state(state: Node | Edge | Hyperedge) -> str:
    """`state` without its id and revision, which stand beside it in the history."""
    fields: dict[str, Any] = {
        "description": state.description,
        "data": state.data,
        "write_version": state.write_version,
        "created_at": to_microseconds(state.created_at),
        "updated_at": to_microseconds(state.updated_at),
    }
    match state:
        case Node():
            fields |= {
                "node_type": state.node_type,
                "search_text": state.search_text,
                "assets": state.assets,
                "enrichment_status": state.enrichment_status,
            }
        case Edge():
            fields |= {
                "from_key": state.from_key,
                "to_key": state.to_key,
                "relationship": state.relationship,
            }
        case Hyperedge():
            fields |= {
                "relationship": state.relationship,
                "participants": [[p.node_key, p.role, p.ordinal] for p in state.participants],
            }
    return to_json(fields)


def decode_state(kind: Kind, id: str, revision: int, text: str) -> Node | Edge | Hyperedge:
    """The state that `encode_state` made `text` of."""
    fields = json.loads(text)
    fields["created_at"] = from_microseconds(fields["created_at"])
    fields["updated_at"] = from_microseconds(fields["updated_at"])
    fields["revision"] = revision
    match kind:
        case Kind.NODE:
            fields["assets"] = tuple(fields["assets"])
            fields["enrichment_status"] = EnrichmentStatus(fields["enrichment_status"])
            return Node(key=id, **fields)
        case Kind.EDGE:
            return Edge(edge_id=id, **fields)
        case Kind.HYPEREDGE:
            fields["participants"] = tuple(
                Participant(node_key=key, role=role, ordinal=ordinal)
                for key, role, ordinal in fields["participants"]
            )
            return Hyperedge(hyperedge_id=id, **fields)


_ASCII_FOLD = str.maketrans("ABCDEFGHIJKLMNOPQRSTUVWXYZ", "abcdefghijklmnopqrstuvwxyz")


def ascii_folded(text: str) -> str:
    """`text` with small ASCII letters: the one folding that every database does alike."""
    return text.translate(_ASCII_FOLD)
