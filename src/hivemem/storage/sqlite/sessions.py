"""Conversations and the diary of a graph."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Sequence
from datetime import datetime

from hivemem.domain.graph import GraphId, Session, SessionTouch, TimelineEntry, TimelineEvent
from hivemem.storage.diary import diary_terms
from hivemem.storage.sqlite.statements import named_statements
from hivemem.storage.states import from_json, to_json
from hivemem.storage.times import from_microseconds, to_microseconds

_SQL = named_statements("sessions.sql")
_BEGINNING_OF_TIME = -(2**63)
_END_OF_TIME = 2**63 - 1


def touch(
    connection: sqlite3.Connection, graph_id: GraphId, session_id: str, keys: Collection[str], at: datetime
) -> None:
    """Record that a conversation touched the nodes that exist among `keys`."""
    own = {"graph_id": graph_id, "session_id": session_id, "at": to_microseconds(at)}
    connection.execute(_SQL["count_call"], own)
    connection.executemany(_SQL["touch_node"], [{**own, "key": key} for key in dict.fromkeys(keys)])


def touched(
    connection: sqlite3.Connection, graph_id: GraphId, session_id: str, limit: int
) -> list[SessionTouch]:
    """The nodes of a conversation, last touched first."""
    arguments = {"graph_id": graph_id, "session_id": session_id, "limit": max(0, limit)}
    return [
        SessionTouch(
            key=key,
            touch_count=count,
            first_touched_at=from_microseconds(first),
            last_touched_at=from_microseconds(last),
        )
        for key, count, first, last in connection.execute(_SQL["touched"], arguments)
    ]


def session(connection: sqlite3.Connection, graph_id: GraphId, session_id: str) -> Session | None:
    """How many calls of a conversation were counted, and when."""
    arguments = {"graph_id": graph_id, "session_id": session_id}
    row = connection.execute(_SQL["session"], arguments).fetchone()
    if row is None:
        return None
    calls, first, last = row
    return Session(
        session_id=session_id,
        tool_calls=calls,
        first_call_at=from_microseconds(first),
        last_call_at=from_microseconds(last),
    )


def add_event(connection: sqlite3.Connection, graph_id: GraphId, entry: TimelineEntry) -> TimelineEvent:
    """Write one line into the diary."""
    [event_id] = add_events(connection, graph_id, [entry])
    return TimelineEvent(id=event_id, entry=entry)


def add_events(
    connection: sqlite3.Connection, graph_id: GraphId, entries: Sequence[TimelineEntry]
) -> list[int]:
    """Write lines into the diary, each with the graph's next number; the numbers."""
    if not entries:
        return []
    count = len(entries)
    # fetchall, because a RETURNING statement that was not read to its end blocks the commit.
    [(last,)] = connection.execute(_SQL["next_event_ids"], {"graph_id": graph_id, "count": count}).fetchall()
    numbers = list(range(last - count + 1, last + 1))
    numbered = list(zip(numbers, entries, strict=True))
    connection.executemany(
        _SQL["add_event"],
        [
            {
                "graph_id": graph_id,
                "event_id": event_id,
                "at": to_microseconds(entry.at),
                "summary": entry.summary,
                "source": entry.source,
                "tool": entry.tool,
                "node_key": entry.node_key,
                "meta": to_json(entry.meta),
            }
            for event_id, entry in numbered
        ],
    )
    connection.executemany(
        _SQL["add_terms"],
        [
            {"graph_id": graph_id, "event_id": event_id, "terms": diary_terms(entry)}
            for event_id, entry in numbered
        ],
    )
    return numbers


def timeline(
    connection: sqlite3.Connection,
    graph_id: GraphId,
    start: datetime | None,
    end: datetime | None,
    node_key: str | None,
    words: Sequence[Collection[str]],
    limit: int,
) -> list[TimelineEvent]:
    """Lines of the diary with `start <= at < end` that hold a term of each word, newest first."""
    if words:
        statement = _SQL["timeline_by_words"]
    else:
        statement = _SQL["timeline"] if node_key is None else _SQL["timeline_of_node"]
    arguments = {
        "graph_id": graph_id,
        "start": _BEGINNING_OF_TIME if start is None else to_microseconds(start),
        "end": _END_OF_TIME if end is None else to_microseconds(end),
        "node_key": node_key,
        "words": json.dumps([[f" {term} " for term in word] for word in words]),
        "limit": max(0, limit),
    }
    return [
        TimelineEvent(
            id=event_id,
            entry=TimelineEntry(
                at=from_microseconds(at),
                summary=summary,
                source=source,
                tool=tool,
                node_key=key,
                meta=from_json(meta),
            ),
        )
        for event_id, at, summary, source, tool, key, meta in connection.execute(statement, arguments)
    ]


def forget_events(connection: sqlite3.Connection, graph_id: GraphId, node_key: str) -> None:
    """Remove the lines that name a node."""
    connection.execute(_SQL["forget_events"], {"graph_id": graph_id, "node_key": node_key})
