"""A key that was accepted reaches its memory on every surface, whatever characters it has."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cases.memory import remove
from tests.cases.reports import Report, store_requests
from tests.surfaces.serving import Served, served

pytestmark = pytest.mark.models

MODELS = {"embedder": "bundled", "reranker": "bundled", "rerank_budget_seconds": 60.0}


async def tool(api: Served, name: str, **arguments: Any) -> dict[str, Any]:
    params = {"name": name, "arguments": arguments}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    result = (await api.client.post("/mcp", json=body)).json()["result"]
    assert result["isError"] is False, result
    return result["structuredContent"]


async def walk(api: Served, key: str, description: str) -> None:
    """Recall over REST, read over MCP, relate over REST, and see the same node each time."""
    found = (await api.post("recall", {"query": description})).json()["results"]
    assert found[0]["key"] == key
    got = await tool(api, "hm_get_nodes", keys=[found[0]["key"]])
    assert got["nodes"][key]["node"]["description"] == description
    related = await api.store(
        f"note_on_{len(key)}_{description[:5]}".replace(" ", "_"),
        f"A remark: see also {description[:5]}",
        relationships=[{"to_key": key, "relationship": "remarks on"}],
    )
    assert related["relationships"] == 1
    again = await tool(api, "hm_get_nodes", keys=[key])
    assert again["nodes"][key]["edge_total"] == 1


@pytest.mark.shared
async def test_reported_keys(tmp_path: Path, loaded_models: None, report: Callable[[str], Report]) -> None:
    [step] = report("C23").setup
    async with served(tmp_path, **MODELS) as api:
        stored: dict[str, str] = {}
        for request in store_requests(step["store"]):
            answer = await api.post("store", {"key": request.key, "description": request.description})
            if answer.status_code == 422:
                assert "/key" in answer.json()["detail"]
            else:
                assert answer.json()["key"] == request.key
                stored[request.key] = request.description
        assert {"x%2Fy", "x/y", ".", ".."} <= set(stored)
        for key, description in stored.items():
            await walk(api, key, description)
        await remove(api.services, await api.services.access.local_principal(), "x%2Fy")
        left = await tool(api, "hm_get_nodes", keys=["x%2Fy", "x/y", "x%252Fy"])
        assert left["missing"] == ["x%2Fy", "x%252Fy"]
        assert left["nodes"]["x/y"]["node"]["description"] == stored["x/y"]


@pytest.mark.parametrize(
    ("key", "description"),
    [
        ("a b  c", "Blanks between the letters of the key."),
        ("https://example.org/path?q=1&r=[2]", "An address as a key, with a query."),
        ("back\\slash\"quote'", "Quotation marks and a reversed stroke."),
        ("%00%2e%2e", "Percent signs that spell dots."),
        ("schlüssel/名前🔑", "Umlaut, kanji and an emoji in one key."),
        ("-- ; DROP TABLE nodes", "A key that looks like a statement."),
        ("{}[]<>|^`", "Brackets and other signs."),
    ],
)
async def test_unusual_keys_are_walked(
    tmp_path: Path, loaded_models: None, key: str, description: str
) -> None:
    async with served(tmp_path, **MODELS) as api:
        await api.store(key, description)
        await walk(api, key, description)
