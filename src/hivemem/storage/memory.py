"""A store in dictionaries: the reference that every real store is compared with.

It favours being obviously right over being fast: a batch is played on a copy of the graph, and the
copy replaces the graph when nothing failed. Nothing survives the process.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from hivemem.domain.accounts import DeletedGraph, Leftovers
from hivemem.domain.edge import Edge, EdgeIdentity, Hyperedge, HyperedgeIdentity
from hivemem.domain.files import StoredFile
from hivemem.domain.graph import (
    ChangedNode,
    ChangePage,
    GraphCounts,
    GraphId,
    Kind,
    NodeVectors,
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
from hivemem.errors import Conflict, NotFound, Unavailable
from hivemem.storage.diary import diary_terms
from hivemem.storage.memory_audit import MemoryAudit
from hivemem.storage.memory_exports import MemoryExports
from hivemem.storage.memory_graph import (
    GraphState,
    changed,
    delete,
    hyperedge_age,
    last_revision_of_page,
    newest_first,
    passages,
    put_edge,
    put_hyperedge,
    put_node,
    replace_vectors,
    touch,
)
from hivemem.storage.memory_oauth import MemoryOAuth
from hivemem.storage.states import ascii_folded


class MemoryStore(MemoryOAuth, MemoryExports, MemoryAudit):
    """The `Store` port for tests and for reading: see `hivemem.ports.store` for the contract."""

    def __init__(self) -> None:
        self._graph_states: dict[GraphId, GraphState] = {}
        self._leases: dict[str, tuple[str, datetime]] = {}
        self._files: dict[tuple[GraphId, str], StoredFile] = {}
        self._token_reports: dict[tuple[GraphId, str, str, int], TokenReport] = {}
        self._closed = False
        MemoryOAuth.__init__(self, self._check_open, self._forget_reports)
        MemoryExports.__init__(self, self._check_open, self._check_not_deleted)
        MemoryAudit.__init__(self, self._check_open)

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
        by_age = newest_first(graph.hyperedges.values(), hyperedge_age)
        return Snapshot(
            nodes={key: graph.nodes[key] for key in keys if key in graph.nodes},
            edges={e.identity: e for e in graph.edges.values() if e.identity in wanted_edges},
            hyperedges={h.identity: h for h in by_age if h.identity in wanted_hyperedges},
        )

    async def apply(self, graph_id: GraphId, batch: WriteBatch) -> int:
        """See `GraphStore.apply`."""
        self._check_not_deleted(graph_id)
        draft = self._graph(graph_id).copy()
        if batch.changes_graph:
            draft.revision += 1
        for node_write in batch.nodes:
            put_node(draft, node_write, batch.at)
        for edge_write in batch.edges:
            put_edge(draft, edge_write, batch.at)
        for hyperedge_write in batch.hyperedges:
            put_hyperedge(draft, hyperedge_write, batch.at)
        for deletion in batch.deletions:
            delete(draft, deletion, batch.at)
        for entry in batch.timeline:
            draft.last_event += 1
            draft.events[draft.last_event] = entry
        for call in batch.calls:
            touch(draft, call.session_id, call.keys, batch.at)
        self._graph_states[graph_id] = draft
        return draft.revision

    async def changes(self, graph_id: GraphId, since: int, *, model_id: str, limit: int = 1000) -> ChangePage:
        """See `GraphStore.changes`."""
        graph = self._graph(graph_id)
        nodes = changed(graph.nodes.values(), since, lambda node: (node.revision, node.key))
        edges = changed(graph.edges.values(), since, lambda edge: (edge.revision, edge.edge_id))
        hyperedges = changed(
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
        last = last_revision_of_page(rows, graph.revision, limit)
        return ChangePage(
            revision=last,
            nodes=tuple(
                ChangedNode(node=node, passages=passages(graph, node.key, model_id))
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
        edges = newest_first(graph.edges.values(), lambda edge: (edge.created_at, edge.edge_id))
        hyperedges = newest_first(graph.hyperedges.values(), hyperedge_age)
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
            if not node.placeholder and not passages(graph, key, model_id)
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
        replace_vectors(graph, key, vectors)
        self._graph_states[graph_id] = graph
        return True

    async def vector_models(self, graph_id: GraphId) -> dict[str, int]:
        """See `GraphStore.vector_models`."""
        return dict(Counter(vectors.model_id for vectors in self._graph(graph_id).vectors.values()))

    async def touch(self, graph_id: GraphId, session_id: str, keys: Collection[str], at: datetime) -> None:
        """See `SessionStore.touch`."""
        self._check_not_deleted(graph_id)
        graph = self._graph(graph_id).copy()
        touch(graph, session_id, keys, at)
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
        self._check_not_deleted(graph_id)
        graph = self._graph(graph_id).copy()
        graph.last_event += 1
        graph.events[graph.last_event] = entry
        self._graph_states[graph_id] = graph
        return TimelineEvent(id=graph.last_event, entry=entry)

    async def record_tokens(self, graph_id: GraphId, report: TokenReport) -> TokenReport:
        """See `TokenStore.record_tokens`."""
        self._check_open()
        self._check_not_deleted(graph_id)
        return self._token_reports.setdefault((graph_id, *report.identity), report)

    async def add_file(self, graph_id: GraphId, file: StoredFile) -> None:
        """See `FileStore.add_file`."""
        self._check_open()
        self._check_not_deleted(graph_id)
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

    async def deleted_graphs(self, since: datetime | None = None) -> Sequence[DeletedGraph]:
        """See `PurgeStore.deleted_graphs`."""
        self._check_open()
        found = [
            one
            for one in self._deleted_graphs.values()
            if one.purged_at is None or (since is not None and one.deleted_at >= since)
        ]
        return sorted(found, key=lambda one: (one.deleted_at, one.graph_id))

    async def purge_graph(self, graph_id: GraphId, limit: int = 5000) -> int:
        """See `PurgeStore.purge_graph`."""
        self._check_open()
        if graph_id not in self._deleted_graphs:
            return 0
        removed = 0
        for rows in self._rows_by_graph().values():
            for row in [row for row in rows if row[0] == graph_id][: limit - removed]:
                del rows[row]
                removed += 1
        state = self._graph_states.get(graph_id)
        for rows in () if state is None else state.tables().values():
            while rows and removed < limit:
                rows.popitem()
                removed += 1
        if state is not None and removed < limit:
            del self._graph_states[graph_id]
            removed += 1
        return removed

    async def graph_purged(self, graph_id: GraphId, at: datetime) -> None:
        """See `PurgeStore.graph_purged`."""
        self._check_open()
        deleted = self._deleted_graphs.get(graph_id)
        if deleted is not None:
            self._deleted_graphs[graph_id] = replace(deleted, purged_at=at)

    async def leftovers(self) -> Leftovers:
        """See `PurgeStore.leftovers`."""
        self._check_open()
        found: Counter[str] = Counter()
        for graph_id, state in self._graph_states.items():
            if graph_id not in self._graphs:
                found += Counter({name: len(rows) for name, rows in state.tables().items()})
                found["graph_counters"] += 1
        users: dict[str, dict[Any, str]] = {
            "token_reports": {place: report.user_id for place, report in self._token_reports.items()},
            "exports": {place: export.user_id for place, export in self._exports.items()},
        }
        for name, rows in self._rows_by_graph().items():
            user_of = users.get(name, {})
            found[name] += sum(
                row[0] not in self._graphs or (row in user_of and user_of[row] not in self._users)
                for row in rows
            )
        return dict(+found)

    async def reclaim(self) -> None:
        """See `PurgeStore.reclaim`."""
        self._check_open()

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

    def _graph(self, graph_id: GraphId) -> GraphState:
        self._check_open()
        return self._graph_states.get(graph_id) or GraphState()

    def _rows_by_graph(self) -> dict[str, dict[Any, Any]]:
        """What has the id of its graph as the first part of its key, by table."""
        return {
            "files": self._files,
            "token_reports": self._token_reports,
            "export_chunks": self._chunks,
            "exports": self._exports,
            "skills": self._skills,
        }

    def _forget_reports(self, user_id: str) -> None:
        for place in list(self._token_reports):
            if place[1] == user_id and place[0] in self._graphs:
                del self._token_reports[place]
        self._forget_exports(user_id, self._graphs)

    def _check_not_deleted(self, graph_id: GraphId) -> None:
        if graph_id in self._deleted_graphs:
            raise NotFound(
                f"the memory {graph_id!r} was deleted; sign in again, or use a key of another.",
                code="graph_deleted",
            )

    def _check_open(self) -> None:
        if self._closed:
            raise Unavailable("the store is closed; open it again.")
