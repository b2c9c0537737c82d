"""Nodes and their vectors: rows to values and back."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import Any

from hivemem.domain.graph import GraphId, Kind, NodeVectors, NodeWrite
from hivemem.domain.keys import USER_PROFILE_KEY
from hivemem.domain.node import EnrichmentStatus, Node
from hivemem.errors import StaleWrite
from hivemem.storage.graph_rows import node_from_row
from hivemem.storage.sqlite import history
from hivemem.storage.sqlite.history import Change
from hivemem.storage.sqlite.statements import named_statements
from hivemem.storage.states import to_json
from hivemem.storage.times import to_microseconds

_SQL = named_statements("nodes.sql")


def nodes(connection: sqlite3.Connection, graph_id: GraphId, keys: Collection[str]) -> dict[str, Node]:
    """The nodes that exist among `keys`, in the order of `keys`."""
    rows = connection.execute(_SQL["nodes"], {"graph_id": graph_id, "keys": json.dumps([*keys])})
    found = {row[0]: node_from_row(row) for row in rows}
    return {key: found[key] for key in keys if key in found}


def scan(connection: sqlite3.Connection, graph_id: GraphId, after: str | None, limit: int) -> list[Node]:
    """Up to `limit` nodes in key order, after the key `after`."""
    # No key is empty, so that every key comes after "".
    arguments = {"graph_id": graph_id, "after": after or "", "limit": max(0, limit)}
    return [node_from_row(row) for row in connection.execute(_SQL["scan"], arguments)]


def write_versions(connection: sqlite3.Connection, graph_id: GraphId, keys: Iterable[str]) -> dict[str, int]:
    """The present `write_version` of those of `keys` that exist."""
    arguments = {"graph_id": graph_id, "keys": json.dumps([*keys])}
    return dict(connection.execute(_SQL["write_versions"], arguments).fetchall())


def counts_by_type(connection: sqlite3.Connection, graph_id: GraphId) -> dict[str, int]:
    """Number of nodes by type, without a `user_profile` that is still blank."""
    counts: dict[str, int] = dict(connection.execute(_SQL["counts"], {"graph_id": graph_id}).fetchall())
    profile = nodes(connection, graph_id, (USER_PROFILE_KEY,)).get(USER_PROFILE_KEY)
    if profile is not None and profile.placeholder:
        counts[profile.node_type] -= 1
    return {node_type: count for node_type, count in counts.items() if count}


def put_nodes(connection: sqlite3.Connection, change: Change, writes: Sequence[NodeWrite]) -> None:
    """Store nodes, their vectors and their history.

    Raises:
        StaleWrite: A node is not at its expected version.
    """
    for write in writes:
        key = write.node.key
        statement = _SQL["change_node"] if write.expected else _SQL["add_node"]
        if not connection.execute(statement, _row_of_node(change, write)).rowcount:
            stored = write_versions(connection, change.graph_id, (key,)).get(key, 0)
            check_version(Kind.NODE, key, stored, write.expected)
        if write.vectors is not None:
            # A new node has none to remove: those of a former one went with it.
            if write.expected:
                _drop_vectors(connection, change.graph_id, key)
            _add_vectors(connection, change.graph_id, key, write.vectors)
    history.keep_states(connection, change, Kind.NODE, {write.node.key: write.node for write in writes})


def delete_node(connection: sqlite3.Connection, change: Change, key: str) -> None:
    """Remove a node that nothing refers to any more, with its vectors and session touches."""
    connection.execute(_SQL["delete_node"], {"graph_id": change.graph_id, "key": key})
    history.keep_states(connection, change, Kind.NODE, {key: None})


def put_vectors(
    connection: sqlite3.Connection,
    graph_id: GraphId,
    key: str,
    write_version: int,
    vectors: NodeVectors,
    status: EnrichmentStatus,
) -> bool:
    """Replace the vectors and the status of a node that is still at `write_version`."""
    node = nodes(connection, graph_id, (key,)).get(key)
    if node is None or node.write_version != write_version:
        return False
    marked = replace(node, enrichment_status=status, revision=history.advance(connection, graph_id))
    connection.execute(
        _SQL["mark_vectors"],
        {
            "graph_id": graph_id,
            "key": key,
            "vector_model": _model_of(vectors),
            "enrichment_status": marked.enrichment_status,
            "revision": marked.revision,
        },
    )
    _drop_vectors(connection, graph_id, key)
    _add_vectors(connection, graph_id, key, vectors)
    return True


def without_vectors(
    connection: sqlite3.Connection, graph_id: GraphId, model_id: str, limit: int
) -> list[Node]:
    """Up to `limit` described nodes without vectors of `model_id`, in key order."""
    arguments = {"graph_id": graph_id, "model_id": model_id, "limit": max(0, limit)}
    return [node_from_row(row) for row in connection.execute(_SQL["without_vectors"], arguments)]


def vector_models(connection: sqlite3.Connection, graph_id: GraphId) -> dict[str, int]:
    """Number of nodes with vectors, by model."""
    return dict(connection.execute(_SQL["vector_models"], {"graph_id": graph_id}).fetchall())


def check_version(kind: Kind, id: str, stored: int, expected: int) -> None:
    """Let a write pass that was planned on the stored version.

    Raises:
        StaleWrite: It was planned on another one.
    """
    if stored != expected:
        raise StaleWrite(
            f"{kind} {id!r} is at version {stored}, not {expected}; read it again and repeat.",
            current_version=stored,
        )


def _row_of_node(change: Change, write: NodeWrite) -> dict[str, Any]:
    node = write.node
    return {
        "graph_id": change.graph_id,
        "key": node.key,
        "node_type": node.node_type,
        "description": node.description,
        "data": to_json(node.data),
        "search_text": node.search_text,
        "assets": to_json(node.assets),
        "enrichment_status": node.enrichment_status,
        "replaces_vectors": write.vectors is not None,
        "vector_model": None if write.vectors is None else _model_of(write.vectors),
        "expected": write.expected,
        "write_version": node.write_version,
        "revision": change.revision,
        "created_at": to_microseconds(node.created_at),
        "updated_at": to_microseconds(node.updated_at),
    }


def _model_of(vectors: NodeVectors) -> str | None:
    return vectors.model_id if vectors.passages else None


def _drop_vectors(connection: sqlite3.Connection, graph_id: GraphId, key: str) -> None:
    connection.execute(_SQL["drop_vectors"], {"graph_id": graph_id, "node_key": key})


def _add_vectors(connection: sqlite3.Connection, graph_id: GraphId, key: str, vectors: NodeVectors) -> None:
    connection.executemany(
        _SQL["put_vector"],
        [
            {
                "graph_id": graph_id,
                "node_key": key,
                "ordinal": ordinal,
                "model_id": vectors.model_id,
                "source": passage.source,
                "text_start": passage.start,
                "text_end": passage.end,
                "vector": passage.vector,
            }
            for ordinal, passage in enumerate(vectors.passages)
        ],
    )
