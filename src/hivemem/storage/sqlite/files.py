"""Records of uploaded files."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection
from datetime import datetime

from hivemem.domain.files import StoredFile
from hivemem.domain.graph import GraphId
from hivemem.errors import Conflict
from hivemem.storage.graph_rows import file_columns, file_from_row
from hivemem.storage.sqlite.statements import named_statements
from hivemem.storage.states import ascii_folded
from hivemem.storage.times import to_microseconds

_SQL = named_statements("files.sql")


def add_file(connection: sqlite3.Connection, graph_id: GraphId, file: StoredFile) -> None:
    """Keep the record of a file."""
    if connection.execute(_SQL["add_file"], file_columns(graph_id, file)).rowcount != 1:
        raise Conflict(f"the file id {file.file_id!r} is taken; make a fresh one.")


def file(connection: sqlite3.Connection, graph_id: GraphId, file_id: str) -> StoredFile | None:
    """The file with this id, unless its node is forgotten."""
    row = connection.execute(_SQL["file"], {"graph_id": graph_id, "file_id": file_id}).fetchone()
    return None if row is None else file_from_row(row)


def files(
    connection: sqlite3.Connection, graph_id: GraphId, file_type: str | None, search: str | None, limit: int
) -> list[StoredFile]:
    """Files, newest first."""
    arguments = {
        "graph_id": graph_id,
        "file_type": file_type,
        "search": None if search is None else ascii_folded(search),
        "limit": max(0, limit),
    }
    return [file_from_row(row) for row in connection.execute(_SQL["files"], arguments)]


def drop_forgotten_files(connection: sqlite3.Connection, graph_id: GraphId, before: datetime) -> int:
    """Remove the records of files whose node is forgotten."""
    arguments = {"graph_id": graph_id, "before": to_microseconds(before)}
    return connection.execute(_SQL["drop_forgotten_files"], arguments).rowcount


def used_blobs(connection: sqlite3.Connection, graph_id: GraphId, hashes: Collection[str]) -> set[str]:
    """Those of `hashes` that a file refers to."""
    rows = connection.execute(_SQL["used_blobs"], {"graph_id": graph_id, "hashes": json.dumps([*hashes])})
    return {sha256 for (sha256,) in rows}
