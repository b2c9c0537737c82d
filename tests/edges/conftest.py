from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.surfaces.serving import Served, served


@pytest.fixture
async def api(tmp_path: Path) -> AsyncIterator[Served]:
    async with served(tmp_path) as running:
        yield running
