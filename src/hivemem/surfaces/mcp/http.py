"""`/mcp`: stateless Streamable HTTP for full MCP hosts and for plain JSON-RPC callers.

Plain callers send one `tools/call` with a content type and a credential, and nothing else. The SDK insists on
an `Accept` header; this endpoint supplies it. Answers are JSON unless the caller takes event streams only.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial

from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.requests import Request
from starlette.types import Message, Receive, Scope, Send

from hivemem.domain.access import Principal
from hivemem.errors import Unauthorized
from hivemem.surfaces.envelope import HttpRefusal
from hivemem.surfaces.mcp.server import Context, build_server
from hivemem.surfaces.oauth.addresses import base_address, challenge
from hivemem.surfaces.operations import AnyOperation
from hivemem.surfaces.rest.body import read_body
from hivemem.surfaces.rest.credentials import caller
from hivemem.surfaces.rest.limits import count_user
from hivemem.surfaces.services import Services

_PRINCIPAL = "hivemem.principal"
_BOTH = b"application/json, text/event-stream"


class McpEndpoint:
    """ASGI endpoint of the MCP server; `running()` must be entered around its use, once."""

    def __init__(self, services: Services) -> None:
        self._services = services
        server = build_server(services, partial(_principal_of, services))
        # Any call may be an upload; which one it is, the body tells.
        self._max_bytes = services.settings.max_upload_bytes
        self._json = StreamableHTTPSessionManager(
            server, stateless=True, json_response=True, max_request_body_size=self._max_bytes
        )
        self._stream = StreamableHTTPSessionManager(
            server, stateless=True, json_response=False, max_request_body_size=self._max_bytes
        )

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """Run the SDK's session managers."""
        async with self._json.run(), self._stream.run():
            yield

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one HTTP request."""
        if scope["method"] != "POST":
            raise HttpRefusal(
                405,
                "method_not_allowed",
                "/mcp answers POST; this server is stateless and keeps no stream open.",
                {"Allow": "POST"},
            )
        request = Request(scope, receive)
        scope[_PRINCIPAL] = await self._caller(request)
        # Read here and not by the SDK, so that large and slow bodies are refused like everywhere else.
        body = await read_body(request, self._max_bytes)
        accept = [value for name, value in scope["headers"] if name == b"accept"]
        manager = self._stream if _takes_streams_only(b",".join(accept)) else self._json
        headers = [(name, value) for name, value in scope["headers"] if name != b"accept"]
        scope = {**scope, "headers": [*headers, (b"accept", _BOTH)]}
        await manager.handle_request(scope, _again(body, receive), send)

    async def _caller(self, request: Request) -> Principal:
        """Who sends a request; a host that is refused learns how its user can sign in."""
        try:
            return await caller(self._services, request)
        except Unauthorized as error:
            told = challenge(
                base_address(self._services.settings, request), refused="authorization" in request.headers
            )
            raise HttpRefusal(401, error.code, error.message, {"WWW-Authenticate": told}) from error


def _again(body: bytes, receive: Receive) -> Receive:
    """`receive` of a request whose body was read already."""
    unread = True

    async def again() -> Message:
        nonlocal unread
        if unread:
            unread = False
            return {"type": "http.request", "body": body, "more_body": False}
        return await receive()

    return again


def _takes_streams_only(accept: bytes) -> bool:
    types = {part.partition(b";")[0].strip().lower() for part in accept.split(b",")}
    return types in ({b"text/event-stream"}, {b"text/*"})


async def _principal_of(services: Services, context: Context, operation: AnyOperation) -> Principal:
    request = context.request
    assert isinstance(request, Request)
    principal: Principal = request.scope[_PRINCIPAL]
    await count_user(services, request, operation.bucket, principal.user_id)
    return principal
