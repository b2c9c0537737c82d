"""Answers to agents stay small however long the memories are, and say how to get the rest."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from hivemem.service.remember import StoreRequest
from tests.surfaces.serving import REST, Served, served

NOTES = "interview notes, contacts, salary range, follow-up dates. " * 110
MAX_RESULT_BYTES = 60_000


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def applications(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Served]:
    """150 nodes of 6,000 characters, each related to a hub."""
    async with served(tmp_path_factory.mktemp("applications")) as api:
        principal = await api.services.access.local_principal()
        hub = {"to_key": "project_job_search", "relationship": "is one of the applications of this year"}
        requests = [
            StoreRequest(
                key=f"app_{number}", description=f"Application {number}: {NOTES}", relationships=(hub,)
            )
            for number in range(150)
        ]
        await api.services.remember.store_many(principal, requests)
        yield api


async def mcp_call(api: Served, name: str, arguments: dict[str, Any]) -> tuple[dict[str, Any], int]:
    body = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": name, "arguments": arguments},
    }
    response = await api.client.post("/mcp", json=body)
    result = response.json()["result"]
    assert result["isError"] is False
    assert json.loads(result["content"][0]["text"]) == result["structuredContent"]
    return result["structuredContent"], len(response.content)


@pytest.mark.asyncio(loop_scope="module")
async def test_recall_of_fifty_long_nodes(applications: Served) -> None:
    answer, size = await mcp_call(
        applications, "hm_recall", {"query": "application interview notes", "max_results": 50}
    )
    assert size < MAX_RESULT_BYTES
    assert answer["count"] == len(answer["results"])
    assert answer["count"] + answer.get("results_omitted", 0) == 50
    assert answer["count"] >= 30
    for item in answer["results"]:
        assert "hm_get_nodes returns the whole text]" in item["description"]


@pytest.mark.asyncio(loop_scope="module")
async def test_one_node_comes_whole(applications: Served) -> None:
    answer, _ = await mcp_call(applications, "hm_get_nodes", {"keys": ["app_7"]})
    assert answer["nodes"]["app_7"]["node"]["description"] == f"Application 7: {NOTES}"
    assert "truncated" not in answer


@pytest.mark.asyncio(loop_scope="module")
async def test_a_hundred_nodes_share_the_room(applications: Served) -> None:
    keys = [f"app_{number}" for number in range(99)] + ["nope"]
    answer, size = await mcp_call(applications, "hm_get_nodes", {"keys": keys})
    assert size < MAX_RESULT_BYTES
    assert answer["count"] == 99
    assert answer["missing"] == ["nope"]
    truncated = answer["truncated"]
    assert set(answer["nodes"]) == set(truncated["shortened"])
    assert set(truncated["shortened"]) | set(truncated["left_out"]) == set(keys) - {"nope"}
    assert "one by one" in answer["warnings"][0]
    for entry in answer["nodes"].values():
        assert "ask hm_get_nodes for this key alone]" in entry["node"]["description"]


@pytest.mark.asyncio(loop_scope="module")
async def test_a_hub_lists_what_fits_and_counts_all(applications: Served) -> None:
    request = {"keys": ["project_job_search"], "relationship_detail": "full"}
    answer, size = await mcp_call(applications, "hm_get_nodes", request)
    assert size < MAX_RESULT_BYTES
    entry = answer["nodes"]["project_job_search"]
    assert entry["edge_total"] == 150
    assert 20 < len(entry["binary_edges"]) < 150
    assert answer["truncated"] == {"shortened": ["project_job_search"], "left_out": []}


@pytest.mark.asyncio(loop_scope="module")
async def test_overview_shortens_descriptions(applications: Served) -> None:
    answer, size = await mcp_call(applications, "hm_get_overview", {})
    assert size < 12_000
    assert answer["nodes"] == 151
    assert answer["top_nodes"][0]["key"] == "project_job_search"
    for node in answer["top_nodes"][1:]:
        assert len(node["description"].encode()) <= 200


@pytest.mark.asyncio(loop_scope="module")
async def test_a_store_with_many_relationships_counts_all(applications: Served) -> None:
    wishes = [{"to_key": f"app_{n % 150}", "relationship": f"reason {n}: " + "y" * 100} for n in range(400)]
    answer, size = await mcp_call(
        applications, "hm_store", {"key": "fact_hub", "description": "A hub.", "relationships": wishes}
    )
    assert size < MAX_RESULT_BYTES
    assert answer["relationships"] == 400
    results = answer["relationship_results"]
    assert len(results["created"]) + results["omitted"] == 400


async def test_the_budget_is_a_setting(tmp_path: Path) -> None:
    async with served(tmp_path, max_answer_bytes=4_000) as api:
        for number in range(5):
            await api.store(f"fact_{number}", "A harbour story. " * 200)
        response = await api.client.post(f"{REST}/recall", json={"query": "harbour story"})
        assert len(response.content) <= 4_000
        assert response.json()["count"] == 5
