"""The rules of writing: from a snapshot and store requests to one batch of changes.

Nothing here reads or writes anything. A use case takes a `Snapshot`, lets a `WritePlanner` plan on
it, and applies the batch; when somebody else wrote first it takes a new snapshot and plans again.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import assert_never

from hivemem.domain.edge import Edge, EdgeIdentity, Hyperedge, HyperedgeIdentity, Participant
from hivemem.domain.graph import (
    EdgeWrite,
    HyperedgeWrite,
    NodeVectors,
    NodeWrite,
    SessionCall,
    Snapshot,
    TimelineEntry,
    WriteBatch,
)
from hivemem.domain.keys import USER_PROFILE_KEY
from hivemem.domain.node import EnrichmentStatus, Node
from hivemem.domain.node_types import resolve_node_type
from hivemem.domain.relationships import EdgeRequest, HyperedgeRequest, RelationshipRequest
from hivemem.domain.text import JsonObject
from hivemem.errors import Conflict

STORE_TOOL = "hm_store"
LABEL_FIELD = "semantic_relationship"
"""The member of a relationship's `data` that holds the label as readers see it."""

_DIARY_CHARACTERS = 160
_NAMED_IN_WARNING = 5


class IfExists(enum.StrEnum):
    """What a store does when the key is already described. A placeholder never counts as existing."""

    UPDATE = "update"
    """Change the given fields only."""
    KEEP = "keep"
    """Leave the node alone, add the relationships."""
    ERROR = "error"
    """Refuse, and write nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeText:
    """The text of a node that is embedded. Equal texts have equal vectors."""

    description: str
    search_text: str | None

    @classmethod
    def of(cls, node: Node) -> NodeText:
        """The text of `node` as it is now."""
        return cls(description=node.description, search_text=node.search_text)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeDraft:
    """The node part of a store request, checked and normalised.

    None means that the field was not sent. An empty `search_text` takes the stored one away.
    """

    key: str
    description: str
    node_type: str | None = None
    data: JsonObject | None = None
    search_text: str | None = None
    assets: tuple[str, ...] | None = None
    if_exists: IfExists = IfExists.UPDATE

    @property
    def text(self) -> NodeText:
        """The text of a new node that is stored from this draft."""
        return NodeText(description=self.description, search_text=self.search_text or None)

    def missing_text(self, stored: Node | None) -> NodeText | None:
        """The text that needs vectors when this draft is stored over `stored`, or None.

        None when nothing is written, or when the text stays as it is and has been embedded before.
        """
        if stored is None or stored.placeholder:
            return self.text
        if self.if_exists is not IfExists.UPDATE:
            return None
        search_text = stored.search_text if self.search_text is None else self.search_text or None
        text = NodeText(description=self.description, search_text=search_text)
        waiting = stored.enrichment_status is EnrichmentStatus.PENDING
        return text if waiting or text != NodeText.of(stored) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberedRelationship:
    """A relationship wish and its position in the caller's list."""

    index: int
    request: RelationshipRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class RelationshipOutcome:
    """A relationship that exists after the call. `kind` is `edge` or `hyperedge`."""

    index: int
    entity_id: str
    kind: str
    relationship: str
    keys: tuple[str, ...]
    write_version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RelationshipRefusal:
    """A relationship that was not stored, with the code and sentence of the reason."""

    index: int
    code: str
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedStore:
    """What one store request comes to, once its batch is applied.

    `status` is `created`, `updated` or `kept`; `node` is the record after the call.
    """

    status: str
    node: Node
    created: tuple[RelationshipOutcome, ...]
    replayed: tuple[RelationshipOutcome, ...]
    errors: tuple[RelationshipRefusal, ...]
    warnings: tuple[str, ...]


