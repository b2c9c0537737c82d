"""Whether the server runs, is ready, and what is wrong with it."""

from __future__ import annotations

import os

from hivemem.errors import HivememError
from hivemem.surfaces.services import Services

_GOOD = frozenset(("ok", "enabled", "off", "loading"))


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
    embedder_problem, reranker_problem = executor.embedder_problem, executor.reranker_problem
    if services.models_loading:
        embedder_problem, reranker_problem = (
            None if problem is None else "loading" for problem in (embedder_problem, reranker_problem)
        )
    elif services.settings.reranker == "none":
        reranker_problem = "off"
    checks["embedder"] = embedder_problem or "ok"
    checks["reranker"] = reranker_problem or "ok"
    good = all(check in _GOOD for check in checks.values())
    return {"status": "ok" if good else "degraded", "checks": checks}
