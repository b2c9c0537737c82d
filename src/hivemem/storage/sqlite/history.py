"""Revisions, past states and tombstones: the bookkeeping of every change."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from hivemem.domain.edge import Edge, Hyperedge
from hivemem.domain.graph import GraphId, Kind, Version
from hivemem.domain.node import Node
from hivemem.errors import InvalidInput
from hivemem.storage.graph_rows import damaged_row
from hivemem.storage.sqlite.statements import named_statements
from hivemem.storage.states import decode_state, encode_state
from hivemem.storage.times import from_microseconds, to_microseconds

_SQL = named_statements("history.sql")


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """Where and when a batch happens: the graph, its new revision, and the time of the batch."""

    graph_id: GraphId
    revision: int
    at: datetime


def revision(connection: sqlite3.Connection, graph_id: GraphId) -> int:
    """The graph's change counter, 0 when it was never written."""
    row = connection.execute(_SQL["revision"], {"graph_id": graph_id}).fetchone()
    return 0 if row is None else row[0]


def advance(connection: sqlite3.Connection, graph_id: GraphId) -> int:
    """Count one change of the graph, and return its new revision."""
    # fetchall, because a RETURNING statement that was not read to its end blocks the commit.
    ((new_revision,),) = connection.execute(_SQL["advance"], {"graph_id": graph_id}).fetchall()
    return new_revision


def keep_states(
    connection: sqlite3.Connection,
    change: Change,
    kind: Kind,
    states: Mapping[str, Node | Edge | Hyperedge | None],
) -> None:
    """Record what things, by id, have become; None for those that were removed."""
    if not states:
        return
    shared = {"graph_id": change.graph_id, "kind": kind, "revision": change.revision}
    recorded_at = to_microseconds(change.at)
    connection.executemany(
        _SQL["keep_version"],
        [
            {
                **shared,
                "id": id,
                "recorded_at": recorded_at,
                "state": None if state is None else encode_state(state),
            }
            for id, state in states.items()
        ],
    )
    removed = [{**shared, "id": id} for id, state in states.items() if state is None]
    stored = [{**shared, "id": id} for id, state in states.items() if state is not None]
    # A statement for no row is looked up all the same.
    if removed:
        connection.executemany(_SQL["put_tombstone"], removed)
    if stored:
        connection.executemany(_SQL["drop_tombstone"], stored)


def versions(connection: sqlite3.Connection, graph_id: GraphId, kind: Kind, id: str) -> Sequence[Version]:
    """The history of one thing, newest first."""
    rows = connection.execute(_SQL["versions"], {"graph_id": graph_id, "kind": kind, "id": id})
    return [_version_from_row(kind, id, row) for row in rows]


def versions_before(
    connection: sqlite3.Connection, graph_id: GraphId, kind: Kind, ids: Collection[str], revision: int
) -> dict[str, Version]:
    """The newest version of each of `ids` before `revision`."""
    arguments = {"graph_id": graph_id, "kind": kind, "ids": json.dumps([*ids]), "revision": revision}
    rows = connection.execute(_SQL["versions_before"], arguments)
    return {id: _version_from_row(kind, id, row) for id, *row in rows}


def _version_from_row(kind: Kind, id: str, row: Sequence[Any]) -> Version:
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
