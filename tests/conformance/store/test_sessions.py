"""Conversations and the diary."""

from __future__ import annotations

import pytest

from hivemem.domain.graph import SessionCall, SessionTouch
from hivemem.errors import StaleWrite
from hivemem.ports.store import Store
from tests.conformance.store.observe import GRAPH, OTHER_GRAPH
from tests.support.builders import batch, delete, entry, minutes, node

ABC = tuple(node(key) for key in ("a_1", "b_1", "c_1"))


def touch(key: str, count: int, first: int, last: int) -> SessionTouch:
    return SessionTouch(
        key=key, touch_count=count, first_touched_at=minutes(first), last_touched_at=minutes(last)
    )


def call(session_id: str, *keys: str) -> SessionCall:
    return SessionCall(session_id=session_id, keys=keys)


async def test_touches_are_counted_and_listed_last_touched_first_then_by_key(store: Store) -> None:
    await store.apply(GRAPH, batch(*ABC))
    await store.touch(GRAPH, "s", ["c_1", "a_1"], minutes(1))
    await store.touch(GRAPH, "s", ["b_1"], minutes(2))
    await store.touch(GRAPH, "s", ["c_1", "c_1"], minutes(3))
    assert await store.touched(GRAPH, "s") == [
        touch("c_1", 2, 1, 3),
        touch("b_1", 1, 2, 2),
        touch("a_1", 1, 1, 1),
    ]
    assert await store.touched(GRAPH, "s", limit=1) == [touch("c_1", 2, 1, 3)]
    await store.touch(GRAPH, "t", ["b_1", "a_1"], minutes(4))
    assert [one.key for one in await store.touched(GRAPH, "t")] == ["a_1", "b_1"]


async def test_a_batch_records_its_calls_as_touches_at_its_time(store: Store) -> None:
    new = node("d_1")
    await store.apply(GRAPH, batch(*ABC, call("s", "a_1"), at=minutes(1)))
    await store.touch(GRAPH, "s", ["a_1"], minutes(2))
    revision = await store.apply(
        GRAPH, batch(new, call("s", "d_1", "a_1", "nobody_1"), call("t", "a_1"), at=minutes(3))
    )
    assert await store.touched(GRAPH, "s") == [touch("a_1", 3, 1, 3), touch("d_1", 1, 3, 3)]
    assert await store.touched(GRAPH, "t") == [touch("a_1", 1, 3, 3)]
    assert await store.apply(GRAPH, batch(call("t", "b_1"), at=minutes(4))) == revision
    assert await store.touched(GRAPH, "t") == [touch("b_1", 1, 4, 4), touch("a_1", 1, 3, 3)]


async def test_a_refused_batch_records_no_calls(store: Store) -> None:
    await store.apply(GRAPH, batch(*ABC))
    with pytest.raises(StaleWrite):
        await store.apply(GRAPH, batch(node("a_1"), call("s", "a_1")))
    assert await store.touched(GRAPH, "s") == []


async def test_a_clock_that_went_back_keeps_first_and_last_in_order(store: Store) -> None:
    await store.apply(GRAPH, batch(*ABC))
    for at in (5, 3, 4):
        await store.touch(GRAPH, "s", ["a_1"], minutes(at))
    assert await store.touched(GRAPH, "s") == [touch("a_1", 3, 3, 5)]


async def test_sessions_and_graphs_are_apart(store: Store) -> None:
    await store.apply(GRAPH, batch(*ABC))
    await store.apply(OTHER_GRAPH, batch(*ABC))
    await store.touch(GRAPH, "s", ["a_1"], minutes(1))
    assert await store.touched(GRAPH, "S") == []
    assert await store.touched(OTHER_GRAPH, "s") == []


async def test_only_nodes_that_exist_are_listed(store: Store) -> None:
    await store.apply(GRAPH, batch(*ABC))
    await store.touch(GRAPH, "s", ["a_1", "b_1", "later_1"], minutes(1))
    await store.touch(GRAPH, "s", [], minutes(1))
    await store.apply(GRAPH, batch(delete(ABC[0]), node("later_1")))
    assert [one.key for one in await store.touched(GRAPH, "s")] == ["b_1"]


async def test_the_diary_is_read_newest_first_in_a_half_open_interval(store: Store) -> None:
    lines = [entry(f"Line {i}.", at=minutes(i), node_key="a_1" if i % 2 else None) for i in range(6)]
    await store.apply(GRAPH, batch(*(lines[i] for i in (3, 0, 5, 1, 4, 2))))

    async def read(**filters) -> list[str]:
        return [event.entry.summary[5:6] for event in await store.timeline(GRAPH, **filters)]

    assert await read() == list("543210")
    assert await read(limit=2) == list("54")
    assert await read(start=minutes(2), end=minutes(4)) == list("32")
    assert await read(start=minutes(4)) == list("54")
    assert await read(end=minutes(2)) == list("10")
    assert await read(start=minutes(3), end=minutes(3)) == []
    assert await read(node_key="a_1") == list("531")
    assert await read(node_key="a_1", start=minutes(1), end=minutes(5), limit=1) == list("3")
    assert await read(node_key="b_1") == []


async def test_lines_of_one_moment_are_told_apart_by_their_rising_number(store: Store) -> None:
    await store.apply(GRAPH, batch(entry("First."), entry("Second.")))
    await store.apply(GRAPH, batch(entry("Third.")))
    events = await store.timeline(GRAPH)
    assert [event.entry.summary for event in events] == ["Third.", "Second.", "First."]
    assert events[0].id > events[1].id > events[2].id
    await store.apply(OTHER_GRAPH, batch(entry("Elsewhere.")))
    assert await store.timeline(GRAPH) == events
