"""What keeps slow and many callers from using up the server: time for bodies and answers, and slots."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Generator

from starlette.types import Message, Receive, Send

from hivemem.errors import Overloaded
from hivemem.surfaces.envelope import HttpRefusal

_BYTES_PER_SECOND = 64 * 1024
"""How fast a body must come at least, once its first seconds are used up."""

_RETRY_SECONDS = 1


class TooSlow(HttpRefusal):
    """The caller takes too long to send its body, or to take its answer."""

    retryable = True

    def __init__(self, what: str) -> None:
        super().__init__(
            408,
            "too_slow",
            f"{what}; repeat it over a faster connection, or raise the setting body_timeout_seconds.",
            # What is left of the body would be taken for the next request.
            {"Connection": "close"},
        )


class TimedBody:
    """`receive`, within a time: `seconds`, and one more for each 64 KiB that came.

    A body that trickles would hold memory and a slot for as long as its sender likes; a large one over a
    slow line must have its time.
    """

    def __init__(self, receive: Receive, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._receive = receive
        self._seconds = seconds
        self._clock = clock
        self._until: float | None = None
        self._complete = False

    async def __call__(self) -> Message:
        """The next message.

        Raises:
            TooSlow: It does not come in time.
        """
        if self._complete:
            # What comes now is the end of the connection, for which callers may wait.
            return await self._receive()
        if self._until is None:
            self._until = self._clock() + self._seconds
        try:
            async with asyncio.timeout(self._until - self._clock()):
                message = await self._receive()
        except TimeoutError as error:
            raise TooSlow("the request body did not arrive in time") from error
        self._until += len(message.get("body", b"")) / _BYTES_PER_SECOND
        self._complete = not message.get("more_body", False)
        return message


def timed_send(send: Send, seconds: float) -> Send:
    """`send`, which gives up on a caller that does not take a piece of its answer in `seconds`."""

    async def timed(message: Message) -> None:
        try:
            async with asyncio.timeout(seconds):
                await send(message)
        except TimeoutError as error:
            raise TooSlow("the answer was not taken in time") from error

    return timed


class Slots:
    """At most so many requests at a time.

    Args:
        most: Requests under way.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._taken = 0

    @contextlib.contextmanager
    def one(self, *, urgent: bool = False) -> Generator[None]:
        """Hold a slot; an urgent request gets one in any case.

        Raises:
            Overloaded: All are taken.
        """
        if self._taken >= self._most and not urgent:
            raise Overloaded(
                f"{self._most} requests are under way, which is the setting max_concurrent_requests.",
                retry_after_seconds=_RETRY_SECONDS,
            )
        self._taken += 1
        try:
            yield
        finally:
            self._taken -= 1
