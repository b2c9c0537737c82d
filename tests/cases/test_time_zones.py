"""The diary compares instants: the zone of the server changes nothing, that of a question is heeded."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from hivemem.errors import InvalidInput
from hivemem.models.executor import ModelExecutor
from hivemem.models.hashing import HashingEmbedder
from hivemem.service.limits import Limits
from hivemem.service.remember import Remember, StoreRequest
from hivemem.service.timeline import Timeline, TimelineRequest
from hivemem.storage.sqlite import SqliteStore
from tests.cases.reports import Report, store_requests
from tests.service.conftest import OWNER


class SetClock:
    """A clock that tells what it was set to."""

    def __init__(self) -> None:
        self.time = datetime(2026, 1, 1, tzinfo=UTC)

    def now(self) -> datetime:
        return self.time

    def new_id(self, prefix: str) -> str:
        return f"{prefix}_{self.time.timestamp():.0f}"


class Diary:
    """Stores at a given time, and asks for spans of it."""

    def __init__(self, store: SqliteStore, executor: ModelExecutor) -> None:
        self._clock = SetClock()
        self._remember = Remember(store=store, executor=executor, clock=self._clock, limits=Limits())
        self._timeline = Timeline(store=store, clock=self._clock, limits=Limits())

    async def store_at(self, at: str, request: StoreRequest) -> None:
        self._clock.time = datetime.fromisoformat(at).astimezone(UTC)
        await self._remember.store(OWNER, request)

    async def notes_at(self, notes: dict[str, str]) -> None:
        for key, at in notes.items():
            await self.store_at(at, StoreRequest(key=key, description=f"Stored as {key}."))

    async def keys(self, **fields: Any) -> set[str | None]:
        events = await self._timeline.events(OWNER, TimelineRequest(**fields))
        for event in events:
            assert event.entry.at.utcoffset() is not None
        return {event.entry.node_key for event in events}

    def set(self, at: str) -> None:
        self._clock.time = datetime.fromisoformat(at).astimezone(UTC)


@pytest.fixture(params=["UTC", "Asia/Tokyo", "America/Los_Angeles"])
def server_zone(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", request.param)
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.fixture
async def diary(tmp_path: Path, server_zone: None) -> AsyncIterator[Diary]:
    store = await SqliteStore.open(tmp_path / "hivemem.db")
    executor = ModelExecutor(HashingEmbedder(16), None)
    yield Diary(store, executor)
    executor.close()
    await store.close()


@pytest.mark.shared
async def test_reported_spans(diary: Diary, report: Callable[[str], Report]) -> None:
    case = report("C30")
    for step in case.setup:
        if "clock" in step:
            [request] = store_requests(step["op"]["store"])
            await diary.store_at(step["clock"], request)
    spans = [
        {"start": step["timeline"].get("from"), "end": step["timeline"].get("to")} for step in case.sequence
    ]
    morning = {"t_tokyo_morning"}
    assert await diary.keys(**spans[0]) == await diary.keys(**spans[1]) == morning
    assert await diary.keys(**spans[2]) == morning, "a date alone is a whole day in UTC"
    assert await diary.keys(**spans[3]) <= {"t_dst_after"}
    with pytest.raises(InvalidInput, match="is after /end"):
        await diary.keys(**spans[4])
    with pytest.raises(InvalidInput, match="ISO 8601"):
        await diary.keys(**spans[5])
    assert await diary.keys(**spans[6]) == {"t_dst_before", "t_dst_after"}, "without a zone it is UTC"


async def test_the_hour_that_comes_twice_in_autumn_is_two_hours(diary: Diary) -> None:
    await diary.notes_at(
        {
            "event_summer": "2026-10-25T00:30:00+00:00",  # 02:30 in Oslo, before the clocks go back
            "event_winter": "2026-10-25T01:30:00+00:00",  # 02:30 in Oslo, after
        }
    )
    summer = {"start": "2026-10-25T02:00:00+02:00", "end": "2026-10-25T03:00:00+02:00"}
    winter = {"start": "2026-10-25T02:00:00+01:00", "end": "2026-10-25T03:00:00+01:00"}
    assert await diary.keys(**summer) == {"event_summer"}
    assert await diary.keys(**winter) == {"event_winter"}
    assert await diary.keys(start="2026-10-25", end="2026-10-25") == {"event_summer", "event_winter"}


async def test_zones_with_odd_offsets_and_periods_count_from_now(diary: Diary) -> None:
    await diary.notes_at(
        {
            "event_kathmandu": "2026-06-01T00:10:00+05:45",
            "event_chatham": "2026-06-01T00:10:00+12:45",
            "event_utc": "2026-06-01T00:10:00Z",
        }
    )
    day = {"start": "2026-06-01T00:00:00+05:45", "end": "2026-06-02T00:00:00+05:45"}
    assert await diary.keys(**day) == {"event_kathmandu", "event_utc"}
    assert await diary.keys(end="2026-05-31") == {"event_kathmandu", "event_chatham"}
    diary.set("2026-06-01T00:20:00Z")
    assert await diary.keys(period="1h") == {"event_utc"}
    assert await diary.keys(period="24h", end="2026-05-31T18:00:00Z") == {"event_chatham"}
    assert (
        await diary.keys(end="9999-12-31") == await diary.keys() == await diary.keys(end="9999-12-31T23:59Z")
    )
