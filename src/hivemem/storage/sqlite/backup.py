"""One consistent copy of a database file, made while others write, and the check that it is whole."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from hivemem.errors import Corruption, Unavailable
from hivemem.storage.sqlite.connection import connect, our_errors
from hivemem.storage.sqlite.migrate import check_owner, prepare_database
from hivemem.storage.sqlite.rows import count_rows
from hivemem.storage.tables import TABLES

Report = Callable[[int, int], None]
"""Called with (pages done, pages in all)."""

_PAGES_A_STEP = 1024
_BUSY_TIMEOUT_SECONDS = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """What a checked database holds."""

    schema_version: int
    rows: Mapping[str, int]
    """Table -> number of rows."""


def copy_pages(source: Path, target: Path, report: Report) -> Content:
    """Copy the present state of a database to a new file, page by page, and check the copy.

    The copy has mode 0600, no write-ahead log, and the schema of the source. Writers of the source go on;
    what they write after the beginning is not in the copy.

    Args:
        source: A database of ours, of any known schema.
        target: A file that does not exist. After an error it is removed.
        report: Told after every step.

    Raises:
        Corruption: The source is damaged, another program's, or of a newer schema.
        Unavailable: A file is out of reach, or the disk is full.
    """
    try:
        os.close(os.open(target, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    except OSError as error:
        raise Unavailable(
            f"{target} cannot be made: {error.strerror}; check path, rights and space."
        ) from error
    try:
        with contextlib.closing(connect(source, _BUSY_TIMEOUT_SECONDS, read_only=True)) as connection:
            with our_errors(source):
                # Inside a read transaction the copy keeps to one state; without, each write of another
                # process would make it begin again.
                connection.execute("BEGIN")
                if check_owner(connection, source) == 0:
                    raise Corruption(f"{source} is empty, and no database of hivemem; name another file.")
                before = _content(connection)
            _copy(connection, target, report)
        after = checked_content(target)
        if after != before:
            raise Corruption(f"the copy {target} holds {after}, its source {before}; check the disk.")
        return after
    except BaseException:
        for suffix in ("", "-journal", "-wal", "-shm"):
            target.with_name(target.name + suffix).unlink(missing_ok=True)
        raise


def checked_content(path: Path) -> Content:
    """What a database holds, after every page, index and foreign key of it has been looked at.

    Raises:
        Corruption: Damaged, another program's, or of a newer schema.
    """
    with (
        contextlib.closing(connect(path, _BUSY_TIMEOUT_SECONDS, read_only=True)) as connection,
        our_errors(path),
    ):
        check_owner(connection, path)
        found = connection.execute("PRAGMA integrity_check(1)").fetchone()[0]
        if found == "ok" and connection.execute("PRAGMA foreign_key_check").fetchone() is not None:
            found = "a row names another that is not there"
        if found != "ok":
            raise Corruption(
                f"the database {path} is damaged: {found}. Use an older backup, or salvage it with "
                "`sqlite3 FILE .recover`."
            )
        return _content(connection)


def blob_names(path: Path) -> list[tuple[str, str]]:
    """(graph, SHA-256) of all bytes that the records of a database name; of any known schema."""
    with (
        contextlib.closing(connect(path, _BUSY_TIMEOUT_SECONDS, read_only=True)) as connection,
        our_errors(path),
    ):
        if not connection.execute("SELECT 1 FROM sqlite_schema WHERE name = 'files'").fetchall():
            return []
        return connection.execute(
            "SELECT DISTINCT graph_id, sha256 FROM files ORDER BY graph_id, sha256"
        ).fetchall()


def bring_up_to_date(path: Path) -> None:
    """Run the migrations that a database lacks; the errors are those of opening it."""
    prepare_database(path, _BUSY_TIMEOUT_SECONDS)


def _copy(connection: sqlite3.Connection, target: Path, report: Report) -> None:
    with our_errors(target), contextlib.closing(sqlite3.connect(target, isolation_level=None)) as copy:
        # The file is synchronised once, when it is complete.
        copy.execute("PRAGMA synchronous = OFF")
        connection.backup(
            copy, pages=_PAGES_A_STEP, progress=lambda _, left, total: report(total - left, total)
        )
        # One file, which also opens on a disk that cannot be written.
        copy.execute("PRAGMA journal_mode = DELETE").fetchall()


def _content(connection: sqlite3.Connection) -> Content:
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    there = {name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
    return Content(
        schema_version=version,
        rows={table.name: count_rows(connection, table) for table in TABLES if table.name in there},
    )
