"""Every kind of client gets the same answers from every tool, as the schemas promise them."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

import jsonschema
import pytest

from hivemem.surfaces.answers import ErrorAnswer
from hivemem.surfaces.operations import TOOLS
from tests.clients.callers import CALLERS, Outcome, Played, play
from tests.clients.script import SCRIPT
from tests.surfaces.serving import Server

MCP = ["plain", "official", "official_legacy"]

READ_ONLY = {
    *("hm_get_overview", "hm_recall", "hm_get_nodes", "hm_get_chat_context", "hm_find_related"),
    *("hm_list_orphans", "hm_timeline", "hm_list_files", "hm_tabular", "hm_skill"),
}
DESTRUCTIVE = {"hm_forget"}
IDEMPOTENT_WRITES = {"hm_store", "hm_update", "hm_add_relationships", "hm_ingest", "hm_tokens"}
COUNTED_READS = {"hm_recall", "hm_find_related"}
"""They belong to a conversation, which counts each of them."""

# What differs between two servers that were told the same. Scores do, since the random id of a file is among
# the words of its node, whose number counts in every score.
_VOLATILE = ("_search_meta", "request_id", "score", "scores")
_IDS = re.compile(r"\b(edge|hyper|file|tok|skill|event|session)_[0-9a-f]{12,}\b")
_TIMES = re.compile(r"^\d{4}-\d\d-\d\dT[0-9:.]+(Z|\+00:00)$")


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Played]]:
    """The script as each kind of client plays it, on a server of its own that was empty before."""
    with ExitStack() as stack:
        folders = [tmp_path_factory.mktemp(f"for_{name}") for name in CALLERS]
        with ThreadPoolExecutor() as starting:
            started = [stack.enter_context(server) for server in starting.map(Server, folders)]
        servers = dict(zip(CALLERS, started, strict=True))

        async def play_all() -> dict[str, Played]:
            results: dict[str, Played] = {}
            for name, open_caller in CALLERS.items():
                async with open_caller(servers[name]) as caller:
                    results[name] = await play(caller)
            return results

        yield asyncio.run(play_all())


def test_the_script_calls_every_tool_rightly_and_wrongly() -> None:
    assert {call.tool for call in SCRIPT if call.refused is None} == set(TOOLS)
    assert {call.tool for call in SCRIPT if call.refused is not None} == set(TOOLS)


@pytest.mark.parametrize("name", CALLERS)
def test_every_call_ends_as_it_should(played: dict[str, Played], name: str) -> None:
    error = jsonschema.Draft202012Validator(ErrorAnswer.model_json_schema())
    for call, outcome in played[name].outcomes:
        if outcome is None:
            assert (name, call.tool) == ("rest", "hm_get_chat_context")
            continue
        assert outcome.failed is (call.refused is not None), (call, outcome)
        if call.refused is not None:
            assert outcome.body["error"] == call.refused, (call, outcome.body)
            error.validate(outcome.body)
            assert outcome.body["detail"].strip()
            assert outcome.body["retryable"] is False


@pytest.mark.parametrize("name", MCP)
def test_answers_fit_the_output_schemas_as_this_client_sees_them(
    played: dict[str, Played], name: str
) -> None:
    tools = played[name].tools
    assert set(tools) == set(TOOLS)
    validators = {
        tool: jsonschema.Draft202012Validator(listed["outputSchema"]) for tool, listed in tools.items()
    }
    checked = set()
    for call, outcome in played[name].outcomes:
        if outcome is not None and not outcome.failed:
            problems = [error.message for error in validators[call.tool].iter_errors(outcome.body)]
            assert problems == [], call
            checked.add(call.tool)
    assert checked == set(TOOLS)


@pytest.mark.parametrize("name", MCP)
def test_good_arguments_fit_the_input_schemas(played: dict[str, Played], name: str) -> None:
    """A host that checks arguments before it sends them lets all pass that the server takes."""
    answers: dict[str, Any] = {}
    for call, outcome in played[name].outcomes:
        assert outcome is not None
        if call.name is not None:
            answers[call.name] = outcome.body
        if call.refused is None:
            schema = played[name].tools[call.tool]["inputSchema"]
            jsonschema.Draft202012Validator(schema).validate(call.sent(answers))


@pytest.mark.parametrize("name", MCP)
def test_annotations_say_what_a_tool_may_do(played: dict[str, Played], name: str) -> None:
    hints = {tool: listed["annotations"] for tool, listed in played[name].tools.items()}

    def those(hint: str) -> set[str]:
        return {tool for tool, told in hints.items() if told[hint]}

    assert those("readOnlyHint") == READ_ONLY
    assert those("destructiveHint") == DESTRUCTIVE
    assert those("idempotentHint") == READ_ONLY - COUNTED_READS | IDEMPOTENT_WRITES
    assert those("openWorldHint") == set()


@pytest.mark.parametrize("name", ["official", "official_legacy", "rest"])
def test_every_client_is_told_the_same(played: dict[str, Played], name: str) -> None:
    for (call, one), (_, other) in zip(played["plain"].outcomes, played[name].outcomes, strict=True):
        if one is not None and other is not None and not _told_about_the_way(call, name):
            assert _stable(one) == _stable(other), call
    if name != "rest":
        assert played[name].tools == played["plain"].tools


def _told_about_the_way(call: Any, name: str) -> bool:
    """A query string carries text alone, so that REST finds another fault in a number that is none."""
    return name == "rest" and call.refused is not None and TOOLS[call.tool].routes[0].method == "GET"


def _stable(outcome: Outcome) -> object:
    return outcome.failed, _masked(outcome.body)


def _masked(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: "any" if name in _VOLATILE else _masked(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_masked(item) for item in value]
    if isinstance(value, str):
        return "a time" if _TIMES.match(value) else _IDS.sub(r"\1_any", value)
    return value
