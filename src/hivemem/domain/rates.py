"""How many calls somebody may make in a time: the rule of a token bucket, without a place to keep it."""

from __future__ import annotations

import enum
from dataclasses import dataclass

MINUTE = 60_000_000
HOUR = 60 * MINUTE
"""Microseconds, as all times here."""


class Bucket(enum.StrEnum):
    """What is counted together."""

    READ = "read"
    WRITE = "write"
    INGEST = "ingest"
    AUTHORIZE = "authorize"
    SIGN_IN = "sign_in"
    PASSWORD = "password"
    TOKEN = "token"
    REGISTER = "register"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """A bucket that holds `calls` and fills up in `period`, evenly.

    Attributes:
        calls: Most calls at once, at least 1.
        period: In microseconds.
    """

    calls: int
    period: int

    @property
    def step(self) -> int:
        """Microseconds that one call costs, at least 1."""
        return max(1, self.period // self.calls)

    @property
    def window(self) -> int:
        """Microseconds in which an empty bucket fills up."""
        return self.step * self.calls


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowance:
    """What became of a call, and what is left.

    Attributes:
        allowed: Whether the call may go on.
        limit: Most calls at once.
        remaining: Calls that may follow at once.
        full_at: When the bucket is full again, in microseconds since 1970.
        wait: Microseconds until the next call is allowed; 0 when one is now.
    """

    allowed: bool
    limit: int
    remaining: int
    full_at: int
    wait: int


def taken(rate: Rate, full_at: int | None, now: int) -> Allowance:
    """Take a call out of a bucket, if one is in it.

    One number says all of a bucket: when it will be full. A call moves that by one step, and is refused
    where it would be more than a window away.

    Args:
        rate: Of the bucket.
        full_at: As the last allowance says; None for a bucket that nobody used yet.
        now: Microseconds since 1970. A clock that was set back fills the bucket only later.

    Source: the generic cell rate algorithm of ITU-T I.371, as virtual scheduling.

    Example:
        >>> rate = Rate(calls=2, period=10)
        >>> first = taken(rate, None, 100)
        >>> first.allowed, first.remaining, first.full_at
        (True, 1, 105)
        >>> taken(rate, 110, 103).wait
        2
    """
    begun = now if full_at is None else min(max(full_at, now), now + rate.window)
    allowed = begun + rate.step <= now + rate.window
    return allowance(rate, begun + rate.step if allowed else begun, now, allowed=allowed)


def allowance(rate: Rate, full_at: int, now: int, *, allowed: bool) -> Allowance:
    """An allowance by what a bucket is after the call."""
    return Allowance(
        allowed=allowed,
        limit=rate.calls,
        remaining=max(0, (now + rate.window - full_at) // rate.step),
        full_at=full_at,
        wait=max(0, full_at + rate.step - now - rate.window),
    )
