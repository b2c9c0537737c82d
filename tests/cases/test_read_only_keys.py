"""A credential that may only read changes nothing, whichever way it comes, and reads as before."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from hivemem.surfaces.operations import OPERATIONS, REST_PREFIX, Access
from hivemem.surfaces.operations.operation import AnyOperation
from tests.cases.reports import Report
from tests.surfaces.serving import Served, served

Refusal = tuple[int | bool, str]

GOOD: dict[str, dict[str, Any]] = {
    "hm_store": {"key": "sneaky", "description": "Written with a read-only key."},
    "hm_update": {"key": "my_todo", "description": "Changed."},
    "hm_forget": {"key": "my_todo"},
    "hm_add_relationships": {
        "relationships": [{"from_key": "my_todo", "to_key": "policy_leave", "relationship": "edits"}]
    },
    "hm_ingest": {"text": "Ola met Kari in Bergen."},
    "hm_upload_file": {"filename": "a.txt", "content_base64": "YQ=="},
    "hm_timeline_write": {"summary": "Something happened."},
    "restore_node": {"key": "my_todo"},
}
WRITES = [operation for operation in OPERATIONS if operation.access is Access.WRITE]


@pytest.fixture
async def api(tmp_path: Path) -> AsyncIterator[Served]:
    async with served(tmp_path) as running:
        await running.store("my_todo", "Ask about leave.")
        await running.store("my_todo", "Ask about leave in May.")
        await running.store("policy_leave", "There are 30 days of leave.")
        yield running


async def over_rest(api: Served, operation: AnyOperation, arguments: Mapping[str, Any]) -> Refusal:
    [route, *_] = operation.routes
    response = await api.reader.request(route.method, REST_PREFIX + route.path, json=arguments)
    return response.status_code, response.json()["error"]


async def over_mcp(api: Served, operation: AnyOperation, arguments: Mapping[str, Any]) -> Refusal:
    params = {"name": operation.name, "arguments": arguments}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    result = (await api.reader.post("/mcp", json=body)).json()["result"]
    return result["isError"], result["structuredContent"]["error"]


async def everything(api: Served) -> tuple[object, ...]:
    """What a graph holds, its revision and diary included."""
    owner = await api.services.access.local_principal()
    store, graph_id = api.services.store, owner.graph_id
    return (
        await store.revision(graph_id),
        await store.changes(graph_id, 0, model_id="none", limit=1_000),
        await store.timeline(graph_id, limit=1_000),
        await store.files(graph_id),
    )


@pytest.mark.shared
@pytest.mark.parametrize("way", [over_rest, over_mcp])
async def test_reported_writes_with_a_read_only_key(
    api: Served,
    report: Callable[[str], Report],
    way: Callable[[Served, AnyOperation, Mapping[str, Any]], Awaitable[Refusal]],
) -> None:
    """The half of the report that needs no organization."""
    case = report("C28")
    [steps] = [one["sequence"] for one in case.sequence if one.get("as") == "ro_key"]
    operations = {operation.name: operation for operation in OPERATIONS}
    before = await everything(api)
    for step in steps:
        [(name, given)] = step.items()
        for arguments in given.get("nodes", [given]):
            tool = operations["hm_store" if name == "store" else "hm_forget"]
            assert (await way(api, tool, arguments))[1] == "forbidden"
    assert await everything(api) == before


def test_every_operation_that_is_not_known_to_read_needs_the_right_to_write() -> None:
    """An allow list of reads: a new operation is refused until somebody decides that it only reads."""
    reads = {operation.name for operation in OPERATIONS if operation.access is Access.READ}
    assert reads <= {
        *("hm_get_overview", "hm_recall", "hm_get_nodes", "hm_find_related", "list_relationships"),
        *("hm_list_orphans", "hm_timeline", "hm_list_files", "hm_tabular", "hm_get_chat_context"),
        *("node_history", "hm_skill", "hm_tokens"),
    }
    assert {operation.name for operation in WRITES} == set(GOOD)


@pytest.mark.parametrize("operation", WRITES, ids=lambda one: one.name)
async def test_every_write_is_refused_with_one_meaning_and_changes_nothing(
    api: Served, operation: AnyOperation
) -> None:
    before = await everything(api)
    for arguments in (GOOD[operation.name], {}, {"organization_id": "acme", **GOOD[operation.name]}):
        assert await over_rest(api, operation, arguments) == (403, "forbidden")
        if operation.tool:
            assert await over_mcp(api, operation, arguments) == (True, "forbidden")
    assert await everything(api) == before


async def test_reads_go_on_and_are_noted_for_their_conversation(api: Served) -> None:
    before = await everything(api)
    for _ in range(6):
        found = await api.reader.post(
            f"{REST_PREFIX}/recall", json={"query": "how many days of leave?", "session_id": "talk"}
        )
        assert (found.status_code, found.json()["results"][0]["key"]) == (200, "policy_leave")
    related = await api.reader.post(f"{REST_PREFIX}/find-related", json={"start_node": "my_todo"})
    assert related.status_code == 200
    params = {"name": "hm_get_chat_context", "arguments": {"session_id": "talk"}}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    answer = (await api.reader.post("/mcp", json=body)).json()["result"]["structuredContent"]
    assert answer["tool_calls"] == 6
    assert "policy_leave" in [node["key"] for node in answer["nodes"]]
    after = await everything(api)
    assert after[2:] == before[2:], "reading leaves no line in the diary"
