"""Kinds of clients: each lists tools and calls them on a running server."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Any, Protocol
from urllib.parse import quote

import httpx2
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client

from hivemem.surfaces.operations import REST_PREFIX, TOOLS
from tests.clients.script import SCRIPT, Call, Json
from tests.surfaces.serving import Server, bearer


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a call came to."""

    failed: bool
    body: Json


class Caller(Protocol):
    async def tools(self) -> dict[str, Json]:
        """The listed tools by name, in the spelling of the wire."""
        ...

    async def call(self, tool: str, arguments: Json) -> Outcome | None:
        """None where this kind of client has no way to the tool."""
        ...


class PlainRpc:
    """A script that posts JSON-RPC: a content type, a credential, and no handshake."""

    def __init__(self, http: httpx2.AsyncClient) -> None:
        self._http = http
        self._number = 0

    async def tools(self) -> dict[str, Json]:
        listed = await self._ask("tools/list", {})
        return {tool["name"]: tool for tool in listed["tools"]}

    async def call(self, tool: str, arguments: Json) -> Outcome:
        result = await self._ask("tools/call", {"name": tool, "arguments": arguments})
        [block] = result["content"]
        assert block["type"] == "text"
        assert json.loads(block["text"]) == result["structuredContent"]
        return Outcome(result["isError"], result["structuredContent"])

    async def _ask(self, method: str, params: Json) -> Json:
        self._number += 1
        body = {"jsonrpc": "2.0", "id": self._number, "method": method, "params": params}
        response = await self._http.post("/mcp", json=body)
        assert response.status_code == 200, response.text
        answer = response.json()
        assert (answer["jsonrpc"], answer["id"]) == ("2.0", self._number)
        return answer["result"]


class Official:
    """The client of the `mcp` package."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def tools(self) -> dict[str, Json]:
        listed = await self._client.list_tools()
        assert listed.next_cursor is None
        return {tool.name: tool.model_dump(by_alias=True, exclude_none=True) for tool in listed.tools}

    async def call(self, tool: str, arguments: Json) -> Outcome:
        result = await self._client.call_tool(tool, arguments)
        [block] = result.content
        assert block.type == "text"
        assert isinstance(result.structured_content, dict)
        assert json.loads(block.text) == result.structured_content
        return Outcome(bool(result.is_error), result.structured_content)


class Rest:
    """The REST route of each tool."""

    def __init__(self, http: httpx2.AsyncClient) -> None:
        self._http = http

    async def tools(self) -> dict[str, Json]:
        return {}

    async def call(self, tool: str, arguments: Json) -> Outcome | None:
        if not TOOLS[tool].routes:
            return None
        route = TOOLS[tool].routes[0]
        path = REST_PREFIX + route.path
        for name in route.in_path:
            path = path.replace("{" + name + "}", quote(str(arguments[name]), safe=""))
        if route.method == "GET":
            response = await self._http.get(path, params=arguments)
        else:
            response = await self._http.post(path, json=arguments)
        body = response.json()
        assert isinstance(body, dict)
        failed = response.status_code >= 400
        if failed:
            assert response.headers["x-request-id"] == body["request_id"]
        return Outcome(failed, body)


@asynccontextmanager
async def _http(server: Server) -> AsyncIterator[httpx2.AsyncClient]:
    async with httpx2.AsyncClient(base_url=server.url, headers=bearer(server.key), timeout=30) as client:
        yield client


@asynccontextmanager
async def plain(server: Server) -> AsyncIterator[Caller]:
    async with _http(server) as http:
        yield PlainRpc(http)


@asynccontextmanager
async def rest(server: Server) -> AsyncIterator[Caller]:
    async with _http(server) as http:
        yield Rest(http)


@asynccontextmanager
async def _official(server: Server, mode: Any) -> AsyncIterator[Caller]:
    async with _http(server) as http:
        transport = streamable_http_client(f"{server.url}/mcp", http_client=http)
        async with Client(transport, mode=mode) as client:
            yield Official(client)


def official_present(server: Server) -> AbstractAsyncContextManager[Caller]:
    """The era without sessions, which the client finds out by itself."""
    return _official(server, "auto")


def official_legacy(server: Server) -> AbstractAsyncContextManager[Caller]:
    """The era that begins with `initialize`."""
    return _official(server, "legacy")


CALLERS: dict[str, Callable[[Server], AbstractAsyncContextManager[Caller]]] = {
    "plain": plain,
    "official": official_present,
    "official_legacy": official_legacy,
    "rest": rest,
}


@dataclass(frozen=True, slots=True)
class Played:
    """The tools that a client saw, and each call with what it came to."""

    tools: dict[str, Json]
    outcomes: list[tuple[Call, Outcome | None]]


async def play(caller: Caller) -> Played:
    """List the tools, then make all calls of the script."""
    tools = await caller.tools()
    answers: dict[str, Json] = {}
    outcomes: list[tuple[Call, Outcome | None]] = []
    for call in SCRIPT:
        outcome = await caller.call(call.tool, call.sent(answers))
        if call.name is not None:
            assert outcome is not None
            answers[call.name] = outcome.body
        outcomes.append((call, outcome))
    return Played(tools, outcomes)
