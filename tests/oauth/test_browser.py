"""A real browser signs in and consents: the policies of the pages must let it, and nothing else."""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import httpx2
import pytest

from tests.oauth.flow import CHALLENGE, VERIFIER
from tests.oauth.provider import Person, provider
from tests.oauth.test_oidc import settings_for
from tests.surfaces.serving import Server, run_cli

CHROMIUM = shutil.which("chromium")


@pytest.fixture
def chromium() -> Iterator[Any]:
    """A browser; skipped where Chromium or the library that drives it is not installed."""
    driver = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if CHROMIUM is None:
        pytest.skip("chromium is not installed")
    with driver.sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM,
            args=["--no-sandbox", "--disable-gpu", "--disable-background-networking"],
        )
        yield browser
        browser.close()


class Callback(BaseHTTPRequestHandler):
    """The program that waits for the browser on this machine."""

    def do_GET(self) -> None:
        self.server.asked.append(self.path)  # type: ignore[attr-defined]
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"You may close this window.")

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def waiting() -> Iterator[HTTPServer]:
    server = HTTPServer(("127.0.0.1", 0), Callback)
    server.asked = []  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.parametrize("decision", ["Allow", "Deny"])
def test_a_person_decides(tmp_path: Path, chromium: Any, waiting: HTTPServer, decision: str) -> None:
    redirect = f"http://127.0.0.1:{waiting.server_port}"
    with Server(tmp_path) as server:
        registered = httpx2.post(
            f"{server.url}/register",
            json={"redirect_uris": ["http://127.0.0.1"], "token_endpoint_auth_method": "none"},
        ).json()
        asked = {
            "response_type": "code",
            "client_id": registered["client_id"],
            "redirect_uri": redirect,
            "code_challenge": CHALLENGE,
            "code_challenge_method": "S256",
            "state": "s",
        }
        page = chromium.new_page()
        violations: list[str] = []
        page.on("console", lambda message: violations.append(message.text))
        page.goto(f"{server.url}/authorize?{urlencode(asked)}")
        page.get_by_label("API key").fill("hm_wrong")
        page.get_by_role("button", name="Continue with the key").click()
        assert "not an API key" in page.get_by_role("alert").inner_text()
        # The browser tells of the refused attempt; of the page itself it has nothing to complain.
        assert [text for text in violations if "Content Security Policy" in text] == []
        page.get_by_label("API key").fill(server.key)
        page.get_by_role("button", name="Continue").click()
        assert "memory:write" in page.locator("main").inner_text()
        with page.expect_navigation():
            page.get_by_role("button", name=decision).click()
        assert page.url.startswith(f"{redirect}/?")
        assert "You may close this window." in page.content()
        assert [text for text in violations if "Content Security Policy" in text] == []

        [path] = [path for path in waiting.asked if path.startswith("/?")]  # type: ignore[attr-defined]
        answer = {name: values[0] for name, values in parse_qs(urlsplit(path).query).items()}
        assert (answer["state"], answer["iss"]) == ("s", server.url)
        if decision == "Deny":
            assert answer["error"] == "access_denied"
            return
        sent = {
            "grant_type": "authorization_code",
            "code": answer["code"],
            "redirect_uri": redirect,
            "client_id": registered["client_id"],
            "code_verifier": VERIFIER,
        }
        assert httpx2.post(f"{server.url}/token", json=sent).status_code == 200


def test_no_other_page_shows_ours_in_a_frame(tmp_path: Path, chromium: Any, waiting: HTTPServer) -> None:
    with Server(tmp_path) as server:
        page = chromium.new_page()
        violations: list[str] = []
        page.on("console", lambda message: violations.append(message.text))
        page.goto(f"http://127.0.0.1:{waiting.server_port}/page")
        page.set_content(f'<iframe src="{server.url}/oauth/sign-in?request=x"></iframe>')
        page.wait_for_function("document.querySelector('iframe') !== null")
        page.wait_for_timeout(500)
        assert any("frame" in text.lower() for text in violations), violations


# People, who sign in without a key ------------------------------------------------------------------

PASSWORD = "four quite ordinary words"


def administer(folder: Path, *arguments: str, stdin: str = "") -> dict[str, Any]:
    done = run_cli(folder, *arguments, "--json", stdin=stdin)
    assert done.returncode == 0, done.stderr.decode()
    return json.loads(done.stdout)


def begun(server: Server, redirect: str) -> tuple[str, dict[str, str]]:
    """A program's id, and the request for access that it opens a browser with."""
    registered = httpx2.post(
        f"{server.url}/register",
        json={"redirect_uris": ["http://127.0.0.1"], "token_endpoint_auth_method": "none"},
    ).json()
    asked = {
        "response_type": "code",
        "client_id": registered["client_id"],
        "redirect_uri": redirect,
        "code_challenge": CHALLENGE,
        "code_challenge_method": "S256",
        "state": "s",
    }
    return registered["client_id"], asked


def listened(page: Any) -> list[str]:
    """What the browser complains about, as it comes."""
    told: list[str] = []
    page.on("console", lambda message: told.append(message.text))
    return told


