"""Answers to agents stay small, say how much there is, and never cost the connection."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from hivemem.service.remember import StoreRequest, StoreResult
from tests.cases.reports import Report, store_requests, substituted
from tests.surfaces.serving import Served, served

MAX_RESULT_BYTES = 60_000


@pytest.fixture
async def api(tmp_path: Path) -> AsyncIterator[Served]:
    async with served(tmp_path) as running:
        yield running


async def store_all(api: Served, requests: Sequence[StoreRequest]) -> None:
    owner = await api.services.access.local_principal()
    for outcome in await api.services.remember.store_many(owner, requests):
        assert isinstance(outcome, StoreResult), outcome


async def call(api: Served, tool: str, **arguments: Any) -> dict[str, Any]:
    """The answer of a tool, whose whole result with text and structured content must be small."""
    params = {"name": tool, "arguments": arguments}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    response = await api.client.post("/mcp", json=body)
    assert response.status_code == 200
    result = response.json()["result"]
    assert result["isError"] is False, result
    assert len(response.content) < MAX_RESULT_BYTES, (tool, len(response.content))
    assert json.loads(result["content"][0]["text"]) == result["structuredContent"]
    return result["structuredContent"]


@pytest.mark.shared
async def test_reported_answers(api: Served, report: Callable[[str], Report]) -> None:
    case = report("C26")
    [loop] = [step["for"] for step in case.setup if "for" in step]
    numbers = range(loop["from"], loop["to"] + 1)
    stored = [substituted(loop["op"]["store"], loop["var"], number) for number in numbers]
    await store_all(api, [request for one in stored for request in store_requests(one)])
    text = stored[6]["nodes"][0]["description"]

    assert (await call(api, "hm_get_overview"))["nodes"] == 150
    found = await call(api, "hm_recall", query="application interview notes", max_results=50)
    assert found["count"] + found.get("results_omitted", 0) == 50
    assert all("hm_get_nodes returns the whole text]" in item["description"] for item in found["results"])
    assert (await call(api, "hm_timeline"))["count"] > 0
    assert (await call(api, "hm_get_nodes", keys=["app_7"]))["nodes"]["app_7"]["node"]["description"] == text
    # More keys than one call may name are refused, with the number.
    many = {"keys": [f"app_{number}" for number in numbers]}
    params = {"name": "hm_get_nodes", "arguments": many}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    refused = (await api.client.post("/mcp", json=body)).json()["result"]
    assert refused["isError"] is True
    assert "100" in refused["structuredContent"]["detail"]
    hundred = await call(api, "hm_get_nodes", keys=many["keys"][:100])
    assert hundred["count"] == 100
    assert hundred["warnings"]
    assert (await call(api, "hm_get_overview"))["nodes"] == 150, "the connection goes on"


async def test_texts_of_three_bytes_a_character_and_much_data(api: Served) -> None:
    data = {f"属性_{n}": "値" * 200 for n in range(60)}
    await store_all(
        api,
        [
            StoreRequest(
                key=f"議事録_{n}", description=f"会議 {n}: " + "予算と日程を確認した。" * 300, data=data
            )
            for n in range(60)
        ],
    )
    found = await call(api, "hm_recall", query="予算と日程", max_results=50)
    assert found["count"] + found.get("results_omitted", 0) == 50
    nodes = await call(api, "hm_get_nodes", keys=[f"議事録_{n}" for n in range(60)])
    truncated = nodes["truncated"]
    assert len(set(truncated["shortened"]) | set(truncated["left_out"])) == 60
    await call(api, "hm_get_overview")
    await call(api, "hm_list_orphans", limit=200)
    timeline = await call(api, "hm_timeline", limit=200)
    assert timeline["count"] + timeline.get("events_omitted", 0) == 60


async def test_hyperedges_of_many_nodes_with_long_labels(api: Served) -> None:
    members = [f"participant_with_a_rather_long_key_{n:03}" for n in range(300)]
    label = "were all of them invited to the meeting about the harbour because of what was said: " + "x" * 400
    wishes = [
        {"participant_keys": members, "relationship": f"{label} {n}", "description": "Why. " * 300}
        for n in range(20)
    ]
    await store_all(
        api, [StoreRequest(key="event_meeting", description="The meeting.", relationships=wishes)]
    )
    for detail in ("summary", "full"):
        answer = await call(
            api, "hm_get_nodes", keys=members[:50], relationship_detail=detail, participant_limit=100
        )
        assert answer["count"] == 50
    one = await call(
        api, "hm_get_nodes", keys=[members[0]], relationship_detail="full", participant_limit=100
    )
    entry = one["nodes"][members[0]]
    assert entry["hyperedge_total"] == 20
    assert 0 < len(entry["hyperedges"]) < 20
    around = await call(api, "hm_find_related", start_node=members[0], max_nodes=500)
    assert around["results"]
    assert around["count"] + around.get("results_omitted", 0) == 299
