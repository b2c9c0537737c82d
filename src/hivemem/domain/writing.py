"""The rules of writing: from a snapshot and store requests to one batch of changes.

Nothing here reads or writes anything. A use case takes a `Snapshot`, lets a `WritePlanner` plan on
it, and applies the batch; when somebody else wrote first it takes a new snapshot and plans again.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
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
from hivemem.errors import Conflict, InvalidInput, NotFound

STORE_TOOL = "hm_store"
UPDATE_TOOL = "hm_update"
RELATE_TOOL = "hm_add_relationships"
INGEST_TOOL = "hm_ingest"
UPLOAD_TOOL = "hm_upload_file"
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
    """The node part of a store or update request, checked and normalised.

    None means that a field was not sent; only an update may leave the description out. An empty
    `search_text` takes the stored one away. With `must_exist`, a key that is new is refused. `tool` is
    what the diary names.
    """

    key: str
    description: str | None
    node_type: str | None = None
    data: JsonObject | None = None
    search_text: str | None = None
    assets: tuple[str, ...] | None = None
    if_exists: IfExists = IfExists.UPDATE
    must_exist: bool = False
    tool: str = STORE_TOOL

    @property
    def text(self) -> NodeText | None:
        """The text of a new node that is stored from this draft; None without a description."""
        if self.description is None:
            return None
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
        description = stored.description if self.description is None else self.description
        text = NodeText(description=description, search_text=search_text)
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


@dataclass(slots=True, kw_only=True)
class PlannedRelationships:
    """What a list of relationships comes to, once its batch is applied."""

    created: list[RelationshipOutcome] = field(default_factory=list[RelationshipOutcome])
    replayed: list[RelationshipOutcome] = field(default_factory=list[RelationshipOutcome])
    errors: list[RelationshipRefusal] = field(default_factory=list[RelationshipRefusal])
    warnings: list[str] = field(default_factory=list[str])


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
            NotFound: The draft says `must_exist`, and there is no such node.
            InvalidInput: A node that nobody has described needs a description.
            ValueError: The key was already described in this plan. One batch holds one version of a
                node, so the second goes into the next batch.
        """
        node, status, warnings = self._put_node(draft, vectors)
        if USER_PROFILE_KEY not in self._nodes:
            self._put_placeholder(USER_PROFILE_KEY)
        related = self._relate(relationships, make_ends=True)
        warnings += related.warnings
        self._timeline.append(self._diary_line(draft, node, status, len(related.created)))
        return PlannedStore(
            status=status,
            node=node,
            created=tuple(related.created),
            replayed=tuple(related.replayed),
            errors=tuple(related.errors),
            warnings=tuple(warnings),
        )

    def relate(self, relationships: Sequence[NumberedRelationship]) -> PlannedRelationships:
        """Plan relationships between nodes that exist; one that names another is refused."""
        related = self._relate(relationships, make_ends=False)
        if related.created:
            first = related.created[0]
            more = len(related.created) - 1
            summary = f"Related {first.keys[0]}: {_shortened(first.relationship)}"
            summary += f" (+{more} more)" if more else ""
            self._timeline.append(
                TimelineEntry(
                    at=self._at, summary=summary, source="agent", tool=RELATE_TOOL, node_key=first.keys[0]
                )
            )
        return related

    def _relate(
        self, relationships: Sequence[NumberedRelationship], *, make_ends: bool
    ) -> PlannedRelationships:
        related = PlannedRelationships()
        placeholders: list[str] = []
        for numbered in relationships:
            request = numbered.request
            missing = [key for key in request.keys if key not in self._nodes]
            if missing and not make_ends:
                related.errors.append(_missing_end(numbered.index, missing[0]))
                continue
            match request:
                case EdgeRequest():
                    self._put_edge(numbered.index, request, related)
                case HyperedgeRequest():
                    self._put_hyperedge(numbered.index, request, related)
                case _:
                    assert_never(request)
            for key in missing:
                self._put_placeholder(key)
            placeholders += missing
        if placeholders:
            related.warnings.append(_placeholder_warning(placeholders))
        return related

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
        if present is None and draft.must_exist:
            raise NotFound(f"node {draft.key!r} does not exist; hm_store creates it.")
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
        if draft.description is None:
            raise InvalidInput(
                f"node {draft.key!r} is a placeholder that nobody has described yet; send a description."
            )
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
            description=present.description if draft.description is None else draft.description,
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

    def _put_edge(self, index: int, request: EdgeRequest, related: PlannedRelationships) -> None:
        identity = (request.from_key, request.to_key, request.relationship)
        present = self._edges.get(identity)
        if present is not None:
            if request.description is not None and request.description != (present.description or ""):
                related.warnings.append(
                    f"/relationships/{index} exists as {present.edge_id!r} with another description, "
                    "which was kept; change it with an update of that edge"
                )
            related.replayed.append(_edge_outcome(index, present))
            return
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
        related.created.append(_edge_outcome(index, edge))

    def _put_hyperedge(self, index: int, request: HyperedgeRequest, related: PlannedRelationships) -> None:
        identity = (request.relationship, frozenset(request.keys))
        present = self._hyperedges.get(identity)
        if present is not None:
            if (request.description or "") == (present.description or ""):
                related.replayed.append(_hyperedge_outcome(index, present))
                return
            related.errors.append(
                RelationshipRefusal(
                    index=index,
                    code="hyperedge_conflict",
                    detail=f"/relationships/{index} exists as {present.hyperedge_id!r} with another "
                    "description, and a hyperedge never changes; store it under a new label, then "
                    "forget the old id.",
                )
            )
            return
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
        related.created.append(_hyperedge_outcome(index, hyperedge))

    def _diary_line(self, draft: NodeDraft, node: Node, status: str, relationships: int) -> TimelineEntry:
        """One readable line. It names no other node, so that forgetting one leaves no trace of it."""
        summary = f"{status.capitalize()} {draft.key}"
        if status != "kept":
            summary += f": {_shortened(node.description)}"
        if relationships:
            summary += f" (+{relationships} relationship{'s' if relationships > 1 else ''})"
        return TimelineEntry(
            at=self._at, summary=summary, source="agent", tool=draft.tool, node_key=draft.key
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


def _missing_end(index: int, key: str) -> RelationshipRefusal:
    return RelationshipRefusal(
        index=index,
        code="not_found",
        detail=f"/relationships/{index} names {key!r}, which does not exist; hm_store creates it.",
    )


def _shortened(text: str) -> str:
    line = " ".join(text[: 4 * _DIARY_CHARACTERS].split())
    return line if len(line) <= _DIARY_CHARACTERS else line[: _DIARY_CHARACTERS - 1].rstrip() + "…"


def _placeholder_warning(keys: Sequence[str]) -> str:
    named = ", ".join(repr(key) for key in keys[:_NAMED_IN_WARNING])
    more = f" and {len(keys) - _NAMED_IN_WARNING} more" if len(keys) > _NAMED_IN_WARNING else ""
    return f"created as placeholders, to be described by a later store: {named}{more}"