class WritePlanner:
    """Plans store requests one after the other on one snapshot; each sees the ones before it.

    Args:
        snapshot: Must name every key and identity that the requests name, and `user_profile`.
        at: Time of the write, aware UTC.
        new_id: Gives a fresh id for a prefix.
    """

    def __init__(self, snapshot: Snapshot, *, at: datetime, new_id: Callable[[str], str]) -> None:
        self._stored = snapshot.nodes
        self._nodes: dict[str, Node] = dict(snapshot.nodes)
        self._edges: dict[EdgeIdentity, Edge] = dict(snapshot.edges)
        self._hyperedges: dict[HyperedgeIdentity, Hyperedge] = dict(snapshot.hyperedges)
        self._node_writes: dict[str, NodeWrite] = {}
        self._edge_writes: list[EdgeWrite] = []
        self._hyperedge_writes: list[HyperedgeWrite] = []
        self._timeline: list[TimelineEntry] = []
        self._at = at
        self._new_id = new_id

    def store(
        self,
        draft: NodeDraft,
        relationships: Sequence[NumberedRelationship],
        vectors: Mapping[NodeText, NodeVectors],
    ) -> PlannedStore:
        """Plan one request; a refused relationship does not undo the node.

        Args:
            draft: The node.
            relationships: Its relationships; ends that do not exist become placeholders.
            vectors: Holds `draft.missing_text(stored)`. Vectors without passages mean that embedding
                failed: stored vectors are cleared and the node waits as `pending`.

        Raises:
            Conflict: The node exists and the draft says `error`; nothing is planned then.
            ValueError: The key was already described in this plan. One batch holds one version of a
                node, so the second goes into the next batch.
        """
        node, status, warnings = self._put_node(draft, vectors)
        if USER_PROFILE_KEY not in self._nodes:
            self._put_placeholder(USER_PROFILE_KEY)
        created: list[RelationshipOutcome] = []
        replayed: list[RelationshipOutcome] = []
        errors: list[RelationshipRefusal] = []
        placeholders: list[str] = []
        for numbered in relationships:
            match numbered.request:
                case EdgeRequest() as request:
                    self._put_edge(numbered.index, request, created, replayed, warnings, placeholders)
                case HyperedgeRequest() as request:
                    self._put_hyperedge(numbered.index, request, created, replayed, errors, placeholders)
                case _:
                    assert_never(numbered.request)
        if placeholders:
            warnings.append(_placeholder_warning(placeholders))
        self._timeline.append(self._diary_line(draft, status, len(created)))
        return PlannedStore(
            status=status,
            node=node,
            created=tuple(created),
            replayed=tuple(replayed),
            errors=tuple(errors),
            warnings=tuple(warnings),
        )

    def batch(self, calls: Sequence[SessionCall] = ()) -> WriteBatch:
        """Everything planned so far, to be applied at once; `calls` are the conversations' part in it."""
        return WriteBatch(
            at=self._at,
            nodes=tuple(self._node_writes.values()),
            edges=tuple(self._edge_writes),
            hyperedges=tuple(self._hyperedge_writes),
            timeline=tuple(self._timeline),
            calls=tuple(calls),
        )

    def _put_node(
        self, draft: NodeDraft, vectors: Mapping[NodeText, NodeVectors]
    ) -> tuple[Node, str, list[str]]:
        present = self._nodes.get(draft.key)
        if present is not None and not present.placeholder:
            if draft.if_exists is IfExists.ERROR:
                raise Conflict(
                    f"/key {draft.key!r} already exists; store it with if_exists 'update' or 'keep'.",
                    code="already_exists",
                    key=draft.key,
                    write_version=present.write_version,
                )
            if draft.if_exists is IfExists.KEEP:
                return present, "kept", []
            if draft.key in self._node_writes:
                raise ValueError(f"{draft.key!r} is already described in this plan")
        text = draft.missing_text(present)
        found = None if text is None else vectors[text]
        if present is not None and not present.placeholder:
            settled = present.enrichment_status if found is None else _settled(found)
            status, node, warnings = "updated", *self._updated(draft, present, settled)
        else:
            settled = EnrichmentStatus.PENDING if found is None else _settled(found)
            status, node, warnings = "created", *self._described(draft, settled)
        self._put(node, found)
        return node, status, warnings

    def _described(self, draft: NodeDraft, settled: EnrichmentStatus) -> tuple[Node, list[str]]:
        """A new node, or a placeholder that gets its description: that is when it comes into being."""
        resolved = resolve_node_type(draft.node_type, draft.key)
        node = Node(
            key=draft.key,
            node_type=resolved.node_type,
            description=draft.description,
            data={} if draft.data is None else draft.data,
            search_text=draft.search_text or None,
            assets=draft.assets or (),
            enrichment_status=settled,
            write_version=self._stored_version(draft.key) + 1,
            created_at=self._at,
            updated_at=self._at,
        )
        return node, [resolved.warning] if resolved.warning else []

    def _updated(self, draft: NodeDraft, present: Node, settled: EnrichmentStatus) -> tuple[Node, list[str]]:
        node_type, warnings = present.node_type, list[str]()
        if draft.node_type:
            resolved = resolve_node_type(draft.node_type, draft.key)
            node_type = resolved.node_type
            warnings = [resolved.warning] if resolved.warning else []
        node = replace(
            present,
            node_type=node_type,
            description=draft.description,
            data=present.data if draft.data is None else draft.data,
            search_text=present.search_text if draft.search_text is None else draft.search_text or None,
            assets=present.assets if draft.assets is None else draft.assets,
            enrichment_status=settled,
            write_version=self._stored_version(draft.key) + 1,
            updated_at=self._at,
        )
        return node, warnings

    def _put_placeholder(self, key: str) -> None:
        self._put(placeholder(key, at=self._at), None)

    def _put(self, node: Node, vectors: NodeVectors | None) -> None:
        self._nodes[node.key] = node
        # A placeholder planned for an earlier request is replaced: the batch never holds a key twice.
        self._node_writes[node.key] = NodeWrite(
            node=node, expected=self._stored_version(node.key), vectors=vectors
        )

    def _stored_version(self, key: str) -> int:
        stored = self._stored.get(key)
        return 0 if stored is None else stored.write_version

    def _put_missing_ends(self, keys: Sequence[str], placeholders: list[str]) -> None:
        for key in keys:
            if key not in self._nodes:
                self._put_placeholder(key)
                placeholders.append(key)

    def _put_edge(
        self,
        index: int,
        request: EdgeRequest,
        created: list[RelationshipOutcome],
        replayed: list[RelationshipOutcome],
        warnings: list[str],
        placeholders: list[str],
    ) -> None:
        identity = (request.from_key, request.to_key, request.relationship)
        present = self._edges.get(identity)
        if present is not None:
            if request.description is not None and request.description != (present.description or ""):
                warnings.append(
                    f"/relationships/{index} exists as {present.edge_id!r} with another description, "
                    "which was kept; change it with an update of that edge"
                )
            replayed.append(_edge_outcome(index, present))
            return
        self._put_missing_ends(request.keys, placeholders)
        edge = Edge(
            edge_id=self._new_id("edge"),
            from_key=request.from_key,
            to_key=request.to_key,
            relationship=request.relationship,
            description=request.description,
            data=_labelled(request.data, request.relationship),
            created_at=self._at,
            updated_at=self._at,
        )
        self._edges[identity] = edge
        self._edge_writes.append(EdgeWrite(edge=edge, expected=0))
        created.append(_edge_outcome(index, edge))

    def _put_hyperedge(
        self,
        index: int,
        request: HyperedgeRequest,
        created: list[RelationshipOutcome],
        replayed: list[RelationshipOutcome],
        errors: list[RelationshipRefusal],
        placeholders: list[str],
    ) -> None:
        identity = (request.relationship, frozenset(request.keys))
        present = self._hyperedges.get(identity)
        if present is not None:
            if (request.description or "") == (present.description or ""):
                replayed.append(_hyperedge_outcome(index, present))
                return
            errors.append(
                RelationshipRefusal(
                    index=index,
                    code="hyperedge_conflict",
                    detail=f"/relationships/{index} exists as {present.hyperedge_id!r} with another "
                    "description, and a hyperedge never changes; store it under a new label, then "
                    "forget the old id.",
                )
            )
            return
        self._put_missing_ends(request.keys, placeholders)
        hyperedge = Hyperedge(
            hyperedge_id=self._new_id("hyper"),
            relationship=request.relationship,
            participants=tuple(
                Participant(node_key=key, ordinal=ordinal) for ordinal, key in enumerate(request.keys)
            ),
            description=request.description,
            data=_labelled(request.data, request.relationship),
            created_at=self._at,
            updated_at=self._at,
        )
        self._hyperedges[identity] = hyperedge
        self._hyperedge_writes.append(HyperedgeWrite(hyperedge=hyperedge, expected=0))
        created.append(_hyperedge_outcome(index, hyperedge))

    def _diary_line(self, draft: NodeDraft, status: str, relationships: int) -> TimelineEntry:
        """One readable line. It names no other node, so that forgetting one leaves no trace of it."""
        summary = f"{status.capitalize()} {draft.key}"
        if status != "kept":
            summary += f": {_shortened(draft.description)}"
        if relationships:
            summary += f" (+{relationships} relationship{'s' if relationships > 1 else ''})"
        return TimelineEntry(
            at=self._at, summary=summary, source="agent", tool=STORE_TOOL, node_key=draft.key
        )


