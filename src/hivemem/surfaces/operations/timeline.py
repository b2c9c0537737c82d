"""hm_timeline and hm_timeline_write: what happened when."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from hivemem.domain.access import Principal
from hivemem.domain.graph import TimelineEvent
from hivemem.domain.text import JsonObject
from hivemem.service.timeline import TimelineRequest
from hivemem.surfaces.answers import Answer, WriteAnswer
from hivemem.surfaces.inputs import Input
from hivemem.surfaces.operations.operation import Access, Operation, RestRoute
from hivemem.surfaces.presentation import timestamp, with_warnings
from hivemem.surfaces.services import Services
from hivemem.surfaces.shortening import Item, fit_items, shorten_text
from hivemem.surfaces.wire_json import json_size

_MIN_EVENT_BYTES = 250
_ROOM_BESIDE_EVENTS = 300


class TimelineInput(Input):
    """Arguments of hm_timeline."""

    query: str | None = Field(None, description="Only lines that hold all of these words, in any form.")
    node_key: str | None = Field(None, description="Only lines about this node.")
    period: Literal["1h", "3h", "6h", "12h", "24h", "3d", "7d", "14d", "30d", "90d", "1y"] | None = Field(
        None, description="Only the last hours, days or year."
    )
    start: str | None = Field(None, description="ISO 8601, inclusive; without a zone UTC.")
    end: str | None = Field(None, description="ISO 8601, exclusive; a date alone includes that day.")
    limit: int = Field(50, ge=1, le=200, description="Most lines to return.")


class TimelineLine(Answer):
    """A line of the diary."""

    id: int
    ts: str
    summary: str
    source: str = Field(description="agent: logged with a change; manual: written by hand.")
    tool: str | None = None
    node_key: str | None = None
    meta: dict[str, Any] | None = None


class TimelineAnswer(Answer):
    """Answer of hm_timeline."""

    events: list[TimelineLine] = Field(description="Newest first.")
    count: int
    events_omitted: int | None = Field(None, description="Lines left out to keep the answer short.")
    warnings: list[str] | None = None


class TimelineWriteInput(Input):
    """Arguments of hm_timeline_write."""

    summary: str = Field(description="What happened, in a sentence or two.")
    meta: dict[str, Any] | None = Field(None, description="Structured details.")


class TimelineWriteAnswer(WriteAnswer):
    """Answer of hm_timeline_write."""

    status: Literal["ok"]
    id: int
    ts: str
    summary: str
    warnings: list[str] | None = None


async def _timeline(services: Services, principal: Principal, sent: TimelineInput) -> JsonObject:
    events = await services.timeline.events(
        principal,
        TimelineRequest(
            query=sent.query,
            node_key=sent.node_key,
            period=sent.period,
            start=sent.start,
            end=sent.end,
            limit=sent.limit,
        ),
    )
    room = services.settings.max_answer_bytes - _ROOM_BESIDE_EVENTS
    kept, omitted = fit_items([_line(event) for event in events], room, _MIN_EVENT_BYTES, _fit)
    answer: JsonObject = {"events": list(kept), "count": len(kept)}
    if omitted:
        answer["events_omitted"] = omitted
    notes = [f"{omitted} older lines were left out to keep the answer short; ask for a shorter period"]
    return with_warnings(answer, notes if omitted else [])


async def _write(services: Services, principal: Principal, sent: TimelineWriteInput) -> JsonObject:
    event = await services.timeline.write(principal, sent.summary, sent.meta)
    room = services.settings.max_answer_bytes - _ROOM_BESIDE_EVENTS
    return {
        "status": "ok",
        "id": event.id,
        "ts": timestamp(event.entry.at),
        "summary": shorten_text(event.entry.summary, room, "hm_timeline returns it"),
    }


def _line(event: TimelineEvent) -> Item:
    entry = event.entry
    line: Item = {
        "id": event.id,
        "ts": timestamp(entry.at),
        "summary": entry.summary,
        "source": entry.source,
    }
    if entry.tool is not None:
        line["tool"] = entry.tool
    if entry.node_key is not None:
        line["node_key"] = entry.node_key
    if entry.meta:
        line["meta"] = entry.meta
    return line


def _fit(line: Item, size: int) -> Item:
    # Details give way before the sentence does.
    bare = {name: value for name, value in line.items() if name != "meta"}
    room = size - json_size({**bare, "summary": ""})
    return {**bare, "summary": shorten_text(line["summary"], max(0, room), "ask for this line alone")}


TIMELINE = Operation(
    name="hm_timeline",
    summary="The diary of the memory, newest first: what was stored, changed and forgotten when, and lines "
    "written by hand. Search it by words, node and time.",
    input=TimelineInput,
    output=TimelineAnswer,
    access=Access.READ,
    idempotent=True,
    routes=(RestRoute(method="POST", path="/timeline"),),
    verb="timeline",
    handler=_timeline,
)

TIMELINE_WRITE = Operation(
    name="hm_timeline_write",
    summary="Write a line into the diary: what was done or decided, when no memory changes by it.",
    input=TimelineWriteInput,
    output=TimelineWriteAnswer,
    access=Access.WRITE,
    routes=(RestRoute(method="POST", path="/timeline/write"),),
    verb="note",
    arguments=("summary",),
    handler=_write,
)
