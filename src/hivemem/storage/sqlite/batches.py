"""A whole write batch, inside the transaction that the writer has opened."""

from __future__ import annotations

import sqlite3

from hivemem.domain.graph import Deletion, GraphId, Kind, WriteBatch
from hivemem.errors import StaleWrite
from hivemem.storage.sqlite import edges, history, hyperedges, nodes, sessions
from hivemem.storage.sqlite.history import Change


def apply(connection: sqlite3.Connection, graph_id: GraphId, batch: WriteBatch) -> int:
    """Store all of `batch` and return the graph's revision afterwards.

    Raises:
        StaleWrite: The batch was planned on something that has changed; the caller rolls back.
    """
    if batch.changes_graph:
        revision = history.advance(connection, graph_id)
        change = Change(graph_id=graph_id, revision=revision, at=batch.at)
        nodes.put_nodes(connection, change, batch.nodes)
        if batch.edges:
            edge_ids = [write.edge.edge_id for write in batch.edges]
            taken = hyperedges.hyperedges(connection, graph_id, edge_ids)
            edges.put_edges(connection, change, batch.edges, taken)
        if batch.hyperedges:
            hyperedge_ids = [write.hyperedge.hyperedge_id for write in batch.hyperedges]
            taken = edges.edges(connection, graph_id, hyperedge_ids)
            hyperedges.put_hyperedges(connection, change, batch.hyperedges, taken)
        for deletion in batch.deletions:
            _delete(connection, change, deletion)
    else:
        revision = history.revision(connection, graph_id)
    sessions.add_events(connection, graph_id, batch.timeline)
    for call in batch.calls:
        sessions.touch(connection, graph_id, call.session_id, call.keys, batch.at)
    return revision


def _delete(connection: sqlite3.Connection, change: Change, deletion: Deletion) -> None:
    id = deletion.id
    stored = _write_version(connection, change.graph_id, deletion.kind, id)
    if stored is None:
        raise StaleWrite(f"{deletion.kind} {id!r} is not there any more.", current_version=0)
    nodes.check_version(deletion.kind, id, stored, deletion.expected)
    match deletion.kind:
        case Kind.NODE:
            edges.delete_edges(connection, change, edges.edge_ids_of_node(connection, change.graph_id, id))
            hyperedges.forget_participant(connection, change, id)
            sessions.forget_events(connection, change.graph_id, id)
            nodes.delete_node(connection, change, id)
        case Kind.EDGE:
            edges.delete_edges(connection, change, (id,))
        case Kind.HYPEREDGE:
            hyperedges.delete_hyperedges(connection, change, (id,))


def _write_version(connection: sqlite3.Connection, graph_id: GraphId, kind: Kind, id: str) -> int | None:
    match kind:
        case Kind.NODE:
            return nodes.write_versions(connection, graph_id, (id,)).get(id)
        case Kind.EDGE:
            edge = edges.edges(connection, graph_id, (id,)).get(id)
            return None if edge is None else edge.write_version
        case Kind.HYPEREDGE:
            hyperedge = hyperedges.hyperedges(connection, graph_id, (id,)).get(id)
            return None if hyperedge is None else hyperedge.write_version
