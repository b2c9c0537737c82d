"""Many clients on two replicas: no lost update, no stale read, also when a server or the database dies."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Sequence
from contextlib import AsyncExitStack, ExitStack
from pathlib import Path

import pytest

from tests.replicas.load import SHARED, Ledger, run
from tests.replicas.replica import Caller, Replica
from tests.support.postgres import Server, fresh_database

WRITERS = 8
READERS = 8
RECOVERY_SECONDS = 30.0
"""A limit for a busy machine: measured, the first write is acknowledged within two seconds."""


async def worked(callers: Sequence[Caller], seconds: float) -> Ledger:
    """The ledger of clients that take the callers in turns for a time."""
    turns = itertools.cycle(callers)
    ledger, stop = Ledger(), asyncio.Event()
    async with asyncio.TaskGroup() as group:
        group.create_task(run(lambda: next(turns), ledger, stop, writers=WRITERS, readers=READERS))
        await asyncio.sleep(seconds)
        stop.set()
    return ledger


async def check(caller: Caller, ledger: Ledger) -> None:
    """Everything that was acknowledged is there."""
    for keys in _pages([*ledger.stored], 20):
        answer = await caller.post("nodes", keys=keys, include_relationships=True)
        found = {key: entry["node"] for key, entry in answer["nodes"].items()}
        assert {key: found[key]["description"] for key in keys} == {key: ledger.stored[key] for key in keys}
    for key, count in ledger.counters.items():
        node = (await caller.post("nodes", keys=[key]))["nodes"][key]["node"]
        assert node["description"].endswith(f"stands at {count}.")


def _pages(keys: list[str], size: int) -> list[list[str]]:
    return [keys[start : start + size] for start in range(0, len(keys), size)]


@pytest.mark.parametrize(
    "seconds",
    [8, pytest.param(60, marks=[pytest.mark.soak, pytest.mark.timeout(300)])],
)
async def test_writers_and_readers_on_two_replicas(seconds: float, tmp_path: Path) -> None:
    url = fresh_database()
    async with AsyncExitStack() as closing:
        with Replica(tmp_path / "one", url) as one, Replica(tmp_path / "other", url) as other:
            callers = [Caller(one, one.key), Caller(other, one.key)]
            for caller in callers:
                closing.push_async_callback(caller.close)
            ledger = await worked(callers, seconds)
            assert ledger.refused == []
            assert ledger.no_answer == 0
            assert ledger.stale == []
            assert ledger.reads > 0
            assert len(ledger.counters) == WRITERS
            for caller in callers:
                await check(caller, ledger)
            history = await callers[0].get(f"history/{SHARED}")
            # A rewrite of the same key that was lost would have no version.
            assert history["versions"][0]["write_version"] == ledger.shared_writes


async def test_a_replica_is_killed_and_the_database_restarts_under_load(tmp_path: Path) -> None:
    database = Server()
    try:
        url = fresh_database(database.url)
        one = Replica(tmp_path / "one", url)
        with one, ExitStack() as replicas:
            other = replicas.enter_context(Replica(tmp_path / "other", url))
            async with AsyncExitStack() as closing:
                callers = [Caller(one, one.key), Caller(other, one.key)]
                for caller in callers:
                    closing.push_async_callback(caller.close)
                ledger = await _through_failures(callers, other, database, replicas, url, closing)
                assert ledger.stale == []
                assert ledger.reads > 0
                assert ledger.no_answer > 0, "the kill was to be noticed"
                assert {status for status, _ in ledger.refused} <= {503}
                assert all(body["retryable"] for _, body in ledger.refused)
                for caller in (callers[0], callers[2]):
                    await check(caller, ledger)
                history = await callers[0].get(f"history/{SHARED}")
                assert history["versions"][0]["write_version"] >= ledger.shared_writes
    finally:
        database.remove()


async def _through_failures(
    callers: list[Caller],
    victim: Replica,
    database: Server,
    replicas: ExitStack,
    url: str,
    closing: AsyncExitStack,
) -> Ledger:
    """Load through all of it."""
    turns = itertools.count()
    ledger, stop = Ledger(), asyncio.Event()

    def pick() -> Caller:
        # The killed one stays among them, as behind a balancer that has not noticed.
        return callers[next(turns) % len(callers)]

    async with asyncio.TaskGroup() as group:
        group.create_task(run(pick, ledger, stop, writers=WRITERS, readers=READERS))
        await _more(ledger, 60)
        await asyncio.to_thread(victim.kill)
        await _more(ledger, 60)
        fresh = await asyncio.to_thread(Replica, victim.data_dir, url)
        replicas.enter_context(fresh)
        callers.append(Caller(fresh, callers[0].key))
        closing.push_async_callback(callers[-1].close)
        await _more(ledger, 60)
        await asyncio.to_thread(database.stop)
        await asyncio.sleep(0.5)
        await asyncio.to_thread(database.start)
        returned = asyncio.get_running_loop().time()
        async with asyncio.timeout(RECOVERY_SECONDS):
            await _more(ledger, 1)
        print(
            f"a write was acknowledged {asyncio.get_running_loop().time() - returned:.2f} s after the return"
        )
        await _more(ledger, 60)
        stop.set()
    return ledger


async def _more(ledger: Ledger, writes: int) -> None:
    """Wait until so many more writes are acknowledged."""
    wanted = ledger.writes + writes
    while ledger.writes < wanted:
        await asyncio.sleep(0.01)
