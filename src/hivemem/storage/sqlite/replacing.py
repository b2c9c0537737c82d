"""Putting a finished database file in the place of another, or of none, at once and for good."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Generator
from pathlib import Path

from hivemem.errors import Conflict, Unavailable
from hivemem.storage.sqlite.connection import connect, is_busy, our_errors

_COMPANIONS = ("", "-wal", "-shm", "-journal")
"""What SQLite adds to the name of a database for the files beside it."""


def files_of(database: Path) -> list[Path]:
    """The database and the files beside it, as far as they exist.

    A `-wal` that was left alone counts: SQLite would play it into any database of that name.
    """
    named = (database.with_name(database.name + suffix) for suffix in _COMPANIONS)
    return [path for path in named if path.exists()]


@contextlib.contextmanager
def sole_use(database: Path) -> Generator[sqlite3.Connection, None, None]:
    """A connection to an existing database that keeps every other process out.

    The write-ahead log has been merged into the file, so that the file alone is the whole database.

    Raises:
        Conflict: Another process has it open.
        Corruption: No SQLite database, or damaged.
    """
    with contextlib.closing(connect(database, 0)) as connection, our_errors(database):
        try:
            # Leaving the write-ahead log needs every other connection to be closed, also an idle one.
            connection.execute("PRAGMA journal_mode = DELETE").fetchall()
            connection.execute("BEGIN EXCLUSIVE")
            taken = connection.execute("PRAGMA journal_mode").fetchone()[0] != "delete"
        except sqlite3.OperationalError as error:
            if not is_busy(error):
                raise
            taken = True
        if taken:
            raise Conflict(
                f"the database {database} is open in another process; stop that process, then repeat."
            )
        try:
            yield connection
        finally:
            connection.execute("ROLLBACK")


def move_aside(database: Path, mark: str) -> Path:
    """Rename a database, and the files beside it, to a free name that ends in `mark`; return that name."""
    aside = database.with_name(f"{database.name}.{mark}")
    number = 1
    while files_of(aside):
        number += 1
        aside = database.with_name(f"{database.name}.{mark}-{number}")
    for path in files_of(database):
        path.rename(path.with_name(path.name.replace(database.name, aside.name, 1)))
    return aside


def put_in_place(finished: Path, path: Path) -> None:
    """Rename a closed file to `path`, replacing what is there, so that a power cut leaves one or the other.

    Raises:
        Unavailable: The disk refuses.
    """
    try:
        _synchronise(finished)
        finished.replace(path)
        _synchronise(path.parent)
    except OSError as error:
        raise Unavailable(
            f"{path} cannot be written: {error.strerror}; check path, rights and space."
        ) from error


def _synchronise(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
