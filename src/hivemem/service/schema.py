"""The schema of a database: where it stands, and bringing it to the present version."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from pathlib import Path

from hivemem.errors import InvalidInput
from hivemem.storage.sqlite import migrate as sqlite_migrate
from hivemem.storage.sqlite.connection import connect, our_errors
from hivemem.storage.sqlite.statements import migration_names


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaReport:
    """How a database was found. Version 0 is a database without any schema."""

    database: str
    """Where it is, without credentials."""
    found: int
    latest: int
    pending: Sequence[str]
    """The migrations that lacked, first one first."""


@contextlib.contextmanager
def needed_driver() -> Generator[None, None, None]:
    """Import PostgreSQL's driver in here.

    Raises:
        InvalidInput: It is not installed.
    """
    try:
        yield
    except ImportError as error:
        raise InvalidInput(
            f"database_url needs the PostgreSQL driver ({error}); install it with: "
            "pip install 'hivemem[postgres]'"
        ) from error


@dataclass(frozen=True, slots=True, kw_only=True)
class SpreadReport:
    """How far the tables of a database are spread over several servers."""

    database: str
    """Where it is, without credentials."""
    done: Sequence[str]
    pending: Sequence[str]
    """Tables that were not, in the order of `statements`."""
    statements: Sequence[str]


async def spread_postgres(url: str, *, shards: int, change: bool) -> SpreadReport:
    """Spread the tables of graphs over the servers of a Citus cluster, or only look.

    Raises:
        InvalidRequest: The server has not the extension.
        Conflict: The schema is outdated, or the database is an unfinished copy.
        Unavailable: It cannot be reached, or Citus refuses.
    """
    with needed_driver():
        from hivemem.storage.postgres.connection import Address
        from hivemem.storage.postgres.distribution import distribute

    address = Address.parse(url)
    found = await distribute(address, shards=shards, change=change)
    return SpreadReport(
        database=f"PostgreSQL {address}", done=found.done, pending=found.pending, statements=found.statements
    )


async def sqlite_schema(path: Path, *, busy_timeout_seconds: float, migrate: bool) -> SchemaReport:
    """Where a database file stands; with `migrate`, it is created or brought up to date afterwards.

    Raises:
        Corruption: Not a database of ours, damaged, or of a newer schema.
        Unavailable: Out of reach, or locked for too long.
    """

    def found() -> int:
        if not path.exists():
            return 0
        reading = contextlib.closing(connect(path, busy_timeout_seconds, read_only=True))
        with our_errors(path), reading as connection:
            return sqlite_migrate.check_owner(connection, path)

    version = await asyncio.to_thread(found)
    if migrate:
        await asyncio.to_thread(sqlite_migrate.prepare_database, path, busy_timeout_seconds)
    return SchemaReport(
        database=str(path),
        found=version,
        latest=sqlite_migrate.latest_version(),
        pending=[Path(name).stem for name in migration_names()[version:]],
    )


async def postgres_schema(url: str, *, migrate: bool) -> SchemaReport:
    """Where a database stands; with `migrate`, it is brought up to date afterwards.

    Raises:
        InvalidInput: The URL cannot be used, or the driver is not installed.
        Corruption: Another program's tables, or a newer schema.
        Unavailable: Out of reach, or locked for too long.
    """
    with needed_driver():
        from hivemem.storage.postgres.connection import Address
        from hivemem.storage.postgres.migrate import latest_version, prepare_database, schema_state
    address = Address.parse(url)
    state = await (prepare_database(address) if migrate else schema_state(address))
    return SchemaReport(
        database=str(address),
        found=state.version,
        latest=latest_version(),
        pending=[Path(name).stem for name in state.pending],
    )
