"""A database of its own for each test, and stores on it that are closed afterwards."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from hivemem.storage.postgres import PostgresStore
from tests.support.postgres import fresh_database

Opener = Callable[..., Awaitable[PostgresStore]]


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
