"""The official client of the protocol signs in for a person with a password, in both eras of the protocol."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal

import httpx2
import pytest
from mcp import Client
from mcp.client.auth import OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientMetadata

from tests.oauth.flow import hidden, query_of
from tests.oauth.test_client_flow import Kept
from tests.support.postgres import fresh_database
from tests.surfaces.serving import REST, Server, bearer, run_cli

PASSWORD = "four quite ordinary words"
Era = Literal["auto", "legacy"]


class Person:
    """Somebody with a browser, who signs in and allows everything. `opened` counts how often it opened."""

    def __init__(self, base: str, graph_id: str) -> None:
        self.base = base
        self.graph_id = graph_id
        self.opened = 0
        self.answer: dict[str, str] = {}

    async def open(self, address: str) -> None:
        self.opened += 1
        async with httpx2.AsyncClient(base_url=self.base) as http:
            request = query_of(await http.get(address))["request"]
            sent = {"request": request, "way": "password", "name": "ada", "password": PASSWORD}
            page = await http.post("/oauth/sign-in", data=sent)
            decided = {name: hidden(page, name) for name in ("request", "consent")}
            decided |= {"decision": "allow", "graph": self.graph_id}
            self.answer = query_of(await http.post("/oauth/consent", data=decided))

    async def callback(self) -> AuthorizationCodeResult:
        return AuthorizationCodeResult(
            code=self.answer["code"], state=self.answer.get("state"), iss=self.answer.get("iss")
        )


@asynccontextmanager
async def connected(
    server: Server, person: Person, kept: Kept, era: Era
) -> AsyncIterator[tuple[Client, OAuthClientProvider, list[str]]]:
    """A client that knows an address and nothing else, and the paths that it asks for."""
    asked: list[str] = []

    async def note(request: httpx2.Request) -> None:
        asked.append(request.url.path)

    oauth = OAuthClientProvider(
        f"{server.url}/mcp",
        OAuthClientMetadata.model_validate(
            {
                "redirect_uris": ["http://127.0.0.1:51234/callback"],
                "client_name": "official",
                "token_endpoint_auth_method": "none",
            }
        ),
        kept,
        person.open,
        person.callback,
    )
    async with httpx2.AsyncClient(auth=oauth, event_hooks={"request": [note]}) as http:
        transport = streamable_http_client(f"{server.url}/mcp", http_client=http)
        async with Client(transport, mode=era) as client:
            yield client, oauth, asked


async def nodes(client: Client) -> int:
    result = await client.call_tool("hm_get_overview", {})
    assert result.structured_content is not None
    return int(result.structured_content["nodes"])


@pytest.mark.parametrize("era", ["auto", "legacy"])
@pytest.mark.parametrize("store", ["sqlite", "postgres"])
async def test_the_whole_way(tmp_path: Path, store: str, era: Era) -> None:
    settings = {"HIVEMEM_DATABASE_URL": fresh_database()} if store == "postgres" else {}

    def administer(*arguments: str, stdin: str = "") -> dict[str, Any]:
        done = run_cli(tmp_path, *arguments, "--json", stdin=stdin, **settings)
        assert done.returncode == 0, done.stderr.decode()
        return json.loads(done.stdout)

    with Server(tmp_path, **settings) as server:
        administer("user", "add", "ada", "--password-stdin", stdin=PASSWORD)
        work = administer("graph", "add", "work", "--user", "ada")["graph_id"]
        person, kept = Person(server.url, work), Kept()
        async with connected(server, person, kept, era) as (client, oauth, asked):
            assert await nodes(client) == 0
            await client.call_tool("hm_store", {"key": "fact_a", "description": "By OAuth."})
            assert await nodes(client) == 1
            # 401, the two documents, registration, the code for tokens; then the protocol.
            first = list(dict.fromkeys(asked))
            assert first[0] == "/mcp" and {"/register", "/token"} <= set(first)
            assert any(path.startswith("/.well-known/oauth-protected-resource") for path in first)
            assert any(path.startswith("/.well-known/oauth-authorization-server") for path in first)
            assert person.opened == 1

            # The client thinks that its token is over: it refreshes, and asks nobody.
            assert kept.tokens is not None and kept.client is not None
            before = kept.tokens
            oauth.context.token_expiry_time = 1.0
            assert await nodes(client) == 1
            assert kept.tokens.access_token != before.access_token
            assert person.opened == 1

        [grant] = administer("grant", "list", "--user", "ada")["grants"]
        assert (grant["graph_id"], grant["key_id"]) == (work, None)
        # It ends its own access.
        sent = {"token": kept.tokens.refresh_token, "client_id": kept.client.client_id}
        assert httpx2.post(f"{server.url}/revoke", data=sent).status_code == 200
        for token in (before.access_token, kept.tokens.access_token):
            overview = httpx2.get(f"{server.url}{REST}/overview", headers=bearer(token))
            assert overview.status_code == 401
        # With what it kept it gets no further, and asks the person again.
        async with connected(server, person, kept, era) as (client, _, _):
            assert await nodes(client) == 1
        assert person.opened == 2
