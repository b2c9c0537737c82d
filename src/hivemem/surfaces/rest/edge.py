"""The edge that every HTTP request passes: its id, who may talk to us and how, and answers to failures.

Pure ASGI. It sits inside Starlette's own error middleware on purpose: that one sends an answer and raises
again, which makes the server drop the connection (and the request queued behind it).
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import urlsplit

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from hivemem.errors import HivememError
from hivemem.service import audit
from hivemem.settings import Settings
from hivemem.surfaces.envelope import HttpRefusal, InternalError, answer_headers, envelope, http_status
from hivemem.surfaces.request_id import new_request_id, request_id
from hivemem.surfaces.rest.cors import Cors, preflight_headers
from hivemem.surfaces.rest.limits import ANSWER_HEADERS
from hivemem.surfaces.rest.pacing import Slots, TimedBody, timed_send
from hivemem.surfaces.rest.proxies import TrustedProxies
from hivemem.surfaces.rest.templates import route_template
from hivemem.surfaces.wire_json import dump_json

_LOG = logging.getLogger("hivemem.http")

ERROR = "hivemem.error"
"""Where the error that a request was answered with stands in its scope, for metrics."""

_ON_EVERY_ANSWER = (
    # Memories are private: no cache between us and the caller may keep them.
    (b"cache-control", b"no-store"),
    (b"x-content-type-options", b"nosniff"),
)
_UNLESS_SET = (
    # Addresses of sign-ins and downloads hold secrets.
    (b"referrer-policy", b"no-referrer"),
    # An answer that a browser shows as a document does nothing, and stands in no frame.
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"cross-origin-resource-policy", b"same-origin"),
)
_STRICT_TRANSPORT = (b"strict-transport-security", b"max-age=31536000")
_FORWARDED = b"x-forwarded-for"

ALIVE_PATH = "/health"
"""Answered however busy the server is: who finds it dead restarts it."""

LOOPBACK = frozenset(("localhost", "127.0.0.1", "::1"))
_ANY = frozenset(("0.0.0.0", "::", ""))
# A name or an address, and a port. `localhost/x` and `localhost"` have our host too, as some read them, and
# would get into the addresses that programs are told.
_LOCATION = re.compile(r"(?:[\w.-]+|\[[0-9a-fA-F:.]+(?:%[\w.-]+)?\])(?::\d{1,5})?", re.ASCII)


class AllowedHosts:
    """Which names a request may have used to reach this server.

    A page on another site can make a browser send requests to 127.0.0.1, and by rebinding its own name to
    127.0.0.1 even read the answers. Such requests carry that site's name in `Host` or `Origin`.

    Args:
        names: Host names or addresses; with a port, that port only. `*` allows everything.
    """

    def __init__(self, names: Iterable[str]) -> None:
        given = [name.strip().lower() for name in names]
        self._everything = "*" in given
        self._hosts = {_without_brackets(name) for name in given} | LOOPBACK
        self._hosts -= _ANY

    def allows(self, host: str | None) -> bool:
        """Whether a `Host` header, or the network location of an origin, is one of ours."""
        if host and not _LOCATION.fullmatch(host):
            return False
        if self._everything:
            return True
        if not host:
            return False
        try:
            parts = urlsplit(f"//{host.lower()}")
            name, port = parts.hostname, parts.port
        except ValueError:
            return False
        return name in self._hosts or (port is not None and f"{name}:{port}" in self._hosts)

    def allows_origin(self, origin: str | None) -> bool:
        """Whether an `Origin` header is absent (no browser) or names one of our hosts."""
        if origin is None or self._everything:
            return True
        scheme, _, location = origin.partition("://")
        return scheme in ("http", "https") and self.allows(location)


@dataclass(frozen=True, slots=True, kw_only=True)
class EdgeRules:
    """What the edge lets in.

    Attributes:
        hosts: The names of this server.
        cors: Which pages of others may read answers.
        proxies: Whose word on a caller's address is taken.
        encrypted: Whether clients reach us by https, so that browsers may insist on it.
        body_seconds: See the setting `body_timeout_seconds`.
        max_header_bytes: Largest head of a request.
        max_requests: Requests under way at a time.
    """

    hosts: AllowedHosts
    cors: Cors
    proxies: TrustedProxies
    encrypted: bool
    body_seconds: float
    max_header_bytes: int
    max_requests: int


def edge_rules(settings: Settings) -> EdgeRules:
    """The rules by the settings."""
    return EdgeRules(
        hosts=AllowedHosts((settings.host, *settings.public_hosts, *settings.allowed_hosts)),
        cors=Cors(settings.cors_origins),
        proxies=TrustedProxies(settings.trusted_proxies),
        encrypted=settings.public_url.startswith("https:"),
        body_seconds=settings.body_timeout_seconds,
        max_header_bytes=settings.max_header_bytes,
        max_requests=settings.max_concurrent_requests,
    )


class Edge:
    """Middleware: request id, checks, headers, and the error envelope for all that nobody caught."""

    def __init__(self, app: ASGIApp, rules: EdgeRules) -> None:
        self._app = app
        self._rules = rules
        self._slots = Slots(rules.max_requests)
        self._fixed = (*_ON_EVERY_ANSWER, _STRICT_TRANSPORT) if rules.encrypted else _ON_EVERY_ANSWER

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one HTTP request, or pass other events on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = {name: value.decode("latin-1") for name, value in scope["headers"]}
        identity = new_request_id(headers.get(b"x-request-id"))
        token = request_id.set(identity)
        came = audit.origin.set(audit.Origin(request_id=identity))
        started = False
        added: list[tuple[bytes, bytes]] = [(b"x-request-id", identity.encode()), *self._fixed]
        send_in_time = timed_send(send, self._rules.body_seconds)

        async def send_with_headers(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                own = list(message.get("headers", ()))
                names = {name.lower() for name, _ in own}
                defaults = [header for header in _UNLESS_SET if header[0] not in names]
                message = {**message, "headers": [*own, *defaults, *added]}
            await send_in_time(message)

        try:
            self._name_caller(scope)
            address = scope["client"][0] if scope.get("client") else ""
            audit.origin.set(audit.Origin(address=address, request_id=identity))
            permitted = self._checked(scope, headers)
            added += permitted or ()
            if permitted and scope["method"] == "OPTIONS" and b"access-control-request-method" in headers:
                await _send_nothing(send_with_headers, preflight_headers())
                return
            # Whoever works on the request may say more about it.
            scope[ANSWER_HEADERS] = added
            timed = TimedBody(receive, self._rules.body_seconds)
            with self._slots.one(urgent=scope["path"] == ALIVE_PATH):
                await self._app(scope, timed, send_with_headers)
        except HivememError as error:
            scope[ERROR] = error
            if started:
                # The answer stays incomplete: the server closes the connection, and the caller notices.
                _LOG.warning("an answer was broken off: %s: %s", error.code, error.message)
                return
            await send_error(error, send_with_headers)
        except Exception:
            _LOG.exception("unhandled error on %s %s", scope["method"], route_template(scope))
            if started:
                raise
            await send_error(InternalError(), send_with_headers)
        finally:
            request_id.reset(token)
            audit.origin.reset(came)

    def _name_caller(self, scope: Scope) -> None:
        """Put the address of the caller where that of the connection stood."""
        forwarded = [value.decode("latin-1") for name, value in scope["headers"] if name == _FORWARDED]
        if forwarded and scope.get("client"):
            peer, port = scope["client"]
            address = self._rules.proxies.client(peer, forwarded)
            scope["client"] = (address, port if address == peer else 0)

    def _checked(self, scope: Scope, headers: dict[bytes, str]) -> list[tuple[bytes, bytes]] | None:
        """The headers of CORS for a request that may come in; None when it is from no page that needs any.

        Raises:
            HttpRefusal: It may not.
        """
        size = len(scope.get("raw_path") or b"") + len(scope.get("query_string") or b"")
        size += sum(len(name) + len(value) + 4 for name, value in scope["headers"])
        if size > self._rules.max_header_bytes:
            raise HttpRefusal(
                431,
                "headers_too_large",
                f"the address and headers of the request are larger than {self._rules.max_header_bytes} "
                "bytes; send less, or raise the setting max_header_bytes.",
            )
        for name in (b"host", b"origin"):
            if sum(one == name for one, _ in scope["headers"]) > 1:
                # What is checked here, and what is read later, could be two.
                said = f"the header {name.decode().title()} was sent twice; send it once."
                raise HttpRefusal(400, "invalid_request", said)
        host, origin = headers.get(b"host"), headers.get(b"origin")
        if not self._rules.hosts.allows(host):
            raise HttpRefusal(
                421,
                "host_not_allowed",
                f"this server does not answer to the host name {(host or '')[:200]!r}; add it to the setting "
                "allowed_hosts.",
            )
        permitted = self._rules.cors.headers(scope["path"], origin)
        if permitted is None and not self._rules.hosts.allows_origin(origin):
            raise HttpRefusal(
                403,
                "origin_not_allowed",
                f"requests from pages of {(origin or '')[:200]!r} are refused; add it to the setting "
                "cors_origins, or its host to allowed_hosts if it is this server's own.",
            )
        return permitted


async def send_json(status: int, body: object, send: Send, headers: dict[str, str] | None = None) -> None:
    """Answer with a JSON body."""
    content = dump_json(body)
    sent = [(b"content-type", b"application/json"), (b"content-length", str(len(content)).encode())]
    sent += [(name.lower().encode(), value.encode()) for name, value in (headers or {}).items()]
    await send({"type": "http.response.start", "status": status, "headers": sent})
    await send({"type": "http.response.body", "body": content})


async def _send_nothing(send: Send, headers: list[tuple[bytes, bytes]]) -> None:
    await send({"type": "http.response.start", "status": 204, "headers": headers})
    await send({"type": "http.response.body", "body": b""})


async def send_error(error: HivememError, send: Send) -> None:
    """Answer with the envelope of an error."""
    # A probe asks for readiness many times while the models load; that is no news.
    if http_status(error) >= 500 and error.code != "not_ready":
        _LOG.warning("%s: %s", error.code, error.message)
    await send_json(http_status(error), envelope(error, request_id.get()), send, answer_headers(error))


def _without_brackets(name: str) -> str:
    return name.replace("[", "").replace("]", "") if name.endswith("]") else name
