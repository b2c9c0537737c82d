"""Watches every HTTP request from outside: counts, times, logs and traces it."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from hivemem.surfaces.logs import FIELDS
from hivemem.surfaces.observability.metrics import Metrics
from hivemem.surfaces.rest.edge import ERROR
from hivemem.surfaces.rest.templates import route_template

if TYPE_CHECKING:
    from hivemem.surfaces.observability.telemetry import Traces

_ACCESS = logging.getLogger("hivemem.access")


class Watch:
    """Middleware around all others. It sees the answer that leaves, whoever made it.

    Args:
        app: What answers.
        metrics: Counts requests, if they are wanted.
        traces: Makes a span for each request, if they are wanted.
        access_log: Whether each request gets a line in the log.
    """

    def __init__(
        self, app: ASGIApp, *, metrics: Metrics | None, traces: Traces | None, access_log: bool
    ) -> None:
        self._app = app
        self._metrics = metrics
        self._traces = traces
        self._access_log = access_log

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass one request on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        status, identity = 0, ""

        async def watched(message: Message) -> None:
            nonlocal status, identity
            if message["type"] == "http.response.start":
                status = message["status"]
                if self._access_log:
                    identity = _request_id(message)
            await send(message)

        began = time.perf_counter()
        if self._metrics is not None:
            self._metrics.request_begins()
        span = None if self._traces is None else self._traces.request(scope["headers"])
        try:
            await self._app(scope, receive, watched)
        finally:
            seconds = time.perf_counter() - began
            method, route, error = scope["method"], route_template(scope), scope.get(ERROR)
            if span is not None:
                code = None if error is None else error.code
                span.end(method=method, route=route, status=status, error=code)
            if self._metrics is not None:
                self._metrics.request_ends(
                    method=method, route=route, status=status, seconds=seconds, error=error
                )
            if self._access_log:
                _log(method, route, status, seconds, identity)


def _request_id(answer: Message) -> str:
    return next((value.decode() for name, value in answer["headers"] if name == b"x-request-id"), "")


def _log(method: str, route: str, status: int, seconds: float, identity: str) -> None:
    milliseconds = round(1000 * seconds, 2)
    fields = {
        # The one part that a caller can make up: printable, and no longer than a method.
        "method": method[:10],
        "route": route,
        "status": status,
        "ms": milliseconds,
        "request_id": identity,
    }
    _ACCESS.info("%s %s %d %s ms", method[:10], route, status, milliseconds, extra={FIELDS: fields})
