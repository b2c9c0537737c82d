"""MCP over HTTP: plain JSON-RPC callers, and the official client in both protocol eras."""

from __future__ import annotations

import json
from typing import Any

import httpx2
import pytest
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client

from hivemem.surfaces.operations import TOOLS
from tests.surfaces.serving import Served, Server, bearer

LEGACY_ACCEPT = {"Accept": "application/json, text/event-stream"}


def request(method: str, params: dict[str, Any] | None = None, number: int = 1) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params or {}}


def call(name: str, arguments: Any) -> dict[str, Any]:
    return request("tools/call", {"name": name, "arguments": arguments})


async def raw(api: Served, body: Any, **headers: str) -> httpx2.Response:
    """POST with a content type and a credential, and no header more."""
    sent = {"Content-Type": "application/json", **bearer(api.key), **headers}
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    async with httpx2.AsyncClient(
        transport=httpx2.ASGITransport(app=api.app), base_url="http://localhost"
    ) as client:
        client.headers.pop("accept")
        return await client.post("/mcp", content=content, headers=sent)


async def test_a_bare_call_needs_no_handshake_and_no_accept_header(api: Served) -> None:
    stored = await raw(api, call("hm_store", {"key": "fact_a", "description": "One.", "data": None}))
    assert stored.status_code == 200
    assert stored.headers["content-type"] == "application/json"
    assert "mcp-session-id" not in stored.headers
    result = stored.json()["result"]
    assert result["isError"] is False
    assert result["structuredContent"]["status"] == "created"
    assert json.loads(result["content"][0]["text"]) == result["structuredContent"]
    found = await raw(api, call("hm_recall", {"query": "One"}))
    assert found.json()["result"]["structuredContent"]["results"][0]["key"] == "fact_a"


@pytest.mark.parametrize(
    "accept", ["*/*", "application/json", "application/json, text/event-stream", "text/html"]
)
async def test_answers_are_json_whatever_else_is_accepted(api: Served, accept: str) -> None:
    response = await raw(api, request("tools/list"), Accept=accept)
    assert response.status_code == 200
    assert response.headers["content-type"] == "application/json"


async def test_a_caller_of_event_streams_only_gets_one(api: Served) -> None:
    response = await raw(api, call("hm_get_overview", {}), Accept="text/event-stream")
    assert response.status_code == 200
    assert response.headers["content-type"].startswith("text/event-stream")
    assert '"total_nodes":0' in response.text.replace("\\", "").replace(" ", "")


async def test_initialize_ping_and_notifications(api: Served) -> None:
    hello = {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    }
    answer = (await raw(api, request("initialize", hello))).json()["result"]
    assert answer["protocolVersion"] == "2025-06-18"
    assert answer["serverInfo"]["name"] == "hivemem"
    assert "hm_recall" in answer["instructions"]
    note = await raw(api, {"jsonrpc": "2.0", "method": "notifications/initialized"})
    assert note.status_code == 202
    assert (await raw(api, request("ping"))).json()["result"] == {}


async def test_tools_are_the_operations_with_slim_schemas(api: Served) -> None:
    tools = {tool["name"]: tool for tool in (await raw(api, request("tools/list"))).json()["result"]["tools"]}
    assert set(tools) == set(TOOLS)
    recall = tools["hm_recall"]
    assert set(recall["inputSchema"]["properties"]) == {
        "query",
        "max_results",
        "organization_id",
        "session_id",
        "force_regex",
    }
    assert recall["inputSchema"]["required"] == ["query"]
    assert recall["annotations"]["readOnlyHint"] is True
    assert tools["hm_store"]["annotations"]["readOnlyHint"] is False
    text = json.dumps([tool["inputSchema"] for tool in tools.values()])
    assert '"title"' not in text
    assert '"null"' not in text


async def test_get_and_delete_are_not_allowed(api: Served) -> None:
    for method in ("GET", "DELETE", "PUT"):
        response = await api.client.request(method, "/mcp", headers=LEGACY_ACCEPT)
        assert response.status_code == 405
        assert response.headers["allow"] == "POST"
        assert response.json()["error"] == "method_not_allowed"


