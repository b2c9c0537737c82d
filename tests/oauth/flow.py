"""A program and a person, as they act in a sign-in."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html import unescape
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import httpx2

VERIFIER = "verifier-0123456789._~ABCDEFGHIJKLMNOPQRSTUVWXYZ"
CHALLENGE = base64.urlsafe_b64encode(hashlib.sha256(VERIFIER.encode()).digest()).decode().rstrip("=")
REDIRECT = "http://127.0.0.1:51234"


def query_of(response: httpx2.Response) -> dict[str, str]:
    """The parameters of the address that a response redirects to."""
    assert response.status_code == 303, response.text
    return dict(parse_qsl(urlsplit(response.headers["location"]).query, keep_blank_values=True))


def hidden(page: httpx2.Response, name: str) -> str:
    """The value of a hidden field."""
    found = re.search(rf'name="{name}" value="([^"]*)"', page.text)
    assert found is not None, page.text
    return unescape(found[1])


class Program:
    """A program that registered, and the browser that it opens."""

    def __init__(self, http: httpx2.AsyncClient, registration: dict[str, Any]) -> None:
        self.http = http
        self.registration = registration
        self.client_id: str = registration["client_id"]

    @classmethod
    async def register(cls, http: httpx2.AsyncClient, **changes: Any) -> Program:
        response = await register(http, **changes)
        assert response.status_code == 201, response.text
        return cls(http, response.json())

    async def authorize(self, **changes: str | None) -> httpx2.Response:
        """The answer to the request for access; None leaves a parameter out."""
        sent: dict[str, str | None] = {
            "response_type": "code",
            "client_id": self.client_id,
            "redirect_uri": REDIRECT,
            "code_challenge": CHALLENGE,
            "code_challenge_method": "S256",
            "state": "a state & more",
            **changes,
        }
        asked = {name: value for name, value in sent.items() if value is not None}
        return await self.http.get("/authorize", params=asked)

    async def consent_page(self, key: str, **changes: str | None) -> httpx2.Response:
        """The page that asks for consent, after a sign-in with an API key."""
        request = query_of(await self.authorize(**changes))["request"]
        return await self.sign_in(request, key)

    async def sign_in(self, request: str, key: str) -> httpx2.Response:
        sent = {"request": request, "way": "api_key", "api_key": key}
        return await self.http.post("/oauth/sign-in", data=sent)

    async def sign_in_as(self, request: str, name: str, password: str) -> httpx2.Response:
        """The answer to name and password."""
        sent = {"request": request, "way": "password", "name": name, "password": password}
        return await self.http.post("/oauth/sign-in", data=sent)

    async def consent_page_of(self, name: str, password: str, **changes: str | None) -> httpx2.Response:
        """The page that asks for consent, after a sign-in with a password."""
        request = query_of(await self.authorize(**changes))["request"]
        return await self.sign_in_as(request, name, password)

    async def tokens_of(
        self, name: str, password: str, graph: str | None = None, **changes: str | None
    ) -> dict[str, Any]:
        """What somebody with a password lets the program have, at a graph of their choice."""
        page = await self.consent_page_of(name, password, **changes)
        decided = await self.decide(page, **({} if graph is None else {"graph": graph}))
        response = await self.exchange(query_of(decided)["code"])
        assert response.status_code == 200, response.text
        return response.json()

    async def decide(self, page: httpx2.Response, decision: str = "allow", **fields: str) -> httpx2.Response:
        sent = {name: hidden(page, name) for name in ("request", "consent")}
        return await self.http.post("/oauth/consent", data={**sent, **fields, "decision": decision})

    async def code(self, key: str, **changes: str | None) -> str:
        return query_of(await self.decide(await self.consent_page(key, **changes)))["code"]

    async def exchange(self, code: str, **changes: str | None) -> httpx2.Response:
        sent: dict[str, str | None] = {
            "grant_type": "authorization_code",
            "code": code,
            "client_id": self.client_id,
            "redirect_uri": REDIRECT,
            "code_verifier": VERIFIER,
            **changes,
        }
        return await self.http.post(
            "/token", data={name: value for name, value in sent.items() if value is not None}
        )

    async def tokens(self, key: str, **changes: str | None) -> dict[str, Any]:
        response = await self.exchange(await self.code(key, **changes))
        assert response.status_code == 200, response.text
        return response.json()

    async def refresh(self, refresh_token: str, **changes: str) -> httpx2.Response:
        sent = {"grant_type": "refresh_token", "refresh_token": refresh_token, "client_id": self.client_id}
        return await self.http.post("/token", data={**sent, **changes})


async def register(http: httpx2.AsyncClient, **changes: Any) -> httpx2.Response:
    body = {
        "client_name": "Agent",
        "redirect_uris": [REDIRECT],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": "none",
        **changes,
    }
    # Escapes, so that tests can send what UTF-8 cannot carry.
    content = json.dumps({name: value for name, value in body.items() if value is not None})
    return await http.post("/register", content=content, headers={"Content-Type": "application/json"})
