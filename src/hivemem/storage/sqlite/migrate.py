"""Bringing a database file to the present schema, safely when several processes start at once."""

from __future__ import annotations

import contextlib
import random
import sqlite3
import time
from pathlib import Path

from hivemem.errors import Corruption, Unavailable
from hivemem.storage.sqlite.connection import connect, create_file, is_busy, is_read_only, our_errors
from hivemem.storage.sqlite.statements import migration_names, read_sql, split_script

APPLICATION_ID = int.from_bytes(b"hvmm", "big")
"""Marks a file as hivemem's in its header, so that no other program's database is touched."""


def prepare_database(path: Path, busy_timeout_seconds: float) -> None:
    """Create the database file, or bring it to the present schema.

    Raises:
        Corruption: Not a database, another program's, damaged, or of a newer schema.
        Unavailable: Out of reach, locked for longer than the timeout, or in need of changes and read-only.
    """
    if is_read_only(path):
        _check_present(path, busy_timeout_seconds)
        return
    create_file(path)
    with contextlib.closing(connect(path, busy_timeout_seconds)) as connection, our_errors(path):
        check_owner(connection, path)
        _use_write_ahead_log(connection, path, busy_timeout_seconds)
        if schema_version(connection) != latest_version():
            # Migrations may rebuild tables that others refer to; the check at the end replaces this.
            connection.execute("PRAGMA foreign_keys = OFF")
            connection.execute("BEGIN IMMEDIATE")
            try:
                upgrade(connection, path)
                connection.execute("COMMIT")
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")


def _check_present(path: Path, busy_timeout_seconds: float) -> None:
    """Let a read-only file pass that can be read as it is."""
    with contextlib.closing(connect(path, busy_timeout_seconds)) as connection, our_errors(path):
        if check_owner(connection, path) != latest_version():
            raise Unavailable(
                f"the database {path} needs an upgrade of its schema and is read-only; make it writable.",
                code="storage_read_only",
            )


def upgrade(connection: sqlite3.Connection, path: Path) -> None:
    """Run what lacks to the present schema, inside a write transaction of the caller.

    A process that waited for the transaction finds the work done, and does nothing.
    """
    version = check_owner(connection, path)
    if version == latest_version():
        return
    scripts = migration_names()[version:] if version else ["schema.sql"]
    for script in scripts:
        for statement in split_script(read_sql(script)):
            connection.execute(statement)
    broken = connection.execute("PRAGMA foreign_key_check").fetchone()
    if broken is not None:
        raise Corruption(f"the database {path} has rows of {broken[0]!r} without their owner.")
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {latest_version()}")


def check_owner(connection: sqlite3.Connection, path: Path) -> int:
    """The schema version of a database of ours, 0 when it is empty.

    Raises:
        Corruption: Another program's, or of a newer schema (`schema_too_new`).
    """
    (application_id,) = connection.execute("PRAGMA application_id").fetchone()
    version = schema_version(connection)
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    empty = application_id == 0 and version == 0 and tables == 0
    if not empty and application_id != APPLICATION_ID:
        raise Corruption(f"the database {path} belongs to another program; choose another path.")
    if version > latest_version():
        raise Corruption(
            f"the database {path} has schema version {version}, but this hivemem knows versions up to "
            f"{latest_version()}; upgrade hivemem, or open a backup made before the upgrade.",
            code="schema_too_new",
        )
    return version


def latest_version() -> int:
    """The schema version that this program reads and writes."""
    return len(migration_names())


def schema_version(connection: sqlite3.Connection) -> int:
    """The schema version of a database, 0 when it is empty."""
    return connection.execute("PRAGMA user_version").fetchone()[0]


def _use_write_ahead_log(connection: sqlite3.Connection, path: Path, busy_timeout_seconds: float) -> None:
    deadline = time.monotonic() + busy_timeout_seconds
    while True:
        try:
            (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
            break
        except sqlite3.OperationalError as error:
            # SQLite does not wait by itself here, because two waiting processes could block each other.
            if not is_busy(error) or time.monotonic() > deadline:
                raise
            time.sleep(random.uniform(0.001, 0.01))
    if mode != "wal":
        raise Unavailable(f"{path} is on a file system without shared memory; move it to a local disk.")
