"""`GET /metrics`, and who may read it."""

from __future__ import annotations

import asyncio
from ipaddress import ip_address

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Scope

from hivemem.surfaces.observability.metrics import CONTENT_TYPE, Metrics
from hivemem.surfaces.rest.credentials import authenticated
from hivemem.surfaces.rest.edge import LOOPBACK, AllowedHosts
from hivemem.surfaces.services import Services

PATH = "/metrics"

_OF_PROXIES = frozenset((b"forwarded", b"via", b"x-forwarded-for", b"x-forwarded-host", b"x-real-ip"))


def metrics_route(services: Services, metrics: Metrics) -> Route:
    """The route, guarded as the setting `metrics` says."""
    settings = services.settings
    # Behind a proxy on this machine everybody comes from a loopback address.
    trusts_loopback = settings.metrics == "local" and not settings.public_url

    async def answer(request: Request) -> Response:
        if settings.metrics != "open" and not (trusts_loopback and is_from_this_machine(request.scope)):
            principal = await authenticated(services, request)
            principal.require_operator()
        # Some 10 ms for a server that has seen all its routes: too long for the loop.
        text = await asyncio.to_thread(metrics.text)
        return Response(text, headers={"content-type": CONTENT_TYPE})

    return Route(PATH, answer, methods=["GET"])


def is_from_this_machine(scope: Scope) -> bool:
    """Whether a request came from a loopback address, to one, and not through a proxy that says so."""
    client = scope.get("client")
    if client is None or not _is_loopback(client[0]):
        return False
    headers = dict(scope["headers"])
    if not _OF_PROXIES.isdisjoint(headers):
        return False
    return _ONLY_LOOPBACK.allows(headers.get(b"host", b"").decode("latin-1"))


def _is_loopback(address: str) -> bool:
    try:
        parsed = ip_address(address)
    except ValueError:
        return False
    mapped = getattr(parsed, "ipv4_mapped", None)
    return (mapped or parsed).is_loopback


_ONLY_LOOPBACK = AllowedHosts(LOOPBACK)
