"""Backups of the SQLite file with the uploaded files, and putting one back."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from collections.abc import Generator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from hivemem.errors import Conflict, Corruption, InvalidInput, NotFound, Unavailable
from hivemem.service.database_urls import files_beside
from hivemem.service.file_bytes import absent_files, pack_files, unpack_files
from hivemem.storage.sqlite.backup import (
    Content,
    Report,
    blob_names,
    bring_up_to_date,
    checked_content,
    copy_pages,
)
from hivemem.storage.sqlite.replacing import files_of, move_aside, put_in_place, sole_use


@dataclass(frozen=True, slots=True, kw_only=True)
class BackedUpFiles:
    """The bytes of uploaded files, in an archive beside the backup of their records."""

    archive: Path | None
    """None when there are none."""
    count: int
    size_bytes: int
    missing: int
    """Records whose bytes are absent or damaged in the data folder already."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Backup:
    """A backup that was made and checked."""

    file: Path
    size_bytes: int
    schema_version: int
    rows: Mapping[str, int]
    """Table -> number of rows."""
    files: BackedUpFiles


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored:
    """A database that was put back."""

    database: Path
    schema_version: int
    """Of the backup; the database has the present one."""
    rows: Mapping[str, int]
    kept_aside: Path | None
    """Where the database is that was there before."""
    files_restored: int
    files_missing: int
    """Records whose bytes are neither in the archive nor in the data folder."""


def _unheard(done: int, total: int) -> None:
    """A report that nobody wants."""


def archive_of(file: Path) -> Path:
    """Where the bytes of uploaded files are that belong to a backup."""
    return file.with_name(f"{file.name}.files.tar")


def back_up(
    database: Path, file: Path, *, overwrite: bool, report: Report, report_files: Report = _unheard
) -> Backup:
    """Write the present state of a database to `file`, while servers and commands go on using it.

    `file` appears complete and checked, or not at all; an existing one is replaced in one step.

    Args:
        database: A database of ours, of this or an older schema.
        file: In an existing folder.
        overwrite: Whether an existing file may be replaced.
        report: Called with (pages done, pages in all).
        report_files: Called with (uploaded files done, uploaded files in all).

    Raises:
        NotFound: There is no database, or no such folder.
        Conflict: The file exists.
        InvalidInput: The file is the database itself, or a folder.
        Corruption: The database is damaged.
        Unavailable: The disk is full, or a file is out of reach.
    """
    with _disk(file):
        return _back_up(database, file, overwrite=overwrite, report=report, report_files=report_files)


def _back_up(database: Path, file: Path, *, overwrite: bool, report: Report, report_files: Report) -> Backup:
    if not database.is_file():
        raise NotFound(f"there is no database {database}; check --data-dir.")
    if not file.parent.is_dir():
        raise NotFound(f"the folder {file.parent} does not exist; make it first.")
    if file.is_dir():
        raise InvalidInput(f"{file} is a folder; name a file in it.")
    if file.exists() and any(file.samefile(part) for part in files_of(database)):
        raise InvalidInput(f"{file} is the database itself; choose another file.")
    for there in (file, archive_of(file)):
        if there.exists() and not overwrite:
            raise Conflict(f"{there} exists; choose another name, or replace it with --force.")
    unfinished = file.with_name(f".{file.name}.{secrets.token_hex(4)}.partial")
    content = copy_pages(database, unfinished, report)
    try:
        # Before the records are in place: an archive without them harms nobody. Bytes are written before the
        # record that names them, so that this moment has all that the copied records name.
        files = _pack(database, unfinished, archive_of(file), report_files)
        put_in_place(unfinished, file)
    finally:
        unfinished.unlink(missing_ok=True)
    return Backup(
        files=files,
        file=file,
        size_bytes=file.stat().st_size,
        schema_version=content.schema_version,
        rows=content.rows,
    )


