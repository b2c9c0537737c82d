"""Opening, closing, and what is there afterwards."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from hivemem.errors import Unavailable
from hivemem.ports.store import Store
from tests.conformance.store.backends import Backend
from tests.conformance.store.observe import GRAPH, everything
from tests.support.builders import (
    api_key,
    batch,
    create,
    edge,
    entry,
    graph,
    hyperedge,
    minutes,
    node,
    passage,
    user,
    vectors,
)


async def fill(store: Store) -> None:
    await store.add_user(user(), graph())
    await store.add_key(api_key())
    await store.apply(
        GRAPH,
        batch(
            create(node("a_1"), vectors(passage(1.0))),
            node("b_1"),
            node("c_1"),
            edge("a_1", "b_1"),
            hyperedge("a_1", "b_1", "c_1"),
            entry(),
        ),
    )
    await store.touch(GRAPH, "s", ["a_1"], minutes(1))


async def test_a_closed_store_is_unavailable_and_closing_again_is_fine(store: Store) -> None:
    await store.close()
    await store.close()
    with pytest.raises(Unavailable):
        await store.revision(GRAPH)
    with pytest.raises(Unavailable):
        await store.apply(GRAPH, batch(node("a_1")))
    with pytest.raises(Unavailable):
        await store.users()
    with pytest.raises(Unavailable):
        await store.touch(GRAPH, "s", [], minutes(1))


async def test_closing_finishes_the_writes_that_were_begun(backend: Backend, tmp_path: Path) -> None:
    store = await backend.open(tmp_path)
    writes = [asyncio.ensure_future(store.apply(GRAPH, batch(node(f"n_{i}")))) for i in range(30)]
    await asyncio.sleep(0)
    await store.close()
    assert sorted(await asyncio.gather(*writes)) == list(range(1, 31))


async def test_what_was_written_is_there_when_opened_again(backend: Backend, tmp_path: Path) -> None:
    if not backend.capabilities.durable:
        pytest.skip("the backend is not durable")
    store = await backend.open(tmp_path)
    await fill(store)
    before = await everything(store)
    await store.close()
    again = await backend.open(tmp_path)
    try:
        assert await everything(again) == before
        assert await again.users() == [user()]
        assert await again.keys() == [api_key()]
    finally:
        await again.close()


async def test_two_open_stores_see_each_others_writes(backend: Backend, tmp_path: Path) -> None:
    if not backend.capabilities.shared:
        pytest.skip("the backend is private to its process")
    one, two = await backend.open(tmp_path), await backend.open(tmp_path)
    try:
        await fill(one)
        assert await everything(two) == await everything(one)
        for number in range(2, 22):
            writer, reader = (one, two) if number % 2 else (two, one)
            assert await writer.apply(GRAPH, batch(node(f"n_{number}"))) == number
            assert await reader.revision(GRAPH) == number
            assert f"n_{number}" in await reader.nodes(GRAPH, [f"n_{number}"])
    finally:
        await one.close()
        await two.close()
