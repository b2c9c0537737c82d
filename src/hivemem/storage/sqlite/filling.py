"""Filling an empty graph of a database file with rows."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable
from pathlib import Path

from hivemem.storage.blank_graph import BEFORE_ANYTHING, COUNTERS, contradiction, not_empty
from hivemem.storage.rows import Row
from hivemem.storage.sqlite.connection import connect, our_errors
from hivemem.storage.sqlite.purging import require_not_deleted
from hivemem.storage.tables import GRAPH_TABLES, Table


def fill_graph(
    path: Path, busy_timeout_seconds: float, graph_id: str, rows: Callable[[Table], Iterable[Row]]
) -> None:
    """See `FillGraph`.

    Raises:
        NotFound: The graph is deleted.
        Unavailable: Locked for longer than the timeout, or the disk is full.
    """
    connection = connect(path, busy_timeout_seconds)
    try:
        with our_errors(path):
            connection.execute("BEGIN IMMEDIATE")
            require_not_deleted(connection, graph_id)
            _clear(connection, graph_id)
            for table in GRAPH_TABLES:
                _insert(connection, table, rows(table))
            connection.execute("COMMIT")
    finally:
        # An open transaction is rolled back by this.
        connection.close()


def _clear(connection: sqlite3.Connection, graph_id: str) -> None:
    for table in reversed(GRAPH_TABLES):
        blank = BEFORE_ANYTHING.get(table.name, "graph_id IS NULL")
        other = f"SELECT 1 FROM {table.name} WHERE graph_id = ? AND NOT ({blank}) LIMIT 1"
        if connection.execute(other, (graph_id,)).fetchone():
            raise not_empty(table)
        if table is not COUNTERS:
            connection.execute(f"DELETE FROM {table.name} WHERE graph_id = ?", (graph_id,))


def _insert(connection: sqlite3.Connection, table: Table, rows: Iterable[Row]) -> None:
    # Counters are replaced in place, so that no writer finds none.
    verb = "REPLACE" if table is COUNTERS else "INSERT"
    marks = ", ".join("?" * len(table.names))
    sql = f"{verb} INTO {table.name} ({', '.join(table.names)}) VALUES ({marks})"
    try:
        connection.executemany(sql, rows)
    except sqlite3.IntegrityError as error:
        raise contradiction(table, error) from error
