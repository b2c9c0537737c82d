"""Bringing a database to the present schema, safely when several servers start at once.

A migration only adds what programs of the version before can ignore, so that they keep working while
servers are replaced one after the other. What is not used any more goes one release later, with a line
`-- oldest program: N` in the migration: programs that know less than schema version N are then refused.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import psycopg
from psycopg.rows import TupleRow

from hivemem.errors import Conflict, Corruption, InvalidInput, Unavailable
from hivemem.storage.postgres.connection import OLDEST_SERVER, Address, Connection, connect, our_errors
from hivemem.storage.postgres.statements import migration_names, read_sql

_LOCK_SECONDS = 60

# One lock for each schema of a database; it ends with the transaction.
_LOCK = b"SELECT pg_advisory_xact_lock(hashtextextended('hivemem migrations ' || current_schema(), 0))"
_VERSIONS = b"SELECT version, oldest_program FROM schema_version"
_TABLES = b"""
    SELECT relname FROM pg_class
    WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p', 'v', 'm', 'f')
"""
_OLDEST_PROGRAM = re.compile(r"^-- oldest program: (\d+)$", re.MULTILINE)
_TABLE = re.compile(r"^CREATE TABLE (\w+)", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaState:
    """How a database stands to this program."""

    version: int
    """0: there is no schema yet."""
    oldest_program: int

    @property
    def pending(self) -> list[str]:
        """The migrations that lack, first one first."""
        return migration_names()[self.version :]


async def prepare_database(address: Address, *, upgrade: bool = True) -> SchemaState:
    """Create the schema, or bring it up to date.

    Args:
        address: Where the database is.
        upgrade: Whether to change anything; else an outdated schema is refused.

    Returns:
        How the database was found.

    Raises:
        InvalidInput: The database cannot hold a memory: not UTF-8, or without a schema to put tables in.
        Conflict: The schema is outdated and is not to be changed.
        Corruption: It is another program's, damaged, or of a newer schema that this program cannot use.
        Unavailable: Out of reach, too old, or locked for more than a minute.
    """
    connection = await connect(address)
    try:
        with our_errors(address):
            await _check_server(connection, address)
            found = await _usable_state(connection, address)
            if found.pending:
                if not upgrade:
                    raise Conflict(
                        f"the database {address} has schema version {found.version}, this hivemem needs "
                        f"{latest_version()}; run `hivemem db migrate`.",
                        code="schema_too_old",
                    )
                await _upgrade(connection, address)
            return found
    finally:
        await connection.close()


async def schema_state(address: Address) -> SchemaState:
    """How the database stands to this program; changes nothing. Errors are those of `prepare_database`."""
    connection = await connect(address)
    try:
        with our_errors(address):
            await _check_server(connection, address)
            return await _usable_state(connection, address)
    finally:
        await connection.close()


def latest_version() -> int:
    """The schema version that this program reads and writes."""
    return len(migration_names())


async def _upgrade(connection: Connection, address: Address) -> None:
    await connection.execute(f"SET lock_timeout = '{_LOCK_SECONDS}s'".encode())
    async with connection.transaction():
        await connection.execute(_LOCK)
        # Whoever waited for the lock finds the work done.
        state = await _usable_state(connection, address)
        if not state.pending:
            return
        scripts = [read_sql(name) for name in state.pending]
        oldest = max([1, state.oldest_program, *(_oldest_program(script) for script in scripts)])
        for script in scripts if state.version else [read_sql("schema.sql")]:
            await connection.execute(script.encode())
        await connection.execute(b"DELETE FROM schema_version")
        await connection.execute(
            b"INSERT INTO schema_version (version, oldest_program) VALUES (%s, %s)",
            (latest_version(), oldest),
        )


async def _check_server(connection: Connection, address: Address) -> None:
    version = connection.info.server_version
    if version < OLDEST_SERVER:
        raise Unavailable(
            f"the database {address} is run by PostgreSQL {version // 10_000}; upgrade to "
            f"{OLDEST_SERVER // 10_000} or newer."
        )
    row = await _one(connection, b"SELECT current_setting('server_encoding'), current_schema()")
    encoding, schema = row
    if encoding != "UTF8":
        raise InvalidInput(
            f"the database {address} has the encoding {encoding}; create one with ENCODING 'UTF8'."
        )
    if schema is None:
        raise InvalidInput(
            f"the database {address} has no schema of its search_path; create it with CREATE SCHEMA."
        )


async def _usable_state(connection: Connection, address: Address) -> SchemaState:
    tables = {name for (name,) in await (await connection.execute(_TABLES)).fetchall()}
    if "copy_note" in tables:
        raise Conflict(
            f"the database {address} holds an unfinished copy; finish it with the same `hivemem db copy`, or "
            "begin it again with --restart.",
            code="unfinished_copy",
        )
    if "schema_version" not in tables:
        ours = set(_TABLE.findall(read_sql("schema.sql"))) & tables
        if ours:
            raise Corruption(
                f"the database {address} has a table {min(ours)!r} of another program; give hivemem a "
                "database, or a schema, of its own."
            )
        return SchemaState(version=0, oldest_program=0)
    rows = await (await connection.execute(_VERSIONS)).fetchall()
    if len(rows) != 1:
        raise Corruption(f"the database {address} does not say its schema version; restore a backup.")
    ((version, oldest_program),) = rows
    if oldest_program > latest_version():
        raise Corruption(
            f"the database {address} has schema version {version}, but this hivemem knows versions up to "
            f"{latest_version()}; upgrade hivemem, or open a backup made before the upgrade.",
            code="schema_too_new",
        )
    return SchemaState(version=version, oldest_program=oldest_program)


async def _one(connection: psycopg.AsyncConnection[TupleRow], sql: bytes) -> TupleRow:
    row = await (await connection.execute(sql)).fetchone()
    assert row is not None
    return row


def _oldest_program(script: str) -> int:
    found = _OLDEST_PROGRAM.search(script)
    return int(found[1]) if found else 0
