"""`hivemem health`: what a container engine or a supervisor asks again and again."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from hivemem.surfaces.running_server import find_server
from tests.surfaces.serving import Server, environment, run_cli

UNAVAILABLE = 8


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with Server(tmp_path_factory.mktemp("probed")) as running:
        yield running


def test_a_server_that_answers_is_well(server: Server) -> None:
    for question in ((), ("--ready",)):
        done = run_cli(server.data_dir, "health", "--json", *question)
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["url"] == server.url
    assert run_cli(server.data_dir, "health").stdout == b"ok\n"
    # From elsewhere, as a supervisor on another machine would.
    assert run_cli(server.data_dir.parent / "other", "health", "--url", server.url).returncode == 0


def test_no_server_and_a_killed_one_are_not(tmp_path: Path) -> None:
    done = run_cli(tmp_path, "health")
    assert done.returncode == UNAVAILABLE and b"hivemem serve" in done.stderr
    with Server(tmp_path) as running:
        assert run_cli(tmp_path, "health").returncode == 0
        running.process.send_signal(signal.SIGKILL)
        running.process.wait(20)
        assert run_cli(tmp_path, "health").returncode == UNAVAILABLE


def test_something_else_on_the_port_is_not(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(10_000)
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]")

        other = threading.Thread(target=answer)
        other.start()
        port = listener.getsockname()[1]
        done = run_cli(tmp_path, "health", "--url", f"http://127.0.0.1:{port}")
        other.join(20)
    assert done.returncode == UNAVAILABLE and b"not hivemem" in done.stderr


def test_a_probe_costs_no_heavy_import(server: Server) -> None:
    program = (
        "import sys; from hivemem.surfaces.cli.main import main; "
        "code = main(['health', '--data-dir', sys.argv[1]]); "
        "print(code, sorted({'numpy', 'onnxruntime', 'mcp', 'starlette', 'pydantic'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(server.data_dir)],
        capture_output=True,
        env=environment(),
        timeout=60,
        check=True,
    )
    assert done.stdout.splitlines()[-1] == b"0 []"


def test_a_key_for_a_remote_server_may_stand_in_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "key").write_text("hm_from_a_file\n", "utf-8")
    monkeypatch.setenv("HIVEMEM_API_KEY_FILE", str(tmp_path / "key"))
    found = find_server(str(tmp_path), {}, "https://memory.example.org")
    assert found is not None and found.credential == "hm_from_a_file"
    monkeypatch.setenv("HIVEMEM_API_KEY_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("HM_API_KEY", "hm_other")
    found = find_server(str(tmp_path), {}, "https://memory.example.org")
    assert found is not None and found.credential == "hm_other"
