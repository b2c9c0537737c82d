"""The ASGI application: REST routes made from the table of operations, and `/mcp` beside them."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from hivemem.errors import InvalidInput, NotFound, Unavailable
from hivemem.surfaces.administration import ADMINISTRATION
from hivemem.surfaces.envelope import HttpRefusal
from hivemem.surfaces.mcp.http import McpEndpoint
from hivemem.surfaces.oauth.routes import oauth_routes
from hivemem.surfaces.observability.watching import Watching
from hivemem.surfaces.operations import OPERATIONS, REST_PREFIX, AnyOperation, RestRoute
from hivemem.surfaces.rest.body import json_object
from hivemem.surfaces.rest.credentials import authenticated, caller
from hivemem.surfaces.rest.edge import Edge, edge_rules
from hivemem.surfaces.rest.exports import export_routes
from hivemem.surfaces.rest.health import health
from hivemem.surfaces.rest.openapi import openapi_document
from hivemem.surfaces.services import Services
from hivemem.surfaces.wire_json import dump_json

Endpoint = Callable[[Request], Awaitable[Response]]


def build_app(services: Services) -> Starlette:
    """The application over open services; closing them stays with the caller."""
    settings = services.settings
    mcp = McpEndpoint(services)
    watching = Watching(services)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncGenerator[None]:
        async with mcp.running(), watching.running():
            yield

    routes = [
        Route("/health", _root_health, methods=["GET"]),
        Route("/openapi.json", _openapi, methods=["GET"]),
        Route(f"{REST_PREFIX}/health", _health(services), methods=["GET"]),
        Route(f"{REST_PREFIX}/ready", _ready(services), methods=["GET"]),
        # An object, not a function: Starlette hands it the request for every method.
        Route("/mcp", mcp),
        *oauth_routes(services),
        *export_routes(services),
        *watching.routes,
        *(
            Route(route.pattern, _endpoint(operation, route, services), methods=[route.method])
            for operation in (*OPERATIONS, *ADMINISTRATION)
            for route in operation.routes
        ),
    ]
    app = Starlette(
        routes=routes,
        middleware=[*watching.middleware, Middleware(Edge, rules=edge_rules(settings))],
        exception_handlers={HTTPException: _refused},
        lifespan=lifespan,
    )
    # Clients do not follow redirects: a path with a slash too many is simply unknown.
    app.router.redirect_slashes = False
    return app


def _endpoint(operation: AnyOperation, route: RestRoute, services: Services) -> Endpoint:
    async def by_query(request: Request) -> Response:
        principal = await authenticated(services, request, operation.bucket)
        arguments = {**request.query_params, **request.path_params}
        answer = await operation.run(services, principal, arguments, strict=False)
        return _json(answer, route.status)

    async def by_body(request: Request) -> Response:
        principal = await authenticated(services, request, operation.bucket)
        settings = services.settings
        limit = settings.max_upload_bytes if route.takes_files else settings.max_body_bytes
        arguments = dict(await json_object(request, limit))
        for name, value in request.path_params.items():
            if arguments.setdefault(name, value) != value:
                raise InvalidInput(
                    f"/{name} is {arguments[name]!r}, but the path says {value!r}; send it in one place."
                )
        return _json(await operation.run(services, principal, arguments), route.status)

    return by_body if route.has_body else by_query


async def _root_health(_: Request) -> Response:
    return _json({"status": "ok"})


async def _openapi(_: Request) -> Response:
    return _json(openapi_document())


def _health(services: Services) -> Endpoint:
    async def answer(request: Request) -> Response:
        # Not counted: who watches over a server must not run into a limit.
        await caller(services, request)
        return _json(await health(services))

    return answer


def _ready(services: Services) -> Endpoint:
    async def answer(_: Request) -> Response:
        if services.models_loading:
            raise Unavailable(
                "the models are still loading; recall answers by words until then.",
                code="not_ready",
                status="not_ready",
            )
        return _json({"status": "ready"})

    return answer


def _json(body: object, status: int = 200) -> Response:
    return Response(dump_json(body), status, media_type="application/json")


async def _refused(request: Request, error: Exception) -> Response:
    """Turn the router's refusals into ours; the edge answers them."""
    assert isinstance(error, HTTPException)
    path = request.url.path[:200]
    if error.status_code == 404:
        raise NotFound(f"there is no route {path!r}; GET /openapi.json lists all routes.") from error
    headers = dict(error.headers or {})
    if error.status_code == 405:
        raise HttpRefusal(
            405,
            "method_not_allowed",
            f"{path} does not answer {request.method}; use {headers.get('Allow', 'another method')}.",
            headers,
        ) from error
    raise HttpRefusal(error.status_code, "http_error", str(error.detail), headers) from error
