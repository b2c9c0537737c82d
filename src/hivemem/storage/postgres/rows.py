"""A whole PostgreSQL database as rows: read from one snapshot, written page by page with COPY."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Generator, Iterator, Sequence
from typing import Any, LiteralString, TypeAlias

import psycopg
from psycopg import sql
from psycopg.rows import TupleRow

from hivemem.errors import Conflict
from hivemem.storage.postgres.connection import Address, our_errors
from hivemem.storage.postgres.migrate import latest_version, prepare_database
from hivemem.storage.rows import Key, Row, Value, size_bytes
from hivemem.storage.tables import TABLES, ColumnKind, Table

Connection: TypeAlias = "psycopg.Connection[TupleRow]"

TYPES = {ColumnKind.TEXT: "text", ColumnKind.INTEGER: "int8", ColumnKind.BYTES: "bytea"}
_FETCH_BYTES = 2_000_000
_FETCH_ROWS = 500

# A copy may take longer than what an operator allows a request.
_NO_TIMEOUTS = (
    "SELECT set_config('statement_timeout', '0', false),"
    " set_config('idle_in_transaction_session_timeout', '0', false)"
)
_SNAPSHOT = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
# It ends with the connection, in whatever way that ends.
_LOCK = "SELECT pg_try_advisory_lock(hashtextextended('hivemem copy ' || current_schema(), 0))"

_MAKE_NOTE = "CREATE TABLE IF NOT EXISTS copy_note (one BIGINT PRIMARY KEY CHECK (one = 1), note TEXT)"
_HAS_NOTE = "SELECT to_regclass('copy_note') IS NOT NULL"
_READ_NOTE = "SELECT note FROM copy_note"
_PUT_NOTE = "INSERT INTO copy_note VALUES (1, %s) ON CONFLICT (one) DO UPDATE SET note = excluded.note"
_DROP_NOTE = "DROP TABLE copy_note"

# The log of the database is append-only, by a trigger.
_UNGUARD_LOG = "ALTER TABLE audit_events DISABLE TRIGGER USER"
_GUARD_LOG = "ALTER TABLE audit_events ENABLE TRIGGER USER"
# Its next line gets the number after the last one that was copied.
_COUNT_ON = (
    "SELECT setval(pg_get_serial_sequence('audit_events', 'event_id'), "
    "(SELECT coalesce(max(event_id), 0) + 1 FROM audit_events), false)"
)


class _Rows:
    """Reading, on one connection."""

    def __init__(self, address: Address, connection: Connection) -> None:
        self._address = address
        self._connection = connection

    def count(self, table: Table) -> int:
        """See `RowSource.count`."""
        with our_errors(self._address):
            return self._one(_sql("SELECT count(*) FROM {table}", table))

    def rows(self, table: Table, after: Key | None = None) -> Iterator[Row]:
        """See `RowSource.rows`."""
        beyond = "" if after is None else " WHERE ({key}) > ({marks})"
        query = _sql(f"SELECT {{names}} FROM {{table}}{beyond} ORDER BY {{key}}", table)
        yield from self._fetched(table, query, after or ())

    def rows_of(self, table: Table, graph_id: str) -> Iterator[Row]:
        """See `RowSource.rows_of`."""
        query = _sql("SELECT {names} FROM {table} WHERE graph_id = %s ORDER BY {key}", table)
        yield from self._fetched(table, query, (graph_id,))

    def _fetched(self, table: Table, query: sql.Composed, arguments: Sequence[Value]) -> Iterator[Row]:
        with our_errors(self._address), self._connection.cursor(table.name, binary=True) as cursor:
            cursor.execute(query, arguments)
            size = 1
            while fetched := cursor.fetchmany(size):
                yield from fetched
                # Rows are from some bytes to some megabytes large.
                average = max(1, sum(map(size_bytes, fetched)) // len(fetched))
                size = max(1, min(_FETCH_ROWS, 4 * size, _FETCH_BYTES // average))

    def close(self) -> None:
        """See `RowSource.close`."""
        self._connection.close()

    def _one(self, query: LiteralString | sql.Composed) -> Any:
        row = self._connection.execute(query).fetchone()
        return None if row is None else row[0]


class PostgresSource(_Rows):
    """The state of a database at the moment it was opened; writers go on beside it."""

    @classmethod
    def open(cls, address: Address) -> PostgresSource:
        """Begin to read a database.

        Raises:
            Unavailable: It cannot be reached.
            Corruption: It has not our tables.
            Conflict: Its schema is not this program's, or it is itself an unfinished copy.
        """
        with our_errors(address):
            connection = open_connection(address)
            try:
                connection.execute(_SNAPSHOT)
                source = cls(address, connection)
                _check_schema(source._one("SELECT version FROM schema_version"), address)
                if source._one(_HAS_NOTE):
                    raise Conflict(f"the database {address} is an unfinished copy itself; finish it first.")
            except BaseException:
                connection.close()
                raise
        return source


class PostgresTarget(_Rows):
    """An empty database, or one that an unfinished copy has begun to fill; servers refuse to open that."""

    @classmethod
    def open(cls, address: Address) -> PostgresTarget:
        """Begin, or go on with, a copy into a database.

        Raises:
            Unavailable: It cannot be reached.
            Corruption: It has another program's tables.
            Conflict: It has rows that no unfinished copy wrote, another copy is running, or its schema is
                not this program's.
        """
        with our_errors(address):
            connection = open_connection(address)
            try:
                target = cls(address, connection)
                if not target._one(_LOCK):
                    raise Conflict(f"another copy into {address} is running; wait for it, or stop it.")
                if not target._one(_HAS_NOTE):
                    asyncio.run(prepare_database(address))
                _check_schema(target._one("SELECT version FROM schema_version"), address)
                target._claim()
            except BaseException:
                connection.close()
                raise
        return target

    def note(self) -> str | None:
        """See `RowTarget.note`."""
        with our_errors(self._address):
            return self._one(_READ_NOTE)

    def write(self, table: Table, rows: Sequence[Row], note: str) -> None:
        """See `RowTarget.write`."""
        query = _sql("COPY {table} ({names}) FROM STDIN (FORMAT BINARY)", table)
        try:
            with our_errors(self._address), self._connection.transaction():
                with self._connection.cursor() as cursor, cursor.copy(query) as copy:
                    copy.set_types([TYPES[column.kind] for column in table.columns])
                    for row in rows:
                        copy.write_row(row)
                self._connection.execute(_PUT_NOTE, (note,))
        except psycopg.IntegrityError as error:
            raise Conflict(
                f"the database {self._address} has got rows in {table.name} that are not the copy's; stop "
                "what writes to it, and begin again with --restart.",
                code="target_not_empty",
            ) from error

    def discard(self) -> None:
        """See `RowTarget.discard`."""
        with our_errors(self._address), self._connection.transaction():
            tables = sql.SQL(", ").join(sql.Identifier(table.name) for table in TABLES)
            # The log of a copy that never was may go.
            self._connection.execute(_UNGUARD_LOG)
            self._connection.execute(sql.SQL("TRUNCATE {}").format(tables))
            self._connection.execute(_GUARD_LOG)
            self._connection.execute("DELETE FROM copy_note")

    def publish(self) -> None:
        """See `RowTarget.publish`."""
        with our_errors(self._address):
            self._connection.execute(_COUNT_ON)
            # The planner would take every table for empty until the next automatic round.
            self._connection.execute("ANALYZE")
            self._connection.execute(_DROP_NOTE)
        self.close()

    def rows(self, table: Table, after: Key | None = None) -> Iterator[Row]:
        """See `RowSource.rows`."""
        with self._snapshot():
            yield from super().rows(table, after)

    @contextlib.contextmanager
    def _snapshot(self) -> Generator[None, None, None]:
        with our_errors(self._address), self._connection.transaction():
            yield

    def _claim(self) -> None:
        """Make the table of the note, unless somebody else's rows are here."""
        with self._connection.transaction():
            if self._one(_HAS_NOTE):
                return
            for table in TABLES:
                if self._one(_sql("SELECT EXISTS (SELECT FROM {table})", table)):
                    raise Conflict(
                        f"the database {self._address} is not empty: {table.name} has rows. Name an empty "
                        "one.",
                        code="target_not_empty",
                    )
            self._connection.execute(_MAKE_NOTE)


def open_connection(address: Address) -> Connection:
    """A connection for work that may take longer than a request."""
    parameters: dict[str, Any] = {**address.parameters}
    connection = psycopg.connect(autocommit=True, **parameters)
    connection.execute(_NO_TIMEOUTS)
    return connection


def _check_schema(version: int, address: Address) -> None:
    if version != latest_version():
        raise Conflict(
            f"the database {address} has schema version {version}, this hivemem has {latest_version()}; run "
            "`hivemem db migrate`, or upgrade hivemem.",
            code="schema_differs",
        )


def _sql(template: LiteralString, table: Table) -> sql.Composed:
    """A statement about `table`: its name, columns and key put into `template`, safely quoted."""
    return sql.SQL(template).format(
        table=sql.Identifier(table.name),
        names=sql.SQL(", ").join(map(sql.Identifier, table.names)),
        key=sql.SQL(", ").join(map(sql.Identifier, table.key)),
        marks=sql.SQL(", ").join(sql.Placeholder() * len(table.key)),
    )
