"""Records of uploaded files."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from hivemem.domain.files import StoredFile
from hivemem.domain.graph import GraphId
from hivemem.errors import Conflict
from hivemem.storage.graph_rows import file_columns, file_from_row
from hivemem.storage.postgres.statements import named_statements
from hivemem.storage.postgres.transaction import Query, Transaction
from hivemem.storage.states import ascii_folded
from hivemem.storage.times import to_microseconds

_SQL = named_statements("files.sql")


async def add_file(transaction: Transaction, graph_id: GraphId, file: StoredFile) -> None:
    """Keep the record of a file."""
    arguments = file_columns(graph_id, file)
    query = Query(sql=_SQL["add_file"], arguments=arguments, decode=len)
    if await transaction.ask(query) != 1:
        raise Conflict(f"the file id {file.file_id!r} is taken; make a fresh one.")


def file(graph_id: GraphId, file_id: str) -> Query[StoredFile | None]:
    """The file with this id, unless its node is forgotten."""
    return Query(
        sql=_SQL["file"],
        arguments={"graph_id": graph_id, "file_id": file_id},
        decode=lambda rows: file_from_row(rows[0]) if rows else None,
    )


def files(
    graph_id: GraphId, file_type: str | None, search: str | None, limit: int
) -> Query[list[StoredFile]]:
    """Files, newest first."""
    return Query(
        sql=_SQL["files"],
        arguments={
            "graph_id": graph_id,
            "file_type": file_type,
            "search": None if search is None else ascii_folded(search),
            "limit": max(0, limit),
        },
        decode=lambda rows: [file_from_row(row) for row in rows],
    )


async def drop_forgotten_files(transaction: Transaction, graph_id: GraphId, before: datetime) -> int:
    """Remove the records of files whose node is forgotten."""
    arguments = {"graph_id": graph_id, "before": to_microseconds(before)}
    return await transaction.ask(Query(sql=_SQL["drop_forgotten_files"], arguments=arguments, decode=len))


def used_blobs(graph_id: GraphId, hashes: Collection[str]) -> Query[set[str]]:
    """Those of `hashes` that a file refers to."""
    return Query(
        sql=_SQL["used_blobs"],
        arguments={"graph_id": graph_id, "hashes": [*hashes]},
        decode=lambda rows: {sha256 for (sha256,) in rows},
    )
