"""Fixtures that every part of the suite may use."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parent.parent


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave the long sweeps to `make soak`, which selects them by their marker."""
    if "soak" in (config.option.markexpr or ""):
        return
    kept = [item for item in items if item.get_closest_marker("soak") is None]
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    items[:] = kept


@pytest.fixture(scope="session")
def shared_dir() -> Path:
    """The folder with benchmark sets and report cases; tests that need it are skipped without it."""
    folder = Path(os.environ.get("HIVEMEM_SHARED_DIR", REPOSITORY.parent / "shared"))
    if not (folder / "bench").is_dir():
        pytest.skip(f"no shared data at {folder} (set HIVEMEM_SHARED_DIR)")
    return folder
