"""A whole SQLite database as rows: read from one state; written to a file that is renamed when whole."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path

from hivemem.errors import Conflict, InvalidInput, NotFound
from hivemem.storage.rows import Key, Row
from hivemem.storage.sqlite.connection import connect, our_errors
from hivemem.storage.sqlite.migrate import check_owner, latest_version, prepare_database
from hivemem.storage.sqlite.replacing import files_of, put_in_place, sole_use
from hivemem.storage.tables import TABLES, Table

_BUSY_TIMEOUT_SECONDS = 2.0
_OTHER_COPY_SECONDS = 0.2

_MAKE_NOTE = (
    "CREATE TABLE IF NOT EXISTS copy_note (one INTEGER PRIMARY KEY CHECK (one = 1), note TEXT) STRICT"
)
_READ_NOTE = "SELECT note FROM copy_note"
_PUT_NOTE = "INSERT INTO copy_note VALUES (1, ?) ON CONFLICT (one) DO UPDATE SET note = excluded.note"
_DROP_NOTE = "DROP TABLE copy_note"
_TRIGGERS = "SELECT name, sql FROM sqlite_schema WHERE type = 'trigger' ORDER BY name"


class _Rows:
    """Reading, on a connection of one state or of one user."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self._path = path
        self._connection = connection

    def count(self, table: Table) -> int:
        """See `RowSource.count`."""
        with our_errors(self._path):
            return count_rows(self._connection, table)

    def rows(self, table: Table, after: Key | None = None) -> Iterator[Row]:
        """See `RowSource.rows`."""
        key = ", ".join(table.key)
        beyond = f" WHERE ({key}) > ({_marks(table.key)})" if after is not None else ""
        sql = f"SELECT {', '.join(table.names)} FROM {table.name}{beyond} ORDER BY {key}"
        with our_errors(self._path):
            rows = self._connection.execute(sql, after or ())
            # Not `yield from` the cursor: ending early would close it, maybe after its connection.
            yield from (row for row in rows)

    def rows_of(self, table: Table, graph_id: str) -> Iterator[Row]:
        """See `RowSource.rows_of`."""
        key = ", ".join(table.key)
        sql = f"SELECT {', '.join(table.names)} FROM {table.name} WHERE graph_id = ? ORDER BY {key}"
        with our_errors(self._path):
            rows = self._connection.execute(sql, (graph_id,))
            yield from (row for row in rows)

    def close(self) -> None:
        """See `RowSource.close`."""
        self._connection.close()


class SqliteSource(_Rows):
    """The state of a database file at the moment it was opened; writers go on beside it."""

    @classmethod
    def open(cls, path: Path) -> SqliteSource:
        """Begin to read the file `path`.

        Raises:
            NotFound: There is no such file.
            Conflict: Its schema is older than this program's.
            Corruption: Not a database of ours, damaged, or of a newer schema.
        """
        if not path.is_file():
            raise NotFound(f"there is no database {path}; check the path.")
        connection = connect(path, _BUSY_TIMEOUT_SECONDS, read_only=True)
        try:
            with our_errors(path):
                connection.execute("BEGIN")
                # The first read fixes the state that all later ones see.
                version = check_owner(connection, path)
            if version != latest_version():
                raise Conflict(
                    f"the database {path} has schema version {version}, this hivemem has {latest_version()}; "
                    f"run `hivemem db migrate --data-dir {path.parent}`, then repeat.",
                    code="schema_too_old",
                )
        except BaseException:
            connection.close()
            raise
        return cls(path, connection)


class SqliteTarget(_Rows):
    """A new database, in a file beside its place until it is published."""

    def __init__(self, path: Path, unfinished: Path, connection: sqlite3.Connection) -> None:
        super().__init__(unfinished, connection)
        self._place = path

    @classmethod
    def open(cls, path: Path) -> SqliteTarget:
        """Begin, or go on with, the database that will be at `path`.

        Raises:
            Conflict: There is a database with rows already, or one that another process has open.
            Unavailable: Out of reach, or another copy to the same place is running.
        """
        _check_free(path)
        unfinished = path.with_name(f"{path.name}.copying")
        prepare_database(unfinished, _OTHER_COPY_SECONDS)
        connection = connect(unfinished, _OTHER_COPY_SECONDS)
        try:
            with our_errors(unfinished):
                connection.execute("PRAGMA locking_mode = EXCLUSIVE")
                # A power cut may cost the last pages, and the note says which those are. `publish` waits.
                connection.execute("PRAGMA synchronous = NORMAL")
                connection.execute(_MAKE_NOTE)
            target = cls(path, unfinished, connection)
            if target.note() is None and any(map(target.count, TABLES)):
                # The file was complete and not yet renamed, or is not a copy's.
                target.discard()
        except BaseException:
            connection.close()
            raise
        return target

    def note(self) -> str | None:
        """See `RowTarget.note`."""
        with our_errors(self._path):
            row = self._connection.execute(_READ_NOTE).fetchone()
        return None if row is None else row[0]

    def write(self, table: Table, rows: Sequence[Row], note: str) -> None:
        """See `RowTarget.write`."""
        sql = f"INSERT INTO {table.name} ({', '.join(table.names)}) VALUES ({_marks(table.names)})"
        with our_errors(self._path):
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                self._connection.executemany(sql, rows)
                self._connection.execute(_PUT_NOTE, (note,))
                self._connection.execute("COMMIT")
            finally:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")

    def discard(self) -> None:
        """See `RowTarget.discard`."""
        with our_errors(self._path):
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                # The log of a copy that never was may go.
                triggers = self._connection.execute(_TRIGGERS).fetchall()
                for name, _ in triggers:
                    self._connection.execute(f"DROP TRIGGER {name}")
                for table in reversed(TABLES):
                    self._connection.execute(f"DELETE FROM {table.name}")
                for _, definition in triggers:
                    self._connection.execute(definition)
                self._connection.execute("DELETE FROM copy_note")
                self._connection.execute("COMMIT")
            finally:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")

    def publish(self) -> None:
        """See `RowTarget.publish`."""
        with our_errors(self._path):
            self._connection.execute(_DROP_NOTE)
            # Closing would do this too, but would not tell when the disk is full.
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        self._connection.close()
        if not files_of(self._place):
            put_in_place(self._path, self._place)
            return
        with sole_use(self._place) as present:
            _check_empty(present, self._place)
            put_in_place(self._path, self._place)


def count_rows(connection: sqlite3.Connection, table: Table) -> int:
    """How many rows a table has."""
    return connection.execute(f"SELECT count(*) FROM {table.name}").fetchone()[0]


def _check_free(path: Path) -> None:
    """Refuse a place where a database with rows is, or one that is in use."""
    if not files_of(path):
        return
    if not path.is_file():
        raise InvalidInput(f"{path} is not a file, or only files beside it are left; choose another path.")
    with sole_use(path) as present:
        check_owner(present, path)
        _check_empty(present, path)


def _check_empty(connection: sqlite3.Connection, path: Path) -> None:
    there = {name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
    full = [table.name for table in TABLES if table.name in there and count_rows(connection, table)]
    if full:
        raise Conflict(
            f"the database {path} is not empty: {full[0]} has rows. Choose another path, or move the file.",
            code="target_not_empty",
        )


def _marks(names: Sequence[str]) -> str:
    return ", ".join("?" * len(names))
