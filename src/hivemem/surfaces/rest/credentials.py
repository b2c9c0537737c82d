"""Who sent a request."""

from __future__ import annotations

from starlette.requests import Request

from hivemem.domain.access import Principal
from hivemem.domain.rates import Bucket
from hivemem.surfaces.oauth.addresses import base_address
from hivemem.surfaces.rest.limits import bucket_of_method, count_user
from hivemem.surfaces.services import Services


async def authenticated(services: Services, request: Request, bucket: Bucket | None = None) -> Principal:
    """The caller behind a request, within the caller's rate limit.

    Args:
        services: The use cases.
        request: As it was sent.
        bucket: What the request counts as; by its method when none is given.

    Raises:
        Unauthorized: See `caller`.
        RateLimited: The caller sent too many.
    """
    principal = await caller(services, request)
    await count_user(services, request, bucket or bucket_of_method(request.method), principal.user_id)
    return principal


async def caller(services: Services, request: Request) -> Principal:
    """Who is behind `Authorization: Bearer <credential>`; no other scheme, and never a query parameter.

    Raises:
        Unauthorized: Missing, malformed, unknown, expired or revoked.
        Forbidden: `X-Graph-Id` names a graph that the credential does not reach.
    """
    scheme, _, credential = request.headers.get("authorization", "").strip().partition(" ")
    sent = credential.strip() if scheme.lower() == "bearer" else ""
    address = base_address(services.settings, request)
    graph_id = request.headers.get("x-graph-id", "").strip() or None
    return await services.access.authenticate(sent or None, address=address, graph_id=graph_id)
