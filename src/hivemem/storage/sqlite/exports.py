"""Exports and the pieces of their documents."""

from __future__ import annotations

import sqlite3
from datetime import datetime

from hivemem.domain.exports import Export
from hivemem.domain.graph import GraphId
from hivemem.storage.export_rows import export_arguments, export_from_row
from hivemem.storage.sqlite.statements import named_statements
from hivemem.storage.times import to_microseconds

_SQL = named_statements("exports.sql")


def add_export(connection: sqlite3.Connection, graph_id: GraphId, export: Export) -> Export:
    """Keep an order unless the same is there, and return the kept one."""
    arguments = export_arguments(graph_id, export)
    connection.execute(_SQL["add_export"], arguments)
    return export_from_row(connection.execute(_SQL["export_of_request"], arguments).fetchone())


def export(connection: sqlite3.Connection, graph_id: GraphId, export_id: str) -> Export | None:
    """An export by its id."""
    row = connection.execute(_SQL["export"], {"graph_id": graph_id, "export_id": export_id}).fetchone()
    return None if row is None else export_from_row(row)


def advance(connection: sqlite3.Connection, graph_id: GraphId, export: Export) -> bool:
    """Write how far an unfinished export is."""
    return connection.execute(_SQL["advance"], export_arguments(graph_id, export)).rowcount == 1


def add_chunk(
    connection: sqlite3.Connection,
    graph_id: GraphId,
    export_id: str,
    document: str,
    ordinal: int,
    content: bytes,
) -> None:
    """Keep a piece of a document."""
    place = {"graph_id": graph_id, "export_id": export_id, "document": document, "ordinal": ordinal}
    connection.execute(_SQL["add_chunk"], {**place, "content": content})


def chunk(
    connection: sqlite3.Connection, graph_id: GraphId, export_id: str, document: str, ordinal: int
) -> bytes | None:
    """A piece of a document."""
    place = {"graph_id": graph_id, "export_id": export_id, "document": document, "ordinal": ordinal}
    row = connection.execute(_SQL["chunk"], place).fetchone()
    return None if row is None else row[0]


def drop_stale(connection: sqlite3.Connection, graph_id: GraphId, at: datetime, before: datetime) -> None:
    """Expire, forget, and drop pieces that nobody needs."""
    connection.execute(_SQL["expire"], {"graph_id": graph_id, "at": to_microseconds(at)})
    connection.execute(_SQL["forget"], {"graph_id": graph_id, "before": to_microseconds(before)})
    connection.execute(_SQL["drop_chunks"], {"graph_id": graph_id})
