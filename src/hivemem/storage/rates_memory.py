"""Counts of rate limits in memory: for the one server that owns a data directory, and for tests."""

from __future__ import annotations

from hivemem.domain.rates import Allowance, Bucket, Rate, taken

_MOST_BUCKETS = 20_000


class MemoryRateCounts:
    """Keeps the contract of `hivemem.ports.rates.RateCounts`, in bounded memory.

    Args:
        most_buckets: Beyond it the buckets that are full go, and then the half that is nearest to it.
    """

    def __init__(self, most_buckets: int = _MOST_BUCKETS) -> None:
        self._most = most_buckets
        self._full_at: dict[tuple[Bucket, str], int] = {}

    def __len__(self) -> int:
        return len(self._full_at)

    async def take(self, bucket: Bucket, subject: str, rate: Rate, now: int) -> Allowance:
        """As the port says."""
        found = taken(rate, self._full_at.get((bucket, subject)), now)
        self._full_at[bucket, subject] = found.full_at
        if len(self._full_at) > self._most:
            self._make_room(now)
        return found

    def _make_room(self, now: int) -> None:
        kept = {name: full_at for name, full_at in self._full_at.items() if full_at > now}
        if len(kept) > self._most // 2:
            # Strangers with many addresses must not fill the memory; what is forgotten was hardly used.
            latest = sorted(kept, key=kept.__getitem__)[-(self._most // 2) :]
            kept = {name: kept[name] for name in latest}
        self._full_at = kept
