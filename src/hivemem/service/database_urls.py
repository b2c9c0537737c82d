"""Databases by URL, as `hivemem db copy` names them."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from urllib.parse import unquote, urlsplit

from hivemem.errors import InvalidInput
from hivemem.service.file_bytes import FilesOf
from hivemem.service.schema import needed_driver
from hivemem.storage.files_folder import FolderFiles, graph_folder
from hivemem.storage.rows import FillGraph, RowSource, RowTarget
from hivemem.storage.sqlite.filling import fill_graph
from hivemem.storage.sqlite.rows import SqliteSource, SqliteTarget

_FORMS = "sqlite:///PATH or postgresql://USER@HOST/DATABASE"


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabaseUrl:
    """Where a database is."""

    path: Path | None
    """Of a SQLite file; None for a PostgreSQL database."""
    url: str = field(repr=False)

    @property
    def shown(self) -> str:
        """The database in words, never with a password."""
        if self.path is not None:
            return str(self.path)
        with needed_driver():
            from hivemem.storage.postgres.connection import Address

        return f"PostgreSQL {Address.parse(self.url)}"


def database_url(text: str) -> DatabaseUrl:
    """The database that `sqlite:///PATH`, `postgresql://...`, or the plain path of a file names.

    `sqlite:///a/b` and `sqlite:////a/b` are the file `/a/b`; percent signs are decoded.

    Raises:
        InvalidInput: Another form. The message does not repeat the URL, since it may hold a password.
    """
    scheme, separator, rest = text.partition("://")
    if not separator and text and ":" not in text.split("/")[0]:
        return DatabaseUrl(path=Path(text).expanduser().absolute(), url=text)
    if scheme in ("postgresql", "postgres") and rest:
        return DatabaseUrl(path=None, url=text)
    if scheme == "sqlite" and rest.startswith("/") and rest.strip("/"):
        return DatabaseUrl(path=Path(unquote("/" + urlsplit(text).path.lstrip("/"))), url=text)
    raise InvalidInput(f"the database URL has none of the known forms; write {_FORMS}.")


def files_beside(database: Path) -> Path:
    """The folder with the bytes of all uploaded files that a SQLite file names."""
    return database.parent / "files"


@contextlib.asynccontextmanager
async def open_files(url: DatabaseUrl) -> AsyncGenerator[FilesOf, None]:
    """Where the bytes of each graph's files are that a database names."""
    if url.path is not None:
        folder = files_beside(url.path)
        yield lambda graph_id: FolderFiles(graph_folder(folder, graph_id))
        return
    with needed_driver():
        from hivemem.storage.postgres.blobs import PostgresFiles
        from hivemem.storage.postgres.connection import Address
        from hivemem.storage.postgres.pool import Pool

    pool = Pool(Address.parse(url.url), size=1, wait_seconds=30.0, statement_seconds=300.0)
    await pool.open()
    try:
        yield lambda graph_id: PostgresFiles(pool, graph_id)
    finally:
        await pool.close()


def open_source(url: DatabaseUrl) -> RowSource:
    """One state of the database, to be read."""
    if url.path is not None:
        return SqliteSource.open(url.path)
    with needed_driver():
        from hivemem.storage.postgres.connection import Address
        from hivemem.storage.postgres.rows import PostgresSource

    return PostgresSource.open(Address.parse(url.url))


def open_target(url: DatabaseUrl) -> RowTarget:
    """The database, to be filled."""
    if url.path is not None:
        return SqliteTarget.open(url.path)
    with needed_driver():
        from hivemem.storage.postgres.connection import Address
        from hivemem.storage.postgres.rows import PostgresTarget

    return PostgresTarget.open(Address.parse(url.url))


def graph_filler(url: DatabaseUrl, *, busy_timeout_seconds: float) -> FillGraph:
    """What puts rows in the place of an empty graph of the database."""
    if url.path is not None:
        return partial(fill_graph, url.path, busy_timeout_seconds)
    with needed_driver():
        from hivemem.storage.postgres.connection import Address
        from hivemem.storage.postgres.filling import fill_graph as fill_graph_of_postgres

    return partial(fill_graph_of_postgres, Address.parse(url.url))
