"""Filling an empty graph of a PostgreSQL database with rows, by COPY."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import LiteralString

import psycopg
from psycopg import sql

from hivemem.storage.blank_graph import BEFORE_ANYTHING, COUNTERS, contradiction, not_empty
from hivemem.storage.postgres.connection import Address, our_errors
from hivemem.storage.postgres.rows import TYPES, Connection, open_connection
from hivemem.storage.rows import Row
from hivemem.storage.tables import GRAPH_TABLES, Table

# Fails when the graph is deleted.
_HOLD = "SELECT hold_graph(%s)"
# Writers of the graph wait here for the end of the transaction.
_LOCK = "SELECT revision FROM graph_counters WHERE graph_id = %s FOR UPDATE"
_OTHER = "SELECT EXISTS (SELECT FROM {table} WHERE graph_id = %s AND NOT ({blank}))"
_DELETE = "DELETE FROM {table} WHERE graph_id = %s"
_PUT_COUNTERS = (
    "INSERT INTO graph_counters (graph_id, revision, last_event_id) VALUES (%s, %s, %s) "
    "ON CONFLICT (graph_id) DO UPDATE "
    "SET revision = excluded.revision, last_event_id = excluded.last_event_id"
)


def fill_graph(address: Address, graph_id: str, rows: Callable[[Table], Iterable[Row]]) -> None:
    """See `FillGraph`.

    Raises:
        Unavailable: It cannot be reached, or is out of space.
        NotFound: The graph was deleted.
    """
    with our_errors(address):
        connection = open_connection(address)
        try:
            with connection.transaction():
                connection.execute(_HOLD, (graph_id,))
                connection.execute(_LOCK, (graph_id,))
                _clear(connection, graph_id)
                for table in GRAPH_TABLES:
                    _insert(connection, table, rows(table))
        finally:
            connection.close()


def _clear(connection: Connection, graph_id: str) -> None:
    for table in reversed(GRAPH_TABLES):
        blank: LiteralString = BEFORE_ANYTHING.get(table.name, "graph_id IS NULL")
        other = connection.execute(_about(table, _OTHER, blank), (graph_id,)).fetchone()
        if other is not None and other[0]:
            raise not_empty(table)
        if table is not COUNTERS:
            connection.execute(_about(table, _DELETE), (graph_id,))


def _insert(connection: Connection, table: Table, rows: Iterable[Row]) -> None:
    try:
        if table is COUNTERS:
            # In place, so that no writer finds none.
            for row in rows:
                connection.execute(_PUT_COUNTERS, row)
            return
        names = sql.SQL(", ").join(map(sql.Identifier, table.names))
        query = sql.SQL("COPY {} ({}) FROM STDIN (FORMAT BINARY)").format(sql.Identifier(table.name), names)
        with connection.cursor() as cursor, cursor.copy(query) as copy:
            copy.set_types([TYPES[column.kind] for column in table.columns])
            for row in rows:
                copy.write_row(row)
    except (psycopg.IntegrityError, psycopg.DataError) as error:
        raise contradiction(table, error) from error


def _about(table: Table, template: LiteralString, blank: LiteralString = "") -> sql.Composed:
    return sql.SQL(template).format(table=sql.Identifier(table.name), blank=sql.SQL(blank))
