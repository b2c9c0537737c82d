from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.surfaces.serving import Served, Server, served


@pytest.fixture
async def api(tmp_path: Path) -> AsyncIterator[Served]:
    async with served(tmp_path) as running:
        yield running


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One `hivemem serve` for all tests that need a real one; starting it takes seconds."""
    with Server(tmp_path_factory.mktemp("served")) as running:
        yield running
