"""What one graph holds does not exist for another: no text, key, count, nor the name of a session."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from hivemem.domain.access import Principal, Scope
from hivemem.errors import HivememError, InvalidRequest, NotFound
from hivemem.surfaces.operations import BY_NAME
from tests.cases.reports import Report
from tests.surfaces.serving import Served, served

SECRET = "salary_review"
TEXT = "Alice asked for a 12 percent raise in the spring review."


def principal(name: str) -> Principal:
    return Principal(user_id=f"user_{name}", graph_id=f"graph_{name}", scope=Scope.OWNER)


ALICE, BOB = principal("alice"), principal("bob")


class People:
    """Callers with a graph each, on one server."""

    def __init__(self, api: Served) -> None:
        self._services = api.services

    async def ask(self, who: Principal, name: str, **arguments: Any) -> dict[str, Any]:
        return await BY_NAME[name].run(self._services, who, arguments)

    async def outcome(self, who: Principal, name: str, **arguments: Any) -> object:
        """The answer, or code and message of the refusal, without what the caller sent."""
        try:
            return await self.ask(who, name, **arguments)
        except HivememError as error:
            return error.code, error.message


@pytest.fixture
async def people(tmp_path: Path) -> AsyncIterator[People]:
    async with served(tmp_path) as api:
        people = People(api)
        await people.ask(
            ALICE,
            "hm_store",
            key=SECRET,
            description=TEXT,
            relationships=[{"to_key": "person_alice", "relationship": "is about"}],
            session_id="default",
        )
        await people.ask(ALICE, "hm_recall", query="spring review raise", session_id="default")
        await people.ask(ALICE, "hm_timeline_write", summary="Talked about the raise.")
        yield people


@pytest.mark.shared
async def test_reported_steps_of_a_neighbour(people: People, report: Callable[[str], Report]) -> None:
    """The half of the report that needs no organization."""
    [bob] = [one["sequence"] for one in report("C27").sequence if one["as"] == "bob"][:1]
    tools = {"recall": "hm_recall", "get": "hm_get_nodes", "timeline": "hm_timeline"}
    tools |= {"chat_context": "hm_get_chat_context", "delete": "hm_forget"}
    played = 0
    for step in bob:
        [(name, given)] = step.items()
        if name not in tools:
            continue
        played += 1
        outcome = json.dumps(await people.outcome(BOB, tools[name], **given))
        assert "12 percent" not in outcome
        assert "person_alice" not in outcome
    assert played == 6
    assert (await people.ask(ALICE, "hm_get_nodes", keys=[SECRET]))["count"] == 1


async def test_a_foreign_key_and_a_missing_key_get_the_same_answer(people: People) -> None:
    for name, arguments in (
        ("hm_get_nodes", {"keys": ["KEY"]}),
        ("hm_forget", {"key": "KEY"}),
        ("hm_update", {"key": "KEY", "description": "Mine."}),
        ("hm_find_related", {"start_node": "KEY"}),
        ("list_relationships", {"key": "KEY"}),
        ("node_history", {"key": "KEY"}),
        ("restore_node", {"key": "KEY"}),
        ("hm_timeline", {"node_key": "KEY"}),
        ("hm_recall", {"query": "KEY"}),
        (
            "hm_add_relationships",
            {"relationships": [{"from_key": "KEY", "to_key": "KEY_2", "relationship": "x"}]},
        ),
    ):
        told: list[str] = []
        for key in (SECRET, "no_such_key"):
            sent = json.loads(json.dumps(arguments).replace("KEY", key))
            answer = await people.outcome(BOB, name, **sent)
            if isinstance(answer, dict):
                answer.pop("_search_meta", None)
            told.append(json.dumps(answer).replace(key, "KEY"))
        assert told[0] == told[1], name


async def test_ids_files_and_sessions_of_a_neighbour_lead_nowhere(people: People) -> None:
    related = await people.ask(ALICE, "list_relationships", key=SECRET)
    edge_id = related["binary_edges"][0]["edge_id"]
    file = await people.ask(
        ALICE, "hm_upload_file", filename="raise.csv", content_base64="YSxiCjEsMgo=", description="Figures."
    )
    for refused in (
        people.ask(BOB, "hm_update", edge_id=edge_id, description="x"),
        people.ask(BOB, "hm_forget", edge_id=edge_id),
        people.ask(BOB, "hm_tabular", mode="outline", file_id=file["file_id"]),
    ):
        with pytest.raises(NotFound):
            await refused
    with pytest.raises(InvalidRequest):
        await people.ask(BOB, "hm_recall", query="raise", organization_id='acme" OR 1=1 --')
    assert (await people.ask(BOB, "hm_list_files"))["count"] == 0
    context = await people.ask(BOB, "hm_get_chat_context", session_id="default")
    assert (context["count"], context["tool_calls"]) == (0, 0)
    overview = await people.ask(BOB, "hm_get_overview")
    assert (overview["nodes"], overview["edges"]) == (0, 0)
    assert (await people.ask(BOB, "hm_timeline", query="raise"))["count"] == 0
    assert (await people.ask(BOB, "hm_list_orphans"))["count"] == 0

    await people.ask(BOB, "hm_store", key=SECRET, description="Bob's own note under the same key.")
    mine = await people.ask(ALICE, "hm_get_nodes", keys=[SECRET])
    assert mine["nodes"][SECRET]["node"]["description"] == TEXT
    assert (await people.ask(ALICE, "hm_recall", query="raise in the spring"))["count"] >= 1
