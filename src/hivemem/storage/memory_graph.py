"""One graph of `MemoryStore`, and how the parts of a batch change it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, TypeVar

from hivemem.domain.edge import Edge, Hyperedge
from hivemem.domain.graph import (
    Deletion,
    EdgeWrite,
    HyperedgeWrite,
    Kind,
    NodeVectors,
    NodeWrite,
    Passage,
    Session,
    SessionTouch,
    TimelineEntry,
    Version,
)
from hivemem.domain.node import Node
from hivemem.errors import StaleWrite

_Thing = TypeVar("_Thing")


@dataclass(slots=True)
class GraphState:
    """One graph. Values are immutable, so that copying the containers copies the graph."""

    revision: int = 0
    last_event: int = 0
    nodes: dict[str, Node] = field(default_factory=dict[str, Node])
    vectors: dict[str, NodeVectors] = field(default_factory=dict[str, NodeVectors])
    edges: dict[str, Edge] = field(default_factory=dict[str, Edge])
    hyperedges: dict[str, Hyperedge] = field(default_factory=dict[str, Hyperedge])
    tombstones: dict[tuple[Kind, str], int] = field(default_factory=dict[tuple[Kind, str], int])
    versions: dict[tuple[Kind, str], tuple[Version, ...]] = field(
        default_factory=dict[tuple[Kind, str], tuple[Version, ...]]
    )
    touches: dict[tuple[str, str], SessionTouch] = field(default_factory=dict[tuple[str, str], SessionTouch])
    sessions: dict[str, Session] = field(default_factory=dict[str, Session])
    events: dict[int, TimelineEntry] = field(default_factory=dict[int, TimelineEntry])

    def copy(self) -> GraphState:
        """A graph with containers of its own."""
        return GraphState(
            revision=self.revision,
            last_event=self.last_event,
            nodes=dict(self.nodes),
            vectors=dict(self.vectors),
            edges=dict(self.edges),
            hyperedges=dict(self.hyperedges),
            tombstones=dict(self.tombstones),
            versions=dict(self.versions),
            touches=dict(self.touches),
            sessions=dict(self.sessions),
            events=dict(self.events),
        )

    def tables(self) -> dict[str, dict[Any, Any]]:
        """The containers by the names of tables; what names others comes first."""
        return {
            "session_nodes": self.touches,
            "sessions": self.sessions,
            "timeline": self.events,
            "tombstones": self.tombstones,
            "versions": self.versions,
            "hyperedges": self.hyperedges,
            "edges": self.edges,
            "node_vectors": self.vectors,
            "nodes": self.nodes,
        }


def put_node(graph: GraphState, write: NodeWrite, at: datetime) -> None:
    """Create or change a node and its vectors."""
    node = replace(write.node, revision=graph.revision)
    stored = graph.nodes.get(node.key)
    _check_version(Kind.NODE, node.key, stored.write_version if stored else 0, write.expected)
    graph.nodes[node.key] = node
    if write.vectors is not None:
        replace_vectors(graph, node.key, write.vectors)
    _keep(graph, Kind.NODE, node.key, node, at)


def put_edge(graph: GraphState, write: EdgeWrite, at: datetime) -> None:
    """Create or change an edge."""
    edge = replace(write.edge, revision=graph.revision)
    stored = graph.edges.get(edge.edge_id)
    _check_version(Kind.EDGE, edge.edge_id, stored.write_version if stored else 0, write.expected)
    if edge.edge_id in graph.hyperedges:
        raise StaleWrite(f"the id {edge.edge_id!r} is a hyperedge's; make a fresh one.")
    if stored is None or stored.identity != edge.identity:
        _check_free([e.edge_id for e in graph.edges.values() if e.identity == edge.identity])
    _check_ends(graph, (edge.from_key, edge.to_key))
    graph.edges[edge.edge_id] = edge
    _keep(graph, Kind.EDGE, edge.edge_id, edge, at)


def put_hyperedge(graph: GraphState, write: HyperedgeWrite, at: datetime) -> None:
    """Create or change a hyperedge."""
    hyperedge = replace(write.hyperedge, revision=graph.revision)
    id = hyperedge.hyperedge_id
    stored = graph.hyperedges.get(id)
    _check_version(Kind.HYPEREDGE, id, stored.write_version if stored else 0, write.expected)
    if id in graph.edges:
        raise StaleWrite(f"the id {id!r} is an edge's; make a fresh one.")
    # An unchanged identity is let pass: two hyperedges can become the same by losing participants,
    # and each of them must stay writable.
    if stored is None or stored.identity != hyperedge.identity:
        _check_free([h.hyperedge_id for h in graph.hyperedges.values() if h.identity == hyperedge.identity])
    _check_ends(graph, hyperedge.keys)
    graph.hyperedges[id] = hyperedge
    _keep(graph, Kind.HYPEREDGE, id, hyperedge, at)


def delete(graph: GraphState, deletion: Deletion, at: datetime) -> None:
    """Remove a node, edge or hyperedge with all that hangs on it."""
    things = {Kind.NODE: graph.nodes, Kind.EDGE: graph.edges, Kind.HYPEREDGE: graph.hyperedges}
    stored = things[deletion.kind].get(deletion.id)
    if stored is None:
        raise StaleWrite(f"{deletion.kind} {deletion.id!r} is not there any more.", current_version=0)
    _check_version(deletion.kind, deletion.id, stored.write_version, deletion.expected)
    if deletion.kind is Kind.NODE:
        _detach_node(graph, deletion.id, at)
    del things[deletion.kind][deletion.id]
    _keep(graph, deletion.kind, deletion.id, None, at)


def _detach_node(graph: GraphState, key: str, at: datetime) -> None:
    """Remove all that hangs on a node: edges, memberships, vectors, diary lines, touches."""
    for edge in [e for e in graph.edges.values() if key in (e.from_key, e.to_key)]:
        del graph.edges[edge.edge_id]
        _keep(graph, Kind.EDGE, edge.edge_id, None, at)
    for hyperedge in [h for h in graph.hyperedges.values() if key in h.keys]:
        id = hyperedge.hyperedge_id
        rest = hyperedge.without((key,), at)
        if rest is None:
            del graph.hyperedges[id]
        else:
            rest = graph.hyperedges[id] = replace(rest, revision=graph.revision)
        _keep(graph, Kind.HYPEREDGE, id, rest, at)
    graph.vectors.pop(key, None)
    graph.events = {id: entry for id, entry in graph.events.items() if entry.node_key != key}
    graph.touches = {name: touch for name, touch in graph.touches.items() if touch.key != key}


def touch(graph: GraphState, session_id: str, keys: Collection[str], at: datetime) -> None:
    """Count a call of a session, and the nodes that it touched."""
    known = graph.sessions.get(session_id)
    graph.sessions[session_id] = Session(
        session_id=session_id,
        tool_calls=known.tool_calls + 1 if known else 1,
        first_call_at=min(known.first_call_at, at) if known else at,
        last_call_at=max(known.last_call_at, at) if known else at,
    )
    for key in set(keys) & graph.nodes.keys():
        before = graph.touches.get((session_id, key))
        graph.touches[session_id, key] = SessionTouch(
            key=key,
            touch_count=before.touch_count + 1 if before else 1,
            first_touched_at=min(before.first_touched_at, at) if before else at,
            last_touched_at=max(before.last_touched_at, at) if before else at,
        )


def _keep(
    graph: GraphState, kind: Kind, id: str, state: Node | Edge | Hyperedge | None, at: datetime
) -> None:
    """Record the state that a thing has at the end of this revision, and its tombstone or none."""
    earlier = graph.versions.get((kind, id), ())
    # A batch may change a thing twice; its history has one state for each revision.
    earlier = tuple(version for version in earlier if version.revision != graph.revision)
    version = Version(kind=kind, id=id, revision=graph.revision, recorded_at=at, state=state)
    graph.versions[kind, id] = (*earlier, version)
    if state is None:
        graph.tombstones[kind, id] = graph.revision
    else:
        graph.tombstones.pop((kind, id), None)


def replace_vectors(graph: GraphState, key: str, vectors: NodeVectors) -> None:
    """Keep the vectors of a node; none, when there is no passage."""
    if vectors.passages:
        graph.vectors[key] = vectors
    else:
        graph.vectors.pop(key, None)


def passages(graph: GraphState, key: str, model_id: str) -> tuple[Passage, ...]:
    """The passages of a node that have vectors of this model."""
    vectors = graph.vectors.get(key)
    return vectors.passages if vectors is not None and vectors.model_id == model_id else ()


def _check_version(kind: Kind, id: str, stored: int, expected: int) -> None:
    if stored != expected:
        raise StaleWrite(
            f"{kind} {id!r} is at version {stored}, not {expected}; read it again and repeat.",
            current_version=stored,
        )


def _check_free(holders: Sequence[str]) -> None:
    if holders:
        raise StaleWrite(f"the same relationship exists as {holders[0]!r}; read again and repeat.")


def _check_ends(graph: GraphState, keys: Iterable[str]) -> None:
    for key in keys:
        if key not in graph.nodes:
            raise StaleWrite(f"the node {key!r} does not exist any more; read again and repeat.")


def changed(things: Iterable[_Thing], since: int, order: Callable[[_Thing], tuple[int, str]]) -> list[_Thing]:
    """The things that changed after a revision, in the order that `order` gives."""
    return sorted((thing for thing in things if order(thing)[0] > since), key=order)


def last_revision_of_page(rows: Iterable[int], present: int, limit: int) -> int:
    """The last revision on a page: whole revisions, at least one, and no more than `limit` rows."""
    sizes = Counter(rows)
    total, last = 0, None
    for revision in sorted(sizes):
        total += sizes[revision]
        if last is not None and total > limit:
            return last
        last = revision
    return present


def newest_first(things: Iterable[_Thing], age: Callable[[_Thing], tuple[datetime, str]]) -> list[_Thing]:
    """Things by age, youngest first."""
    return sorted(things, key=age, reverse=True)


def hyperedge_age(hyperedge: Hyperedge) -> tuple[datetime, str]:
    """What hyperedges are ordered by: when they were made, then id."""
    return (hyperedge.created_at, hyperedge.hyperedge_id)
