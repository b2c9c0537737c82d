"""Reported leaks between colleagues and past read-only rights: the halves that need an organization."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from hivemem.surfaces.operations import REST_PREFIX
from tests.cases.reports import Report
from tests.surfaces.company import WAYS, Company, company
from tests.surfaces.serving import bearer

POLICY = "Acme gives 30 days of leave."
TOOLS = {
    "recall": "hm_recall",
    "get": "hm_get_nodes",
    "timeline": "hm_timeline",
    "chat_context": "hm_get_chat_context",
    "delete": "hm_forget",
    "update": "hm_update",
}


@pytest.fixture
async def acme(tmp_path: Path) -> AsyncIterator[Company]:
    """Ada (in the report alice) and erin (bob) in one organization; mallory in none."""
    async with company(tmp_path) as running:
        await running.good("acme", "hm_store", key="policy_leave", description=POLICY)
        yield running


def calls(step: dict[str, Any], company: Company) -> list[tuple[str, dict[str, Any]]]:
    """The tool calls of a reported step; one that names no tool of ours gives none."""
    [(name, sent)] = step.items()
    given = dict(sent)
    if given.get("organization_id") == "acme":
        given["organization_id"] = company.acme.organization_id
    if name in TOOLS:
        return [(TOOLS[name], given)]
    if name not in ("store", "import"):
        return []
    beside = {key: value for key, value in given.items() if key not in ("nodes", "relationships")}
    found = [("hm_store", {**beside, **node}) for node in given.get("nodes", ())]
    if "relationships" in given:
        items = [
            {"from_key": one["from"], "to_key": one["to"], "relationship": one["relationship"]}
            for one in given["relationships"]
        ]
        found.append(("hm_add_relationships", {**beside, "relationships": items}))
    return found


@pytest.mark.shared
@pytest.mark.parametrize("way", WAYS)
async def test_colleagues_see_the_organizations_memory_and_not_each_others(
    acme: Company, report: Callable[[str], Report], way: str
) -> None:
    secret = "Alice asked for a 12 percent raise in the spring review."
    await acme.good("ada", "hm_store", key="salary_review", description=secret)
    await acme.good("ada", "hm_recall", query="spring review raise", session_id="default")
    played = 0
    for part in report("C27").sequence:
        who = {"bob": "erin", "mallory": "mallory"}[part["as"]]
        for step in part["sequence"]:
            for name, arguments in calls(step, acme):
                played += 1
                answered = await acme.call(who, name, way, **arguments)
                told = json.dumps(answered.body)
                assert "12 percent" not in told
                assert who != "mallory" or "30 days" not in told
                if who == "mallory":
                    assert answered.error == "invalid_request"
                elif name == "hm_recall" and arguments["query"] == "leave days":
                    memory = answered.body["organization_memory"]
                    if arguments.get("organization_id") == "none":
                        assert memory["status"] == "excluded"
                        assert "30 days" not in told
                    else:
                        assert memory["name"] == "Acme"
                        assert [one["description"] for one in memory["results"]] == [POLICY]
            if "http" in step:
                sent = step["http"]
                response = await acme.api.anonymous.post(
                    sent["path"], json=sent["body"], headers={**sent["headers"], **bearer(acme.keys[who])}
                )
                assert response.status_code == 200
                assert "30 days" not in response.text
                played += 1
    assert played == 12
    for who in ("erin", "ada"):
        foreign, missing = [
            (await acme.good(who, "hm_get_nodes", way, keys=[key]))["count"] for key in ("KEY_1", "KEY_2")
        ]
        assert foreign == missing == 0
    kept = await acme.good("ada", "hm_get_nodes", way, keys=["salary_review"])
    assert kept["nodes"]["salary_review"]["node"]["description"] == secret


@pytest.mark.shared
@pytest.mark.parametrize("way", WAYS)
async def test_members_cannot_write_their_organization(
    acme: Company, report: Callable[[str], Report], way: str
) -> None:
    """A write that names the organization goes to the member's own memory, since no write takes an id."""
    await acme.good("erin", "hm_store", key="my_todo", description="Ask about leave.")
    store = acme.api.services.store
    before = await store.changes(acme.acme.graph_id, 0, model_id="none", limit=100)
    [steps] = [one["sequence"] for one in report("C28").sequence if one.get("as") == "erin" and "via" in one]
    played = 0
    for step in steps:
        for name, arguments in calls(step, acme):
            played += 1
            for who in ("erin", "acme_reader"):
                answered = await acme.call(who, name, way, **arguments)
                assert "write_target" not in answered.body
                if who == "acme_reader":
                    assert answered.error == "forbidden"
                elif answered.error is None:
                    warned = " ".join(answered.body.get("warnings", ()))
                    assert "organization_id" in warned, "the caller is told that it counts for nothing"
    assert played == 4
    assert await store.changes(acme.acme.graph_id, 0, model_id="none", limit=100) == before
    kept = await acme.good("acme_reader", "hm_get_nodes", way, keys=["policy_leave"])
    assert kept["nodes"]["policy_leave"]["node"]["description"] == POLICY


async def test_a_read_only_key_of_the_organization_recalls_and_leaves_nothing_there(acme: Company) -> None:
    store = acme.api.services.store
    before = await store.revision(acme.acme.graph_id)
    for _ in range(6):
        response = await acme.api.anonymous.post(
            f"{REST_PREFIX}/recall",
            json={"query": "leave days", "session_id": "talk"},
            headers=bearer(acme.keys["acme_reader"]),
        )
        assert [one["key"] for one in response.json()["results"]] == ["policy_leave"]
    await acme.api.services.touches.written()
    assert not await store.touched(acme.acme.graph_id, "talk")
    assert await store.revision(acme.acme.graph_id) == before
