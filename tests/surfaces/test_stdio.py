"""MCP over standard input and output: nothing but protocol on it, whatever happens."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.shared.exceptions import MCPError

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
        until = time.monotonic() + 30
        while not any(tmp_path.iterdir()) and time.monotonic() < until:
            time.sleep(0.05)
        time.sleep(1.0)
        host.send_signal(signal.SIGKILL)
        host.wait(timeout=10)
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


def test_beside_a_server_it_only_passes_messages_on(tmp_path: Path) -> None:
    with Server(tmp_path) as server:
        stdio = Stdio(tmp_path)
        assert stdio.ask("initialize", HELLO)["result"]["serverInfo"]["name"] == "hivemem"
        stdio.send(b'{"jsonrpc":"2.0","method":"notifications/initialized"}')
        stdio.send(b"this is not JSON")
        assert stdio.call("hm_store", {"key": "fact_é", "description": "Über 🎉."})["isError"] is False
        found = stdio.call("hm_get_nodes", {"keys": ["fact_é"]})
        assert found["structuredContent"]["nodes"]["fact_é"]["node"]["description"] == "Über 🎉."
        assert stdio.call("hm_recall", {"query": ""})["isError"] is True
        assert stdio.ask("tools/call", {"name": "nö", "arguments": {}})["error"]["code"] == -32602
        loaded = Path(f"/proc/{stdio.process.pid}/maps").read_text()
        assert "numpy" not in loaded and "pydantic_core" not in loaded
        code, logged = stdio.close()
        assert code == 0
        assert server.url.encode() in logged
    for line in stdio.lines:
        assert json.loads(line.decode("utf-8"))["jsonrpc"] == "2.0"


def test_a_server_that_dies_gives_errors_and_is_found_again(tmp_path: Path) -> None:
    with Server(tmp_path) as server:
        stdio = Stdio(tmp_path)
        stdio.ask("initialize", HELLO)
        assert stdio.call("hm_store", {"key": "fact_a", "description": "Kept."})["isError"] is False
        # Frozen, so that the request below is surely under way when it dies.
        server.process.send_signal(signal.SIGSTOP)
        stdio.send(
            b'{"jsonrpc":"2.0","id":"in flight","method":"tools/call",'
            b'"params":{"name":"hm_get_overview","arguments":{}}}'
        )
        _wait_for_a_connection(stdio.process.pid)
        server.process.kill()
        server.process.wait(timeout=20)
    assert stdio.process.stdout is not None
    cut = json.loads(stdio.process.stdout.readline())
    assert cut["id"] == "in flight"
    assert cut["error"]["data"]["error"] == "unavailable"
    after = stdio.ask("tools/call", {"name": "hm_get_overview", "arguments": {}})
    assert "hivemem serve" in after["error"]["message"]
    with Server(tmp_path):
        found = stdio.call("hm_get_nodes", {"keys": ["fact_a"]})
        assert found["structuredContent"]["count"] == 1
        assert stdio.close()[0] == 0


def _wait_for_a_connection(pid: int) -> None:
    until = time.monotonic() + 20
    while time.monotonic() < until:
        for entry in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(OSError):
                if entry.readlink().as_posix().startswith("socket:"):
                    return
        time.sleep(0.02)
    raise AssertionError("the request was not sent within 20 s")


def test_a_named_server_that_is_not_there_is_not_replaced_by_this_machine_s_memory(tmp_path: Path) -> None:
    stdio = Stdio(tmp_path, HIVEMEM_URL="http://127.0.0.1:9")
    answer = stdio.ask("initialize", HELLO)
    assert "http://127.0.0.1:9" in answer["error"]["message"]
    assert stdio.close()[0] == 0
    assert list(tmp_path.iterdir()) == []


def test_a_wrong_key_for_a_named_server_is_told(server: Server, tmp_path: Path) -> None:
    stdio = Stdio(tmp_path, HIVEMEM_URL=server.url, HM_API_KEY="hm_" + "0" * 64)
    answer = stdio.ask("initialize", HELLO)
    assert answer["error"]["data"]["error"] == "unauthorized"
    stdio.close()
    stdio = Stdio(tmp_path, HIVEMEM_URL=server.url, HM_API_KEY=server.key)
    assert stdio.ask("initialize", HELLO)["result"]["serverInfo"]["name"] == "hivemem"
    stdio.close()


@pytest.mark.parametrize("beside", [True, False])
def test_what_libraries_print_is_not_on_standard_output(tmp_path: Path, beside: bool) -> None:
    noisy = (
        "import os, sys\n"
        "class Noise:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        print('importing', name)\n"
        "        os.write(1, b'straight to the descriptor\\n')\n"
        "sys.meta_path.insert(0, Noise())\n"
        "from hivemem.surfaces.cli.stdio import run\n"
        "import argparse\n"
        "run(argparse.Namespace(data_dir=sys.argv[1], url=None, json=False))\n"
    )
    # Noise before `run` has the output is the test's own doing; import what that takes beforehand.
    quiet = "import argparse, hivemem.surfaces.cli.stdio\n"
    lines = [json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HELLO})]
    with Server(tmp_path) if beside else nullcontext():
        process = subprocess.Popen(
            [sys.executable, "-c", quiet + noisy, str(tmp_path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment(),
        )
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write("\n".join(lines).encode() + b"\n")
        process.stdin.flush()
        first = process.stdout.readline()
        rest, logged = process.communicate(timeout=30)
    assert json.loads(first)["result"]["serverInfo"]["name"] == "hivemem"
    assert rest == b""
    assert b"importing" in logged and b"straight to the descriptor" in logged


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_the_relay_ends_when_its_parent_is_gone(server: Server) -> None:
    parent = (
        "import subprocess, sys, time\n"
        "child = subprocess.Popen(sys.argv[1:], stdin=0, stdout=subprocess.PIPE, stderr=subprocess.PIPE)\n"
        "child.stderr.readline()\n"
        "print(child.pid, flush=True)\n"
        "time.sleep(600)\n"
    )
    host = subprocess.Popen(
        [sys.executable, "-c", parent, *command("mcp", "--data-dir", str(server.data_dir))],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment(),
    )
    assert host.stdout is not None and host.stdin is not None
    pidfd = os.pidfd_open(int(host.stdout.readline()))
    try:
        host.kill()
        host.wait(timeout=10)
        ready, _, _ = select.select([pidfd], [], [], 20)
        assert ready, "the orphan still runs"
    finally:
        os.close(pidfd)
        host.stdin.close()
        host.stdout.close()


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_the_official_client_lives_through_a_restart_of_the_server(tmp_path: Path, mode: Any) -> None:
    process = command("mcp", "--data-dir", str(tmp_path))
    parameters = StdioServerParameters(command=process[0], args=process[1:], env=environment())
    with Server(tmp_path) as server:
        async with Client(stdio_client(parameters), mode=mode) as client:
            stored = await client.call_tool("hm_store", {"key": "fact_a", "description": "Kept."})
            assert stored.is_error is False
            server.process.kill()
            server.process.wait(timeout=20)
            with pytest.raises(MCPError, match="hivemem serve"):
                await client.call_tool("hm_get_nodes", {"keys": ["fact_a"]})
            with Server(tmp_path):
                found = await client.call_tool("hm_get_nodes", {"keys": ["fact_a"]})
                assert found.structured_content is not None
                assert found.structured_content["count"] == 1