def placeholder(key: str, *, at: datetime) -> Node:
    """A node that is named but not described; its type comes from the key's prefix."""
    return Node(
        key=key,
        node_type=resolve_node_type(None, key).node_type,
        description="",
        enrichment_status=EnrichmentStatus.PLACEHOLDER,
        created_at=at,
        updated_at=at,
    )


def identities(
    relationships: Sequence[NumberedRelationship],
) -> tuple[list[str], list[EdgeIdentity], list[HyperedgeIdentity]]:
    """Keys, edges and hyperedges that a plan for these relationships must see in its snapshot."""
    keys: list[str] = []
    edges: list[EdgeIdentity] = []
    hyperedges: list[HyperedgeIdentity] = []
    for numbered in relationships:
        request = numbered.request
        keys.extend(request.keys)
        match request:
            case EdgeRequest():
                edges.append((request.from_key, request.to_key, request.relationship))
            case HyperedgeRequest():
                hyperedges.append((request.relationship, frozenset(request.keys)))
            case _:
                assert_never(request)
    return keys, edges, hyperedges


def _settled(vectors: NodeVectors) -> EnrichmentStatus:
    """Enrichment is off in this version: a node that has its vectors is complete."""
    return EnrichmentStatus.SKIPPED if vectors.passages else EnrichmentStatus.PENDING


