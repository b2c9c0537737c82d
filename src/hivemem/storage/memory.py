"""A store in dictionaries: the reference that every real store is compared with.

It favours being obviously right over being fast: a batch is played on a copy of the graph, and the
copy replaces the graph when nothing failed. Nothing survives the process.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TypeVar

from hivemem.domain.access import ApiKey
from hivemem.domain.accounts import Graph, User
from hivemem.domain.edge import Edge, EdgeIdentity, Hyperedge, HyperedgeIdentity
from hivemem.domain.files import StoredFile
from hivemem.domain.graph import (
    ChangedNode,
    ChangePage,
    Deletion,
    EdgeWrite,
    GraphCounts,
    GraphId,
    HyperedgeWrite,
    Kind,
    NodeVectors,
    NodeWrite,
    Passage,
    Relationships,
    Removal,
    Session,
    SessionTouch,
    Snapshot,
    TimelineEntry,
    TimelineEvent,
    Version,
    WriteBatch,
)
from hivemem.domain.keys import USER_PROFILE_KEY
from hivemem.domain.node import EnrichmentStatus, Node
from hivemem.domain.tokens import TokenReport
from hivemem.errors import Conflict, InvalidInput, NotFound, StaleWrite, Unavailable
from hivemem.storage.diary import diary_terms
from hivemem.storage.memory_exports import MemoryExports
from hivemem.storage.memory_oauth import MemoryOAuth
from hivemem.storage.states import ascii_folded

_Thing = TypeVar("_Thing")


@dataclass(slots=True)
class _GraphState:
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

    def copy(self) -> _GraphState:
        return _GraphState(
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


class MemoryStore(MemoryOAuth, MemoryExports):
    """The `Store` port for tests and for reading: see `hivemem.ports.store` for the contract."""

    def __init__(self) -> None:
        self._graph_states: dict[GraphId, _GraphState] = {}
        self._users: dict[str, User] = {}
        self._graphs: dict[str, Graph] = {}
        self._keys: dict[str, ApiKey] = {}
        self._leases: dict[str, tuple[str, datetime]] = {}
        self._files: dict[tuple[GraphId, str], StoredFile] = {}
        self._token_reports: dict[tuple[GraphId, str, str, int], TokenReport] = {}
        self._closed = False
        MemoryOAuth.__init__(self, self._keys, self._check_open)
        MemoryExports.__init__(self, self._check_open)

    async def revision(self, graph_id: GraphId) -> int:
        """See `GraphStore.revision`."""
        return self._graph(graph_id).revision

    async def snapshot(
        self,
        graph_id: GraphId,
        keys: Collection[str] = (),
        edges: Collection[EdgeIdentity] = (),
        hyperedges: Collection[HyperedgeIdentity] = (),
    ) -> Snapshot:
        """See `GraphStore.snapshot`."""
        graph = self._graph(graph_id)
        wanted_edges, wanted_hyperedges = set(edges), set(hyperedges)
        # Oldest last: it wins where lost participants have made two hyperedges the same.
        newest_first = _newest_first(graph.hyperedges.values(), _hyperedge_age)
        return Snapshot(
            nodes={key: graph.nodes[key] for key in keys if key in graph.nodes},
            edges={e.identity: e for e in graph.edges.values() if e.identity in wanted_edges},
            hyperedges={h.identity: h for h in newest_first if h.identity in wanted_hyperedges},
        )

    async def apply(self, graph_id: GraphId, batch: WriteBatch) -> int:
        """See `GraphStore.apply`."""
        draft = self._graph(graph_id).copy()
        if batch.changes_graph:
            draft.revision += 1
        for node_write in batch.nodes:
            _put_node(draft, node_write, batch.at)
        for edge_write in batch.edges:
            _put_edge(draft, edge_write, batch.at)
        for hyperedge_write in batch.hyperedges:
            _put_hyperedge(draft, hyperedge_write, batch.at)
        for deletion in batch.deletions:
            _delete(draft, deletion, batch.at)
        for entry in batch.timeline:
            draft.last_event += 1
            draft.events[draft.last_event] = entry
        for call in batch.calls:
            _touch(draft, call.session_id, call.keys, batch.at)
        self._graph_states[graph_id] = draft
        return draft.revision

    async def changes(self, graph_id: GraphId, since: int, *, model_id: str, limit: int = 1000) -> ChangePage:
        """See `GraphStore.changes`."""
        graph = self._graph(graph_id)
        nodes = _changed(graph.nodes.values(), since, lambda node: (node.revision, node.key))
        edges = _changed(graph.edges.values(), since, lambda edge: (edge.revision, edge.edge_id))
        hyperedges = _changed(
            graph.hyperedges.values(), since, lambda hyperedge: (hyperedge.revision, hyperedge.hyperedge_id)
        )
        removals = sorted(
            (
                Removal(kind=kind, id=id, revision=revision)
                for (kind, id), revision in graph.tombstones.items()
                if revision > since
            ),
            key=lambda removal: (removal.revision, removal.kind, removal.id),
        )
        rows = [thing.revision for things in (nodes, edges, hyperedges, removals) for thing in things]
        last = _last_revision_of_page(rows, graph.revision, limit)
        return ChangePage(
            revision=last,
            nodes=tuple(
                ChangedNode(node=node, passages=_passages(graph, node.key, model_id))
                for node in nodes
                if node.revision <= last
            ),
            edges=tuple(edge for edge in edges if edge.revision <= last),
            hyperedges=tuple(hyperedge for hyperedge in hyperedges if hyperedge.revision <= last),
            removals=tuple(removal for removal in removals if removal.revision <= last),
            more=last < graph.revision,
        )

    async def nodes(self, graph_id: GraphId, keys: Collection[str]) -> dict[str, Node]:
        """See `GraphStore.nodes`."""
        nodes = self._graph(graph_id).nodes
        return {key: nodes[key] for key in keys if key in nodes}

    async def edges(self, graph_id: GraphId, ids: Collection[str]) -> dict[str, Edge]:
        """See `GraphStore.edges`."""
        edges = self._graph(graph_id).edges
        return {id: edges[id] for id in ids if id in edges}

    async def hyperedges(self, graph_id: GraphId, ids: Collection[str]) -> dict[str, Hyperedge]:
        """See `GraphStore.hyperedges`."""
        hyperedges = self._graph(graph_id).hyperedges
        return {id: hyperedges[id] for id in ids if id in hyperedges}

    async def relationships(
        self, graph_id: GraphId, keys: Collection[str], *, edge_limit: int, hyperedge_limit: int
    ) -> dict[str, Relationships]:
        """See `GraphStore.relationships`."""
        graph = self._graph(graph_id)
        edges = _newest_first(graph.edges.values(), lambda edge: (edge.created_at, edge.edge_id))
        hyperedges = _newest_first(graph.hyperedges.values(), _hyperedge_age)
        found: dict[str, Relationships] = {}
        for key in keys:
            own_edges = [edge for edge in edges if key in (edge.from_key, edge.to_key)]
            own_hyperedges = [hyperedge for hyperedge in hyperedges if key in hyperedge.keys]
            found[key] = Relationships(
                edges=tuple(own_edges[: max(0, edge_limit)]),
                hyperedges=tuple(own_hyperedges[: max(0, hyperedge_limit)]),
                edge_total=len(own_edges),
                hyperedge_total=len(own_hyperedges),
            )
        return found

    async def counts(self, graph_id: GraphId) -> GraphCounts:
        """See `GraphStore.counts`."""
        graph = self._graph(graph_id)
        counted = [n for n in graph.nodes.values() if not (n.key == USER_PROFILE_KEY and n.placeholder)]
        return GraphCounts(
            nodes=len(counted),
            edges=len(graph.edges),
            hyperedges=sum(not hyperedge.is_session for hyperedge in graph.hyperedges.values()),
            types=dict(Counter(node.node_type for node in counted)),
        )

    async def scan(self, graph_id: GraphId, *, after: str | None = None, limit: int = 500) -> Sequence[Node]:
        """See `GraphStore.scan`."""
        nodes = self._graph(graph_id).nodes
        keys = sorted(key for key in nodes if after is None or key > after)
        return [nodes[key] for key in keys[: max(0, limit)]]

    async def versions(self, graph_id: GraphId, kind: Kind, id: str) -> Sequence[Version]:
        """See `GraphStore.versions`."""
        return list(reversed(self._graph(graph_id).versions.get((kind, id), ())))

    async def versions_before(
        self, graph_id: GraphId, kind: Kind, ids: Collection[str], revision: int
    ) -> dict[str, Version]:
        """See `GraphStore.versions_before`."""
        versions = self._graph(graph_id).versions
        earlier = {id: [one for one in versions.get((kind, id), ()) if one.revision < revision] for id in ids}
        return {id: some[-1] for id, some in earlier.items() if some}

    async def without_vectors(self, graph_id: GraphId, model_id: str, *, limit: int = 100) -> Sequence[Node]:
        """See `GraphStore.without_vectors`."""
        graph = self._graph(graph_id)
        missing = [
            node
            for key, node in sorted(graph.nodes.items())
            if not node.placeholder and not _passages(graph, key, model_id)
        ]
        return missing[: max(0, limit)]

    async def put_vectors(
        self,
        graph_id: GraphId,
        key: str,
        write_version: int,
        vectors: NodeVectors,
        status: EnrichmentStatus,
    ) -> bool:
        """See `GraphStore.put_vectors`."""
        graph = self._graph(graph_id).copy()
        node = graph.nodes.get(key)
        if node is None or node.write_version != write_version:
            return False
        graph.revision += 1
        graph.nodes[key] = replace(node, enrichment_status=status, revision=graph.revision)
        _replace_vectors(graph, key, vectors)
        self._graph_states[graph_id] = graph
        return True

    async def vector_models(self, graph_id: GraphId) -> dict[str, int]:
        """See `GraphStore.vector_models`."""
        return dict(Counter(vectors.model_id for vectors in self._graph(graph_id).vectors.values()))

    async def touch(self, graph_id: GraphId, session_id: str, keys: Collection[str], at: datetime) -> None:
        """See `SessionStore.touch`."""
        graph = self._graph(graph_id).copy()
        _touch(graph, session_id, keys, at)
        self._graph_states[graph_id] = graph

    async def touched(
        self, graph_id: GraphId, session_id: str, *, limit: int = 200
    ) -> Sequence[SessionTouch]:
        """See `SessionStore.touched`."""
        touches = self._graph(graph_id).touches
        own = [touch for (session, _), touch in sorted(touches.items()) if session == session_id]
        return sorted(own, key=lambda touch: touch.last_touched_at, reverse=True)[: max(0, limit)]

    async def session(self, graph_id: GraphId, session_id: str) -> Session | None:
        """See `SessionStore.session`."""
        return self._graph(graph_id).sessions.get(session_id)

    async def timeline(
        self,
        graph_id: GraphId,
        *,
        start: datetime | None = None,
        end: datetime | None = None,
        node_key: str | None = None,
        words: Sequence[Collection[str]] = (),
        limit: int = 50,
    ) -> Sequence[TimelineEvent]:
        """See `SessionStore.timeline`."""
        events = [
            TimelineEvent(id=id, entry=entry)
            for id, entry in self._graph(graph_id).events.items()
            if (start is None or start <= entry.at)
            and (end is None or entry.at < end)
            and (node_key is None or entry.node_key == node_key)
            and all(any(f" {term} " in diary_terms(entry) for term in word) for word in words)
        ]
        events.sort(key=lambda event: (event.entry.at, event.id), reverse=True)
        return events[: max(0, limit)]

    async def add_event(self, graph_id: GraphId, entry: TimelineEntry) -> TimelineEvent:
        """See `SessionStore.add_event`."""
        graph = self._graph(graph_id).copy()
        graph.last_event += 1
        graph.events[graph.last_event] = entry
        self._graph_states[graph_id] = graph
        return TimelineEvent(id=graph.last_event, entry=entry)

    async def add_user(self, user: User, graph: Graph) -> None:
        """See `AccessStore.add_user`."""
        self._check_open()
        if graph.owner_id != user.user_id:
            raise InvalidInput(
                f"graph {graph.graph_id!r} belongs to {graph.owner_id!r}, not {user.user_id!r}."
            )
        if user.user_id in self._users or graph.graph_id in self._graphs:
            raise Conflict(f"the id {user.user_id!r} or {graph.graph_id!r} is taken; make fresh ones.")
        if any(other.name == user.name for other in self._users.values()):
            raise Conflict(f"the user name {user.name!r} is taken; choose another.")
        self._users[user.user_id] = user
        self._graphs[graph.graph_id] = graph

    async def users(self) -> Sequence[User]:
        """See `AccessStore.users`."""
        self._check_open()
        return sorted(self._users.values(), key=lambda user: (user.created_at, user.user_id))

    async def graphs(self, owner_id: str) -> Sequence[Graph]:
        """See `AccessStore.graphs`."""
        self._check_open()
        own = [graph for graph in self._graphs.values() if graph.owner_id == owner_id]
        return sorted(own, key=lambda graph: (graph.created_at, graph.graph_id))

    async def add_key(self, key: ApiKey) -> None:
        """See `AccessStore.add_key`."""
        self._check_open()
        if key.user_id not in self._users:
            raise NotFound(f"no user {key.user_id!r}; create the user first.")
        if key.graph_id not in self._graphs:
            raise NotFound(f"no graph {key.graph_id!r}; create the graph first.")
        if any(key.key_id == other.key_id or key.hash == other.hash for other in self._keys.values()):
            raise Conflict(f"the key {key.key_id!r} exists already; make a fresh one.")
        self._keys[key.key_id] = key

    async def key_by_hash(self, hash: str) -> ApiKey | None:
        """See `AccessStore.key_by_hash`."""
        self._check_open()
        return next((key for key in self._keys.values() if key.hash == hash), None)

    async def keys(self) -> Sequence[ApiKey]:
        """See `AccessStore.keys`."""
        self._check_open()
        return sorted(self._keys.values(), key=lambda key: (key.created_at, key.key_id))

    async def revoke_key(self, key_id: str, at: datetime) -> bool:
        """See `AccessStore.revoke_key`."""
        self._check_open()
        key = self._keys.get(key_id)
        if key is None or key.revoked_at is not None:
            return False
        self._keys[key_id] = replace(key, revoked_at=at)
        return True

    async def record_tokens(self, graph_id: GraphId, report: TokenReport) -> TokenReport:
        """See `TokenStore.record_tokens`."""
        self._check_open()
        return self._token_reports.setdefault((graph_id, *report.identity), report)

    async def add_file(self, graph_id: GraphId, file: StoredFile) -> None:
        """See `FileStore.add_file`."""
        self._check_open()
        if (graph_id, file.file_id) in self._files:
            raise Conflict(f"the file id {file.file_id!r} is taken; make a fresh one.")
        self._files[graph_id, file.file_id] = file

    async def file(self, graph_id: GraphId, file_id: str) -> StoredFile | None:
        """See `FileStore.file`."""
        file = self._files.get((graph_id, file_id))
        return file if file is not None and file.node_key in self._graph(graph_id).nodes else None

    async def files(
        self, graph_id: GraphId, *, file_type: str | None = None, search: str | None = None, limit: int = 50
    ) -> Sequence[StoredFile]:
        """See `FileStore.files`."""
        nodes = self._graph(graph_id).nodes
        found = [
            file
            for (graph, _), file in self._files.items()
            if graph == graph_id
            and file.node_key in nodes
            and file_type in (None, file.file_type)
            and (search is None or ascii_folded(search) in ascii_folded(file.filename))
        ]
        found.sort(key=lambda file: (file.created_at, file.file_id), reverse=True)
        return found[: max(0, limit)]

    async def drop_forgotten_files(self, graph_id: GraphId, before: datetime) -> int:
        """See `FileStore.drop_forgotten_files`."""
        nodes = self._graph(graph_id).nodes
        gone = [
            place
            for place, file in self._files.items()
            if place[0] == graph_id and file.node_key not in nodes and file.created_at < before
        ]
        for place in gone:
            del self._files[place]
        return len(gone)

    async def used_blobs(self, graph_id: GraphId, hashes: Collection[str]) -> set[str]:
        """See `FileStore.used_blobs`."""
        self._check_open()
        return set(hashes) & {file.sha256 for (graph, _), file in self._files.items() if graph == graph_id}

    async def acquire_lease(self, name: str, holder: str, *, at: datetime, expires_at: datetime) -> bool:
        """See `LeaseStore.acquire_lease`."""
        self._check_open()
        present, ends = self._leases.get(name, (holder, at))
        if present != holder and ends > at:
            return False
        self._leases[name] = (holder, expires_at)
        return True

    async def release_lease(self, name: str, holder: str) -> None:
        """See `LeaseStore.release_lease`."""
        self._check_open()
        if self._leases.get(name, ("", None))[0] == holder:
            del self._leases[name]

    async def close(self) -> None:
        """See `Store.close`."""
        self._closed = True

    def _graph(self, graph_id: GraphId) -> _GraphState:
        self._check_open()
        return self._graph_states.get(graph_id) or _GraphState()

    def _check_open(self) -> None:
        if self._closed:
            raise Unavailable("the store is closed; open it again.")


def _put_node(graph: _GraphState, write: NodeWrite, at: datetime) -> None:
    node = replace(write.node, revision=graph.revision)
    stored = graph.nodes.get(node.key)
    _check_version(Kind.NODE, node.key, stored.write_version if stored else 0, write.expected)
    graph.nodes[node.key] = node
    if write.vectors is not None:
        _replace_vectors(graph, node.key, write.vectors)
    _keep(graph, Kind.NODE, node.key, node, at)


def _put_edge(graph: _GraphState, write: EdgeWrite, at: datetime) -> None:
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


def _put_hyperedge(graph: _GraphState, write: HyperedgeWrite, at: datetime) -> None:
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


def _delete(graph: _GraphState, deletion: Deletion, at: datetime) -> None:
    things = {Kind.NODE: graph.nodes, Kind.EDGE: graph.edges, Kind.HYPEREDGE: graph.hyperedges}
    stored = things[deletion.kind].get(deletion.id)
    if stored is None:
        raise StaleWrite(f"{deletion.kind} {deletion.id!r} is not there any more.", current_version=0)
    _check_version(deletion.kind, deletion.id, stored.write_version, deletion.expected)
    if deletion.kind is Kind.NODE:
        _detach_node(graph, deletion.id, at)
    del things[deletion.kind][deletion.id]
    _keep(graph, deletion.kind, deletion.id, None, at)


def _detach_node(graph: _GraphState, key: str, at: datetime) -> None:
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


def _touch(graph: _GraphState, session_id: str, keys: Collection[str], at: datetime) -> None:
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
    graph: _GraphState, kind: Kind, id: str, state: Node | Edge | Hyperedge | None, at: datetime
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


def _replace_vectors(graph: _GraphState, key: str, vectors: NodeVectors) -> None:
    if vectors.passages:
        graph.vectors[key] = vectors
    else:
        graph.vectors.pop(key, None)


def _passages(graph: _GraphState, key: str, model_id: str) -> tuple[Passage, ...]:
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


def _check_ends(graph: _GraphState, keys: Iterable[str]) -> None:
    for key in keys:
        if key not in graph.nodes:
            raise StaleWrite(f"the node {key!r} does not exist any more; read again and repeat.")


def _changed(
    things: Iterable[_Thing], since: int, order: Callable[[_Thing], tuple[int, str]]
) -> list[_Thing]:
    return sorted((thing for thing in things if order(thing)[0] > since), key=order)


def _last_revision_of_page(rows: Iterable[int], present: int, limit: int) -> int:
    """The last revision on a page: whole revisions, at least one, and no more than `limit` rows."""
    sizes = Counter(rows)
    total, last = 0, None
    for revision in sorted(sizes):
        total += sizes[revision]
        if last is not None and total > limit:
            return last
        last = revision
    return present


def _newest_first(things: Iterable[_Thing], age: Callable[[_Thing], tuple[datetime, str]]) -> list[_Thing]:
    return sorted(things, key=age, reverse=True)


def _hyperedge_age(hyperedge: Hyperedge) -> tuple[datetime, str]:
    return (hyperedge.created_at, hyperedge.hyperedge_id)
