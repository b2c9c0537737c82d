"""Revisions, past states and tombstones: the bookkeeping of every change."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias

from hivemem.domain.edge import Edge, Hyperedge
from hivemem.domain.graph import GraphId, Kind, Version
from hivemem.domain.node import Node
from hivemem.errors import InvalidInput
from hivemem.storage.graph_rows import damaged_row
from hivemem.storage.postgres.statements import named_statements
from hivemem.storage.postgres.transaction import Query, Row, Transaction, findable
from hivemem.storage.states import decode_state, encode_state
from hivemem.storage.times import from_microseconds, to_microseconds

_SQL = named_statements("history.sql")


State: TypeAlias = "Node | Edge | Hyperedge | None"
"""What something is; None when it was removed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """Where and when a batch happens: the graph, its new revision, and the time of the batch."""

    graph_id: GraphId
    revision: int
    at: datetime


def revision(graph_id: GraphId) -> Query[int]:
    """The graph's change counter, 0 when it was never written."""
    return Query(sql=_SQL["revision"], arguments={"graph_id": graph_id}, decode=_revision)


def advance(graph_id: GraphId, *, revisions: int, events: int) -> Query[tuple[int, int]]:
    """Hold off other writes of the graph, count changes, and reserve numbers of diary lines.

    The answer is the graph's revision and the last number of its diary.
    """
    arguments = {"graph_id": graph_id, "revisions": revisions, "events": events}
    return Query(sql=_SQL["advance"], arguments=arguments, decode=_counters)


async def count_change(transaction: Transaction, graph_id: GraphId) -> None:
    """Count one change of the graph; statements that follow read the new revision."""
    await transaction.send(_SQL["advance"], {"graph_id": graph_id, "revisions": 1, "events": 0})


async def give_back(transaction: Transaction, graph_id: GraphId, revisions: int, events: int) -> None:
    """Lower the counters by what `advance` of the same transaction counted too much."""
    await transaction.send(
        _SQL["advance"], {"graph_id": graph_id, "revisions": -revisions, "events": -events}
    )


def wait_for_writes(graph_id: GraphId) -> Query[int]:
    """The graph's revision, once no other write of the graph is under way; those that follow wait."""
    return Query(sql=_SQL["wait_for_writes"], arguments={"graph_id": graph_id}, decode=_revision)


async def keep_states(
    transaction: Transaction, graph_id: GraphId, kind: Kind, states: Mapping[str, tuple[Change, State]]
) -> None:
    """Record what things, by id, have become, and in which change."""
    if not states:
        return
    shared = {"graph_id": graph_id, "kind": kind.value}
    await transaction.send(
        _SQL["keep_versions"],
        {
            **shared,
            "ids": [*states],
            "revisions": [change.revision for change, _ in states.values()],
            "recorded_at": [to_microseconds(change.at) for change, _ in states.values()],
            "states": [None if state is None else encode_state(state) for _, state in states.values()],
        },
    )
    removed = {id: change.revision for id, (change, state) in states.items() if state is None}
    stored = [id for id, (_, state) in states.items() if state is not None]
    if removed:
        await transaction.send(
            _SQL["put_tombstones"], {**shared, "ids": [*removed], "revisions": [*removed.values()]}
        )
    if stored:
        await transaction.send(_SQL["drop_tombstones"], {**shared, "ids": stored})


def versions(graph_id: GraphId, kind: Kind, id: str) -> Query[Sequence[Version]]:
    """The history of one thing, newest first."""
    return Query(
        sql=_SQL["versions"],
        arguments={"graph_id": graph_id, "kind": kind.value, "id": id},
        decode=lambda rows: [_version_from_row(kind, id, row) for row in rows],
    )


def versions_before(
    graph_id: GraphId, kind: Kind, ids: Collection[str], revision: int
) -> Query[dict[str, Version]]:
    """The newest version of each of `ids` before `revision`."""
    return Query(
        sql=_SQL["versions_before"],
        arguments={"graph_id": graph_id, "kind": kind.value, "ids": findable(ids), "revision": revision},
        decode=lambda rows: {id: _version_from_row(kind, id, tuple(row)) for id, *row in rows},
    )


def was_kept(change: Change, kind: Kind, id: str, state: State) -> Query[bool]:
    """Whether the history holds just this state for the end of this change."""
    expected = (to_microseconds(change.at), None if state is None else encode_state(state))
    return Query(
        sql=_SQL["version_at"],
        arguments={
            "graph_id": change.graph_id,
            "kind": kind.value,
            "id": id,
            "revision": change.revision,
        },
        decode=lambda rows: [*map(tuple, rows)] == [expected],
    )


def _revision(rows: list[Row]) -> int:
    return rows[0][0] if rows else 0


def _counters(rows: list[Row]) -> tuple[int, int]:
    ((last_revision, last_event),) = rows
    return last_revision, last_event


def _version_from_row(kind: Kind, id: str, row: Row) -> Version:
    revision, recorded_at, state = row
    try:
        return Version(
            kind=kind,
            id=id,
            revision=revision,
            recorded_at=from_microseconds(recorded_at),
            state=None if state is None else decode_state(kind, id, revision, state),
        )
    except (InvalidInput, ValueError, KeyError, TypeError) as error:
        raise damaged_row(f"version {revision} of {kind}", id, error) from error
