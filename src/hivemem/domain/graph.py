"""Graphs and what changes in them: passages, write batches, change pages, versions."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeAlias

from hivemem.domain.edge import Edge, EdgeIdentity, Hyperedge, HyperedgeIdentity
from hivemem.domain.node import Node
from hivemem.domain.text import JsonObject, empty_object

GraphId: TypeAlias = str


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """A stretch of a node's text with its vector.

    `source` is `description` or `search_text`; `start` and `end` are code-point offsets into it.
    `vector` holds the embedding as little-endian float32 bytes (4 x dimension of the model).
    """

    source: str
    start: int
    end: int
    vector: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeVectors:
    """The passages of one node in the space of one model, in reading order."""

    model_id: str
    passages: tuple[Passage, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeWrite:
    """Put `node`, provided that its stored `write_version` is `expected` (0: it does not exist).

    `vectors` None keeps what is stored; an instance replaces the vectors of *all* models by these; an
    instance without passages clears them. A store sets `node.revision`.
    """

    node: Node
    expected: int
    vectors: NodeVectors | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EdgeWrite:
    """Put `edge`, provided that its stored `write_version` is `expected` (0: no such id or identity)."""

    edge: Edge
    expected: int


@dataclass(frozen=True, slots=True, kw_only=True)
class HyperedgeWrite:
    """Put `hyperedge`, with the same rule as `EdgeWrite`."""

    hyperedge: Hyperedge
    expected: int


class Kind(enum.StrEnum):
    """What a deletion, a tombstone or a version is about."""

    NODE = "node"
    EDGE = "edge"
    HYPEREDGE = "hyperedge"


@dataclass(frozen=True, slots=True, kw_only=True)
class Deletion:
    """Remove one thing, provided that its stored `write_version` is `expected`.

    A node goes with its edges; a hyperedge loses it as a participant, and goes when fewer than three
    remain (`Hyperedge.without`).
    """

    kind: Kind
    id: str
    expected: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TimelineEntry:
    """A line of the graph's append-only diary. `at` is aware UTC."""

    at: datetime
    summary: str
    source: str
    tool: str | None = None
    node_key: str | None = None
    meta: JsonObject = field(default_factory=empty_object)


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionCall:
    """One tool call of a conversation, and the nodes that it touched, each once."""

    session_id: str
    keys: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteBatch:
    """Everything that one use case changes in one graph: all of it is stored, or nothing.

    Applied in the order nodes, edges, hyperedges, deletions, timeline, calls, under one new revision.
    `calls` are recorded as `SessionStore.touch` records them, at the time of the batch.
    """

    at: datetime
    nodes: tuple[NodeWrite, ...] = ()
    edges: tuple[EdgeWrite, ...] = ()
    hyperedges: tuple[HyperedgeWrite, ...] = ()
    deletions: tuple[Deletion, ...] = ()
    timeline: tuple[TimelineEntry, ...] = ()
    calls: tuple[SessionCall, ...] = ()

    @property
    def changes_graph(self) -> bool:
        """Whether applying it advances the revision; the diary and conversations alone do not."""
        return bool(self.nodes or self.edges or self.hyperedges or self.deletions)


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """What a write is planned on; what does not exist is left out of the mappings."""

    nodes: Mapping[str, Node]
    edges: Mapping[EdgeIdentity, Edge]
    hyperedges: Mapping[HyperedgeIdentity, Hyperedge]


@dataclass(frozen=True, slots=True, kw_only=True)
class Removal:
    """A tombstone: `id` (a key, edge id or hyperedge id) was removed at `revision`."""

    kind: Kind
    id: str
    revision: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedNode:
    """A node as it is now, with its passages in the space of the model that was asked for."""

    node: Node
    passages: tuple[Passage, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangePage:
    """All that changed in (since, revision], each thing once, in its present state.

    Apply removals first: a key that was removed and stored again is in `nodes` only.
    """

    revision: int
    nodes: tuple[ChangedNode, ...] = ()
    edges: tuple[Edge, ...] = ()
    hyperedges: tuple[Hyperedge, ...] = ()
    removals: tuple[Removal, ...] = ()
    more: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """One state in the history of a node, edge or hyperedge; `state` is None for its removal."""

    kind: Kind
    id: str
    revision: int
    recorded_at: datetime
    state: Node | Edge | Hyperedge | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Relationships:
    """The relationships of one node, newest first, cut at a limit; totals count all of them."""

    edges: tuple[Edge, ...]
    hyperedges: tuple[Hyperedge, ...]
    edge_total: int
    hyperedge_total: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphCounts:
    """Sizes of a graph. `types` maps each node type in use to its number of nodes.

    Session hyperedges are not counted, nor is an automatic `user_profile` that is still blank.
    """

    nodes: int
    edges: int
    hyperedges: int
    types: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class TimelineEvent:
    """A stored `TimelineEntry` with its number, unique and rising within the graph."""

    id: int
    entry: TimelineEntry


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """A conversation: how many of its tool calls were counted, and when. Times are aware UTC."""

    session_id: str
    tool_calls: int
    first_call_at: datetime
    last_call_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionTouch:
    """How often a conversation touched a node, and when. Times are aware UTC."""

    key: str
    touch_count: int
    first_touched_at: datetime
    last_touched_at: datetime
