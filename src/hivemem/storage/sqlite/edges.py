"""Edges: rows to values and back."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Iterable, Sequence
from typing import Any

from hivemem.domain.edge import Edge, EdgeIdentity
from hivemem.domain.graph import EdgeWrite, GraphId, Kind
from hivemem.errors import StaleWrite
from hivemem.storage.graph_rows import edge_from_row
from hivemem.storage.sqlite import history
from hivemem.storage.sqlite.history import Change
from hivemem.storage.sqlite.nodes import check_version, write_versions
from hivemem.storage.sqlite.statements import named_statements
from hivemem.storage.states import to_json
from hivemem.storage.times import to_microseconds

_SQL = named_statements("edges.sql")


def edges(connection: sqlite3.Connection, graph_id: GraphId, ids: Collection[str]) -> dict[str, Edge]:
    """The edges that exist among `ids`, in the order of `ids`."""
    rows = connection.execute(_SQL["edges"], {"graph_id": graph_id, "ids": json.dumps([*ids])})
    found = {row[0]: edge_from_row(row) for row in rows}
    return {id: found[id] for id in ids if id in found}


def edges_by_identity(
    connection: sqlite3.Connection, graph_id: GraphId, identities: Iterable[EdgeIdentity]
) -> dict[EdgeIdentity, Edge]:
    """The edges that exist among `identities`."""
    wanted = set(identities)
    if not wanted:
        return {}
    arguments = {"graph_id": graph_id, "identities": json.dumps([*wanted])}
    found = [edge_from_row(row) for row in connection.execute(_SQL["edges_by_identity"], arguments)]
    return {edge.identity: edge for edge in found if edge.identity in wanted}


def edges_of_node(
    connection: sqlite3.Connection, graph_id: GraphId, key: str, limit: int
) -> tuple[tuple[Edge, ...], int]:
    """The newest edges of a node, in both directions, and the number of all its edges."""
    arguments = {"graph_id": graph_id, "key": key, "limit": max(0, limit)}
    (total,) = connection.execute(_SQL["edge_total_of_node"], arguments).fetchone()
    rows = connection.execute(_SQL["edges_of_node"], arguments)
    return tuple(edge_from_row(row) for row in rows), total


def edge_ids_of_node(connection: sqlite3.Connection, graph_id: GraphId, key: str) -> list[str]:
    """The ids of all edges of a node."""
    rows = connection.execute(_SQL["edge_ids_of_node"], {"graph_id": graph_id, "key": key})
    return [edge_id for (edge_id,) in rows]


def count_edges(connection: sqlite3.Connection, graph_id: GraphId) -> int:
    """Number of edges of a graph."""
    return connection.execute(_SQL["count_edges"], {"graph_id": graph_id}).fetchone()[0]


def put_edges(
    connection: sqlite3.Connection, change: Change, writes: Sequence[EdgeWrite], taken: Collection[str]
) -> None:
    """Store edges and their history; `taken` are those of their ids that are a hyperedge's.

    Raises:
        StaleWrite: An edge is not at its expected version, exists under another id, or lacks an end.
    """
    graph_id = change.graph_id
    stored = edges(connection, graph_id, [write.edge.edge_id for write in writes])
    holders = {
        identity: edge.edge_id
        for identity, edge in edges_by_identity(
            connection, graph_id, (write.edge.identity for write in writes)
        ).items()
    }
    ends = {key for write in writes for key in (write.edge.from_key, write.edge.to_key)}
    check_ends(sorted(ends), write_versions(connection, graph_id, ends))
    for write in writes:
        edge = write.edge
        before = stored.get(edge.edge_id)
        check_version(Kind.EDGE, edge.edge_id, before.write_version if before else 0, write.expected)
        if edge.edge_id in taken:
            raise StaleWrite(f"the id {edge.edge_id!r} is a hyperedge's; make a fresh one.")
        if holders.get(edge.identity, edge.edge_id) != edge.edge_id:
            raise StaleWrite(f"the same edge exists as {holders[edge.identity]!r}; read again and repeat.")
        if before is not None and holders.get(before.identity) == edge.edge_id:
            del holders[before.identity]
        holders[edge.identity] = edge.edge_id
        stored[edge.edge_id] = edge
    connection.executemany(_SQL["put_edge"], [_row_of_edge(change, write.edge) for write in writes])
    history.keep_states(connection, change, Kind.EDGE, {write.edge.edge_id: write.edge for write in writes})


def delete_edges(connection: sqlite3.Connection, change: Change, ids: Collection[str]) -> None:
    """Remove edges that exist."""
    connection.executemany(_SQL["delete_edge"], [{"graph_id": change.graph_id, "edge_id": id} for id in ids])
    history.keep_states(connection, change, Kind.EDGE, dict.fromkeys(ids))


def check_ends(keys: Iterable[str], existing: Collection[str]) -> None:
    """Let a relationship pass whose nodes all exist.

    Raises:
        StaleWrite: A node is missing.
    """
    for key in keys:
        if key not in existing:
            raise StaleWrite(f"the node {key!r} does not exist any more; read again and repeat.")


def _row_of_edge(change: Change, edge: Edge) -> dict[str, Any]:
    return {
        "graph_id": change.graph_id,
        "edge_id": edge.edge_id,
        "from_key": edge.from_key,
        "to_key": edge.to_key,
        "relationship": edge.relationship,
        "description": edge.description,
        "data": to_json(edge.data),
        "write_version": edge.write_version,
        "revision": change.revision,
        "created_at": to_microseconds(edge.created_at),
        "updated_at": to_microseconds(edge.updated_at),
    }
