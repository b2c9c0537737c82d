"""Who sent a request."""

from __future__ import annotations

from starlette.requests import Request

from hivemem.domain.access import Principal
from hivemem.surfaces.oauth.addresses import base_address
from hivemem.surfaces.services import Services


async def authenticated(services: Services, request: Request) -> Principal:
    """The caller behind `Authorization: Bearer <credential>`; no other scheme, and never a query parameter.

    Raises:
        Unauthorized: Missing, malformed, unknown or revoked.
    """
    scheme, _, credential = request.headers.get("authorization", "").strip().partition(" ")
    sent = credential.strip() if scheme.lower() == "bearer" else ""
    address = base_address(services.settings, request)
    return await services.access.authenticate(sent or None, address=address)
