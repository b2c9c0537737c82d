"""Exports and the pieces of their documents."""

from __future__ import annotations

from datetime import datetime

from hivemem.domain.exports import Export
from hivemem.domain.graph import GraphId
from hivemem.storage.export_rows import export_arguments, export_from_row
from hivemem.storage.postgres.statements import named_statements
from hivemem.storage.postgres.transaction import Query, Transaction
from hivemem.storage.times import to_microseconds

_SQL = named_statements("exports.sql")


async def add_export(transaction: Transaction, graph_id: GraphId, export: Export) -> Export:
    """Keep an order unless the same is there, and return the kept one."""
    await transaction.send(_SQL["add_export"], export_arguments(graph_id, export))
    query = Query(
        sql=_SQL["export_of_request"],
        arguments={"graph_id": graph_id, "request": export.request},
        decode=lambda rows: export_from_row(rows[0]),
    )
    return await transaction.ask(query)


def export(graph_id: GraphId, export_id: str) -> Query[Export | None]:
    """An export by its id."""
    return Query(
        sql=_SQL["export"],
        arguments={"graph_id": graph_id, "export_id": export_id},
        decode=lambda rows: export_from_row(rows[0]) if rows else None,
    )


async def advance(transaction: Transaction, graph_id: GraphId, export: Export) -> bool:
    """Write how far an unfinished export is."""
    arguments = export_arguments(graph_id, export)
    return await transaction.ask(Query(sql=_SQL["advance"], arguments=arguments, decode=bool))


async def was_advanced(transaction: Transaction, graph_id: GraphId, export_: Export, advanced: bool) -> bool:
    """Whether a lost `advance` happened."""
    return advanced and await transaction.ask(export(graph_id, export_.export_id)) == export_


async def add_chunk(
    transaction: Transaction, graph_id: GraphId, export_id: str, document: str, ordinal: int, content: bytes
) -> None:
    """Keep a piece of a document."""
    place = {"graph_id": graph_id, "export_id": export_id, "document": document, "ordinal": ordinal}
    await transaction.send(_SQL["add_chunk"], {**place, "content": content})


def chunk(graph_id: GraphId, export_id: str, document: str, ordinal: int) -> Query[bytes | None]:
    """A piece of a document."""
    return Query(
        sql=_SQL["chunk"],
        arguments={"graph_id": graph_id, "export_id": export_id, "document": document, "ordinal": ordinal},
        decode=lambda rows: bytes(rows[0][0]) if rows else None,
    )


async def drop_stale(transaction: Transaction, graph_id: GraphId, at: datetime, before: datetime) -> None:
    """Expire, forget, and drop pieces that nobody needs."""
    await transaction.send(_SQL["expire"], {"graph_id": graph_id, "at": to_microseconds(at)})
    await transaction.send(_SQL["forget"], {"graph_id": graph_id, "before": to_microseconds(before)})
    await transaction.send(_SQL["drop_chunks"], {"graph_id": graph_id})
