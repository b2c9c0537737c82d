"""Requests below the level of an HTTP client: to the application alone, and bytes to a socket."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import httpx2
from starlette.types import Message

from hivemem.ports.clock import Clock
from hivemem.service.rate_limits import RateLimits
from hivemem.storage.rates_memory import MemoryRateCounts
from tests.surfaces.serving import Served, bearer


def limit_by(api: Served, clock: Clock) -> None:
    """Let the rate limits of a server go by a clock of the test."""
    services = api.services
    services.rate_limits = RateLimits(counts=MemoryRateCounts(), clock=clock, rates=services.settings.rates)


def tool_call(name: str, arguments: dict[str, Any] | None = None) -> dict[str, Any]:
    params = {"name": name, "arguments": arguments or {}}
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}


async def tool(api: Served, name: str, arguments: dict[str, Any] | None = None) -> httpx2.Response:
    headers = {"Accept": "application/json, text/event-stream"}
    return await api.client.post("/mcp", json=tool_call(name, arguments), headers=headers)


@dataclass
class Answered:
    """What an application sent, whole or not."""

    status: int = 0
    headers: list[tuple[bytes, bytes]] = field(default_factory=list)
    body: bytes = b""
    complete: bool = False

    def header(self, name: str) -> str | None:
        found = [value.decode() for key, value in self.headers if key == name.encode()]
        return ", ".join(found) if found else None

    def json(self) -> Any:
        return json.loads(self.body)


Receive = Callable[[], Awaitable[Message]]
OnPiece = Callable[[Answered], Awaitable[None]]


async def ask(
    api: Served,
    method: str,
    path: str,
    *,
    receive: Receive | None = None,
    on_piece: OnPiece | None = None,
    client: tuple[str, int] = ("127.0.0.1", 5),
    headers: Iterable[tuple[str, str]] = (),
    query: str = "",
    key: str | None = None,
) -> Answered:
    """One request; `on_piece` is awaited after each piece of the answer's body."""
    sent = [("host", "localhost"), *bearer(key or api.key).items(), *headers]
    scope = {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "root_path": "",
        "headers": [(name.lower().encode(), value.encode()) for name, value in sent],
        "client": client,
        "server": ("127.0.0.1", 8477),
        "state": {},
    }
    answered = Answered()

    async def send(message: Message) -> None:
        if message["type"] == "http.response.start":
            answered.status, answered.headers = message["status"], list(message["headers"])
            return
        answered.body += message.get("body", b"")
        answered.complete = not message.get("more_body", False)
        if on_piece is not None:
            await on_piece(answered)

    await api.app(scope, receive or pieces(b""), send)
    return answered


def pieces(*content: bytes, then_silence: bool = False) -> Receive:
    """`receive` of a body in pieces; `then_silence` never sends its end."""
    waiting = list(content)

    async def receive() -> Message:
        if waiting:
            piece = waiting.pop(0)
            return {"type": "http.request", "body": piece, "more_body": bool(waiting) or then_silence}
        await asyncio.Event().wait()
        raise AssertionError

    return receive


async def streamed(*content: bytes) -> AsyncIterator[bytes]:
    for piece in content:
        yield piece
