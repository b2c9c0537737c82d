"""What is left of graphs that were deleted: removing it in pieces, finding it, and giving back its room."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable, Generator
from datetime import datetime
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar

from hivemem.domain.accounts import DeletedGraph
from hivemem.domain.graph import GraphId
from hivemem.errors import NotFound, Unavailable
from hivemem.storage import account_rows as rows
from hivemem.storage.sqlite.connection import connect, our_errors
from hivemem.storage.sqlite.statements import named_statements
from hivemem.storage.tables import PURGED_TABLES, Table, owned_tables
from hivemem.storage.times import to_microseconds

_SQL = named_statements("purging.sql")

_ROWS_OF_A_CHUNK = 100
"""A piece of a document is as large as so many other rows."""

_P = ParamSpec("_P")
_R = TypeVar("_R")


def unless_deleted(
    connection: sqlite3.Connection,
    graph_id: GraphId,
    write: Callable[Concatenate[sqlite3.Connection, GraphId, _P], _R],
    *args: _P.args,
    **kwargs: _P.kwargs,
) -> _R:
    """The result of a write to a graph, which nobody has deleted.

    A request can be under way when its graph is deleted; what it wrote then would stay for good.

    Raises:
        NotFound: The graph is deleted (`graph_deleted`).
    """
    require_not_deleted(connection, graph_id)
    return write(connection, graph_id, *args, **kwargs)


def require_not_deleted(connection: sqlite3.Connection, graph_id: GraphId) -> None:
    """Let writes pass to a graph that nobody has deleted.

    Raises:
        NotFound: It is deleted (`graph_deleted`).
    """
    if is_deleted(connection, graph_id):
        raise NotFound(
            f"the memory {graph_id!r} was deleted; sign in again, or use a key of another.",
            code="graph_deleted",
        )


def is_deleted(connection: sqlite3.Connection, graph_id: GraphId) -> bool:
    """Whether a graph is deleted, purged or not."""
    return connection.execute(_SQL["is_deleted"], {"graph_id": graph_id}).fetchone() is not None


def deleted_graphs(connection: sqlite3.Connection, since: datetime | None) -> list[DeletedGraph]:
    """Graphs that are not purged, and those deleted from `since` on; oldest first."""
    if since is None:
        found = connection.execute(_SQL["unfinished"])
    else:
        found = connection.execute(_SQL["since"], {"since": to_microseconds(since)})
    return [rows.deleted_graph_from_row(row) for row in found]


def purge(connection: sqlite3.Connection, graph_id: GraphId, limit: int) -> int:
    """Remove about `limit` rows of a deleted graph, and overwrite them; how many, 0 when none was left."""
    if not is_deleted(connection, graph_id):
        return 0
    removed = 0
    with _overwriting(connection):
        for table in reversed(PURGED_TABLES):
            if removed < limit:
                removed += _remove(connection, table, graph_id, limit - removed)
    return removed


def purged(connection: sqlite3.Connection, graph_id: GraphId, at: datetime) -> None:
    """Note that the content of a deleted graph is gone."""
    connection.execute(_SQL["purged"], {"graph_id": graph_id, "at": to_microseconds(at)})


def leftovers(connection: sqlite3.Connection) -> dict[str, int]:
    """Number of rows by table that name a graph, user or organization that does not exist."""
    found: dict[str, int] = {}
    for table, owners in owned_tables():
        lost = " OR ".join(
            f"({column} IS NOT NULL AND {column} NOT IN (SELECT {owner.key[0]} FROM {owner.name}))"
            for column, owner in owners.items()
        )
        (count,) = connection.execute(f"SELECT count(*) FROM {table.name} WHERE {lost}").fetchone()
        if count:
            found[table.name] = count
    return found


def reclaim(path: Path, busy_timeout_seconds: float) -> None:
    """Write the database anew without what was removed, and empty the write-ahead log.

    Removing rows overwrites them where they were; copies of them in older versions of pages go here.
    Others read meanwhile, and writers wait.

    Raises:
        Unavailable: Locked for longer than the timeout, the disk has no room for a second copy, or
            somebody reads an older state all the time.
    """
    connection = connect(path, busy_timeout_seconds)
    with contextlib.closing(connection), our_errors(path):
        connection.execute("VACUUM")
        (busy, _, _) = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    if busy:
        raise Unavailable(f"the database {path} is being read, so its log stays for now; try again.")


def _remove(connection: sqlite3.Connection, table: Table, graph_id: GraphId, limit: int) -> int:
    key = ", ".join(table.key)
    if table.name == "export_chunks":
        limit = max(1, limit // _ROWS_OF_A_CHUNK)
    sql = (
        f"DELETE FROM {table.name} WHERE ({key}) IN "
        f"(SELECT {key} FROM {table.name} WHERE graph_id = ? LIMIT ?)"
    )
    return connection.execute(sql, (graph_id, limit)).rowcount


@contextlib.contextmanager
def _overwriting(connection: sqlite3.Connection) -> Generator[None, None, None]:
    """What is removed inside is overwritten with zeros in the file."""
    (before,) = connection.execute("PRAGMA secure_delete").fetchone()
    connection.execute("PRAGMA secure_delete = ON").fetchall()
    try:
        yield
    finally:
        connection.execute(f"PRAGMA secure_delete = {int(before)}").fetchall()
