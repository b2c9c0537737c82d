"""MCP over standard input and output: nothing but protocol on it, whatever happens."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from tests.surfaces.serving import REST, Server, bearer, command, environment

HELLO = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "test", "version": "1"},
}


class Stdio:
    """A `hivemem mcp` process, spoken to line by line; keeps every line of its output."""

    def __init__(self, data_dir: Path, **extra: str) -> None:
        self.process = subprocess.Popen(
            command("mcp", "--data-dir", str(data_dir)),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment(**extra),
        )
        self.lines: list[bytes] = []
        self.number = 0

    def send(self, line: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()

    def ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        self.number += 1
        body = {"jsonrpc": "2.0", "id": self.number, "method": method, "params": params}
        self.send(json.dumps(body, ensure_ascii=False).encode())
        assert self.process.stdout is not None
        while True:
            line = self.process.stdout.readline()
            assert line, "the server ended"
            self.lines.append(line)
            answer = json.loads(line)
            if answer.get("id") == self.number:
                return answer

    def call(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        return self.ask("tools/call", {"name": name, "arguments": arguments})["result"]

    def close(self) -> tuple[int, bytes]:
        """Close its input; (exit code, diagnostics)."""
        rest, logged = self.process.communicate(timeout=30)
        self.lines += rest.splitlines(keepends=True)
        return self.process.returncode, logged


def test_every_line_on_standard_output_is_a_message(tmp_path: Path) -> None:
    stdio = Stdio(
        tmp_path / "a folder with spaces and é",
        PYTHONIOENCODING="cp1252",
        PYTHONUTF8="0",
        LC_ALL="C",
        HIVEMEM_LOG_LEVEL="debug",
    )
    text = "Party 🎉 at 新宿, bring naïve café jokes."
    assert stdio.ask("initialize", HELLO)["result"]["serverInfo"]["name"] == "hivemem"
    stdio.send(b'{"jsonrpc":"2.0","method":"notifications/initialized"}')
    assert stdio.ask("tools/list", {})["result"]["tools"]
    stored = stdio.call("hm_store", {"key": "event_party", "description": text})
    assert stored["structuredContent"]["status"] == "created"
    found = stdio.call("hm_recall", {"query": "新宿 party"})
    assert found["structuredContent"]["results"][0]["description"] == text
    assert stdio.call("hm_recall", {"query": ""})["isError"] is True
    stdio.send(b"this is not JSON")
    stdio.send(b"\xff\xfe")
    assert stdio.call("hm_get_overview", {})["structuredContent"]["nodes"] == 1
    code, logged = stdio.close()
    assert code == 0
    assert b"Traceback" not in logged
    for line in stdio.lines:
        assert line.endswith(b"\n")
        assert json.loads(line.decode("utf-8"))["jsonrpc"] == "2.0"


def test_a_database_that_cannot_be_opened_ends_it_with_a_message(tmp_path: Path) -> None:
    (tmp_path / "hivemem.toml").write_text("port = 'many'")
    broken = Stdio(tmp_path)
    assert broken.process.wait(timeout=30) == 2
    code, logged = broken.close()
    assert logged.startswith(b"error: port")
    file = tmp_path / "file"
    file.write_text("x")
    broken = Stdio(file)
    # Its input is still open: a host waits for an answer, and must see that there will be none.
    assert broken.process.wait(timeout=30) == 8
    code, logged = broken.close()
    assert code == 8
    assert str(file).encode() in logged
    assert broken.lines == []


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_it_ends_when_its_parent_is_gone(tmp_path: Path) -> None:
    # The parent hands its own standard input on, so the child's input stays open when the parent dies.
    parent = (
        "import subprocess, sys, time\n"
        "child = subprocess.Popen(sys.argv[1:], stdin=0, stdout=subprocess.DEVNULL)\n"
        "print(child.pid, flush=True)\n"
        "time.sleep(600)\n"
    )
    host = subprocess.Popen(
        [sys.executable, "-c", parent, *command("mcp", "--data-dir", str(tmp_path))],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment(),
    )
    assert host.stdout is not None and host.stdin is not None
    child = int(host.stdout.readline())
    pidfd = os.pidfd_open(child)
    try:
        # The child takes its parent's pid when it starts, so wait until it has opened the database.
        import time

        until = time.monotonic() + 30
        while not any(tmp_path.iterdir()) and time.monotonic() < until:
            time.sleep(0.05)
        time.sleep(1.0)
        host.send_signal(signal.SIGKILL)
        host.wait(timeout=10)
        import select

        ready, _, _ = select.select([pidfd], [], [], 20)
        assert ready, "the orphan still runs"
    finally:
        os.close(pidfd)
        host.stdin.close()
        host.stdout.close()


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_the_official_client_works_beside_a_running_server(server: Server, mode: Any) -> None:
    process = command("mcp", "--data-dir", str(server.data_dir))
    parameters = StdioServerParameters(command=process[0], args=process[1:], env=environment())
    key = f"fact_stdio_{mode}"
    async with Client(stdio_client(parameters), mode=mode) as client:
        stored = await client.call_tool("hm_store", {"key": key, "description": f"Written by {mode} stdio."})
        assert stored.is_error is False
        async with httpx2.AsyncClient(headers=bearer(server.key)) as http:
            seen = await http.post(f"{server.url}{REST}/recall", json={"query": f"written by {mode} stdio"})
        assert key in [item["key"] for item in seen.json()["results"]]
