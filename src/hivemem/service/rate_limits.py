"""Rate limits: how often a user may read, write and ingest, and an address may try to sign in."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import TypeAlias

from hivemem.domain.rates import HOUR, MINUTE, Allowance, Bucket, Rate
from hivemem.errors import RateLimited
from hivemem.ports.clock import Clock
from hivemem.ports.rates import RateCounts

Rates: TypeAlias = "Mapping[Bucket, Rate]"

_SECOND = 1_000_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class RateLimits:
    """Counts calls.

    Args:
        counts: Where; shared by all servers that a user may reach.
        clock: Whose time fills the buckets.
        rates: Of the buckets that are limited at all.
    """

    def __init__(self, *, counts: RateCounts, clock: Clock, rates: Rates) -> None:
        self._counts = counts
        self._clock = clock
        self._rates = rates

    async def take(self, bucket: Bucket, subject: str) -> Allowance | None:
        """Count a call of `subject`; None when the bucket has no limit.

        Raises:
            Unavailable: The counts are out of reach.
        """
        rate = self._rates.get(bucket)
        if rate is None:
            return None
        now = (self._clock.now() - _EPOCH) // timedelta(microseconds=1)
        return await self._counts.take(bucket, subject, rate, now)

    async def guess(self, name: str) -> None:
        """Count a guess at the password of a name, whether anybody has it.

        Raises:
            RateLimited: There were too many.
            Unavailable: The counts are out of reach.
        """
        subject = hashlib.sha256(name.encode("utf-8", "replace")).hexdigest()
        found = await self.take(Bucket.PASSWORD, subject)
        if found is not None and not found.allowed:
            wait = max(1, -(-found.wait // _SECOND))
            raise RateLimited(
                f"this name was tried too often; try again in {wait} s, or sign in another way.",
                retry_after_seconds=wait,
            )


def rates(
    *,
    read_per_minute: int,
    write_per_minute: int,
    ingest_per_minute: int,
    sign_in_per_minute: int,
    registrations_per_hour: int,
) -> Rates:
    """The limits by bucket; 0 is none. Beginning a sign-in and fetching tokens have fixed ones."""
    by_setting = {
        Bucket.READ: Rate(calls=read_per_minute, period=MINUTE),
        Bucket.WRITE: Rate(calls=write_per_minute, period=MINUTE),
        Bucket.INGEST: Rate(calls=ingest_per_minute, period=MINUTE),
        Bucket.SIGN_IN: Rate(calls=sign_in_per_minute, period=MINUTE),
        # By the name that is tried, whether anybody has it: for who guesses from many addresses.
        Bucket.PASSWORD: Rate(calls=20, period=15 * MINUTE),
        Bucket.REGISTER: Rate(calls=registrations_per_hour, period=HOUR),
        # Programs come in swarms behind one address, and neither needs a guess to be kept from.
        Bucket.AUTHORIZE: Rate(calls=60, period=2 * MINUTE),
        Bucket.TOKEN: Rate(calls=300, period=MINUTE),
    }
    return {bucket: rate for bucket, rate in by_setting.items() if rate.calls}
