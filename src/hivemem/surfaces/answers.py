"""What callers get: the shape of every answer, for OpenAPI and MCP output schemas.

The surfaces build answers as plain JSON objects; these models describe them, and the tests hold the one
against the other. A field without a default is in every answer.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field


class Answer(BaseModel):
    """Base of all answers and their parts: nothing is in an answer that is not described here."""

    model_config = ConfigDict(extra="forbid")


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


class RelationshipReceipt(Answer):
    """A relationship that was made, or existed already."""

    index: int = Field(description="Position in the request, from 0.")
    entity_id: str
    kind: Literal["edge", "hyperedge"]
    relationship: str
    from_key: str | None = None
    to_key: str | None = None
    participant_keys: list[str] | None = None
    write_version: int


class RelationshipError(Answer):
    """A relationship that was refused."""

    index: int
    error: str
    detail: str


class RelationshipResults(Answer):
    """What became of each relationship of the request."""

    created: list[RelationshipReceipt]
    replayed: list[RelationshipReceipt]
    errors: list[RelationshipError]
    omitted: int | None = Field(None, description="Receipts left out to keep the answer short.")


class StoreAnswer(Answer):
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
    warnings: list[str] | None = None


class NodeRecord(Answer):
    """The full record of a node."""

    key: str
    node_type: str
    description: str
    data: dict[str, Any]
    assets: list[str]
    search_text: str | None
    enrichment_status: str
    write_version: int
    placeholder: bool
    created_at: str
    updated_at: str


class BinaryEdge(Answer):
    """An edge; in_node is its source and out_node its target."""

    id: str
    edge_id: str
    relationship: str
    direction: Literal["outgoing", "incoming"]
    description: str | None
    data: dict[str, Any] | None = None
    in_node: str
    out_node: str
    write_version: int


class ParticipantEntry(Answer):
    """A participant of a hyperedge."""

    node_key: str
    role: str
    ordinal: int


class HyperedgeEntry(Answer):
    """A relationship of three or more nodes."""

    id: str
    hyperedge_id: str
    relationship: str
    description: str | None
    data: dict[str, Any] | None = None
    participants: list[ParticipantEntry]
    participant_count: int
    participants_truncated: bool
    write_version: int


class HistoryEntry(Answer):
    """An earlier state of a node, newest first."""

    revision: int
    recorded_at: str
    removed: bool
    write_version: int | None = None
    node_type: str | None = None
    description: str | None = None
    enrichment_status: str | None = None


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


class ErrorAnswer(BaseModel):
    """Answer of everything that failed; further facts may be added."""

    error: str = Field(description="Stable code.")
    detail: str = Field(description="One sentence: what is wrong and what to do next.")
    retryable: bool = Field(description="Whether the same request can succeed when repeated.")
    request_id: str


class HealthAnswer(BaseModel):
    """Answer of the health route."""

    status: Literal["ok", "degraded"]
    checks: dict[str, str]


class AliveAnswer(BaseModel):
    """Answer of the root health route."""

    status: Literal["ok"]


class ReadyAnswer(BaseModel):
    """Answer of the readiness route when the server is ready."""

    status: Literal["ready"]