async def test_without_a_credential_nothing_answers(api: Served) -> None:
    for headers in ({}, {"Authorization": "Bearer hm_x"}):
        response = await api.anonymous.post("/mcp", json=request("tools/list"), headers=headers)
        assert response.status_code == 401
        assert response.headers["www-authenticate"].startswith("Bearer")
        assert response.json()["error"] == "unauthorized"


async def test_failures_of_tools_are_results_with_the_envelope(api: Served) -> None:
    for arguments, code in (
        ({"query": " "}, "validation_error"),
        ({}, "validation_error"),
        ({"query": "x", "max_results": "5"}, "validation_error"),
        ({"query": "x", "organization_id": "acme"}, "invalid_request"),
    ):
        response = await raw(api, call("hm_recall", arguments))
        assert response.status_code == 200
        result = response.json()["result"]
        assert result["isError"] is True
        body = result["structuredContent"]
        assert body["error"] == code
        assert body["detail"].startswith("/")
        assert body["request_id"] == response.headers["x-request-id"]
        assert json.loads(result["content"][0]["text"]) == body


async def test_a_read_only_key_lists_and_reads_but_does_not_write(api: Served) -> None:
    key = bearer(api.read_only_key)
    assert len((await raw(api, request("tools/list"), **key)).json()["result"]["tools"]) == len(TOOLS)
    assert (await raw(api, call("hm_get_overview", {}), **key)).json()["result"]["isError"] is False
    refused = await raw(api, call("hm_store", {"key": "k", "description": "x"}), **key)
    assert refused.json()["result"]["structuredContent"]["error"] == "forbidden"


async def test_protocol_errors(api: Served) -> None:
    for body in (call("hm_nope", {}), call("hm_recall", ["x"]), call("hm_recall", "x")):
        assert (await raw(api, body)).json()["error"]["code"] == -32602
    assert (await raw(api, b"{")).json()["error"]["code"] == -32700
    assert (await raw(api, request("no/such"))).json()["error"]["code"] == -32601
    assert (await raw(api, call("hm_get_overview", None))).json()["result"]["isError"] is False


async def test_unknown_arguments_are_ignored_and_named(api: Served) -> None:
    arguments = {"query": "x", "limit": 3, "response_format": "structured"}
    answer = (await raw(api, call("hm_recall", arguments))).json()["result"]["structuredContent"]
    assert answer["warnings"] == ["unknown properties were ignored: 'limit'"]


async def test_unstorable_characters_are_refused(api: Served) -> None:
    broken = await raw(api, call("hm_store", {"key": "k", "description": "a\ud800b"}))
    assert broken.status_code == 400
    assert broken.json()["error"]["code"] == -32700
    nul = (await raw(api, call("hm_store", {"key": "k", "description": "a\x00b"}))).json()["result"]
    assert nul["structuredContent"]["error"] == "validation_error"
    overview = (await raw(api, call("hm_get_overview", {}))).json()["result"]["structuredContent"]
    assert overview["nodes"] == 0


async def test_an_unforeseen_failure_is_an_envelope_too(api: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken(*_: object) -> None:
        raise ValueError("secret detail")

    monkeypatch.setattr(type(api.services.recall), "recall", broken)
    response = await raw(api, call("hm_recall", {"query": "x"}))
    assert "secret" not in response.text
    assert response.json()["result"]["structuredContent"]["error"] == "internal_error"


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_the_official_client_works_in_both_eras(server: Server, mode: Any) -> None:
    async with httpx2.AsyncClient(headers=bearer(server.key)) as http:
        transport = streamable_http_client(f"{server.url}/mcp", http_client=http)
        async with Client(transport, mode=mode) as client:
            assert {tool.name for tool in (await client.list_tools()).tools} == set(TOOLS)
            key = f"fact_{mode}"
            stored = await client.call_tool("hm_store", {"key": key, "description": f"Seen by {mode} ☕."})
            assert stored.is_error is False
            found = await client.call_tool("hm_recall", {"query": f"seen by {mode}"})
            assert found.structured_content is not None
            assert key in [item["key"] for item in found.structured_content["results"]]
            nodes = await client.call_tool("hm_get_nodes", {"keys": [key]})
            assert nodes.structured_content is not None
            assert nodes.structured_content["nodes"][key]["node"]["description"] == f"Seen by {mode} ☕."
            failed = await client.call_tool("hm_recall", {"query": ""})
            assert failed.is_error is True
