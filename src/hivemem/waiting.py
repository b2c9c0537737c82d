"""Answers to callers who wait in an event loop, from the thread that does their work."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any


def answer(future: asyncio.Future[Any], result: Any = None, error: BaseException | None = None) -> None:
    """Wake who awaits `future`, with the result or the error; nothing when nobody waits any more.

    Half as dear as a future of `concurrent.futures`, which has a lock of its own and a second future in the
    loop; after a model's turn, when no cache holds this code, that is a tenth of a millisecond.
    """
    # A loop that is closed has nobody left who waits.
    with contextlib.suppress(RuntimeError):
        future.get_loop().call_soon_threadsafe(_settle, future, result, error)


def _settle(future: asyncio.Future[Any], result: Any, error: BaseException | None) -> None:
    if future.done():
        return
    if error is None:
        future.set_result(result)
    else:
        future.set_exception(error)