def exchanged(server: Server, page: Any, client_id: str, redirect: str) -> str:
    """The access token for the code in the browser's address."""
    answer = {name: values[0] for name, values in parse_qs(urlsplit(page.url).query).items()}
    sent = {
        "grant_type": "authorization_code",
        "code": answer["code"],
        "redirect_uri": redirect,
        "client_id": client_id,
        "code_verifier": VERIFIER,
    }
    return httpx2.post(f"{server.url}/token", json=sent).json()["access_token"]


def test_a_person_signs_in_with_a_password_and_chooses_a_memory(
    tmp_path: Path, chromium: Any, waiting: HTTPServer
) -> None:
    redirect = f"http://127.0.0.1:{waiting.server_port}"
    with Server(tmp_path) as server:
        administer(tmp_path, "user", "add", "ada", "--password-stdin", stdin=PASSWORD)
        work = administer(tmp_path, "graph", "add", "work", "--user", "ada")
        administer(tmp_path, "org", "add", "Acme", "--owner", "ada")
        client_id, asked = begun(server, redirect)
        page = chromium.new_page()
        told = listened(page)
        page.goto(f"{server.url}/authorize?{urlencode(asked)}")
        # The first field has the focus: somebody types, and presses Enter.
        page.keyboard.type("ada")
        page.keyboard.press("Tab")
        page.keyboard.type("wrong")
        page.keyboard.press("Enter")
        page.get_by_role("alert").wait_for()
        assert "not right" in page.get_by_role("alert").inner_text()
        page.get_by_label("Name").fill("ada")
        page.get_by_label("Password").fill(PASSWORD)
        page.get_by_role("button", name="Sign in").click()
        choice = page.get_by_label("Memory that the program works with")
        assert choice.locator("option").all_inner_texts() == [
            "default (yours)",
            "work (yours)",
            "Acme (organization)",
        ]
        choice.select_option(label="work (yours)")
        with page.expect_navigation():
            page.get_by_role("button", name="Allow").click()
        assert [text for text in told if "Content Security Policy" in text] == []
        token = exchanged(server, page, client_id, redirect)
        body = {"key": "fact_w", "description": "At work."}
        headers = {"Authorization": f"Bearer {token}"}
        stored = httpx2.post(f"{server.url}/api/v1/memory/store", json=body, headers=headers)
        assert stored.status_code == 200
        [grant] = administer(tmp_path, "grant", "list")["grants"]
        assert grant["graph_id"] == work["graph_id"]
        assert administer(tmp_path, "grant", "revoke", grant["grant_id"])["revoked"] is True
        assert httpx2.get(f"{server.url}/api/v1/memory/overview", headers=headers).status_code == 401


def test_somebody_new_joins_by_an_invitation(tmp_path: Path, chromium: Any, waiting: HTTPServer) -> None:
    with Server(tmp_path) as server:
        administer(tmp_path, "org", "add", "Acme", "--owner", "owner")
        secret = administer(tmp_path, "org", "invite", "Acme")["secret"]
        page = chromium.new_page()
        told = listened(page)
        page.goto(f"{server.url}/join?invitation={secret}")
        assert page.get_by_role("heading", level=1).inner_text() == "Join Acme"
        page.locator("#new-name").fill("grace")
        page.locator("#new-password").fill("short")
        button = page.get_by_role("button", name="Make an account and join")
        button.click()
        # The browser itself says that it is too short; nothing was sent.
        assert page.locator("#new-password:invalid").count() == 1
        page.locator("#new-password").fill(PASSWORD)
        button.click()
        assert "You have joined as member" in page.get_by_role("status").inner_text()
        assert secret not in page.url
        assert [text for text in told if "Content Security Policy" in text] == []
        shown = administer(tmp_path, "org", "show", "Acme")
        assert [(one["name"], one["role"]) for one in shown["members"]] == [
            ("owner", "owner"),
            ("grace", "member"),
        ]
        page.goto(f"{server.url}/join?invitation={secret}")
        assert "ask for a new one" in page.get_by_role("alert").inner_text()
        _, log = server.stop()
        assert secret not in log and PASSWORD not in log


def test_the_way_to_a_provider_and_back(tmp_path: Path, chromium: Any, waiting: HTTPServer) -> None:
    redirect = f"http://127.0.0.1:{waiting.server_port}"
    with provider(Person("subject-1", {"preferred_username": "grace"})) as idp:
        settings = settings_for(idp, oidc_accounts="create", oidc_name="Acme")
        extra = {f"HIVEMEM_{name.upper()}": str(value) for name, value in settings.items()}
        with Server(tmp_path, **extra) as server:
            client_id, asked = begun(server, redirect)
            page = chromium.new_page()
            told = listened(page)
            page.goto(f"{server.url}/authorize?{urlencode(asked)}")
            page.get_by_role("link", name="Continue with Acme").click()
            assert "signed in as grace" in page.locator("main").inner_text()
            with page.expect_navigation():
                page.get_by_role("button", name="Allow").click()
            assert page.url.startswith(f"{redirect}/?")
            assert [text for text in told if "Content Security Policy" in text] == []
            token = exchanged(server, page, client_id, redirect)
            headers = {"Authorization": f"Bearer {token}"}
            assert httpx2.get(f"{server.url}/api/v1/memory/overview", headers=headers).status_code == 200
