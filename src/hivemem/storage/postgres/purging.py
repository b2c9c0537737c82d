"""What is left of graphs that were deleted: removing it in pieces, finding it, and giving back its room.

A write to a graph holds the graph until its end, and a deletion waits for those that do. So no write comes
after the deletion; it is refused with `NotFound` (`graph_deleted`). The lock is an advisory one: it costs no
write of its own, and is also there for a graph that has no row yet.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from psycopg import sql

from hivemem.domain.accounts import DeletedGraph
from hivemem.domain.graph import GraphId
from hivemem.storage import account_rows as rows
from hivemem.storage.postgres.connection import Address, connect, our_errors
from hivemem.storage.postgres.statements import for_psycopg, named_statements
from hivemem.storage.postgres.transaction import Query, Row, Transaction
from hivemem.storage.tables import GRAPH_TABLES, OUTLIVING, PURGED_TABLES, TABLES, owned_tables
from hivemem.storage.times import to_microseconds

_SQL = named_statements("purging.sql")

_BLOB_TABLES = ("blobs", "blob_chunks")
PURGED = (*(table.name for table in PURGED_TABLES), *_BLOB_TABLES)
"""All tables that hold something of a graph; in the reverse of this order, rows go before those they name."""

_ACCOUNTS = tuple(table.name for table in TABLES if table not in GRAPH_TABLES and table.name not in OUTLIVING)
"""Tables from which the removal of a user, graph or organization takes rows."""

_OF_CHUNKS = frozenset(("export_chunks", "blob_chunks"))
_ROWS_OF_A_CHUNK = 100
"""A piece of a document or file is as large as so many other rows."""

_REMOVE = (
    "DELETE FROM {table} WHERE graph_id = :graph_id AND ctid = ANY (ARRAY("
    "SELECT ctid FROM {table} WHERE graph_id = :graph_id LIMIT :limit)) RETURNING 1"
)
_COUNT = sql.SQL("SELECT count(*) FROM {table} WHERE {lost}")
_NAMES_NOTHING = sql.SQL("({column} IS NOT NULL AND NOT EXISTS (SELECT FROM {owner} WHERE {key} = {column}))")
_VACUUM = sql.SQL("VACUUM {table}")
_NO_TIMEOUT = b"SELECT set_config('statement_timeout', '0', false)"


async def hold_graph(transaction: Transaction, graph_id: GraphId) -> None:
    """Hold off a deletion of the graph until the end of the transaction.

    The transaction fails with `NotFound` (`graph_deleted`) at its next question, or at its commit, when the
    graph is deleted.
    """
    await transaction.send(_SQL["hold_graph"], {"graph_id": graph_id})


async def wait_for_writers(transaction: Transaction, graph_id: GraphId) -> None:
    """Let the writes to a graph end that are under way, and hold off others."""
    await transaction.send(_SQL["wait_for_writers"], {"graph_id": graph_id})


async def delete_graph(transaction: Transaction, graph_id: GraphId, at: datetime) -> None:
    """Note that a graph is deleted; after `wait_for_writers`."""
    await transaction.send(_SQL["delete_graph"], {"graph_id": graph_id, "at": to_microseconds(at)})


def deleted_graphs(since: datetime | None) -> Query[list[DeletedGraph]]:
    """Graphs that are not purged, and those deleted from `since` on; oldest first."""
    if since is None:
        return Query(sql=_SQL["unfinished"], arguments={}, decode=_deleted)
    return Query(sql=_SQL["since"], arguments={"since": to_microseconds(since)}, decode=_deleted)


async def purge(transaction: Transaction, graph_id: GraphId, limit: int) -> int:
    """Remove about `limit` rows of a deleted graph; how many, 0 when none was left."""
    # One after the other: of two at once the second would find its rows gone, and take that for the end.
    await wait_for_writers(transaction, graph_id)
    own = {"graph_id": graph_id}
    if not await transaction.ask(Query(sql=_SQL["is_deleted"], arguments=own, decode=bool)):
        return 0
    removed = 0
    for table in reversed(PURGED):
        if removed < limit:
            removed += await transaction.ask(_remove(table, graph_id, limit - removed))
    return removed


async def purged(transaction: Transaction, graph_id: GraphId, at: datetime) -> None:
    """Note that the content of a deleted graph is gone."""
    await transaction.send(_SQL["purged"], {"graph_id": graph_id, "at": to_microseconds(at)})


async def forget_user(transaction: Transaction, graph_ids: Sequence[GraphId], user_id: str) -> None:
    """Remove what a user left in graphs that others own."""
    places = {"graph_ids": graph_ids, "user_id": user_id}
    await transaction.send(_SQL["forget_token_reports"], places)
    await transaction.send(_SQL["forget_exports"], places)


async def leftovers(address: Address) -> dict[str, int]:
    """Number of rows by table that name a graph, user or organization that does not exist.

    Every table is read whole, on a connection of its own that has no limit of time.
    """
    found: dict[str, int] = {}
    with our_errors(address):
        connection = await connect(address)
        try:
            await connection.execute(_NO_TIMEOUT)
            for table, owners in _owners().items():
                lost = sql.SQL(" OR ").join(
                    _NAMES_NOTHING.format(
                        column=sql.Identifier(table, column),
                        owner=sql.Identifier(owner),
                        key=sql.Identifier(owner, key),
                    )
                    for column, (owner, key) in owners.items()
                )
                query = _COUNT.format(table=sql.Identifier(table), lost=lost)
                for (count,) in await (await connection.execute(query)).fetchall():
                    if count:
                        found[table] = count
        finally:
            await connection.close()
    return found


async def reclaim(address: Address) -> None:
    """Make the room of removed rows free for new ones, and give back what is free at the end of a table.

    Readers and writers go on meanwhile.
    """
    with our_errors(address):
        connection = await connect(address)
        try:
            await connection.execute(_NO_TIMEOUT)
            for table in (*PURGED, *_ACCOUNTS):
                await connection.execute(_VACUUM.format(table=sql.Identifier(table)))
        finally:
            await connection.close()


def _remove(table: str, graph_id: GraphId, limit: int) -> Query[int]:
    if table in _OF_CHUNKS:
        limit = max(1, limit // _ROWS_OF_A_CHUNK)
    return Query(
        sql=for_psycopg(_REMOVE.format(table=table)),
        arguments={"graph_id": graph_id, "limit": limit},
        decode=len,
    )


def _owners() -> dict[str, dict[str, tuple[str, str]]]:
    """Of each table: the columns that name what a row belongs to, the table where that is, and its key."""
    owned = {
        table.name: {column: (owner.name, owner.key[0]) for column, owner in owners.items()}
        for table, owners in owned_tables()
    }
    return {**owned, **{table: {"graph_id": ("graphs", "graph_id")} for table in _BLOB_TABLES}}


def _deleted(found: list[Row]) -> list[DeletedGraph]:
    return [rows.deleted_graph_from_row(row) for row in found]
