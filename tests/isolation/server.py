"""The server under test, in this process, and what its database holds graph by graph."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2

from hivemem.app import open_services
from hivemem.domain.access import Scope
from hivemem.domain.oauth import AuthorizationRequest, ClientAuthentication, Identity
from hivemem.settings import load_settings
from hivemem.storage.tables import GRAPH_TABLES, TABLES
from hivemem.surfaces.rest.app import build_app
from tests.oauth.flow import CHALLENGE, REDIRECT, VERIFIER
from tests.surfaces.serving import FAST, bearer, running

BASE = "http://localhost"

_CONVERSATION = frozenset(
    (
        "sessions",
        "session_nodes",
        "hyperedges",
        "hyperedge_participants",
        "versions",
        "tombstones",
        "graph_counters",
    )
)
"""What a noted conversation may write: its row, the nodes it touched, and their relationship."""
_ACCOUNTS = tuple(
    table
    for table in TABLES
    if table not in GRAPH_TABLES
    and table.name not in ("audit_events", "oauth_sign_ins", "oauth_codes", "oauth_tokens")
)


@dataclass(frozen=True)
class Fingerprint:
    """Hashes of all rows: of each graph's memory, of each graph's conversations, and of the accounts."""

    memory: dict[str, str]
    conversations: dict[str, str]
    accounts: str


@dataclass
class Reply:
    """An answer, over whichever surface: its HTTP status, or the one that its error code stands for."""

    status: int
    text: str
    body: Any


_STATUS_OF = {
    "unauthorized": 401,
    "forbidden": 403,
    "graph_frozen": 403,
    "graph_not_yours": 403,
    "invalid_request": 400,
    "not_found": 404,
    "validation_error": 422,
}


class Running:
    """The server, and ways to call it."""

    def __init__(self, services: Any, client: httpx2.AsyncClient, database: Path) -> None:
        self.services = services
        self._client = client
        self._database = database
        self._seen: tuple[int, Fingerprint] | None = None
        self._connection = sqlite3.connect(f"file:{database}?mode=ro", uri=True)

    async def rest(
        self, method: str, path: str, secret: str, header: str | None, body: Any = None, query: Any = None
    ) -> Reply:
        headers = bearer(secret) | ({} if header is None else {"X-Graph-Id": header})
        answer = await self._client.request(method, path, json=body, params=query, headers=headers)
        return Reply(answer.status_code, answer.text, _parsed(answer.text))

    async def mcp(self, tool: str, arguments: dict[str, Any], secret: str, header: str | None) -> Reply:
        call = {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "tools/call",
            "params": {"name": tool, "arguments": arguments},
        }
        answer = await self.rest("POST", "/mcp", secret, header, call)
        if answer.status != 200:
            return answer
        result = answer.body["result"]
        body = result["structuredContent"]
        status = 200
        if result.get("isError"):
            status = _STATUS_OF.get(body["error"], 409)
        return Reply(status, answer.text, body)

    async def settled(self) -> Fingerprint:
        """What the database holds, when nothing is being written any more."""
        await self.services.touches.written()
        await self.services.groups.written()
        await self.services.access.written()
        (version,) = self._connection.execute("PRAGMA data_version").fetchone()
        if self._seen is None or self._seen[0] != version:
            self._seen = (version, self._read())
        return self._seen[1]

    def _read(self) -> Fingerprint:
        memory: dict[str, Any] = {}
        conversations: dict[str, Any] = {}
        for table in GRAPH_TABLES:
            part = conversations if table.name in _CONVERSATION else memory
            order = ", ".join(table.key)
            for row in self._connection.execute(f"SELECT * FROM {table.name} ORDER BY {order}"):
                part.setdefault(row[0], hashlib.sha256()).update(repr((table.name, row)).encode())
        accounts = hashlib.sha256()
        for table in _ACCOUNTS:
            names = [name for name in table.names if name != "last_used_at"]
            for row in self._connection.execute(
                f"SELECT {', '.join(names)} FROM {table.name} ORDER BY {', '.join(table.key)}"
            ):
                accounts.update(repr((table.name, row)).encode())
        return Fingerprint(
            {graph: hash.hexdigest() for graph, hash in memory.items()},
            {graph: hash.hexdigest() for graph, hash in conversations.items()},
            accounts.hexdigest(),
        )

    async def token(self, user_id: str, graph_id: str, scopes: tuple[str, ...], *, admin: bool) -> str:
        """An access token as a person gets it who signs in without an API key."""
        oauth = self.services.oauth
        client, _ = await oauth.register(
            name="Agent",
            redirect_uris=(REDIRECT,),
            grant_types=("authorization_code",),
            scopes=scopes,
            authentication=ClientAuthentication.NONE,
        )
        request = AuthorizationRequest(
            client_id=client.client_id,
            redirect_uri=REDIRECT,
            redirect_uri_given=True,
            code_challenge=CHALLENGE,
            state=None,
            scopes=scopes,
            resource=f"{BASE}/mcp",
        )
        consenting = self.services.consenting
        secret = await consenting.begin(request)
        identity = Identity(user_id=user_id, graph_id=graph_id, scope=Scope.OWNER, admin=admin, key_id=None)
        consent = await consenting.identify(secret, identity)
        _, code = await consenting.allow(secret, consent)
        issued = await oauth.exchange_code(client, code, verifier=VERIFIER, redirect_uri=REDIRECT)
        return issued.access

    def close(self) -> None:
        self._connection.close()


@asynccontextmanager
async def running_server(folder: Path) -> AsyncIterator[Running]:
    settings = load_settings({"data_dir": str(folder), **FAST}, {}).settings
    services = await open_services(settings)
    try:
        await services.access.ensure_owner()
        app = build_app(services)
        async with running(app):
            transport = httpx2.ASGITransport(app=app, raise_app_exceptions=True)
            async with httpx2.AsyncClient(transport=transport, base_url=BASE) as client:
                with closing(Running(services, client, settings.database_path)) as server:
                    yield server
    finally:
        await services.close()


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None
