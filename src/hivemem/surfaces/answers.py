"""The shape of answers, for OpenAPI and MCP output schemas: the base, and parts that operations share.

The surfaces build answers as plain JSON objects; these models describe them, and the tests hold the one
against the other. A field without a default is in every answer.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field


class Answer(BaseModel):
    """Base of all answers and their parts: nothing is in an answer that is not described here."""

    model_config = ConfigDict(extra="forbid")


class OrganizationName(Answer):
    """An organization that the caller belongs to."""

    organization_id: str
    name: str


class WriteTarget(Answer):
    """The organization whose memory was written."""

    organization_id: str
    name: str
    graph_id: str


class WriteAnswer(Answer):
    """Base of the answers of writes."""

    write_target: WriteTarget | None = Field(
        None, description="Present when an organization's memory was written instead of your own."
    )


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
    """A state of a node."""

    revision: int
    recorded_at: str
    removed: bool
    write_version: int | None = None
    node_type: str | None = None
    description: str | None = None
    enrichment_status: str | None = None


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
