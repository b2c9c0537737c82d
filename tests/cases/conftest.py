"""Fixtures for cases that users reported about memories of this kind, and variants of them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from hivemem import app
from tests.cases.memory import Memory, opened
from tests.cases.reports import Report, read_report
from tests.models.real import onnx_embedder, onnx_reranker


@pytest.fixture
def loaded_models(monkeypatch: pytest.MonkeyPatch) -> None:
    """Opening a memory takes the bundled models that this test run has loaded already."""
    load_embedder, load_reranker = app.load_embedder, app.load_reranker
    monkeypatch.setattr(
        app, "load_embedder", lambda s: onnx_embedder() if s.embedder == "bundled" else load_embedder(s)
    )
    monkeypatch.setattr(
        app, "load_reranker", lambda s: onnx_reranker() if s.reranker == "bundled" else load_reranker(s)
    )


@pytest.fixture
async def memory(tmp_path: Path, loaded_models: None) -> AsyncIterator[Memory]:
    # The budget is far off: what is found must not depend on how busy the machine is.
    async with opened(tmp_path, rerank_budget_seconds=60.0) as running:
        yield running


@pytest.fixture
def report(shared_dir: Path) -> Callable[[str], Report]:
    """Reads a reported case from the shared data folder."""
    return lambda name: read_report(shared_dir, name)
