"""The outermost layer of every HTTP request: its id, who may talk to us, and answers to failures.

Pure ASGI. It sits inside Starlette's own error middleware on purpose: that one sends an answer and raises
again, which makes the server drop the connection (and the request queued behind it).
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from urllib.parse import urlsplit

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from hivemem.errors import HivememError
from hivemem.surfaces.envelope import HttpRefusal, InternalError, answer_headers, envelope, http_status
from hivemem.surfaces.request_id import new_request_id, request_id
from hivemem.surfaces.wire_json import dump_json

_LOG = logging.getLogger("hivemem.http")

ERROR = "hivemem.error"
"""Where the error that a request was answered with stands in its scope, for metrics."""

_ON_EVERY_ANSWER = (
    # Memories are private: no cache between us and the caller may keep them.
    (b"cache-control", b"no-store"),
    (b"x-content-type-options", b"nosniff"),
)

LOOPBACK = frozenset(("localhost", "127.0.0.1", "::1"))
_ANY = frozenset(("0.0.0.0", "::", ""))


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
        if self._everything:
            return True
        if not host:
            return False
        try:
            parts = urlsplit(f"//{host.strip().lower()}")
            name, port = parts.hostname, parts.port
        except ValueError:
            return False
        if name is None or parts.username is not None:
            return False
        return name in self._hosts or (port is not None and f"{name}:{port}" in self._hosts)

    def allows_origin(self, origin: str | None) -> bool:
        """Whether an `Origin` header is absent (no browser) or names one of our hosts."""
        if origin is None or self._everything:
            return True
        scheme, _, location = origin.partition("://")
        return scheme in ("http", "https") and self.allows(location)


class Edge:
    """Middleware: request id, host check, and the error envelope for all that nobody caught."""

    def __init__(self, app: ASGIApp, allowed: AllowedHosts) -> None:
        self._app = app
        self._allowed = allowed

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one HTTP request, or pass other events on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = {name: value.decode("latin-1") for name, value in scope["headers"]}
        identity = new_request_id(headers.get(b"x-request-id"))
        token = request_id.set(identity)
        started = False

        async def send_with_id(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                added = [*message.get("headers", ()), *_ON_EVERY_ANSWER, (b"x-request-id", identity.encode())]
                message = {**message, "headers": added}
            await send(message)

        try:
            self._check_host(headers)
            await self._app(scope, receive, send_with_id)
        except HivememError as error:
            scope[ERROR] = error
            if started:
                raise
            await send_error(error, send_with_id)
        except Exception:
            _LOG.exception("unhandled error on %s %s", scope["method"], scope["path"])
            if started:
                raise
            await send_error(InternalError(), send_with_id)
        finally:
            request_id.reset(token)

    def _check_host(self, headers: dict[bytes, str]) -> None:
        host, origin = headers.get(b"host"), headers.get(b"origin")
        if not self._allowed.allows(host):
            raise HttpRefusal(
                421,
                "host_not_allowed",
                f"this server does not answer to the host name {(host or '')[:200]!r}; add it to the setting "
                "allowed_hosts.",
            )
        if not self._allowed.allows_origin(origin):
            raise HttpRefusal(
                403,
                "origin_not_allowed",
                f"requests from pages of {(origin or '')[:200]!r} are refused; add its host to the setting "
                "allowed_hosts.",
            )


async def send_json(status: int, body: object, send: Send, headers: dict[str, str] | None = None) -> None:
    """Answer with a JSON body."""
    content = dump_json(body)
    sent = [(b"content-type", b"application/json"), (b"content-length", str(len(content)).encode())]
    sent += [(name.lower().encode(), value.encode()) for name, value in (headers or {}).items()]
    await send({"type": "http.response.start", "status": status, "headers": sent})
    await send({"type": "http.response.body", "body": content})


async def send_error(error: HivememError, send: Send) -> None:
    """Answer with the envelope of an error."""
    # A probe asks for readiness many times while the models load; that is no news.
    if http_status(error) >= 500 and error.code != "not_ready":
        _LOG.warning("%s: %s", error.code, error.message)
    await send_json(http_status(error), envelope(error, request_id.get()), send, answer_headers(error))


def _without_brackets(name: str) -> str:
    return name.replace("[", "").replace("]", "") if name.endswith("]") else name
