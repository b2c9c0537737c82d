"""Whether the models are there yet."""

from __future__ import annotations

import asyncio
import time

from hivemem.surfaces.services import Services

_POLL_SECONDS = 0.02


async def wait_for_models(services: Services, *, max_seconds: float = 120.0) -> None:
    """Return when the models are loaded or have failed, or after `max_seconds`.

    A command that runs once has nothing better to do than to wait; a server answers meanwhile.
    """
    until = time.monotonic() + max_seconds
    while services.models_loading and time.monotonic() < until:
        await asyncio.sleep(_POLL_SECONDS)
