"""Answers that take long, which must not outlive the right to them."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable

from starlette.requests import Request

from hivemem.surfaces.rest.credentials import caller
from hivemem.surfaces.services import Services

_CHECK_SECONDS = 1.0


async def while_admitted(
    pieces: AsyncIterator[bytes],
    services: Services,
    request: Request,
    clock: Callable[[], float] = time.monotonic,
) -> AsyncIterator[bytes]:
    """`pieces`, as long as the credential that began the request is good.

    It is looked at again before a piece, at most once a second: a key that was revoked during a download
    ends the download.

    Raises:
        Unauthorized: The credential was revoked, expired, or lost its graph. What was sent stays sent, and
            the answer incomplete.
    """
    checked_at = clock()
    async for piece in pieces:
        if clock() - checked_at >= _CHECK_SECONDS:
            await caller(services, request)
            checked_at = clock()
        yield piece
