"""Hyperedges and their participants: rows to values and back."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from hivemem.domain.edge import SESSION_LABEL_PREFIX, Hyperedge, HyperedgeIdentity, Participant
from hivemem.domain.graph import GraphId, HyperedgeWrite, Kind
from hivemem.errors import StaleWrite
from hivemem.storage.graph_rows import hyperedge_from_row, identity_digest
from hivemem.storage.postgres import history
from hivemem.storage.postgres.edges import check_ends, distinct_runs
from hivemem.storage.postgres.history import Change
from hivemem.storage.postgres.nodes import check_version
from hivemem.storage.postgres.statements import named_statements
from hivemem.storage.postgres.transaction import Query, Row, Transaction, findable
from hivemem.storage.states import to_json
from hivemem.storage.times import to_microseconds

_SQL = named_statements("hyperedges.sql")
_NO_LIMIT = 2**31


def hyperedge_of(row: Row) -> Hyperedge:
    """The hyperedge of a row that holds its participants too, as three arrays."""
    *own, keys, roles, ordinals = row
    participants = tuple(
        Participant(node_key=key, role=role, ordinal=ordinal)
        for key, role, ordinal in zip(keys or (), roles or (), ordinals or (), strict=True)
    )
    return hyperedge_from_row(own, participants)


def hyperedges(graph_id: GraphId, ids: Collection[str]) -> Query[dict[str, Hyperedge]]:
    """The hyperedges that exist among `ids`, in the order of `ids`."""
    wanted = findable(ids)

    def decode(rows: list[Row]) -> dict[str, Hyperedge]:
        found = {row[0]: hyperedge_of(row) for row in rows}
        return {id: found[id] for id in wanted if id in found}

    return Query(sql=_SQL["hyperedges"], arguments={"graph_id": graph_id, "ids": wanted}, decode=decode)


def hyperedges_by_identity(
    graph_id: GraphId, identities: Iterable[HyperedgeIdentity]
) -> Query[dict[HyperedgeIdentity, list[Hyperedge]]]:
    """The hyperedges with one of `identities`: those that are equal in a list, oldest first."""

    def decode(rows: list[Row]) -> dict[HyperedgeIdentity, list[Hyperedge]]:
        found: defaultdict[HyperedgeIdentity, list[Hyperedge]] = defaultdict(list)
        for hyperedge in map(hyperedge_of, rows):
            found[hyperedge.identity].append(hyperedge)
        return dict(found)

    arguments = {
        "graph_id": graph_id,
        "identities": [*{identity_digest(identity) for identity in identities}],
    }
    return Query(sql=_SQL["hyperedges_by_identity"], arguments=arguments, decode=decode)


def hyperedges_of_nodes(
    graph_id: GraphId, keys: Sequence[str], limit: int
) -> Query[Mapping[str, tuple[Hyperedge, ...]]]:
    """The newest hyperedges that each node takes part in, if any."""

    def decode(rows: list[Row]) -> Mapping[str, tuple[Hyperedge, ...]]:
        found: defaultdict[str, list[Hyperedge]] = defaultdict(list)
        for key, *row in rows:
            found[key].append(hyperedge_of(tuple(row)))
        return {key: tuple(own) for key, own in found.items()}

    arguments = {"graph_id": graph_id, "keys": [*keys], "limit": max(0, limit)}
    return Query(sql=_SQL["hyperedges_of_nodes"], arguments=arguments, decode=decode)


def hyperedge_totals_of_nodes(graph_id: GraphId, keys: Sequence[str]) -> Query[dict[str, int]]:
    """The number of all hyperedges that each node takes part in."""
    arguments = {"graph_id": graph_id, "keys": [*keys]}
    return Query(sql=_SQL["hyperedge_totals_of_nodes"], arguments=arguments, decode=dict)


def count_hyperedges(graph_id: GraphId) -> Query[int]:
    """Number of hyperedges of a graph, without those that group a conversation."""
    arguments = {"graph_id": graph_id, "session_prefix": SESSION_LABEL_PREFIX}
    return Query(sql=_SQL["count_hyperedges"], arguments=arguments, decode=lambda rows: rows[0][0])


def check_hyperedges(
    writes: Sequence[HyperedgeWrite],
    *,
    stored: Mapping[str, Hyperedge],
    same: Mapping[HyperedgeIdentity, Sequence[Hyperedge]],
    existing: Collection[str],
    taken: Collection[str],
) -> None:
    """Let hyperedges pass that can be stored one after the other; arguments as in `check_edges`.

    Raises:
        StaleWrite: A hyperedge is not at its expected version, exists under another id, or lacks a
            participant.
    """
    present = dict(stored)
    holders: defaultdict[HyperedgeIdentity, set[str]] = defaultdict(set)
    for identity, equal in same.items():
        holders[identity].update(hyperedge.hyperedge_id for hyperedge in equal)
    check_ends(sorted({key for write in writes for key in write.hyperedge.keys}), existing)
    for write in writes:
        hyperedge = write.hyperedge
        id = hyperedge.hyperedge_id
        before = present.get(id)
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
        present[id] = hyperedge


async def put_hyperedges(
    transaction: Transaction, graph_id: GraphId, values: Sequence[tuple[Change, Hyperedge]]
) -> None:
    """Store checked hyperedges and their history."""
    if not values:
        return
    for start, end in distinct_runs([value.hyperedge_id for _, value in values]):
        await _put_rows(transaction, graph_id, values[start:end])
    states = {value.hyperedge_id: (change, value) for change, value in values}
    await history.keep_states(transaction, graph_id, Kind.HYPEREDGE, states)


async def forget_participant(
    transaction: Transaction, change: Change, key: str, memberships: Iterable[Hyperedge]
) -> None:
    """Take a node out of all its hyperedges; those with fewer than three others are removed."""
    smaller: list[tuple[Change, Hyperedge]] = []
    lost: list[str] = []
    for hyperedge in memberships:
        rest = hyperedge.without((key,), change.at)
        if rest is None:
            lost.append(hyperedge.hyperedge_id)
        else:
            smaller.append((change, rest))
    await put_hyperedges(transaction, change.graph_id, smaller)
    await delete_hyperedges(transaction, change, lost)


async def delete_hyperedges(transaction: Transaction, change: Change, ids: Collection[str]) -> None:
    """Remove hyperedges that exist, with their participants."""
    if not ids:
        return
    await transaction.send(_SQL["delete_hyperedges"], {"graph_id": change.graph_id, "ids": [*ids]})
    removed = dict.fromkeys(ids, (change, None))
    await history.keep_states(transaction, change.graph_id, Kind.HYPEREDGE, removed)


def memberships(graph_id: GraphId, key: str) -> Query[Mapping[str, tuple[Hyperedge, ...]]]:
    """All hyperedges that a node takes part in, by its key."""
    return hyperedges_of_nodes(graph_id, (key,), _NO_LIMIT)


async def _put_rows(
    transaction: Transaction, graph_id: GraphId, values: Sequence[tuple[Change, Hyperedge]]
) -> None:
    await transaction.send(_SQL["put_hyperedges"], _columns_of_hyperedges(graph_id, values))
    own = {"graph_id": graph_id}
    await transaction.send(_SQL["drop_participants"], {**own, "ids": [v.hyperedge_id for _, v in values]})
    rows = [(value.hyperedge_id, participant) for _, value in values for participant in value.participants]
    await transaction.send(
        _SQL["put_participants"],
        {
            **own,
            "hyperedge_id": [id for id, _ in rows],
            "node_key": [participant.node_key for _, participant in rows],
            "ordinal": [participant.ordinal for _, participant in rows],
            "role": [participant.role for _, participant in rows],
        },
    )


def _columns_of_hyperedges(graph_id: GraphId, values: Sequence[tuple[Change, Hyperedge]]) -> dict[str, Any]:
    written = [hyperedge for _, hyperedge in values]
    return {
        "graph_id": graph_id,
        "revision": [change.revision for change, _ in values],
        "hyperedge_id": [hyperedge.hyperedge_id for hyperedge in written],
        "identity": [identity_digest(hyperedge.identity) for hyperedge in written],
        "relationship": [hyperedge.relationship for hyperedge in written],
        "description": [hyperedge.description for hyperedge in written],
        "data": [to_json(hyperedge.data) for hyperedge in written],
        "write_version": [hyperedge.write_version for hyperedge in written],
        "created_at": [to_microseconds(hyperedge.created_at) for hyperedge in written],
        "updated_at": [to_microseconds(hyperedge.updated_at) for hyperedge in written],
    }
