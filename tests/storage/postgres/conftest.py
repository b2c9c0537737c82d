"""A database of its own for each test, and stores on it that are closed afterwards."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from hivemem.storage.postgres import PostgresStore, pool
from hivemem.storage.postgres.connection import is_collision
from tests.storage.postgres.proxy import Proxy, proxy
from tests.support.postgres import Server, fresh_database, with_parameters

COMMIT = b"COMMIT\0"
"""The statement as it is sent, which the words READ COMMITTED are not."""

Opener = Callable[..., Awaitable[PostgresStore]]
Stores = tuple[PostgresStore, PostgresStore]


@pytest.fixture
def url() -> str:
    return fresh_database()


@pytest.fixture
async def opened(url: str) -> AsyncIterator[Opener]:
    """Opens stores on the test's database, or another; keywords are those of `PostgresStore.open`."""
    stores: list[PostgresStore] = []

    async def open_store(of: str = url, **options: Any) -> PostgresStore:
        store = await PostgresStore.open(of, **{"connections": 4, **options})
        stores.append(store)
        return store

    yield open_store
    for store in stores:
        await store.close()


@pytest.fixture
async def store(opened: Opener) -> PostgresStore:
    return await opened()


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """A server for one module, whose tests stop it or cut its lines."""
    own = Server()
    yield own
    own.remove()


@pytest.fixture
def own_url(server: Server) -> str:
    return fresh_database(server.url)


@pytest.fixture
async def between(server: Server, tmp_path: Path) -> AsyncIterator[Proxy]:
    async with proxy(server.socket, tmp_path) as running:
        yield running


@pytest.fixture
async def cut_store(between: Proxy, opened: Opener, own_url: str, tmp_path: Path) -> PostgresStore:
    """A store whose connections go through `between`."""
    return await opened(with_parameters(own_url, host=str(tmp_path)), wait_seconds=5.0)


@pytest.fixture
async def stores(opened: Opener) -> Stores:
    return await opened(wait_seconds=60.0), await opened(wait_seconds=60.0)


@pytest.fixture
def collisions(monkeypatch: pytest.MonkeyPatch) -> list[BaseException]:
    """Errors by which a transaction got into another one's way."""
    found: list[BaseException] = []

    def noted(error: BaseException) -> bool:
        if is_collision(error):
            found.append(error)
        return is_collision(error)

    monkeypatch.setattr(pool, "is_collision", noted)
    return found


@contextlib.contextmanager
def administrator(url: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(url, autocommit=True, application_name="administrator") as connection:
        yield connection


async def wait_for_lock(url: str) -> None:
    with administrator(url) as connection:
        waiting = (
            "SELECT 1 FROM pg_stat_activity WHERE application_name = 'hivemem' AND wait_event_type = 'Lock'"
        )
        while connection.execute(waiting.encode()).fetchone() is None:
            await asyncio.sleep(0.01)
