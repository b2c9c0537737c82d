"""The diary as callers read and write it, and reports of tokens."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from hivemem.errors import Forbidden, InvalidInput, LimitExceeded
from hivemem.service.limits import Limits
from hivemem.service.timeline import PERIODS, Timeline, TimelineRequest, parse_time
from hivemem.service.tokens import Tokens
from tests.service.conftest import OWNER, READER, World
from tests.support.builders import FixedClock


@pytest.fixture
def timeline(world: World) -> Timeline:
    return Timeline(store=world.store, clock=world.clock, limits=Limits())


async def summaries(timeline: Timeline, **fields: Any) -> list[str]:
    return [event.entry.summary for event in await timeline.events(OWNER, TimelineRequest(**fields))]


async def test_changes_and_lines_by_hand_newest_first(world: World, timeline: Timeline) -> None:
    await world.put("fact_a", "The ferry leaves at nine.")
    event = await timeline.write(OWNER, "Asked the harbour about the ferries.", {"phone": True})
    assert (event.entry.source, event.entry.meta) == ("manual", {"phone": True})
    assert await summaries(timeline) == [
        "Asked the harbour about the ferries.",
        "Created fact_a: The ferry leaves at nine.",
    ]
    assert len(await summaries(timeline, query="ferry")) == 2
    assert await summaries(timeline, query="harbours asking ferry") == [
        "Asked the harbour about the ferries."
    ]
    assert await summaries(timeline, node_key="fact_a", query="  ") == [
        "Created fact_a: The ferry leaves at nine."
    ]
    assert await summaries(timeline, query="!!!") == []


@pytest.mark.parametrize("period", PERIODS)
async def test_every_period_reaches_back_exactly_that_far(world: World, period: str) -> None:
    clock = FixedClock()
    timeline = Timeline(store=world.store, clock=clock, limits=Limits())
    await timeline.write(OWNER, "Then.")
    clock.advance(seconds=PERIODS[period].total_seconds())
    assert await summaries(timeline, period=period) == ["Then."]
    clock.advance(microseconds=1)
    assert await summaries(timeline, period=period) == []


async def test_a_period_and_a_start_both_hold(world: World) -> None:
    clock = FixedClock()
    timeline = Timeline(store=world.store, clock=clock, limits=Limits())
    for number in range(4):
        await timeline.write(OWNER, f"Line {number}.")
        clock.advance(hours=1)
    assert await summaries(timeline, period="3h") == ["Line 3.", "Line 2.", "Line 1."]
    assert await summaries(timeline, period="3h", start="2026-01-01T03:00:00+01:00") == ["Line 3.", "Line 2."]
    assert await summaries(timeline, start="2026-01-01", end="2026-01-01T02:00:00Z") == ["Line 1.", "Line 0."]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-05-01", "2026-05-01T00:00:00+00:00"),
        ("2026-05-01T10:00:00", "2026-05-01T10:00:00+00:00"),
        ("2026-05-01T10:00:00Z", "2026-05-01T10:00:00+00:00"),
        (" 2026-05-01T00:30:00+05:45 ", "2026-04-30T18:45:00+00:00"),
        ("", None),
        (None, None),
    ],
)
def test_times_in_any_zone(text: str | None, expected: str | None) -> None:
    parsed = parse_time(text, "/start")
    assert (parsed and parsed.isoformat()) == (expected and datetime.fromisoformat(expected).isoformat())


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"period": "2h"}, "/period '2h' is not one of 1h, 3h"),
        ({"start": "yesterday"}, "/start 'yesterday' is no ISO 8601 time"),
        ({"end": "0001-01-01T00:00:00+14:00"}, "/end"),
        ({"limit": 0}, "/limit is 0"),
        ({"limit": 201}, "/limit is 201"),
        ({"node_key": " "}, "/node_key"),
    ],
)
async def test_a_bad_filter_says_what_is_wrong(timeline: Timeline, fields: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        await summaries(timeline, **fields)


async def test_a_bad_line_is_not_written(timeline: Timeline) -> None:
    with pytest.raises(InvalidInput, match="/summary is blank"):
        await timeline.write(OWNER, " \n")
    with pytest.raises(LimitExceeded, match="/summary"):
        await timeline.write(OWNER, "x" * 10_001)
    with pytest.raises(Forbidden):
        await timeline.write(READER, "x")
    assert await summaries(timeline) == []


REPORT: dict[str, Any] = {
    "model": "m",
    "segments": [{"category": "coding", "weight": 60, "note": 1}, {"category": "planning", "weight": 40}],
}


async def test_a_turn_is_reported_once(world: World) -> None:
    tokens = Tokens(store=world.store, clock=world.clock, limits=Limits())
    first, again = await tokens.record(OWNER, "talk", 1, REPORT)
    assert (first.report, again) == (REPORT, False)
    kept, again = await tokens.record(OWNER, "talk", 1, {**REPORT, "model": "other"})
    assert (kept, again) == (first, True)
    other, again = await tokens.record(READER, "talk", 2, REPORT)
    assert (other.event_id != first.event_id, again) == (True, False)


@pytest.mark.parametrize(
    ("segments", "said"),
    [
        ("coding", '/segments is not of type "array"'),
        ([], "weights of 0 in all"),
        ([1], '/segments/0 is not of type "object"'),
        ([{"category": "context", "weight": 100}], "/segments/0/category is 'context'; use one of reasoning"),
        ([{"category": ["coding"], "weight": 100}], "/segments/0/category"),
        ([{"category": "coding", "weight": 50}] * 2, "/segments/1/category 'coding' is there twice"),
        ([{"category": "coding", "weight": True}], "/segments/0/weight is True"),
        ([{"category": "coding", "weight": 101}], "/segments/0/weight is 101"),
        ([{"category": "coding", "weight": 99}], "weights of 99 in all"),
    ],
)
async def test_segments_share_out_the_whole_turn(world: World, segments: Any, said: str) -> None:
    tokens = Tokens(store=world.store, clock=world.clock, limits=Limits())
    with pytest.raises(InvalidInput, match=said):
        await tokens.record(OWNER, "talk", 1, {**REPORT, "segments": segments})
