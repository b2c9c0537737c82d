"""The official client of the protocol signs in at a real server, and works with what it gets."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest
from mcp import Client
from mcp.client.auth import OAuthClientProvider, TokenStorage
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthToken,
)

from tests.oauth.flow import query_of
from tests.support.postgres import fresh_database
from tests.surfaces.serving import REST, Server, bearer, run_cli


class Kept(TokenStorage):
    """What a program keeps between its starts."""

    tokens: OAuthToken | None = None
    client: OAuthClientInformationFull | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info


class Browser:
    """A person with a browser, who allows everything."""

    def __init__(self, base: str, key: str) -> None:
        self.base = base
        self.key = key
        self.asked: dict[str, list[str]] = {}
        self.answer: dict[str, str] = {}

    async def open(self, address: str) -> None:
        self.asked = parse_qs(urlsplit(address).query)
        async with httpx2.AsyncClient(base_url=self.base) as http:
            request = query_of(await http.get(address))["request"]
            sent = {"request": request, "way": "api_key", "api_key": self.key}
            page = (await http.post("/oauth/sign-in", data=sent)).text
            consent = page.partition('name="consent" value="')[2].partition('"')[0]
            decided = {"request": request, "consent": consent, "decision": "allow"}
            self.answer = query_of(await http.post("/oauth/consent", data=decided))

    async def callback(self) -> AuthorizationCodeResult:
        return AuthorizationCodeResult(
            code=self.answer["code"], state=self.answer.get("state"), iss=self.answer.get("iss")
        )


async def overview(server: Server, browser: Browser, kept: Kept, **metadata: object) -> int:
    """The number of nodes after one was stored, by a program that knows nothing but the address."""
    oauth = OAuthClientProvider(
        f"{server.url}/mcp",
        OAuthClientMetadata.model_validate(
            {"redirect_uris": ["http://127.0.0.1:51234/callback"], "client_name": "official", **metadata}
        ),
        kept,
        browser.open,
        browser.callback,
    )
    async with (
        httpx2.AsyncClient(auth=oauth) as http,
        Client(streamable_http_client(f"{server.url}/mcp", http_client=http)) as client,
    ):
        await client.call_tool("hm_store", {"key": "fact_a", "description": "By OAuth."})
        result = await client.call_tool("hm_get_overview", {})
        assert result.structured_content is not None
        return int(result.structured_content["nodes"])


@pytest.mark.parametrize("store", ["sqlite", "postgres"])
async def test_the_whole_way(tmp_path: Path, store: str) -> None:
    settings = {"HIVEMEM_DATABASE_URL": fresh_database()} if store == "postgres" else {}
    with Server(tmp_path, **settings) as server:
        browser, kept = Browser(server.url, server.key), Kept()
        assert await overview(server, browser, kept, token_endpoint_auth_method="none") == 1
        assert browser.asked["code_challenge_method"] == ["S256"]
        assert browser.asked["resource"] == [f"{server.url}/mcp"]
        assert browser.asked["scope"] == ["memory:read memory:write"]
        assert kept.tokens is not None and kept.client is not None
        assert kept.client.token_endpoint_auth_method == "none"

        # The same token works on REST, and in the next start of the program without a browser.
        headers = bearer(kept.tokens.access_token)
        assert httpx2.get(f"{server.url}{REST}/overview", headers=headers).json()["nodes"] == 1
        browser.key = "none"
        assert await overview(server, browser, kept) == 1

        # Another process, which knows the database only, ends the key.
        assert run_cli(tmp_path, "key", "revoke", server.key, **settings).returncode == 0
        assert httpx2.get(f"{server.url}{REST}/overview", headers=headers).status_code == 401


async def test_an_expired_access_token_is_refreshed(tmp_path: Path) -> None:
    with Server(tmp_path) as server:
        browser, kept = Browser(server.url, server.key), Kept()
        await overview(server, browser, kept, token_endpoint_auth_method="none")
        assert kept.tokens is not None and kept.client is not None
        sent = {
            "grant_type": "refresh_token",
            "refresh_token": kept.tokens.refresh_token,
            "client_id": kept.client.client_id,
        }
        refreshed = httpx2.post(f"{server.url}/token", json=sent)
        assert refreshed.status_code == 200
        kept.tokens = OAuthToken.model_validate(refreshed.json())
        browser.key = "none"
        assert await overview(server, browser, kept) == 1


async def test_a_program_with_a_secret(tmp_path: Path) -> None:
    with Server(tmp_path) as server:
        kept = Kept()
        assert await overview(server, Browser(server.url, server.key), kept) == 1
        assert kept.client is not None
        assert kept.client.token_endpoint_auth_method == "client_secret_basic"
        assert kept.client.client_secret
