"""A command line that others wrote signs in: a person lets it in with a password, and it stays in."""

from __future__ import annotations

import json
import os
import re
import sqlite3
import subprocess
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import httpx2
import pytest

from hivemem.settings import DATABASE_FILE
from tests.oauth.flow import hidden, query_of
from tests.surfaces.serving import REST, Server, bearer, run_cli

PASSWORD = "four quite ordinary words"
UNAUTHORIZED = 3

pytestmark = [pytest.mark.shared, pytest.mark.timeout(300)]


@dataclass
class CommandLine:
    """The program, with a home of its own and no credential in its environment."""

    program: Path
    home: Path
    url: str

    @property
    def environment(self) -> dict[str, str]:
        kept = {
            name: value for name, value in os.environ.items() if not name.startswith(("HM_", "HYPERMEMORY_"))
        }
        return kept | {
            "HOME": str(self.home),
            "HYPERMEMORY_API_URL": self.url,
            "HYPERMEMORY_NO_KEYRING": "1",
        }

    def run(self, *arguments: str) -> tuple[int, dict[str, Any]]:
        """Exit code, and what was printed."""
        done = subprocess.run(
            [self.program, "--json", *arguments],
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        return done.returncode, json.loads(done.stdout or "{}")

    def log_in(self, name: str, password: str) -> int:
        """Sign in as the program wants it: open its address somewhere, paste where the browser ends up."""
        running = subprocess.Popen(
            [self.program, "login", "--no-browser"],
            env=self.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert running.stdin is not None and running.stderr is not None and running.stdout is not None
        address = first_match(running.stderr, rf"{re.escape(self.url)}/authorize\?\S+")
        running.stdin.write(person_decides(self.url, address, name, password) + "\n")
        running.stdin.flush()
        rest = threading.Thread(target=running.stderr.read)
        rest.start()
        code = running.wait(timeout=60)
        rest.join()
        for stream in (running.stdin, running.stdout, running.stderr):
            stream.close()
        return code

    @property
    def kept(self) -> dict[str, str]:
        return json.loads((self.home / ".config" / "hypermemory" / "config.json").read_text("utf-8"))


def first_match(lines: IO[str], pattern: str) -> str:
    for line in lines:
        found = re.search(pattern, line)
        if found is not None:
            return found[0]
    raise AssertionError(f"no line with {pattern}")


def person_decides(url: str, address: str, name: str, password: str) -> str:
    """Where a person's browser ends up, after they signed in and allowed everything."""
    with httpx2.Client(base_url=url) as browser:
        request = query_of(browser.get(address))["request"]
        sent = {"request": request, "way": "password", "name": name, "password": password}
        page = browser.post("/oauth/sign-in", data=sent)
        decided = {name: hidden(page, name) for name in ("request", "consent")}
        return browser.post("/oauth/consent", data={**decided, "decision": "allow"}).headers["location"]


def administer(server: Server, *arguments: str, stdin: str = "") -> dict[str, Any]:
    done = run_cli(server.data_dir, *arguments, "--json", stdin=stdin)
    assert done.returncode == 0, done.stderr.decode()
    return json.loads(done.stdout)


def change_tokens(server: Server, statement: str) -> None:
    """Let time pass for tokens, where the server keeps it."""
    with sqlite3.connect(server.data_dir / DATABASE_FILE) as connection:
        assert connection.execute(f"UPDATE oauth_tokens SET {statement}").rowcount >= 1
    connection.close()


@pytest.fixture
def signed_in(environment_folder: Path, tmp_path: Path) -> Any:
    with Server(tmp_path / "data") as server:
        administer(server, "user", "add", "ada", "--password-stdin", stdin=PASSWORD)
        (tmp_path / "home").mkdir()
        program = CommandLine(environment_folder / "bin" / "hm", tmp_path / "home", server.url)
        assert program.run("overview")[0] == UNAUTHORIZED
        assert program.log_in("ada", PASSWORD) == 0
        yield server, program


def test_it_works_with_the_memory_of_the_person(signed_in: tuple[Server, CommandLine]) -> None:
    server, program = signed_in
    assert program.run("store", "fact_a", "By OAuth.")[0] == 0
    code, overview = program.run("overview")
    assert (code, overview["nodes"]) == (0, 1)
    [grant] = administer(server, "grant", "list", "--user", "ada")["grants"]
    # It asks for all scopes, and the page says so; what the token administers is what ada may.
    assert grant["scopes"] == ["memory:read", "memory:write", "memory:admin"]
    assert (grant["program"], grant["key_id"]) == ("HyperMemory CLI", None)


def test_an_expired_access_token_is_refreshed_by_it(signed_in: tuple[Server, CommandLine]) -> None:
    server, program = signed_in
    before = program.kept
    change_tokens(server, "expires_at = 1 WHERE kind = 'access'")
    refused = httpx2.get(f"{server.url}{REST}/overview", headers=bearer(before["access_token"]))
    assert refused.status_code == 401
    assert program.run("overview")[0] == 0
    after = program.kept
    assert after["access_token"] != before["access_token"]
    assert after["refresh_token"] != before["refresh_token"]
    assert program.run("overview")[0] == 0
    assert program.kept == after


def test_a_stolen_refresh_token_ends_it(signed_in: tuple[Server, CommandLine]) -> None:
    server, program = signed_in
    stolen = program.kept
    change_tokens(server, "expires_at = 1 WHERE kind = 'access'")
    assert program.run("overview")[0] == 0
    change_tokens(server, "used_at = used_at - 31000000 WHERE used_at IS NOT NULL")
    sent = {
        "grant_type": "refresh_token",
        "refresh_token": stolen["refresh_token"],
        "client_id": stolen["client_id"],
    }
    thief = httpx2.post(f"{server.url}/token", json=sent)
    assert (thief.status_code, thief.json()["error"]) == (400, "invalid_grant")
    assert program.run("overview")[0] == UNAUTHORIZED
    [event] = administer(server, "audit", "list", "--action", "grant.reuse")["events"]
    assert event["detail"]["of"] == "refresh_token"


def test_logging_out_forgets_the_tokens_and_the_server_ends_them(
    signed_in: tuple[Server, CommandLine],
) -> None:
    """The program forgets its tokens and tells nobody: they end here, by the person or by the operator."""
    server, program = signed_in
    tokens = program.kept
    assert program.run("logout")[0] == 0
    assert program.run("overview")[0] == UNAUTHORIZED
    assert "refresh_token" not in program.kept or not program.kept["refresh_token"]
    headers = bearer(tokens["access_token"])
    assert httpx2.get(f"{server.url}{REST}/overview", headers=headers).status_code == 200
    # Ada's own token has the scope for it.
    [grant] = httpx2.get(f"{server.url}/api/v1/admin/grants", headers=headers).json()["grants"]
    ended = httpx2.delete(f"{server.url}/api/v1/admin/grants/{grant['grant_id']}", headers=headers)
    assert ended.json()["revoked"] is True
    assert httpx2.get(f"{server.url}{REST}/overview", headers=headers).status_code == 401
    sent = {
        "grant_type": "refresh_token",
        "refresh_token": tokens["refresh_token"],
        "client_id": tokens["client_id"],
    }
    assert httpx2.post(f"{server.url}/token", json=sent).json()["error"] == "invalid_grant"
    assert program.log_in("ada", PASSWORD) == 0
    assert program.run("overview")[0] == 0
