"""Sign-ins as real hosts make them: loopback ports that change, shared web addresses, look-alike hosts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.cases.reports import Report
from tests.oauth.flow import CHALLENGE, Program
from tests.surfaces.serving import Served, bearer, served

PUBLIC = "https://memory.example"
WEB = "https://claude.ai/api/mcp/auth_callback"


async def is_sent_back(program: Program, uri: str, **changes: str | None) -> bool:
    """Whether a request with this address is taken; one that is refused leads nowhere."""
    response = await program.authorize(redirect_uri=uri, **changes)
    location = response.headers.get("location")
    if location is None:
        assert 400 <= response.status_code < 500
        return False
    # Either to our own sign-in, or with an error to the address, which then must be registered.
    return urlsplit(location).path == "/oauth/sign-in" or "error=" not in location


async def works(api: Served, token: str) -> bool:
    answer = await api.anonymous.get("/api/v1/memory/overview", headers=bearer(token))
    return answer.status_code == 200


@pytest.mark.shared
async def test_reported_sign_ins(tmp_path: Path, report: Callable[[str], Report]) -> None:
    case = report("C37")
    registrations: list[Mapping[str, Any]] = [step["oauth"]["register"] for step in case.setup]
    async with served(tmp_path, public_url=PUBLIC) as api:
        http = api.anonymous
        asked = await http.post("/mcp", json={"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
        assert asked.status_code == 401
        assert f'resource_metadata="{PUBLIC}/' in asked.headers["www-authenticate"]
        for path in (
            "/.well-known/oauth-protected-resource",
            "/.well-known/oauth-authorization-server",
        ):
            told = (await http.get(path)).json()
            addresses = [value for value in told.values() if isinstance(value, str) and "://" in value]
            assert addresses
            assert all(value.startswith(PUBLIC) for value in addresses), told
        programs = {
            given["as"]: await Program.register(
                http, **{name: value for name, value in given.items() if name != "as"}
            )
            for given in registrations
        }
        expected = [True, True, False, False, False, False]
        steps = [step["oauth"]["authorize"] for step in case.sequence if "authorize" in step.get("oauth", ())]
        for step, taken in zip(steps, expected, strict=True):
            without = {"code_challenge": None, "code_challenge_method": None}
            changes = without if step["pkce"] == "none" else {}
            program = programs[step["client"]]
            assert await is_sent_back(program, step["redirect_uri"], **changes) is taken, step
        refreshing: dict[str, str] = {}
        for name in ("web1", "web2"):
            tokens = await _whole_flow(api, programs[name], WEB)
            assert await works(api, tokens["access_token"])
            refreshing[name] = tokens["refresh_token"]
    async with served(tmp_path, public_url=PUBLIC) as api:
        again = Program(api.anonymous, programs["web1"].registration)
        refreshed = await again.refresh(refreshing["web1"])
        assert refreshed.status_code == 200, refreshed.text
        assert await works(api, refreshed.json()["access_token"])


async def _whole_flow(api: Served, program: Program, uri: str) -> dict[str, Any]:
    code = await program.code(api.key, redirect_uri=uri)
    first = await program.exchange(code, redirect_uri=uri)
    assert first.status_code == 200, first.text
    other_code = await program.code(api.key, redirect_uri=uri)
    other = await program.exchange(other_code, redirect_uri=uri)
    second = await program.exchange(other_code, redirect_uri=uri)
    assert (other.status_code, second.json()["error"]) == (200, "invalid_grant"), "a code works once"
    return first.json()


@pytest.mark.parametrize(
    "uri",
    [
        "http://[::1]:41877/callback",
        "http://127.0.0.1:41877/callback/",
        "http://127.0.0.1:41877/callback?next=/other",
        "http://127.0.0.1:41877/callback#there",
        "http://user@127.0.0.1:41877/callback",
        "http://127.0.0.1.evil.example:41877/callback",
        "http://127.0.0.1:41877@evil.example/callback",
        "https://127.0.0.1:41877/callback",
        "http://127.1:41877/callback",
    ],
)
async def test_on_loopback_only_the_port_may_differ(tmp_path: Path, uri: str) -> None:
    async with served(tmp_path) as api:
        program = await Program.register(api.anonymous, redirect_uris=["http://127.0.0.1/callback"])
        assert await is_sent_back(program, "http://127.0.0.1:41877/callback")
        assert not await is_sent_back(program, uri)


@pytest.mark.parametrize(
    "changes",
    [
        {"code_challenge_method": "plain"},
        {"code_challenge": "short"},
        {"code_challenge": None},
        {"code_challenge": CHALLENGE, "code_challenge_method": None},
        {"response_type": "token"},
    ],
)
async def test_without_a_proper_challenge_nobody_gets_a_code(
    tmp_path: Path, changes: dict[str, str | None]
) -> None:
    async with served(tmp_path) as api:
        program = await Program.register(api.anonymous, redirect_uris=[WEB])
        assert await is_sent_back(program, WEB)
        assert not await is_sent_back(program, WEB, **changes)
