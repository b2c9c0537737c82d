"""Nodes and their vectors: rows to values and back."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from hivemem.domain.graph import GraphId, Kind, NodeVectors, NodeWrite
from hivemem.domain.keys import USER_PROFILE_KEY
from hivemem.domain.node import EnrichmentStatus, Node
from hivemem.errors import StaleWrite
from hivemem.storage.graph_rows import node_from_row
from hivemem.storage.postgres import history
from hivemem.storage.postgres.history import Change
from hivemem.storage.postgres.statements import named_statements
from hivemem.storage.postgres.transaction import Query, Row, Transaction, findable
from hivemem.storage.states import to_json
from hivemem.storage.times import to_microseconds

_SQL = named_statements("nodes.sql")


def nodes(graph_id: GraphId, keys: Collection[str]) -> Query[dict[str, Node]]:
    """The nodes that exist among `keys`, in the order of `keys`."""
    wanted = findable(keys)

    def decode(rows: list[Row]) -> dict[str, Node]:
        found = {row[0]: node_from_row(row) for row in rows}
        return {key: found[key] for key in wanted if key in found}

    return Query(sql=_SQL["nodes"], arguments={"graph_id": graph_id, "keys": wanted}, decode=decode)


def scan(graph_id: GraphId, after: str | None, limit: int) -> Query[list[Node]]:
    """Up to `limit` nodes in key order, after the key `after`."""
    # No key is empty, so that every key comes after "".
    arguments = {"graph_id": graph_id, "after": after or "", "limit": max(0, limit)}
    return Query(sql=_SQL["scan"], arguments=arguments, decode=_nodes)


def write_versions(graph_id: GraphId, keys: Iterable[str]) -> Query[dict[str, int]]:
    """The present `write_version` of those of `keys` that exist."""
    arguments = {"graph_id": graph_id, "keys": findable(keys)}
    return Query(sql=_SQL["write_versions"], arguments=arguments, decode=dict)


def counts_by_type(graph_id: GraphId) -> Query[dict[str, int]]:
    """Number of nodes by type, without a `user_profile` that is still blank."""
    arguments = {"graph_id": graph_id, "profile": USER_PROFILE_KEY}
    return Query(sql=_SQL["counts"], arguments=arguments, decode=dict)


def check_nodes(current: Mapping[str, int], writes: Sequence[NodeWrite]) -> None:
    """Let writes pass that were planned on the `current` versions, one after the other.

    Raises:
        StaleWrite: A node is not at its expected version.
    """
    versions = dict(current)
    for write in writes:
        node = write.node
        check_version(Kind.NODE, node.key, versions.get(node.key, 0), write.expected)
        versions[node.key] = node.write_version


async def put_nodes(
    transaction: Transaction, graph_id: GraphId, writes: Sequence[tuple[Change, NodeWrite]]
) -> None:
    """Store checked nodes, their vectors and their history."""
    if not writes:
        return
    for group in _groups(writes):
        await transaction.send(_SQL["put_nodes"], _columns_of_nodes(graph_id, group))
    vectors = {write.node.key: write.vectors for _, write in writes if write.vectors is not None}
    await _replace_vectors(transaction, graph_id, vectors)
    states = {write.node.key: (change, write.node) for change, write in writes}
    await history.keep_states(transaction, graph_id, Kind.NODE, states)


async def delete_node(transaction: Transaction, change: Change, key: str) -> None:
    """Remove a node that nothing refers to any more, with its vectors and session touches."""
    await transaction.send(_SQL["delete_node"], {"graph_id": change.graph_id, "key": key})
    await history.keep_states(transaction, change.graph_id, Kind.NODE, {key: (change, None)})


async def put_vectors(
    transaction: Transaction,
    graph_id: GraphId,
    key: str,
    write_version: int,
    vectors: NodeVectors,
    status: EnrichmentStatus,
) -> bool:
    """Replace the vectors and the status of a node that is still at `write_version`."""
    _, found = await transaction.ask_two(history.wait_for_writes(graph_id), nodes(graph_id, (key,)))
    node = found.get(key)
    if node is None or node.write_version != write_version:
        return False
    marked = replace(node, enrichment_status=status)
    await history.count_change(transaction, graph_id)
    await transaction.send(
        _SQL["mark_vectors"],
        {
            "graph_id": graph_id,
            "key": key,
            "vector_model": _model_of(vectors),
            "enrichment_status": marked.enrichment_status.value,
        },
    )
    await _replace_vectors(transaction, graph_id, {key: vectors})
    return True


def without_vectors(graph_id: GraphId, model_id: str, limit: int) -> Query[list[Node]]:
    """Up to `limit` described nodes without vectors of `model_id`, in key order."""
    arguments = {"graph_id": graph_id, "model_id": model_id, "limit": max(0, limit)}
    return Query(sql=_SQL["without_vectors"], arguments=arguments, decode=_nodes)


def vector_models(graph_id: GraphId) -> Query[dict[str, int]]:
    """Number of nodes with vectors, by model."""
    return Query(sql=_SQL["vector_models"], arguments={"graph_id": graph_id}, decode=dict)


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


def _nodes(rows: list[Row]) -> list[Node]:
    return [node_from_row(row) for row in rows]


def _groups(writes: Sequence[tuple[Change, NodeWrite]]) -> list[list[tuple[Change, NodeWrite]]]:
    """`writes` in order, cut where one statement cannot hold them: a key comes twice, or vectors stay."""
    groups: list[list[tuple[Change, NodeWrite]]] = []
    keys: set[str] = set()
    replaced = False
    for change, write in writes:
        key, replaces = write.node.key, write.vectors is not None
        if not groups or key in keys or replaces != replaced:
            groups.append([])
            keys = set()
        groups[-1].append((change, write))
        keys.add(key)
        replaced = replaces
    return groups


def _columns_of_nodes(graph_id: GraphId, writes: Sequence[tuple[Change, NodeWrite]]) -> dict[str, Any]:
    written = [write.node for _, write in writes]
    vectors = [write.vectors for _, write in writes]
    return {
        "graph_id": graph_id,
        "revision": [change.revision for change, _ in writes],
        "replaces_vectors": vectors[0] is not None,
        "key": [node.key for node in written],
        "node_type": [node.node_type for node in written],
        "description": [node.description for node in written],
        "data": [to_json(node.data) for node in written],
        "search_text": [node.search_text for node in written],
        "assets": [to_json(node.assets) for node in written],
        "enrichment_status": [node.enrichment_status.value for node in written],
        "vector_model": [None if of_node is None else _model_of(of_node) for of_node in vectors],
        "write_version": [node.write_version for node in written],
        "created_at": [to_microseconds(node.created_at) for node in written],
        "updated_at": [to_microseconds(node.updated_at) for node in written],
    }


def _model_of(vectors: NodeVectors) -> str | None:
    return vectors.model_id if vectors.passages else None


async def _replace_vectors(
    transaction: Transaction, graph_id: GraphId, vectors: Mapping[str, NodeVectors]
) -> None:
    if not vectors:
        return
    await transaction.send(_SQL["drop_vectors"], {"graph_id": graph_id, "keys": [*vectors]})
    rows = [
        (key, ordinal, of_node.model_id, passage)
        for key, of_node in vectors.items()
        for ordinal, passage in enumerate(of_node.passages)
    ]
    if rows:
        await transaction.send(
            _SQL["put_vectors"],
            {
                "graph_id": graph_id,
                "node_key": [key for key, *_ in rows],
                "ordinal": [ordinal for _, ordinal, *_ in rows],
                "model_id": [model_id for *_, model_id, _ in rows],
                "source": [passage.source for *_, passage in rows],
                "text_start": [passage.start for *_, passage in rows],
                "text_end": [passage.end for *_, passage in rows],
                "vector": [passage.vector for *_, passage in rows],
            },
        )
