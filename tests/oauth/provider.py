"""An OpenID Connect provider that tests start: a real HTTP server with keys of its own, that can misbehave.

It checks what a provider must: the client, its secret, the redirect URI, PKCE, and that a code is used once.
"""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, unquote_plus, urlencode, urlsplit

from authlib.oidc.core.util import create_half_hash
from joserfc import jwt
from joserfc.jwk import KeySet, OctKey, RSAKey

CLIENT_ID = "hivemem here"
CLIENT_SECRET = "a secret: of the provider"


@dataclass
class Person:
    """Who is signed in at the provider: the claims about them."""

    sub: str
    claims: dict[str, Any] = field(default_factory=dict)


@dataclass
class Provider:
    """What it knows, and how it misbehaves.

    `changes` are claims that replace right ones, None leaves one out. `forge` is how a token is signed
    wrongly: `none`, `hs256` (with the client's secret) or `stranger` (a key that is not published).
    """

    issuer: str
    person: Person
    changes: dict[str, Any] = field(default_factory=dict)
    forge: str = ""
    endpoints: dict[str, Any] = field(default_factory=dict)
    broken: bool = False
    deny: bool = False
    wrong_issuer_parameter: bool = False
    keys: list[RSAKey] = field(default_factory=list)
    codes: dict[str, dict[str, str]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    redirect_uris: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.rotate()

    def rotate(self) -> None:
        """Sign with a new key from now on, and publish it alone."""
        self.keys = [RSAKey.generate_key(2048, {"use": "sig", "kid": secrets.token_hex(4)})]

    def metadata(self) -> dict[str, Any]:
        return {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "jwks_uri": f"{self.issuer}/jwks",
            "response_types_supported": ["code"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["RS256"],
            "authorization_response_iss_parameter_supported": True,
            **self.endpoints,
        }

    def authorize(self, asked: dict[str, str]) -> tuple[int, str]:
        """Status and location, or what is wrong."""
        wrong = [
            name
            for name, right in (
                ("client_id", asked.get("client_id") == CLIENT_ID),
                ("redirect_uri", asked.get("redirect_uri", "").endswith("/oauth/oidc/callback")),
                ("response_type", asked.get("response_type") == "code"),
                ("scope", "openid" in asked.get("scope", "").split()),
                ("code_challenge_method", asked.get("code_challenge_method") == "S256"),
                ("nonce", len(asked.get("nonce", "")) >= 32),
                ("state", len(asked.get("state", "")) >= 32),
            )
            if not right
        ]
        if wrong:
            return 400, f"wrong: {wrong}"
        issuer = "https://other.example" if self.wrong_issuer_parameter else self.issuer
        answer = {"state": asked["state"], "iss": issuer}
        if self.deny:
            answer["error"] = "access_denied"
        else:
            answer["code"] = secrets.token_urlsafe(16)
            self.codes[answer["code"]] = asked
        return 303, f"{asked['redirect_uri']}?{urlencode(answer)}"

    def token(self, sent: dict[str, str], authorization: str) -> tuple[int, dict[str, Any]]:
        name, _, secret = base64.b64decode(authorization.removeprefix("Basic ")).decode().partition(":")
        if (unquote_plus(name), unquote_plus(secret)) != (CLIENT_ID, CLIENT_SECRET):
            return 401, {"error": "invalid_client"}
        asked = self.codes.pop(sent.get("code", ""), None)
        verifier = hashlib.sha256(sent.get("code_verifier", "").encode()).digest()
        challenge = base64.urlsafe_b64encode(verifier).decode().rstrip("=")
        if (
            asked is None
            or asked["code_challenge"] != challenge
            or asked["redirect_uri"] != sent.get("redirect_uri")
            or sent.get("grant_type") != "authorization_code"
        ):
            return 400, {"error": "invalid_grant"}
        access = secrets.token_urlsafe(16)
        answer = {"access_token": access, "token_type": "Bearer", "expires_in": 300}
        return 200, {**answer, "id_token": self._id_token(asked["nonce"], access)}

    def _id_token(self, nonce: str, access: str) -> str:
        now = int(time.time())
        claims: dict[str, Any] = {
            "iss": self.issuer,
            "sub": self.person.sub,
            "aud": CLIENT_ID,
            "exp": now + 300,
            "iat": now,
            "nonce": nonce,
            "at_hash": create_half_hash(access, "RS256").decode(),
            **self.person.claims,
            **self.changes,
        }
        claims = {name: value for name, value in claims.items() if value is not None}
        key = self.keys[-1]
        if self.forge == "none":
            parts = [{"alg": "none", "typ": "JWT"}, claims]
            encoded = [
                base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts
            ]
            return ".".join([*encoded, ""])
        if self.forge == "hs256":
            return jwt.encode({"alg": "HS256"}, claims, OctKey.import_key(CLIENT_SECRET))
        if self.forge == "stranger":
            stranger = RSAKey.generate_key(2048, {"use": "sig", "kid": key.kid})
            return jwt.encode({"alg": "RS256", "kid": key.kid}, claims, stranger)
        return jwt.encode({"alg": "RS256", "kid": key.kid}, claims, key)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    @property
    def provider(self) -> Provider:
        return self.server.provider  # type: ignore[attr-defined]

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        self.provider.asked.append(parts.path)
        if self.provider.broken:
            self._send(500, {"error": "server_error"})
        elif parts.path == "/.well-known/openid-configuration":
            self._send(200, self.provider.metadata())
        elif parts.path == "/jwks":
            self._send(200, KeySet(self.provider.keys).as_dict(private=False))
        elif parts.path == "/authorize":
            status, told = self.provider.authorize(dict(parse_qsl(parts.query)))
            self._send(status, {"told": told}, told if status == 303 else "")
        else:
            self._send(404, {})

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", 0))).decode()
        self.provider.asked.append(self.path)
        self._send(*self.provider.token(dict(parse_qsl(body)), self.headers.get("authorization", "")))

    def _send(self, status: int, body: object, location: str = "") -> None:
        content = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        if location:
            self.send_header("Location", location)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def provider(person: Person | None = None) -> Iterator[Provider]:
    """A running provider on a free port of this machine."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.daemon_threads = True
    running = Provider(f"http://127.0.0.1:{server.server_port}", person or Person("subject-1"))
    server.provider = running  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield running
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
