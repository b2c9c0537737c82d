from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.surfaces.serving import Served, Server, served


@pytest.fixture
async def api(tmp_path: Path) -> AsyncIterator[Served]:
    async with served(tmp_path) as running:
        yield running


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One `hivemem serve` for the tests of a module; each uses keys of its own."""
    with Server(tmp_path_factory.mktemp("served")) as running:
        yield running
