"""Standard input and output joined to a running server: each JSON-RPC request becomes one HTTP request.

A conversation that starts beside a running server needs no second copy of the models and of the index: this
relay is a few threads of the standard library. The server's `/mcp` is stateless, so that every request finds
it anew, and a server that was restarted in the middle is simply used again.
"""

from __future__ import annotations

import base64
import json
import os
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from hivemem.surfaces.running_server import NoAnswer, Target, ask

_REQUEST_SECONDS = 120.0
_MAX_ANSWER_BYTES = 64 * 1024 * 1024
_PROBE_SECONDS = 2.0
_LAST_ANSWERS_SECONDS = 5.0
_PARENT_POLL_SECONDS = 1.0
_WORKERS = 8

_VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
_NAMED = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
"""Method -> the parameter that its HTTP request repeats in the header `Mcp-Name`."""

_UNAVAILABLE = -32000


def answers(target: Target) -> bool:
    """Whether the server is there and speaks HTTP."""
    try:
        return ask(target, "GET", "/health", until=time.monotonic() + _PROBE_SECONDS)[0] == 200
    except NoAnswer:
        return False


class Relay:
    """Passes messages on until standard input ends.

    Args:
        find: The server to use now; called for every request.
        wire: Descriptor of the real standard output.
        parent: Process whose end is ours too.
    """

    def __init__(self, find: Callable[[], Target | None], wire: int, parent: int) -> None:
        self._find = find
        self._wire = wire
        self._parent = parent
        self._lock = threading.Lock()
        # Of the handshake that older clients begin with; newer ones name a version in every request.
        self._version: str | None = None

    def run(self) -> None:
        """Serve, and return when standard input has ended and the last answers are out."""
        threading.Thread(target=_end_when_orphaned, args=(self._parent,), daemon=True).start()
        pool = ThreadPoolExecutor(_WORKERS, thread_name_prefix="relay")
        for line in sys.stdin.buffer:
            message = _message(line)
            # The rest is for servers with a memory of the connection: notifications, and answers to nothing.
            if message is not None and "method" in message and message.get("id") is not None:
                pool.submit(self._pass_on, message)
        # A caller that has gone does not wait for a slow server.
        threading.Thread(target=_end_after, args=(_LAST_ANSWERS_SECONDS,), daemon=True).start()
        pool.shutdown(wait=True)

    def _pass_on(self, request: dict[str, Any]) -> None:
        try:
            answer = self._answer(request)
        except NoAnswer as error:
            answer = _failure(
                request,
                f"the hivemem server cannot be reached: {error}. Start it with 'hivemem serve'; this "
                "connection finds it again by itself.",
            )
        except Exception as error:
            answer = _failure(request, f"the request could not be passed on: {type(error).__name__}: {error}")
        self._write(answer)

    def _answer(self, request: dict[str, Any]) -> dict[str, Any]:
        target = self._find()
        if target is None:
            raise NoAnswer("it has stopped")
        until = time.monotonic() + _REQUEST_SECONDS
        headers = self._headers(request)
        status, _, content = ask(
            target, "POST", "/mcp", request, until=until, headers=headers, max_bytes=_MAX_ANSWER_BYTES
        )
        try:
            answer: Any = json.loads(content)
        except ValueError:
            answer = None
        if not isinstance(answer, dict):
            raise NoAnswer(f"{target.url} answered {status} without a JSON object")
        if answer.get("jsonrpc") != "2.0":
            # A refusal before the protocol: no right, too large, a wrong host.
            return _failure(request, str(answer.get("detail") or f"{target.url} answered {status}"), answer)
        if request["method"] == "initialize" and isinstance(answer.get("result"), dict):
            self._version = answer["result"].get("protocolVersion")
        return {**answer, "id": request["id"]}

    def _headers(self, request: dict[str, Any]) -> dict[str, str]:
        headers = {"Accept": "application/json, text/event-stream", "Mcp-Method": str(request["method"])}
        given = request.get("params")
        parameters: dict[str, Any] = given if isinstance(given, dict) else {}
        meta = parameters.get("_meta")
        version = meta.get(_VERSION_KEY) if isinstance(meta, dict) else None
        if isinstance(version or self._version, str):
            headers["MCP-Protocol-Version"] = str(version or self._version)
        name = parameters.get(_NAMED.get(str(request["method"]), ""))
        if isinstance(name, str):
            headers["Mcp-Name"] = name if name.isascii() and name.isprintable() else _in_base64(name)
        return headers

    def _write(self, message: dict[str, Any]) -> None:
        line = (
            json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace") + b"\n"
        )
        with self._lock:
            try:
                while line:
                    line = line[os.write(self._wire, line) :]
            except OSError:
                os._exit(0)  # nobody reads any more


def _message(line: bytes) -> dict[str, Any] | None:
    if not line.strip():
        return None
    try:
        message: Any = json.loads(line)
    except ValueError:
        message = None
    if not isinstance(message, dict):
        print("hivemem: a line on standard input is not a JSON-RPC message", file=sys.stderr)
        return None
    return message


def _failure(request: dict[str, Any], detail: str, envelope: dict[str, Any] | None = None) -> dict[str, Any]:
    data = envelope or {"error": "unavailable", "detail": detail, "retryable": True}
    return {
        "jsonrpc": "2.0",
        "id": request["id"],
        "error": {"code": _UNAVAILABLE, "message": detail, "data": data},
    }


def _in_base64(name: str) -> str:
    return f"=?base64?{base64.b64encode(name.encode()).decode()}?="


def _end_when_orphaned(parent: int) -> None:
    """End the process when its parent died without closing our input, as a killed host does."""
    while os.getppid() == parent:
        time.sleep(_PARENT_POLL_SECONDS)
    os._exit(0)


def _end_after(seconds: float) -> None:
    time.sleep(seconds)
    os._exit(0)