def _pack(database: Path, backup: Path, archive: Path, report: Report) -> BackedUpFiles:
    """Make the archive of what the records of a backup name, or remove an older one if they name nothing."""
    names = blob_names(backup)
    if not names:
        archive.unlink(missing_ok=True)
        return BackedUpFiles(archive=None, count=0, size_bytes=0, missing=0)
    unfinished = archive.with_name(f".{archive.name}.{secrets.token_hex(4)}.partial")
    try:
        missing = asyncio.run(pack_files(names, files_beside(database), unfinished, report))
        if len(missing) == len(names):
            archive.unlink(missing_ok=True)
            return BackedUpFiles(archive=None, count=0, size_bytes=0, missing=len(missing))
        put_in_place(unfinished, archive)
    finally:
        unfinished.unlink(missing_ok=True)
    return BackedUpFiles(
        archive=archive,
        count=len(names) - len(missing),
        size_bytes=archive.stat().st_size,
        missing=len(missing),
    )


def restore(
    file: Path, database: Path, *, overwrite: bool, report: Report, report_files: Report = _unheard
) -> Restored:
    """Make a checked copy of a backup the database, in the present schema. The backup stays as it is.

    The caller keeps servers away from the folder; other processes are noticed here.

    Args:
        file: A backup of this or an older schema.
        database: Where it goes, in an existing folder.
        overwrite: Whether a database may be there already; it is renamed, not removed.
        report: Called with (pages done, pages in all).
        report_files: Called with (bytes of the archive of files done, bytes in all).

    Raises:
        NotFound: There is no such backup.
        Conflict: There is a database already, or another process has it open.
        InvalidInput: The backup is the database itself.
        Corruption: The backup is damaged, another program's, or of a newer schema.
        Unavailable: The disk is full, or a file is out of reach.
    """
    with _disk(file):
        return _restore(file, database, overwrite=overwrite, report=report, report_files=report_files)


def _restore(
    file: Path, database: Path, *, overwrite: bool, report: Report, report_files: Report
) -> Restored:
    if not file.is_file():
        raise NotFound(f"there is no backup {file}; check the path.")
    present = files_of(database)
    if any(file.samefile(part) for part in present):
        raise InvalidInput(f"{file} is the database itself; name a backup.")
    if present and not overwrite:
        raise Conflict(f"{present[0]} exists; choose another --data-dir, or replace it with --force.")
    archive = archive_of(file)
    unfinished = database.with_name(f".{database.name}.{secrets.token_hex(4)}.partial")
    backed_up = copy_pages(file, unfinished, report)
    try:
        content = _migrated(unfinished, backed_up)
        names = blob_names(unfinished)
        folder = files_beside(database)
        # Before the records that name them; what is there already stays.
        unpacked = asyncio.run(unpack_files(archive, folder, report_files)) if archive.is_file() else 0
        kept_aside = _make_room(database)
        put_in_place(unfinished, database)
    finally:
        for part in files_of(unfinished):
            part.unlink()
    return Restored(
        database=database,
        schema_version=backed_up.schema_version,
        rows=content.rows,
        kept_aside=kept_aside,
        files_restored=unpacked,
        files_missing=len(asyncio.run(absent_files(names, folder))),
    )


def _migrated(database: Path, content: Content) -> Content:
    bring_up_to_date(database)
    migrated = checked_content(database)
    left = files_of(database)[1:]
    if left:
        raise Unavailable(f"{left[0]} is still in use; stop what reads it, then repeat.")
    return migrated


def _make_room(database: Path) -> Path | None:
    """Rename what is at the place of the database; None when nothing is."""
    if not files_of(database):
        return None
    mark = f"before-restore-{datetime.now(UTC):%Y%m%dT%H%M%SZ}"
    if not database.is_file():
        # Opening would make a new file, and throw away what is left of the old one.
        return move_aside(database, mark)
    try:
        with sole_use(database):
            return move_aside(database, mark)
    except Corruption:
        # What cannot be opened cannot be merged with its log either; its files stay together.
        return move_aside(database, mark)


@contextlib.contextmanager
def _disk(path: Path) -> Generator[None, None, None]:
    try:
        yield
    except OSError as error:
        name = error.filename or path
        raise Unavailable(
            f"{name} cannot be used: {error.strerror}; check path, rights and space."
        ) from error
