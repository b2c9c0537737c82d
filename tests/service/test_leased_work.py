"""Of several servers one does a piece of work; a crash holds the others up for a while only."""

from __future__ import annotations

import asyncio
from datetime import datetime

import pytest

from hivemem.errors import Unavailable
from hivemem.ports.store import Store
from hivemem.service.leased_work import LeasedWork
from hivemem.storage.memory import MemoryStore
from tests.support.builders import FixedClock


def pair(store: Store, clock: FixedClock) -> tuple[LeasedWork, LeasedWork]:
    return LeasedWork(store=store, clock=clock), LeasedWork(store=store, clock=clock)


async def nothing() -> None:
    pass


async def test_work_runs_in_one_place_at_a_time(store: Store, clock: FixedClock) -> None:
    one, two = pair(store, clock)
    assert await one.run("embed", lambda: refused_by(two, "embed"))
    assert await two.run("embed", nothing), "the lease was given back"


async def refused_by(other: LeasedWork, name: str) -> None:
    assert not await other.run(name, nothing)
    assert await other.run("other work", nothing)


async def test_failing_work_gives_its_lease_back(store: Store, clock: FixedClock) -> None:
    one, two = pair(store, clock)

    async def fail() -> None:
        raise Unavailable("the model does not answer.")

    with pytest.raises(Unavailable):
        await one.run("embed", fail)
    assert await two.run("embed", nothing)


async def test_who_stops_waiting_for_a_lease_leaves_none_behind(store: Store, clock: FixedClock) -> None:
    """The store takes a lease also for a caller that has gone meanwhile."""
    one, two = pair(store, clock)
    for turns in range(6):
        task = asyncio.create_task(one.run(f"embed {turns}", nothing))
        for _ in range(turns):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert await two.run(f"embed {turns}", nothing)


async def test_cancelled_work_gives_its_lease_back(store: Store, clock: FixedClock) -> None:
    one, two = pair(store, clock)
    started = asyncio.Event()

    async def go_on() -> None:
        started.set()
        await asyncio.Event().wait()

    running = asyncio.create_task(one.run("embed", go_on))
    await started.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert await two.run("embed", nothing)


async def test_the_work_of_a_crashed_server_is_taken_over(store: Store, clock: FixedClock) -> None:
    one, two = pair(store, clock)
    assert await one._acquire("embed")
    assert not await two.run("embed", nothing)
    clock.advance(seconds=61)
    assert await two.run("embed", nothing)


class CountingStore(MemoryStore):
    """Counts how often a lease was asked for, and can be out of reach."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = 0
        self.away = False

    async def acquire_lease(self, name: str, holder: str, *, at: datetime, expires_at: datetime) -> bool:
        self.asked += 1
        if self.away:
            raise Unavailable("the database is away.")
        return await super().acquire_lease(name, holder, at=at, expires_at=expires_at)


async def test_a_lease_is_renewed_while_the_work_runs(clock: FixedClock) -> None:
    store = CountingStore()
    work = LeasedWork(store=store, clock=clock, seconds=0.003)

    async def long() -> None:
        while store.asked < 4:
            await asyncio.sleep(0.001)
        store.away = True
        while store.asked < 6:
            await asyncio.sleep(0.001)

    assert await work.run("embed", long), "a renewal that fails does not end the work"
