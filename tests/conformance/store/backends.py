"""The stores that the suite runs on. A new backend is one adapter and one line in `BACKENDS`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from hivemem.ports.store import Store
from hivemem.storage.memory import MemoryStore
from hivemem.storage.postgres import PostgresStore
from hivemem.storage.sqlite import SqliteStore
from tests.support.postgres import fresh_database


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """What a store can do beyond the port; a test may be skipped only for want of one of these."""

    durable: bool
    """Opening the same place again finds what was written."""

    shared: bool
    """Two open stores of the same place, as in two processes, see each other's writes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Backend:
    """How to open a store; opening the same folder again opens the same store."""

    name: str
    capabilities: Capabilities
    open: Callable[[Path], Awaitable[Store]]


async def _open_memory(folder: Path) -> Store:
    return MemoryStore()


async def _open_sqlite(folder: Path) -> Store:
    return await SqliteStore.open(folder / "memory.db", reader_threads=2)


async def _open_postgres(folder: Path) -> Store:
    url = folder / "database-url"
    if not url.exists():
        url.write_text(fresh_database(), encoding="utf-8")
    return await PostgresStore.open(url.read_text(encoding="utf-8"), connections=4)


BACKENDS = (
    Backend(name="memory", capabilities=Capabilities(durable=False, shared=False), open=_open_memory),
    Backend(name="sqlite", capabilities=Capabilities(durable=True, shared=True), open=_open_sqlite),
    Backend(name="postgres", capabilities=Capabilities(durable=True, shared=True), open=_open_postgres),
)
