"""Where the counts of rate limits are kept."""

from __future__ import annotations

from typing import Protocol

from hivemem.domain.rates import Allowance, Bucket, Rate


class RateCounts(Protocol):
    """Counts of calls by subject and bucket. Losing them is no harm: every bucket is then full."""

    async def take(self, bucket: Bucket, subject: str, rate: Rate, now: int) -> Allowance:
        """Count a call, in one step for all who ask at the same time; see `domain.rates.taken`.

        Args:
            bucket: What is counted.
            subject: Whose calls: an opaque id or a network address.
            rate: Of the bucket.
            now: Microseconds since 1970.

        Raises:
            Unavailable: The counts are out of reach.
        """
        ...
