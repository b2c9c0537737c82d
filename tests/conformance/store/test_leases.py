"""Leases: one holder at a time, until it ends or is given back."""

from __future__ import annotations

import asyncio

import pytest

from hivemem.errors import Unavailable
from hivemem.ports.store import Store
from tests.support.builders import minutes


async def acquire(store: Store, holder: str, at: float, name: str = "work") -> bool:
    """Take the lease for ten minutes from minute `at` on."""
    return await store.acquire_lease(name, holder, at=minutes(at), expires_at=minutes(at + 10))


async def test_a_lease_has_one_holder_until_it_ends(store: Store) -> None:
    assert await acquire(store, "one", 0)
    assert not await acquire(store, "two", 0)
    assert not await acquire(store, "two", 9.9)
    assert await acquire(store, "two", 10)
    assert not await acquire(store, "one", 19)


async def test_its_holder_renews_it(store: Store) -> None:
    assert await acquire(store, "one", 0)
    assert await acquire(store, "one", 5)
    assert not await acquire(store, "two", 14)
    assert await acquire(store, "two", 15)


async def test_an_ended_lease_that_nobody_took_is_renewed_too(store: Store) -> None:
    assert await acquire(store, "one", 0)
    assert await acquire(store, "one", 60)
    assert not await acquire(store, "two", 61)


async def test_a_lease_that_was_given_back_is_free(store: Store) -> None:
    await store.release_lease("work", "one")
    assert await acquire(store, "one", 0)
    await store.release_lease("work", "two")
    assert not await acquire(store, "two", 1)
    await store.release_lease("work", "one")
    assert await acquire(store, "two", 1)


async def test_leases_are_told_apart_by_the_whole_name(store: Store) -> None:
    assert await acquire(store, "one", 0, "work")
    for name in ("Work", "work ", "wörk", "👍"):
        assert await acquire(store, "two", 0, name)
        assert not await acquire(store, "one", 0, name)


async def test_of_many_that_ask_at_once_one_gets_it(store: Store) -> None:
    outcomes = await asyncio.gather(*(acquire(store, f"holder {number}", 0) for number in range(20)))
    assert outcomes.count(True) == 1


async def test_a_closed_store_gives_no_leases(store: Store) -> None:
    await store.close()
    with pytest.raises(Unavailable):
        await acquire(store, "one", 0)
    with pytest.raises(Unavailable):
        await store.release_lease("work", "one")
