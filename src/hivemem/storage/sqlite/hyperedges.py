"""Hyperedges and their participants: rows to values and back."""

from __future__ import annotations

import json
import sqlite3
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from typing import Any

from hivemem.domain.edge import SESSION_LABEL_PREFIX, Hyperedge, HyperedgeIdentity, Participant
from hivemem.domain.graph import GraphId, HyperedgeWrite, Kind
from hivemem.errors import StaleWrite
from hivemem.storage.graph_rows import hyperedge_from_row, identity_digest
from hivemem.storage.sqlite import history
from hivemem.storage.sqlite.edges import check_ends
from hivemem.storage.sqlite.history import Change
from hivemem.storage.sqlite.nodes import check_version, write_versions
from hivemem.storage.sqlite.statements import named_statements
from hivemem.storage.states import to_json
from hivemem.storage.times import to_microseconds

_SQL = named_statements("hyperedges.sql")
_NO_LIMIT = -1


def hyperedges_from_rows(
    connection: sqlite3.Connection, graph_id: GraphId, rows: Sequence[Sequence[Any]]
) -> list[Hyperedge]:
    """The hyperedges of rows with the columns of the statement `hyperedges`, in the order of the rows."""
    participants: defaultdict[str, list[Participant]] = defaultdict(list)
    arguments = {"graph_id": graph_id, "ids": json.dumps([row[0] for row in rows])}
    for hyperedge_id, node_key, role, ordinal in connection.execute(_SQL["participants"], arguments):
        participants[hyperedge_id].append(Participant(node_key=node_key, role=role, ordinal=ordinal))
    return [hyperedge_from_row(row, tuple(participants[row[0]])) for row in rows]


def hyperedges(
    connection: sqlite3.Connection, graph_id: GraphId, ids: Collection[str]
) -> dict[str, Hyperedge]:
    """The hyperedges that exist among `ids`, in the order of `ids`."""
    arguments = {"graph_id": graph_id, "ids": json.dumps([*ids])}
    rows = connection.execute(_SQL["hyperedges"], arguments).fetchall()
    found = {h.hyperedge_id: h for h in hyperedges_from_rows(connection, graph_id, rows)}
    return {id: found[id] for id in ids if id in found}


def hyperedges_by_identity(
    connection: sqlite3.Connection, graph_id: GraphId, identities: Iterable[HyperedgeIdentity]
) -> dict[HyperedgeIdentity, Hyperedge]:
    """The hyperedges that exist among `identities`; of several equal ones the oldest."""
    digests = {identity_digest(identity) for identity in identities}
    if not digests:
        return {}
    arguments = {"graph_id": graph_id, "identities": json.dumps([*digests])}
    ids = [id for (id,) in connection.execute(_SQL["ids_by_identity"], arguments)]
    found: dict[HyperedgeIdentity, Hyperedge] = {}
    for hyperedge in hyperedges(connection, graph_id, ids).values():
        found.setdefault(hyperedge.identity, hyperedge)
    return found


def hyperedges_of_node(
    connection: sqlite3.Connection, graph_id: GraphId, key: str, limit: int
) -> tuple[tuple[Hyperedge, ...], int]:
    """The newest hyperedges that a node takes part in, and the number of all of them."""
    arguments = {"graph_id": graph_id, "key": key, "limit": max(0, limit)}
    (total,) = connection.execute(_SQL["total_of_node"], arguments).fetchone()
    ids = [id for (id,) in connection.execute(_SQL["ids_of_node"], arguments)]
    return tuple(hyperedges(connection, graph_id, ids).values()), total


def count_hyperedges(connection: sqlite3.Connection, graph_id: GraphId) -> int:
    """Number of hyperedges of a graph, without those that group a conversation."""
    arguments = {"graph_id": graph_id, "session_prefix": SESSION_LABEL_PREFIX}
    return connection.execute(_SQL["count_hyperedges"], arguments).fetchone()[0]


