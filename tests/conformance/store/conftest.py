"""`store`: an empty store of every backend in turn."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from hivemem.ports.store import Store
from tests.conformance.store.backends import BACKENDS, Backend


@pytest.fixture(params=BACKENDS, ids=lambda backend: backend.name)
def backend(request: pytest.FixtureRequest) -> Backend:
    return request.param


@pytest.fixture
async def store(backend: Backend, tmp_path: Path) -> AsyncIterator[Store]:
    opened = await backend.open(tmp_path)
    yield opened
    await opened.close()


@pytest.fixture
async def two_stores(backend: Backend, tmp_path: Path) -> AsyncIterator[tuple[Store, Store]]:
    """The same place twice, where the backend is shared; else one store."""
    one = await backend.open(tmp_path)
    two = await backend.open(tmp_path) if backend.capabilities.shared else one
    yield one, two
    await one.close()
    await two.close()
