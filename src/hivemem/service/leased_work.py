"""Work that one of several servers on a database does, while the others leave it alone."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from datetime import timedelta

from hivemem.errors import HivememError
from hivemem.ports.clock import Clock
from hivemem.ports.store import LeaseStore

_LEASE_SECONDS = 60.0
"""How long the work of a server that crashed stays undone."""

log = logging.getLogger(__name__)


class LeasedWork:
    """Runs work under leases of this process.

    A lease spares the others the same work; that the work is right does not rest on it.
    """

    def __init__(self, *, store: LeaseStore, clock: Clock, seconds: float = _LEASE_SECONDS) -> None:
        self._store = store
        self._clock = clock
        self._seconds = seconds
        self._holder = clock.new_id("worker")

    async def run(self, name: str, work: Callable[[], Awaitable[object]]) -> bool:
        """Run `work` unless another process does; False when it does.

        The lease is renewed while the work runs and given back at its end, in whatever way it ends.

        Raises:
            Unavailable: The store is busy or down, or what the work raises.
        """
        try:
            if not await self._acquire(name):
                return False
        except asyncio.CancelledError:
            # The store may have taken the lease all the same, and nobody would give it back.
            await self._release(name)
            raise
        renewal = asyncio.create_task(self._renew(name), name=f"renew the lease {name}")
        try:
            await work()
        finally:
            renewal.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await renewal
            await self._release(name)
        return True

    async def _release(self, name: str) -> None:
        # Without an answer the lease ends by itself.
        with contextlib.suppress(HivememError):
            await self._store.release_lease(name, self._holder)

    async def _acquire(self, name: str) -> bool:
        now = self._clock.now()
        return await self._store.acquire_lease(
            name, self._holder, at=now, expires_at=now + timedelta(seconds=self._seconds)
        )

    async def _renew(self, name: str) -> None:
        while True:
            await asyncio.sleep(self._seconds / 3)
            try:
                if not await self._acquire(name):
                    log.warning("the lease %s went to another process; both may work on it", name)
                    return
            except HivememError as error:
                log.warning("the lease %s could not be renewed: %s", name, error.message)
