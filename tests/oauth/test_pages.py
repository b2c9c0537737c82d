"""The pages of a sign-in: what they show, what they let happen, and who can answer them."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import httpx2
import pytest

from tests.oauth.flow import REDIRECT, Program, hidden, query_of
from tests.surfaces.serving import Served, served

HEADERS = {
    "cache-control": "no-store",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",
    "x-content-type-options": "nosniff",
}


def policy_of(page: httpx2.Response) -> dict[str, str]:
    parts = page.headers["content-security-policy"].split("; ")
    return {name: value for name, _, value in (part.partition(" ") for part in parts)}


def assert_closed(page: httpx2.Response, form_action: str) -> None:
    """The page runs nothing, loads nothing, is in no frame and in no cache."""
    assert {name: page.headers[name] for name in HEADERS} == HEADERS
    policy = policy_of(page)
    assert re.fullmatch(r"'sha256-[A-Za-z0-9+/]{43}='", policy.pop("style-src"))
    assert policy == {
        "default-src": "'none'",
        "base-uri": "'none'",
        "frame-ancestors": "'none'",
        "form-action": form_action,
    }
    assert "<script" not in page.text


class Accessible(HTMLParser):
    """What a screen reader needs of a page."""

    def __init__(self, page: httpx2.Response) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page.text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def of(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]

    def check(self) -> None:
        assert self.of("html") == [{"lang": "en"}]
        assert len(self.of("title")) == len(self.of("h1")) == len(self.of("main")) == 1
        labels = {label["for"] for label in self.of("label")}
        for field in (*self.of("input"), *self.of("select")):
            assert field.get("type") == "hidden" or field["id"] in labels
        ids = [attributes["id"] for _, attributes in self.tags if "id" in attributes]
        assert len(ids) == len(set(ids))


async def test_the_sign_in_asks_for_a_password_then_for_a_key_and_shows_who_asks(program: Program) -> None:
    started = await program.authorize()
    assert re.fullmatch(r"/oauth/sign-in\?request=[\w-]{43}", started.headers["location"])
    page = await program.http.get(started.headers["location"])
    assert page.status_code == 200
    assert_closed(page, "'self'")
    assert "<strong>Agent</strong>" in page.text
    assert f"<code>{REDIRECT}</code>" in page.text
    accessible = Accessible(page)
    accessible.check()
    fields = [(field["name"], field["type"]) for field in accessible.of("input") if field["type"] != "hidden"]
    assert fields == [("name", "text"), ("password", "password"), ("api_key", "password")]
    assert "oidc" not in page.text


async def test_a_wrong_key_is_told_and_can_be_mended(api: Served, program: Program) -> None:
    request = query_of(await program.authorize())["request"]
    for wrong in ("", "wrong", "hm_" + "0" * 64):
        page = await program.sign_in(request, wrong)
        assert page.status_code == 403
        assert 'role="alert"' in page.text
        assert_closed(page, "'self'")
        assert not wrong or wrong not in page.text
    assert hidden(await program.sign_in(request, f"  {api.key}\n"), "consent")


async def test_the_consent_page_says_who_gets_what(api: Served, program: Program) -> None:
    owner = await api.services.access.local_principal()
    key, _ = await api.services.keys.create(owner, name="admin", admin=True)
    page = await program.consent_page(key, scope="memory:read memory:write memory:admin")
    assert page.status_code == 200
    assert_closed(page, f"'self' {REDIRECT}")
    Accessible(page).check()
    assert "<strong>Agent</strong>" in page.text
    assert f"<code>{REDIRECT}</code>" in page.text
    assert re.findall(r"<code>(memory:\w+)</code>", page.text) == [
        "memory:read",
        "memory:write",
        "memory:admin",
    ]
    assert api.key not in page.text
    reading = await program.consent_page(api.read_only_key)
    assert re.findall(r"<code>(memory:\w+)</code>", reading.text) == ["memory:read"]


@pytest.mark.parametrize(
    ("redirect_uri", "form_action"),
    [
        ("http://localhost:3118/callback", "'self' http://localhost:3118"),
        ("http://[::1]:3118/callback", "'self' http:"),
        ("https://agent.example/callback;x", "'self' https:"),
        ("cursor://agent/callback", "'self' cursor:"),
        ("com.example.app:/callback", "'self' com.example.app:"),
    ],
)
async def test_the_form_may_only_lead_where_the_program_is(
    api: Served, redirect_uri: str, form_action: str
) -> None:
    program = await Program.register(api.anonymous, redirect_uris=[redirect_uri])
    page = await program.consent_page(api.key, redirect_uri=redirect_uri)
    assert_closed(page, form_action)
    decided = await program.decide(page)
    assert decided.headers["location"].startswith(redirect_uri + "?code=")


async def test_a_refusal_goes_back_to_the_program(api: Served, program: Program) -> None:
    page = await program.consent_page(api.key)
    told = query_of(await program.decide(page, "deny"))
    assert (told["error"], told["state"], told["iss"]) == (
        "access_denied",
        "a state & more",
        "http://localhost",
    )
    assert "code" not in told
    assert (await program.decide(page, "allow")).status_code == 404


@pytest.mark.parametrize("decision", ["", "ALLOW", "yes"])
async def test_only_allow_allows(api: Served, program: Program, decision: str) -> None:
    assert (
        query_of(await program.decide(await program.consent_page(api.key), decision))["error"]
        == "access_denied"
    )


async def test_names_are_text_and_nothing_else(api: Served) -> None:
    name = '<script>alert(1)</script>"\u202e\x00 & ' + "x" * 200
    program = await Program.register(api.anonymous, client_name=name)
    page = await program.consent_page(api.key)
    assert "&lt;script&gt;alert(1)&lt;/script&gt;&quot; &amp; " in page.text
    assert "\u202e" not in page.text
    assert "x" * 100 not in page.text
    nameless = await Program.register(api.anonymous, client_name=None)
    assert f"<strong>{nameless.client_id}</strong>" in (await nameless.consent_page(api.key)).text


async def test_consent_needs_what_only_the_shown_page_knows(api: Served, program: Program) -> None:
    """A page of somebody else can make a browser post a form, but knows neither of the two secrets."""
    page = await program.consent_page(api.key)
    request = hidden(page, "request")
    for forged in (
        {"request": request, "decision": "allow"},
        {"request": request, "consent": "x" * 43, "decision": "allow"},
        {"request": "x" * 43, "consent": hidden(page, "consent"), "decision": "allow"},
    ):
        response = await api.anonymous.post("/oauth/consent", data=forged)
        assert response.status_code in (400, 404)
        assert "location" not in response.headers
    foreign = {"Origin": "https://evil.example"}
    sent = {"request": request, "consent": hidden(page, "consent"), "decision": "allow"}
    assert (await api.anonymous.post("/oauth/consent", data=sent, headers=foreign)).status_code == 403
    assert "set-cookie" not in page.headers
    assert query_of(await program.decide(page))["code"]


async def test_a_sign_in_that_is_over_says_so(api: Served, program: Program) -> None:
    page = await program.consent_page(api.key)
    await program.decide(page)
    again = await program.decide(page)
    assert again.status_code == 404
    assert_closed(again, "'none'")
    assert "start again in your agent" in again.text
    for address in ("/oauth/sign-in", "/oauth/sign-in?request=unknown"):
        assert (await api.anonymous.get(address)).status_code in (400, 404)
    sent = {"request": query_of(await program.authorize())["request"], "way": "none", "api_key": api.key}
    assert (await api.anonymous.post("/oauth/sign-in", data=sent)).status_code == 400


async def test_attempts_to_sign_in_are_limited(tmp_path: Path) -> None:
    async with served(tmp_path) as api:
        program = await Program.register(api.anonymous)
        request = query_of(await program.authorize())["request"]
        statuses = [(await program.sign_in(request, "wrong")).status_code for _ in range(11)]
        assert statuses == [403] * 10 + [429]
        late = await program.sign_in(request, api.key)
        assert late.status_code == 429
        assert 1 <= int(late.headers["retry-after"]) <= 10
