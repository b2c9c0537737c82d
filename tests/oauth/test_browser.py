"""A real browser signs in and consents: the policies of the pages must let it, and nothing else."""

from __future__ import annotations

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
from tests.surfaces.serving import Server

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