def _labelled(data: JsonObject, label: str) -> JsonObject:
    """`data` with the label that readers see; one sent by the caller, as an import does, stays."""
    sent = data.get(LABEL_FIELD)
    kept = isinstance(sent, str) and bool(sent.strip())
    return data if kept else {**data, LABEL_FIELD: label}


def _edge_outcome(index: int, edge: Edge) -> RelationshipOutcome:
    return RelationshipOutcome(
        index=index,
        entity_id=edge.edge_id,
        kind="edge",
        relationship=edge.relationship,
        keys=(edge.from_key, edge.to_key),
        write_version=edge.write_version,
    )


def _hyperedge_outcome(index: int, hyperedge: Hyperedge) -> RelationshipOutcome:
    return RelationshipOutcome(
        index=index,
        entity_id=hyperedge.hyperedge_id,
        kind="hyperedge",
        relationship=hyperedge.relationship,
        keys=hyperedge.keys,
        write_version=hyperedge.write_version,
    )


def _shortened(text: str) -> str:
    line = " ".join(text[: 4 * _DIARY_CHARACTERS].split())
    return line if len(line) <= _DIARY_CHARACTERS else line[: _DIARY_CHARACTERS - 1].rstrip() + "…"


def _placeholder_warning(keys: Sequence[str]) -> str:
    named = ", ".join(repr(key) for key in keys[:_NAMED_IN_WARNING])
    more = f" and {len(keys) - _NAMED_IN_WARNING} more" if len(keys) > _NAMED_IN_WARNING else ""
    return f"created as placeholders, to be described by a later store: {named}{more}"
