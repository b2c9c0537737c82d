"""Spreading the tables over several servers with the extension Citus, by graph.

A graph is in one shard of each table, and equal shards are on one server: every statement about a graph names
`graph_id`, so that it runs on the server of the graph, as do its foreign keys and its locks.

What belongs to no graph stays on the server that hivemem connects to. It is small, and no statement joins
it with a graph's tables; as a reference table, each new key or token would be written on every server.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hivemem.errors import Conflict, InvalidRequest
from hivemem.storage.postgres.connection import Address, Connection, connect, our_errors
from hivemem.storage.postgres.migrate import prepare_database
from hivemem.storage.tables import EXPORT_TABLES, GRAPH_TABLES

FIRST = "graph_counters"
"""The table whose shards the others lie beside; every write locks its row."""

# Tables that a foreign key names come before those that name them.
DISTRIBUTED: tuple[str, ...] = (
    FIRST,
    *(table.name for table in GRAPH_TABLES if table.name != FIRST),
    "blobs",
    "blob_chunks",
    *(table.name for table in EXPORT_TABLES),
)

LOCAL = (
    "schema_version",
    "users",
    "organizations",
    "graphs",
    "memberships",
    "invitations",
    "external_identities",
    "api_keys",
    "deleted_graphs",
    "audit_events",
    "oauth_clients",
    "oauth_grants",
    "oauth_tokens",
    "oauth_codes",
    "oauth_sign_ins",
    "leases",
    "rate_limits",
)
"""What is asked before a graph is known, or belongs to none."""

DEFAULT_SHARDS = 64
"""So many servers at most; with each of them a shard more or less, the load is uneven by as much."""

_HAS_CITUS = (
    b"SELECT to_regclass('pg_dist_partition') IS NOT NULL AND EXISTS"
    b" (SELECT FROM pg_proc WHERE proname = 'create_distributed_table')"
)
_DISTRIBUTED = (
    b"SELECT relname::text FROM pg_dist_partition JOIN pg_class ON pg_class.oid = logicalrel::oid"
    b" WHERE relnamespace = current_schema()::regnamespace"
)
_HAS_COPY_NOTE = b"SELECT to_regclass('copy_note') IS NOT NULL"
# The rows of large tables take longer than a request may.
_NO_TIMEOUT = b"SELECT set_config('statement_timeout', '0', false)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Distribution:
    """How a database was found, and what it lacks."""

    done: Sequence[str]
    pending: Sequence[str]
    statements: Sequence[str]
    """Those that distribute the pending tables, in order."""


def statements(tables: Sequence[str], shards: int) -> list[str]:
    """One statement for each table, in the order in which Citus takes them.

    Example:
        >>> statements(["graph_counters", "nodes"], 64)[1]
        "SELECT create_distributed_table('nodes', 'graph_id', colocate_with => 'graph_counters')"
    """
    first = f"colocate_with => 'none', shard_count => {shards}"
    beside = f"colocate_with => '{FIRST}'"
    return [
        f"SELECT create_distributed_table('{table}', 'graph_id', {first if table == FIRST else beside})"
        for table in tables
    ]


async def distribute(address: Address, *, shards: int, change: bool) -> Distribution:
    """Distribute the tables that are not; a run that was interrupted is finished by the next one.

    Nobody should write meanwhile: Citus moves the rows of a table while it is locked.

    Args:
        address: The coordinator.
        shards: Of each table. It cannot be changed later without rewriting the tables.
        change: Whether to do it, or only to look.

    Raises:
        InvalidRequest: The server has not the extension.
        Conflict: The schema is outdated, or the database is an unfinished copy.
        Unavailable: It cannot be reached, or Citus refuses.
    """
    await prepare_database(address, upgrade=False)
    connection = await connect(address)
    try:
        with our_errors(address):
            if not await _one(connection, _HAS_CITUS):
                raise InvalidRequest(
                    f"the database {address} has not the extension Citus: install it on every server, put it "
                    "into shared_preload_libraries, and run CREATE EXTENSION citus in the database. Without "
                    "it the memory works, on one server.",
                    code="citus_missing",
                )
            if await _one(connection, _HAS_COPY_NOTE):
                raise Conflict(f"the database {address} is an unfinished copy; finish that first.")
            cursor = await connection.execute(_DISTRIBUTED)
            there = {name for (name,) in await cursor.fetchall()}
            pending = [table for table in DISTRIBUTED if table not in there]
            found = Distribution(
                done=[table for table in DISTRIBUTED if table in there],
                pending=pending,
                statements=statements(pending, shards),
            )
            if change:
                await connection.execute(_NO_TIMEOUT)
                for statement in found.statements:
                    await connection.execute(statement.encode())
            return found
    finally:
        await connection.close()


async def _one(connection: Connection, query: bytes) -> bool:
    row = await (await connection.execute(query)).fetchone()
    return bool(row and row[0])
