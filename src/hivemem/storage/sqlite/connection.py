"""Connections to a database file, and SQLite's errors as ours."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Generator
from pathlib import Path

from hivemem.errors import Corruption, InvalidInput, Unavailable

_OLDEST_SQLITE = (3, 38, 0)  # STRICT tables, RETURNING, JSON functions built in
_CACHE_KIBIBYTES = 16 * 1024
_WAL_LIMIT_BYTES = 64 * 1024 * 1024

_FULL_RETRY_SECONDS = 30
"""Somebody has to act before the same write can succeed."""

_BUSY = frozenset((sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED))
_BROKEN = frozenset((sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB))


def create_file(path: Path) -> None:
    """Make an empty database file, and its folder, that only their owner can read; keep an existing one.

    Raises:
        Unavailable: The folder or file cannot be made.
    """
    if sqlite3.sqlite_version_info < _OLDEST_SQLITE:
        oldest = ".".join(map(str, _OLDEST_SQLITE))
        raise Unavailable(f"SQLite {sqlite3.sqlite_version} is too old; install {oldest} or newer.")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # SQLite gives the -wal and -shm files the mode of the database file.
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
    except OSError as error:
        raise Unavailable(
            f"cannot open the database {path}: {error.strerror}; check path and rights."
        ) from error


def is_read_only(path: Path) -> bool:
    """Whether the file exists and this process may not write it: by its rights, or its file system's."""
    return path.exists() and not os.access(path, os.W_OK)


def connect(path: Path, busy_timeout_seconds: float, *, read_only: bool = False) -> sqlite3.Connection:
    """A connection in autocommit mode: transactions begin and end where the code says so.

    A file that cannot be written is opened for reading, and each write is refused. It may move between
    threads, but only one may use it at a time.

    Raises:
        Unavailable: The file cannot be opened.
    """
    with our_errors(path):
        connection = sqlite3.connect(
            _read_only_address(path) if is_read_only(path) else path,
            uri=is_read_only(path),
            timeout=busy_timeout_seconds,
            isolation_level=None,
            check_same_thread=False,
            cached_statements=256,
        )
        connection.execute("PRAGMA foreign_keys = ON")
        # In WAL mode FULL adds one fsync to each commit: a write that returned survives a power cut.
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute(f"PRAGMA cache_size = -{_CACHE_KIBIBYTES}")
        connection.execute(f"PRAGMA journal_size_limit = {_WAL_LIMIT_BYTES}")
        if read_only:
            connection.execute("PRAGMA query_only = ON")
        return connection


def _read_only_address(path: Path) -> str:
    """The file as a URI, such that SQLite tries no write.

    Without a log the file is whole. SQLite would still want to make one beside it; where nobody can write,
    it may rely on nobody doing so.
    """
    whole = not path.with_name(f"{path.name}-wal").exists()
    nobody_writes = bool(os.statvfs(path).f_flag & os.ST_RDONLY)
    return f"{path.absolute().as_uri()}?mode=ro{'&immutable=1' if whole and nobody_writes else ''}"


@contextlib.contextmanager
def our_errors(path: Path) -> Generator[None, None, None]:
    """Raise SQLite's errors as hivemem's.

    Raises:
        Unavailable: Locked by another process for too long, disk full (`storage_full`), read-only
            (`storage_read_only`), or the file is out of reach.
        Corruption: The file is damaged, or no SQLite database.
        InvalidInput: A text argument holds a lone surrogate, which UTF-8 cannot encode, or an integer
            needs more than 64 bits.
    """
    try:
        yield
    except sqlite3.Error as error:
        raise translated(error, path) from error
    except UnicodeEncodeError as error:
        raise InvalidInput(f"{error.object!r} holds a lone surrogate; send well-formed text.") from error
    except OverflowError as error:
        raise InvalidInput("an integer is too large to be stored; send one of at most 64 bits.") from error


def is_busy(error: sqlite3.Error) -> bool:
    """Whether somebody else holds the lock that was asked for."""
    return _primary_code(error) in _BUSY


def translated(error: sqlite3.Error, path: Path) -> Exception:
    """The error of ours that says what `error` says, or `error` itself when it is a mistake in our code."""
    if isinstance(error, sqlite3.IntegrityError | sqlite3.ProgrammingError | sqlite3.InterfaceError):
        return error
    code = _primary_code(error)
    if code in _BUSY:
        return Unavailable(f"the database {path} is busy with another process's write; try again.")
    # Without a code the driver itself failed: it could not decode a text.
    if code in _BROKEN or code is None:
        return Corruption(
            f"the database {path} is damaged or no SQLite database ({error}); "
            "restore a backup, or salvage it with `sqlite3 FILE .recover`."
        )
    if code == sqlite3.SQLITE_FULL:
        return Unavailable(
            f"the disk of the database {path} is full, so this was not stored; free some space and send it "
            "again. Reading goes on.",
            code="storage_full",
            retry_after_seconds=_FULL_RETRY_SECONDS,
        )
    name = getattr(error, "sqlite_errorname", "no code")
    if name == "SQLITE_READONLY_DIRECTORY":
        # Reading fails like this as well: nothing was to be stored, and no other reading goes on.
        return Unavailable(
            f"the database {path} is out of reach: this user may not write its folder, and SQLite keeps a "
            "log beside the file, also to read it; make file and folder writable, or read a copy.",
            code="storage_read_only",
            retry_after_seconds=_FULL_RETRY_SECONDS,
        )
    if code == sqlite3.SQLITE_READONLY:
        return Unavailable(
            f"the database {path} is read-only, so this was not stored; make the file, its folder and its "
            "file system writable for this user, then start hivemem again. Reading goes on.",
            code="storage_read_only",
            retry_after_seconds=_FULL_RETRY_SECONDS,
        )
    if name == "SQLITE_IOERR_GETTEMPPATH":
        return Unavailable(
            "SQLite finds no folder for temporary files that it can write; set TMPDIR to one and start "
            "hivemem again."
        )
    return Unavailable(
        f"the database {path} cannot be used now: {error} ({name}); check the disk, its space and quotas, "
        "and the rights of file and folder."
    )


def _primary_code(error: sqlite3.Error) -> int | None:
    code: int | None = getattr(error, "sqlite_errorcode", None)
    # The low byte of an extended result code is the primary one.
    return None if code is None else code & 0xFF
