"""Whether the server runs, is ready, and what is wrong with it."""

from __future__ import annotations

import os

from hivemem.errors import HivememError
from hivemem.surfaces.services import Services

_GOOD = frozenset(("ok", "enabled", "off", "loading"))


def models_loading(services: Services) -> bool:
    """Whether a model is still on its way: neither usable nor given up."""
    executor, settings = services.executor, services.settings
    embedder = executor.embedder is None and executor.embedder_problem is None
    reranker = executor.reranker is None and executor.reranker_problem is None
    return embedder or (reranker and settings.reranker != "none")


async def health(services: Services) -> dict[str, object]:
    """Status `ok` or `degraded`, and a text for each part: what is wrong and how to mend it."""
    executor = services.executor
    folder = services.settings.data_dir
    writable = os.access(folder, os.W_OK)
    checks = {"runtime": "ok", "graph_writes": "enabled" if writable else f"{folder} is not writable"}
    try:
        await services.store.users()
    except HivememError as error:
        checks["runtime"] = error.message
    checks["embedder"] = _model_check(executor.embedder, executor.embedder_problem, off=False)
    reranker_off = services.settings.reranker == "none"
    checks["reranker"] = _model_check(executor.reranker, executor.reranker_problem, off=reranker_off)
    good = all(check in _GOOD for check in checks.values())
    return {"status": "ok" if good else "degraded", "checks": checks}


def _model_check(model: object | None, problem: str | None, *, off: bool) -> str:
    if model is not None:
        return "ok"
    if off:
        return "off"
    return problem or "loading"
