"""Edges: rows to values and back."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from hivemem.domain.edge import Edge, EdgeIdentity
from hivemem.domain.graph import EdgeWrite, GraphId, Kind
from hivemem.errors import StaleWrite
from hivemem.storage.graph_rows import edge_from_row
from hivemem.storage.postgres import history
from hivemem.storage.postgres.history import Change
from hivemem.storage.postgres.nodes import check_version
from hivemem.storage.postgres.statements import named_statements
from hivemem.storage.postgres.transaction import Query, Row, Transaction, findable
from hivemem.storage.states import to_json
from hivemem.storage.times import to_microseconds

_SQL = named_statements("edges.sql")


def edges(graph_id: GraphId, ids: Collection[str]) -> Query[dict[str, Edge]]:
    """The edges that exist among `ids`, in the order of `ids`."""
    wanted = findable(ids)

    def decode(rows: list[Row]) -> dict[str, Edge]:
        found = {row[0]: edge_from_row(row) for row in rows}
        return {id: found[id] for id in wanted if id in found}

    return Query(sql=_SQL["edges"], arguments={"graph_id": graph_id, "ids": wanted}, decode=decode)


def edges_by_identity(
    graph_id: GraphId, identities: Iterable[EdgeIdentity]
) -> Query[dict[EdgeIdentity, Edge]]:
    """The edges that exist among `identities`."""
    wanted = [one for one in dict.fromkeys(identities) if findable(one) == [*dict.fromkeys(one)]]
    return Query(
        sql=_SQL["edges_by_identity"],
        arguments={
            "graph_id": graph_id,
            "from_keys": [from_key for from_key, _, _ in wanted],
            "to_keys": [to_key for _, to_key, _ in wanted],
            "labels": [label for _, _, label in wanted],
        },
        decode=lambda rows: {edge.identity: edge for edge in map(edge_from_row, rows)},
    )


def edges_of_nodes(
    graph_id: GraphId, keys: Sequence[str], limit: int
) -> Query[Mapping[str, tuple[Edge, ...]]]:
    """The newest edges of each node that has any, in both directions."""

    def decode(rows: list[Row]) -> Mapping[str, tuple[Edge, ...]]:
        found: defaultdict[str, list[Edge]] = defaultdict(list)
        for key, *row in rows:
            found[key].append(edge_from_row(tuple(row)))
        return {key: tuple(own) for key, own in found.items()}

    arguments = {"graph_id": graph_id, "keys": [*keys], "limit": max(0, limit)}
    return Query(sql=_SQL["edges_of_nodes"], arguments=arguments, decode=decode)


def edge_totals_of_nodes(graph_id: GraphId, keys: Sequence[str]) -> Query[dict[str, int]]:
    """The number of all edges of each node."""
    arguments = {"graph_id": graph_id, "keys": [*keys]}
    return Query(sql=_SQL["edge_totals_of_nodes"], arguments=arguments, decode=dict)


def edge_ids_of_node(graph_id: GraphId, key: str) -> Query[list[str]]:
    """The ids of all edges of a node."""
    return Query(
        sql=_SQL["edge_ids_of_node"],
        arguments={"graph_id": graph_id, "key": key},
        decode=lambda rows: [edge_id for (edge_id,) in rows],
    )


def count_edges(graph_id: GraphId) -> Query[int]:
    """Number of edges of a graph."""
    return Query(sql=_SQL["count_edges"], arguments={"graph_id": graph_id}, decode=lambda rows: rows[0][0])


def check_edges(
    writes: Sequence[EdgeWrite],
    *,
    stored: Mapping[str, Edge],
    same: Mapping[EdgeIdentity, Edge],
    existing: Collection[str],
    taken: Collection[str],
) -> None:
    """Let edges pass that can be stored one after the other.

    Args:
        writes: The edges.
        stored: Those of their ids that exist.
        same: The stored edges that have one of their identities.
        existing: Those of their ends that exist.
        taken: Those of their ids that are a hyperedge's.

    Raises:
        StaleWrite: An edge is not at its expected version, exists under another id, or lacks an end.
    """
    present = dict(stored)
    holders = {identity: edge.edge_id for identity, edge in same.items()}
    ends = {key for write in writes for key in (write.edge.from_key, write.edge.to_key)}
    check_ends(sorted(ends), existing)
    for write in writes:
        edge = write.edge
        before = present.get(edge.edge_id)
        check_version(Kind.EDGE, edge.edge_id, before.write_version if before else 0, write.expected)
        if edge.edge_id in taken:
            raise StaleWrite(f"the id {edge.edge_id!r} is a hyperedge's; make a fresh one.")
        if holders.get(edge.identity, edge.edge_id) != edge.edge_id:
            raise StaleWrite(f"the same edge exists as {holders[edge.identity]!r}; read again and repeat.")
        if before is not None and holders.get(before.identity) == edge.edge_id:
            del holders[before.identity]
        holders[edge.identity] = edge.edge_id
        present[edge.edge_id] = edge


async def put_edges(
    transaction: Transaction, graph_id: GraphId, values: Sequence[tuple[Change, Edge]]
) -> None:
    """Store checked edges and their history."""
    if not values:
        return
    for start, end in distinct_runs([edge.edge_id for _, edge in values]):
        await transaction.send(_SQL["put_edges"], _columns_of_edges(graph_id, values[start:end]))
    states = {edge.edge_id: (change, edge) for change, edge in values}
    await history.keep_states(transaction, graph_id, Kind.EDGE, states)


async def delete_edges(transaction: Transaction, change: Change, ids: Collection[str]) -> None:
    """Remove edges that exist."""
    if not ids:
        return
    await transaction.send(_SQL["delete_edges"], {"graph_id": change.graph_id, "ids": [*ids]})
    removed = dict.fromkeys(ids, (change, None))
    await history.keep_states(transaction, change.graph_id, Kind.EDGE, removed)


def check_ends(keys: Iterable[str], existing: Collection[str]) -> None:
    """Let a relationship pass whose nodes all exist.

    Raises:
        StaleWrite: A node is missing.
    """
    for key in keys:
        if key not in existing:
            raise StaleWrite(f"the node {key!r} does not exist any more; read again and repeat.")


def distinct_runs(ids: Sequence[str]) -> list[tuple[int, int]]:
    """Where to cut `ids` so that none comes twice in a part, as (start, end): one statement for each.

    Example:
        >>> distinct_runs(["a", "b", "a"])
        [(0, 2), (2, 3)]
    """
    runs: list[tuple[int, int]] = []
    seen: set[str] = set()
    start = 0
    for position, id in enumerate(ids):
        if id in seen:
            runs.append((start, position))
            start, seen = position, set()
        seen.add(id)
    return [*runs, (start, len(ids))]


def _columns_of_edges(graph_id: GraphId, values: Sequence[tuple[Change, Edge]]) -> dict[str, Any]:
    written = [edge for _, edge in values]
    return {
        "graph_id": graph_id,
        "revision": [change.revision for change, _ in values],
        "edge_id": [edge.edge_id for edge in written],
        "from_key": [edge.from_key for edge in written],
        "to_key": [edge.to_key for edge in written],
        "relationship": [edge.relationship for edge in written],
        "description": [edge.description for edge in written],
        "data": [to_json(edge.data) for edge in written],
        "write_version": [edge.write_version for edge in written],
        "created_at": [to_microseconds(edge.created_at) for edge in written],
        "updated_at": [to_microseconds(edge.updated_at) for edge in written],
    }
