"""The rule of the rate limits, and the places that keep the counts."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator

import psycopg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hivemem.domain.rates import MINUTE, Allowance, Bucket, Rate, taken
from hivemem.ports.rates import RateCounts
from hivemem.storage.postgres import PostgresStore
from hivemem.storage.postgres import rates as postgres_rates
from hivemem.storage.rates_memory import MemoryRateCounts
from tests.support.postgres import fresh_database

SECOND = 1_000_000
START = 1_800_000_000 * SECOND


@pytest.fixture(params=["memory", "postgres"])
async def counts(request: pytest.FixtureRequest) -> AsyncIterator[RateCounts]:
    if request.param == "memory":
        yield MemoryRateCounts()
        return
    store = await PostgresStore.open(fresh_database(), connections=2)
    try:
        yield store.rate_counts
    finally:
        await store.close()


async def test_a_limit_is_for_each_subject_and_bucket_and_fills_up_again(counts: RateCounts) -> None:
    rate, now = Rate(calls=2, period=20 * SECOND), START

    async def waits(subject: str, times: int, bucket: Bucket = Bucket.READ) -> list[float]:
        found = [await counts.take(bucket, subject, rate, now) for _ in range(times)]
        return [0 if one.allowed else one.wait / SECOND for one in found]

    assert await waits("a", 4) == [0, 0, 10, 10]
    assert await waits("b", 1) == [0]
    assert await waits("a", 1, Bucket.WRITE) == [0]
    now += 4_500_000
    assert await waits("a", 1) == [5.5]
    now += 5_500_000
    assert await waits("a", 2) == [0, 10]
    now += 1000 * SECOND
    assert await waits("a", 3) == [0, 0, 10]


async def test_an_allowance_tells_what_is_left(counts: RateCounts) -> None:
    rate = Rate(calls=3, period=MINUTE)
    found = [await counts.take(Bucket.WRITE, "a", rate, START) for _ in range(4)]
    assert [one.remaining for one in found] == [2, 1, 0, 0]
    assert [one.allowed for one in found] == [True, True, True, False]
    assert [(one.full_at - START) // SECOND for one in found] == [20, 40, 60, 60]
    assert {one.limit for one in found} == {3}


async def test_a_clock_that_was_set_back_locks_nobody_out(counts: RateCounts) -> None:
    rate = Rate(calls=2, period=2 * SECOND)
    assert (await counts.take(Bucket.READ, "a", rate, START)).allowed
    earlier = START - 3600 * SECOND
    refused = await counts.take(Bucket.READ, "a", rate, earlier)
    assert not refused.allowed
    assert refused.wait == SECOND
    assert (await counts.take(Bucket.READ, "a", rate, earlier + SECOND)).allowed


@settings(max_examples=50, deadline=None)
@given(
    calls=st.integers(1, 20),
    period=st.integers(1, 10**8),
    gaps=st.lists(st.integers(0, 10**7), min_size=1, max_size=60),
)
def test_never_more_than_the_rate(calls: int, period: int, gaps: list[int]) -> None:
    """In any stretch of time, at most a full bucket and what flowed in meanwhile is let through."""
    rate, now, full_at = Rate(calls=calls, period=period), START, None
    passed: list[int] = []
    for gap in gaps:
        now += gap
        found = taken(rate, full_at, now)
        full_at = found.full_at
        assert 0 <= found.remaining < calls
        if found.allowed:
            passed.append(now)
        else:
            assert taken(rate, full_at, now + found.wait).allowed
            assert not taken(rate, full_at, now + found.wait - 1).allowed
    for first, begun in enumerate(passed):
        for last in range(first, len(passed)):
            assert last - first + 1 <= calls + (passed[last] - begun) // rate.step


async def test_memory_stays_bounded_and_the_busiest_are_remembered() -> None:
    counts, rate = MemoryRateCounts(most_buckets=100), Rate(calls=5, period=MINUTE)

    async def take(subject: str, now: int) -> Allowance:
        return await counts.take(Bucket.SIGN_IN, subject, rate, now)

    for _ in range(5):
        await take("guesser", START)
    for number in range(1_000):
        await take(f"address {number}", START)
        assert len(counts) <= 100
    assert not (await take("guesser", START)).allowed
    later = START + 2 * MINUTE
    for number in range(101):
        await take(f"other {number}", later)
    assert (await take("guesser", later)).remaining == 4


async def test_servers_on_one_database_count_together() -> None:
    url, rate = fresh_database(), Rate(calls=10, period=MINUTE)
    stores = [await PostgresStore.open(url, connections=4) for _ in range(2)]
    try:
        found = await asyncio.gather(
            *(
                stores[number % 2].rate_counts.take(Bucket.WRITE, "user_a", rate, START)
                for number in range(40)
            )
        )
        passed = [one for one in found if one.allowed]
        assert len(passed) == 10
        assert sorted(one.remaining for one in passed) == list(range(10))
    finally:
        for store in stores:
            await store.close()


async def test_the_statement_does_what_the_rule_says() -> None:
    store = await PostgresStore.open(fresh_database(), connections=1)
    chosen = random.Random(7)
    try:
        for calls, period in ((1, 10), (3, MINUTE), (7, 1_000)):
            rate, now, full_at = Rate(calls=calls, period=period), START, None
            for _ in range(60):
                now += chosen.choice((0, 0, rate.step // 2, rate.step, 2 * rate.step, -3 * rate.window))
                expected = taken(rate, full_at, now)
                full_at = expected.full_at
                assert await store.rate_counts.take(Bucket.READ, f"user_{calls}", rate, now) == expected
    finally:
        await store.close()


async def test_full_buckets_leave_the_database(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres_rates, "_CLEAN_EVERY", 5)
    url, rate = fresh_database(), Rate(calls=1, period=SECOND)
    store = await PostgresStore.open(url, connections=1)
    try:
        for number in range(4):
            await store.rate_counts.take(Bucket.SIGN_IN, f"address {number}", rate, START)
        await store.rate_counts.take(Bucket.SIGN_IN, "late", rate, START + 2 * SECOND)
    finally:
        await store.close()
    with psycopg.connect(url) as connection:
        assert connection.execute("SELECT subject FROM rate_limits").fetchall() == [("late",)]