def put_hyperedges(
    connection: sqlite3.Connection,
    change: Change,
    writes: Sequence[HyperedgeWrite],
    taken: Collection[str],
) -> None:
    """Store hyperedges and their history; `taken` are those of their ids that are an edge's.

    Raises:
        StaleWrite: A hyperedge is not at its expected version, exists under another id, or lacks a
            participant.
    """
    graph_id = change.graph_id
    stored = hyperedges(connection, graph_id, [write.hyperedge.hyperedge_id for write in writes])
    holders = _holders(connection, graph_id, {write.hyperedge.identity for write in writes})
    keys = {key for write in writes for key in write.hyperedge.keys}
    check_ends(sorted(keys), write_versions(connection, graph_id, keys))
    for write in writes:
        hyperedge = write.hyperedge
        id = hyperedge.hyperedge_id
        before = stored.get(id)
        check_version(Kind.HYPEREDGE, id, before.write_version if before else 0, write.expected)
        if id in taken:
            raise StaleWrite(f"the id {id!r} is an edge's; make a fresh one.")
        # An unchanged identity is let pass: two hyperedges can become the same by losing
        # participants, and each of them must stay writable.
        if before is None or before.identity != hyperedge.identity:
            if holders[hyperedge.identity]:
                other = min(holders[hyperedge.identity])
                raise StaleWrite(f"the same hyperedge exists as {other!r}; read again and repeat.")
            if before is not None:
                holders[before.identity].discard(id)
            holders[hyperedge.identity].add(id)
        stored[id] = hyperedge
    _put_rows(connection, change, [write.hyperedge for write in writes])


def forget_participant(connection: sqlite3.Connection, change: Change, key: str) -> None:
    """Take a node out of all its hyperedges; those with fewer than three others are removed."""
    arguments = {"graph_id": change.graph_id, "key": key, "limit": _NO_LIMIT}
    ids = [id for (id,) in connection.execute(_SQL["ids_of_node"], arguments)]
    if not ids:
        return
    smaller: list[Hyperedge] = []
    lost: list[str] = []
    for id, hyperedge in hyperedges(connection, change.graph_id, ids).items():
        rest = hyperedge.without((key,), change.at)
        if rest is None:
            lost.append(id)
        else:
            smaller.append(rest)
    _put_rows(connection, change, smaller)
    delete_hyperedges(connection, change, lost)


def delete_hyperedges(connection: sqlite3.Connection, change: Change, ids: Collection[str]) -> None:
    """Remove hyperedges that exist, with their participants."""
    connection.executemany(
        _SQL["delete_hyperedge"], [{"graph_id": change.graph_id, "hyperedge_id": id} for id in ids]
    )
    history.keep_states(connection, change, Kind.HYPEREDGE, dict.fromkeys(ids))


def _holders(
    connection: sqlite3.Connection, graph_id: GraphId, identities: Collection[HyperedgeIdentity]
) -> defaultdict[HyperedgeIdentity, set[str]]:
    arguments = {"graph_id": graph_id, "identities": json.dumps([identity_digest(i) for i in identities])}
    ids = [id for (id,) in connection.execute(_SQL["ids_by_identity"], arguments)]
    holders: defaultdict[HyperedgeIdentity, set[str]] = defaultdict(set)
    for id, hyperedge in hyperedges(connection, graph_id, ids).items():
        holders[hyperedge.identity].add(id)
    return holders


def _put_rows(connection: sqlite3.Connection, change: Change, values: Sequence[Hyperedge]) -> None:
    connection.executemany(_SQL["put_hyperedge"], [_row_of_hyperedge(change, value) for value in values])
    # One by one, since a batch may write the same hyperedge twice.
    for value in values:
        own = {"graph_id": change.graph_id, "hyperedge_id": value.hyperedge_id}
        connection.execute(_SQL["drop_participants"], own)
        connection.executemany(
            _SQL["put_participant"],
            [
                {**own, "node_key": p.node_key, "ordinal": p.ordinal, "role": p.role}
                for p in value.participants
            ],
        )
    history.keep_states(connection, change, Kind.HYPEREDGE, {value.hyperedge_id: value for value in values})


def _row_of_hyperedge(change: Change, hyperedge: Hyperedge) -> dict[str, Any]:
    return {
        "graph_id": change.graph_id,
        "hyperedge_id": hyperedge.hyperedge_id,
        "identity": identity_digest(hyperedge.identity),
        "relationship": hyperedge.relationship,
        "description": hyperedge.description,
        "data": to_json(hyperedge.data),
        "write_version": hyperedge.write_version,
        "revision": change.revision,
        "created_at": to_microseconds(hyperedge.created_at),
        "updated_at": to_microseconds(hyperedge.updated_at),
    }
