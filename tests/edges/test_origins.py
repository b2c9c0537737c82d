"""Which pages may talk to the server, and what a browser may do with its answers."""

from __future__ import annotations

from pathlib import Path

import httpx2
import pytest

from hivemem.errors import InvalidInput
from hivemem.settings import load_settings
from tests.surfaces.serving import REST, Served, served

APP = "https://app.example.org"
EVIL = "https://evil.example"
OPEN = [
    ("GET", "/.well-known/oauth-authorization-server"),
    ("GET", "/.well-known/oauth-protected-resource"),
    ("GET", "/.well-known/oauth-protected-resource/mcp"),
    ("POST", "/register"),
    ("POST", "/token"),
    ("POST", "/revoke"),
]
PAGES = [
    ("GET", "/authorize"),
    ("GET", "/oauth/sign-in"),
    ("POST", "/oauth/sign-in"),
    ("POST", "/oauth/consent"),
]
LISTED = [("POST", "/mcp"), ("POST", f"{REST}/store"), ("GET", f"{REST}/overview"), ("GET", "/health")]


def preflight(origin: str, method: str) -> dict[str, str]:
    return {
        "Origin": origin,
        "Access-Control-Request-Method": method,
        "Access-Control-Request-Headers": "authorization, content-type, mcp-protocol-version",
    }


@pytest.mark.parametrize(("method", "path"), [*LISTED, *PAGES, ("GET", "/openapi.json"), ("GET", "/nowhere")])
async def test_pages_of_others_are_refused_by_default(api: Served, method: str, path: str) -> None:
    for origin in (EVIL, "null", "http://localhost.evil.example"):
        response = await api.client.request(method, path, headers={"Origin": origin})
        assert response.status_code == 403
        assert response.json()["error"] == "origin_not_allowed"
        asked = await api.anonymous.options(path, headers=preflight(origin, method))
        assert asked.status_code == 403
        for answer in (response, asked):
            assert not [name for name in answer.headers if name.startswith("access-control")]


@pytest.mark.parametrize(("method", "path"), LISTED)
async def test_a_listed_page_is_let_in(tmp_path: Path, method: str, path: str) -> None:
    async with served(tmp_path, cors_origins=f"{APP}, http://127.0.0.1:5173") as api:
        # Before authentication: browsers send no credential with a preflight.
        asked = await api.anonymous.options(path, headers=preflight(APP, method))
        assert asked.status_code == 204
        assert asked.headers["access-control-allow-origin"] == APP
        assert method in asked.headers["access-control-allow-methods"]
        allowed = asked.headers["access-control-allow-headers"].split(", ")
        assert {"authorization", "content-type", "mcp-protocol-version", "mcp-method", "mcp-name"} <= set(
            allowed
        )
        assert "access-control-allow-credentials" not in asked.headers
        answer = await api.client.request(
            method, path, headers={"Origin": APP}, json={} if method == "POST" else None
        )
        assert answer.status_code not in (403, 404)
        assert answer.headers["access-control-allow-origin"] == APP
        assert "origin" in answer.headers["vary"].lower()
        exposed = answer.headers["access-control-expose-headers"].split(", ")
        assert {"www-authenticate", "x-request-id", "retry-after", "x-ratelimit-remaining"} <= set(exposed)


async def test_a_page_may_read_why_it_was_refused(tmp_path: Path) -> None:
    async with served(tmp_path, cors_origins=APP) as api:
        answer = await api.anonymous.post("/mcp", headers={"Origin": APP}, json={})
        assert answer.status_code == 401
        assert answer.headers["access-control-allow-origin"] == APP
        assert answer.headers["www-authenticate"].startswith("Bearer")


async def test_the_list_is_exact(tmp_path: Path) -> None:
    async with served(tmp_path, cors_origins=APP) as api:
        for origin in (
            EVIL,
            f"{APP}:8443",
            "http://app.example.org",
            f"{APP}.evil.example",
            f"https://x.{APP[8:]}",
        ):
            response = await api.client.get(f"{REST}/overview", headers={"Origin": origin})
            assert response.status_code == 403, origin


@pytest.mark.parametrize(("method", "path"), PAGES)
async def test_the_pages_of_a_sign_in_are_for_nobody_else(tmp_path: Path, method: str, path: str) -> None:
    async with served(tmp_path, cors_origins=APP) as api:
        for answer in (
            await api.anonymous.request(method, path, headers={"Origin": APP}),
            await api.anonymous.options(path, headers=preflight(APP, method)),
        ):
            assert answer.status_code == 403
            assert "access-control-allow-origin" not in answer.headers


@pytest.mark.parametrize(("method", "path"), OPEN)
async def test_programs_in_any_browser_can_sign_in(api: Served, method: str, path: str) -> None:
    for origin in ("http://localhost:6274", EVIL):
        asked = await api.anonymous.options(path, headers=preflight(origin, method))
        assert asked.status_code == 204
        assert asked.headers["access-control-allow-origin"] == "*"
        answer = await api.anonymous.request(method, path, headers={"Origin": origin})
        assert answer.status_code < 500
        assert answer.headers["access-control-allow-origin"] == "*"
        assert "access-control-allow-credentials" not in answer.headers


