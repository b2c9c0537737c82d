"""`hivemem serve` as a process: first start, one server a data directory, shutdown, connections."""

from __future__ import annotations

import http.client
import json
import re
import signal
import stat
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2

from hivemem.server_lock import ServerLock
from tests.surfaces.serving import REST, Server, bearer, run_cli


def connection(server: Server) -> http.client.HTTPConnection:
    return http.client.HTTPConnection(urlsplit(server.url).netloc, timeout=20)


def ask(
    to: http.client.HTTPConnection, method: str, path: str, body: bytes | None = None, **headers: str
) -> tuple[int, Any, http.client.HTTPMessage]:
    to.request(method, path, body=body, headers=headers)
    response = to.getresponse()
    content = response.read()
    return response.status, json.loads(content) if content else None, response.headers


def test_first_start_prints_a_key_once_and_it_keeps_working(tmp_path: Path) -> None:
    data_dir = tmp_path / "new folder"
    with Server(data_dir, HIVEMEM_LOG_LEVEL="debug") as server:
        key = server.key
        assert re.fullmatch(r"hm_[0-9a-f]{64}", key)
        assert stat.S_IMODE(data_dir.stat().st_mode) == 0o700
        stored = httpx2.post(
            f"{server.url}{REST}/store", json={"key": "fact_a", "description": "One."}, headers=bearer(key)
        )
        assert stored.status_code == 200
        code, logged = server.stop()
        assert code == 0
        assert key not in logged
        assert logged
        for line in logged.splitlines():
            assert re.match(r"time=\S+Z level=\w+ logger=\S+ ", line), line
    with Server(data_dir) as server:
        assert "key" not in server.announced
        overview = httpx2.get(f"{server.url}{REST}/overview", headers=bearer(key))
        assert overview.json()["nodes"] == 1


def test_one_server_owns_a_data_directory_and_a_crash_frees_it(tmp_path: Path) -> None:
    with Server(tmp_path) as first:
        second = run_cli(tmp_path, "serve", "--port", "0", "--json")
        assert second.returncode == 6
        assert second.stdout == b""
        refused = json.loads(second.stderr.splitlines()[-1])
        assert refused["error"] == "already_running"
        assert refused["pid"] == first.process.pid
        assert refused["address"] == urlsplit(first.url).netloc
        assert str(first.process.pid) in refused["detail"]
        assert httpx2.get(f"{first.url}/health").json() == {"status": "ok"}
        first.process.send_signal(signal.SIGKILL)
        first.process.wait(timeout=10)
    ServerLock.acquire(tmp_path, "127.0.0.1:1").release()


def test_a_taken_port_is_named(tmp_path: Path, server: Server) -> None:
    port = str(urlsplit(server.url).port)
    second = run_cli(tmp_path, "serve", "--port", port, "--json")
    assert second.returncode == 6
    assert json.loads(second.stderr.splitlines()[-1])["error"] == "address_in_use"


def test_keys_are_made_and_revoked_while_the_server_runs(server: Server) -> None:
    folder = server.data_dir
    made = json.loads(run_cli(folder, "key", "create", "--json", "--name", "agent while serving").stdout)
    overview = f"{server.url}{REST}/overview"
    assert httpx2.get(overview, headers=bearer(made["key"])).status_code == 200
    listed = json.loads(run_cli(folder, "key", "list", "--json").stdout)
    # Other tests make keys on this server too.
    names = [key["name"] for key in listed["keys"]]
    assert (names[0], names.count("agent while serving")) == ("first key", 1)
    assert made["key"] not in json.dumps(listed)
    assert run_cli(folder, "key", "revoke", made["key_id"]).returncode == 0
    assert httpx2.get(overview, headers=bearer(made["key"])).status_code == 401
    assert run_cli(folder, "key", "revoke", made["key_id"]).returncode == 5


def test_connections_survive_errors(server: Server) -> None:
    to = connection(server)
    auth = {"Authorization": f"Bearer {server.key}"}
    for _ in range(2):
        assert ask(to, "GET", "/health")[0] == 200
        assert ask(to, "GET", "/nope")[0] == 404
        status, body, headers = ask(to, "POST", f"{REST}/recall", b"{", **auth)
        assert (status, body["request_id"]) == (422, headers["x-request-id"])
        assert ask(to, "POST", f"{REST}/recall", b'{"query": "x"}')[0] == 401
        assert ask(to, "POST", f"{REST}/recall", b'{"query": "x"}', **auth)[0] == 200
        status, body, _ = ask(to, "HEAD", f"{REST}/overview", **auth)
        assert (status, body) == (200, None)
    to.close()


def test_a_body_over_the_limit_is_refused_before_it_is_read(server: Server) -> None:
    to = connection(server)
    to.putrequest("POST", f"{REST}/store")
    to.putheader("Authorization", f"Bearer {server.key}")
    to.putheader("Content-Length", str(10**10))
    to.endheaders()
    response = to.getresponse()
    assert response.status == 413
    assert json.loads(response.read())["error"] == "payload_too_large"
    to.close()


def test_foreign_hosts_and_pages_are_refused(server: Server) -> None:
    to = connection(server)
    assert ask(to, "GET", "/health", Host="rebound.example")[0] == 421
    assert ask(to, "POST", "/mcp", b"{}", Origin="https://evil.example")[0] == 403
    to.close()


def test_settings_mistakes_end_with_code_2_and_a_hint(tmp_path: Path) -> None:
    result = run_cli(tmp_path, "serve", "--set", "rerank_dept=3")
    assert result.returncode == 2
    assert b"rerank_depth" in result.stderr
    assert run_cli(tmp_path, "serve", "--port", "70000").returncode == 2
    assert run_cli(tmp_path, "overview", HIVEMEM_PROT="1").returncode == 2


def test_an_unusable_data_directory_is_named(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("x")
    result = run_cli(file, "serve", "--port", "0")
    assert result.returncode == 8
    assert str(file) in result.stderr.decode()
    assert b"Traceback" not in result.stderr
    assert list(tmp_path.iterdir()) == [file]
