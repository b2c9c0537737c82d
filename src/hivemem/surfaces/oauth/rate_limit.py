"""A limit for each caller on what strangers may ask for: registrations, sign-ins, tokens."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from starlette.requests import Request

from hivemem.surfaces.envelope import HttpRefusal

_MOST_CALLERS = 10_000


class RateLimit:
    """A token bucket for each caller: `burst` calls at once, then one in `seconds`.

    It holds for one process; with several servers on one database each has its own.
    """

    def __init__(self, burst: int, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._burst = burst
        self._seconds = seconds
        self._clock = clock
        self._full_at: dict[str, float] = {}

    def wait_seconds(self, caller: str) -> int:
        """0, and the call counted, when the caller may go on; else the whole seconds to wait."""
        now = self._clock()
        if len(self._full_at) >= _MOST_CALLERS:
            self._full_at = {name: at for name, at in self._full_at.items() if at > now}
        full_at = max(self._full_at.get(caller, now), now) + self._seconds
        wait = full_at - now - self._burst * self._seconds
        if wait > 1e-9:
            return max(1, math.ceil(wait))
        self._full_at[caller] = full_at
        return 0

    def check(self, request: Request) -> None:
        """Let a request pass whose address is within the limit.

        Raises:
            HttpRefusal: 429, with `Retry-After`.
        """
        wait = self.wait_seconds(request.client.host if request.client else "")
        if wait:
            raise HttpRefusal(
                429,
                "rate_limited",
                f"too many requests from this address; try again in {wait} s.",
                {"Retry-After": str(wait)},
            )
