"""What two searches of one question share: its vector, and the cross-encoder's work.

The cross-encoder needs nearly all the time of a recall and keeps all cores busy, so two searches that
read as much as one alone would take twice as long. Here both lists of candidates compete for little more
than the reading of one: what is known of a candidate before decides, not the graph that it is in.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hivemem.service.cross_reading import RerankLimits

Vector = NDArray[np.float32]

MORE_READING = 1.25
"""What both searches read together, in readings of one search."""

LEAST_SHARE = 0.25
"""Of that, what either may read at least, as far as it has candidates."""

_MOST_WAITING_SECONDS = 0.25
_LATER = 1e-6


def divided(
    limits: RerankLimits, own: Sequence[float], organization: Sequence[float]
) -> tuple[RerankLimits, RerankLimits]:
    """What each of two searches may read, such that both together read `MORE_READING` times `limits`.

    Places go to the candidates with most points, whichever list they are in; but each list has its least
    share, neither gets more than a search alone, and what one cannot use is the other's.

    Args:
        limits: Of one search.
        own: Points of the first search's candidates before reading, in logits, best first.
        organization: The same of the second search.
    """
    places = round(MORE_READING * limits.depth)
    least = round(LEAST_SHARE * places)
    ranked = sorted([(-points, 0) for points in own] + [(-points, 1) for points in organization])
    wanted = sum(1 for _, side in ranked[:places] if side == 0)
    most = min(len(own), limits.depth)
    mine = min(max(wanted, least), places - least, most)
    theirs = min(places - mine, len(organization), limits.depth)
    mine = min(places - theirs, most)
    return _part(limits, mine, mine + theirs), _part(limits, theirs, mine + theirs)


def _part(limits: RerankLimits, count: int, total: int) -> RerankLimits:
    # Texts count by length, and those of one side may be the longer ones: a share of places is one of tokens.
    share = min(1.0, MORE_READING * count / total) if total else 1.0
    return replace(
        limits,
        depth=count,
        context_depth=min(count, round(share * limits.context_depth)),
        tokens=round(share * limits.tokens),
        budget_seconds=share * limits.budget_seconds,
    )


@dataclass(frozen=True, slots=True)
class Part:
    """What one search may read. `since`: when it came, by `time.monotonic`, for its place in the queue."""

    limits: RerankLimits
    since: float


class SharedReading:
    """One question to two graphs, whose searches run at the same time. Belongs to one event loop.

    Args:
        limits: What one search alone would read.
        waiting_seconds: How long one's own search waits for the candidates of the organization. After
            that it reads as if it were alone, and the organization's gets its least share.

    Attributes:
        own: Handed to the search of one's own memory.
        organization: Handed to the other one.
    """

    def __init__(self, limits: RerankLimits, *, waiting_seconds: float = _MOST_WAITING_SECONDS) -> None:
        self._limits = limits
        self._waiting_seconds = waiting_seconds
        self._vector: asyncio.Future[Vector] | None = None
        self._since = time.monotonic()
        self._points: list[Sequence[float] | None] = [None, None]
        self._decided: asyncio.Future[tuple[RerankLimits, RerankLimits]] = asyncio.Future()
        self.own = ReadingSide(self, 0)
        self.organization = ReadingSide(self, 1)

    async def embedded(self, embed: Callable[[], Awaitable[Vector]]) -> Vector:
        """The question's vector, made once.

        Raises:
            HivememError: Whatever `embed` raised, for both searches.
        """
        if self._vector is None:
            self._vector = asyncio.ensure_future(embed())
            # When both searches are cancelled nobody fetches its error.
            self._vector.add_done_callback(lambda done: done.cancelled() or done.exception())
        return await asyncio.shield(self._vector)

    async def part(self, side: int, points: Sequence[float]) -> Part:
        """What a search may read, once both have their candidates."""
        self._points[side] = points
        self._decide()
        if side == 0 and not self._decided.done():
            await asyncio.wait([self._decided], timeout=self._waiting_seconds)
            if not self._decided.done():
                self._decided.set_result((self._limits, _least(self._limits)))
        limits = (await asyncio.shield(self._decided))[side]
        # One's own is read first; both come before the recalls that came later.
        return Part(limits, self._since + side * _LATER)

    def leave(self) -> None:
        """Say that the organization's search has ended, so that nobody waits for its candidates."""
        if self._points[1] is None:
            self._points[1] = ()
            self._decide()

    def _decide(self) -> None:
        own, organization = self._points
        if not self._decided.done() and own is not None and organization is not None:
            self._decided.set_result(divided(self._limits, own, organization))


class ReadingSide:
    """One of the two searches, as it sees what is shared."""

    def __init__(self, shared: SharedReading, side: int) -> None:
        self._shared = shared
        self._side = side

    async def embedded(self, embed: Callable[[], Awaitable[Vector]]) -> Vector:
        """See `SharedReading.embedded`."""
        return await self._shared.embedded(embed)

    async def part(self, points: Sequence[float]) -> Part:
        """What this search may read, when its candidates have `points`, best first."""
        return await self._shared.part(self._side, points)


def _least(limits: RerankLimits) -> RerankLimits:
    count = round(LEAST_SHARE * MORE_READING * limits.depth)
    return _part(limits, count, round(MORE_READING * limits.depth))