@pytest.mark.parametrize("path", ["/token", "/register", "/mcp", f"{REST}/overview", "/authorize"])
async def test_a_forged_host_gets_nowhere(tmp_path: Path, path: str) -> None:
    async with served(tmp_path, cors_origins=APP) as api:
        for headers in ({"Host": "evil.example"}, {"Host": "evil.example", "Origin": APP}):
            for method in ("GET", "POST", "OPTIONS"):
                sent = {**headers, "Access-Control-Request-Method": "POST"}
                answer = await api.client.request(method, path, headers=sent)
                assert answer.status_code == 421
                assert "access-control-allow-origin" not in answer.headers
        # A proxy's word on the host counts for nothing.
        answer = await api.client.get(path, headers={"Host": "evil.example", "X-Forwarded-Host": "localhost"})
        assert answer.status_code == 421


@pytest.mark.parametrize(
    "host",
    [
        "localhost/evil",
        "localhost?evil",
        "localhost#evil",
        'localhost", x="',
        "me@localhost",
        "localhost:80:80",
        "[::1",
        "[::1]x",
        "localhost:x",
        "localhost\\evil",
    ],
)
@pytest.mark.parametrize("allowed", ["", "*"])
async def test_a_host_is_a_name_and_a_port_and_nothing_else(tmp_path: Path, host: str, allowed: str) -> None:
    """What it holds is told to programs as the address of this server."""
    async with served(tmp_path, allowed_hosts=allowed) as api:
        for path in ("/.well-known/oauth-authorization-server", "/mcp"):
            assert (await api.anonymous.get(path, headers={"Host": host})).status_code == 421
        answer = await api.anonymous.get("/health", headers={"Origin": f"http://{host}"})
        assert (answer.status_code == 403) is not (allowed == "*")


@pytest.mark.parametrize("name", ["Host", "Origin"])
async def test_who_asks_for_two_places_is_refused(api: Served, name: str) -> None:
    good, bad = ("localhost", "evil.example") if name == "Host" else ("http://localhost", EVIL)
    for pair in ((good, bad), (bad, good), (good, good)):
        request = api.anonymous.build_request("GET", "/.well-known/oauth-authorization-server")
        kept = [(one, value) for one, value in request.headers.multi_items() if one != name.lower()]
        request.headers = httpx2.Headers([*kept, *((name, value) for value in pair)])
        answer = await api.anonymous.send(request)
        assert answer.status_code == 400
        assert "evil" not in answer.text


@pytest.mark.parametrize("host", ["localhost:8477", "LOCALHOST", "127.0.0.1:1", "[::1]:8477", "[::1]"])
async def test_a_host_of_ours_is_answered(api: Served, host: str) -> None:
    assert (await api.anonymous.get("/health", headers={"Host": host})).status_code == 200


@pytest.mark.parametrize(
    "value", ["*", "app.example.org", f"{APP}/", f"{APP}/path", "https://u:p@app.example.org"]
)
def test_origins_are_named_one_by_one(tmp_path: Path, value: str) -> None:
    with pytest.raises(InvalidInput, match="cors_origins"):
        load_settings({"data_dir": str(tmp_path), "cors_origins": value}, {})


async def test_headers_of_every_answer(api: Served) -> None:
    await api.store("fact_a")
    answers = [
        await api.client.get("/health"),
        await api.client.get("/openapi.json"),
        await api.client.get(f"{REST}/overview"),
        await api.anonymous.get(f"{REST}/overview"),
        await api.client.get("/nowhere"),
        await api.client.delete(f"{REST}/overview"),
        await api.client.get("/health", headers={"Host": "evil.example"}),
        await api.client.post("/mcp", json={}),
        await api.anonymous.post("/token", json={}),
        await api.anonymous.get("/authorize"),
        await api.anonymous.get("/oauth/sign-in?request=unknown"),
    ]
    assert {answer.status_code for answer in answers} >= {200, 401, 404, 405, 421, 400}
    for answer in answers:
        headers = answer.headers
        assert headers["x-content-type-options"] == "nosniff"
        assert "no-store" in headers["cache-control"]
        assert headers["referrer-policy"] in ("no-referrer", "same-origin")
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert headers["content-security-policy"].count("default-src 'none'") == 1
        assert "strict-transport-security" not in headers
        assert "server" not in headers
        assert not [value for value in headers.values() if "uvicorn" in value or "starlette" in value.lower()]


async def test_browsers_stay_with_https_when_clients_use_it(tmp_path: Path) -> None:
    async with served(tmp_path / "a", public_url="https://memory.example.org") as api:
        for path in ("/health", "/authorize", "/nowhere"):
            response = await api.client.get(path, headers={"Host": "memory.example.org"})
            assert response.headers["strict-transport-security"].startswith("max-age=")
    async with served(tmp_path / "b", public_url="http://memory.example.org") as api:
        assert "strict-transport-security" not in (await api.client.get("/health")).headers
