"""Conversations and the diary of a graph."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime

from hivemem.domain.graph import GraphId, Session, SessionTouch, TimelineEntry, TimelineEvent
from hivemem.storage.diary import diary_terms
from hivemem.storage.postgres.statements import named_statements
from hivemem.storage.postgres.transaction import Query, Row, Transaction, findable
from hivemem.storage.states import from_json, to_json
from hivemem.storage.times import from_microseconds, to_microseconds

_SQL = named_statements("sessions.sql")
_BEGINNING_OF_TIME = -(2**63)
_END_OF_TIME = 2**63 - 1


async def touch(
    transaction: Transaction, graph_id: GraphId, session_id: str, keys: Collection[str], at: datetime
) -> None:
    """Record that a conversation touched the nodes that exist among `keys`."""
    own = {"graph_id": graph_id, "session_id": session_id, "at": to_microseconds(at)}
    # Locks the row of the conversation, so that its touches come one after the other.
    await transaction.send(_SQL["count_call"], own)
    await transaction.send(_SQL["touch_nodes"], {**own, "keys": findable(keys)})


def touched(graph_id: GraphId, session_id: str, limit: int) -> Query[list[SessionTouch]]:
    """The nodes of a conversation, last touched first."""
    arguments = {"graph_id": graph_id, "session_id": session_id, "limit": max(0, limit)}
    return Query(
        sql=_SQL["touched"],
        arguments=arguments,
        decode=lambda rows: [
            SessionTouch(
                key=key,
                touch_count=count,
                first_touched_at=from_microseconds(first),
                last_touched_at=from_microseconds(last),
            )
            for key, count, first, last in rows
        ],
    )


def session(graph_id: GraphId, session_id: str) -> Query[Session | None]:
    """How many calls of a conversation were counted, and when."""

    def decode(rows: Sequence[Row]) -> Session | None:
        for calls, first, last in rows:
            return Session(
                session_id=session_id,
                tool_calls=calls,
                first_call_at=from_microseconds(first),
                last_call_at=from_microseconds(last),
            )
        return None

    arguments = {"graph_id": graph_id, "session_id": session_id}
    return Query(sql=_SQL["session"], arguments=arguments, decode=decode)


async def add_events(
    transaction: Transaction, graph_id: GraphId, entries: Sequence[TimelineEntry], last_event: int
) -> None:
    """Write lines into the diary, under the numbers that end with `last_event`."""
    if not entries:
        return
    await transaction.send(
        _SQL["add_events"],
        {
            "graph_id": graph_id,
            "event_id": [*range(last_event - len(entries) + 1, last_event + 1)],
            "at": [to_microseconds(entry.at) for entry in entries],
            "summary": [entry.summary for entry in entries],
            "source": [entry.source for entry in entries],
            "tool": [entry.tool for entry in entries],
            "node_key": [entry.node_key for entry in entries],
            "meta": [to_json(entry.meta) for entry in entries],
        },
    )
    await transaction.send(
        _SQL["add_terms"],
        {
            "graph_id": graph_id,
            "event_id": [*range(last_event - len(entries) + 1, last_event + 1)],
            "terms": [diary_terms(entry) for entry in entries],
        },
    )


def was_added(graph_id: GraphId, event_id: int, entry: TimelineEntry) -> Query[bool]:
    """Whether the diary holds this line under this number."""
    expected = (to_microseconds(entry.at), entry.summary)
    return Query(
        sql=_SQL["event"],
        arguments={"graph_id": graph_id, "event_id": event_id},
        decode=lambda rows: [*map(tuple, rows)] == [expected],
    )


def timeline(
    graph_id: GraphId,
    start: datetime | None,
    end: datetime | None,
    node_key: str | None,
    words: Sequence[Collection[str]],
    limit: int,
) -> Query[list[TimelineEvent]]:
    """Lines of the diary with `start <= at < end` that hold a term of each word, newest first."""
    arguments: dict[str, object] = {
        "graph_id": graph_id,
        "start": _BEGINNING_OF_TIME if start is None else to_microseconds(start),
        "end": _END_OF_TIME if end is None else to_microseconds(end),
        "node_key": node_key,
        "limit": max(0, limit),
    }
    if words:
        wanted = [(number, term) for number, word in enumerate(words) for term in sorted(set(word))]
        arguments["word"] = [number for number, _ in wanted]
        arguments["term"] = [f" {term} " for _, term in wanted]
        arguments["word_count"] = len(words)
        sql = _SQL["timeline_by_words"]
    else:
        sql = _SQL["timeline"] if node_key is None else _SQL["timeline_of_node"]
    return Query(
        sql=sql,
        arguments=arguments,
        decode=lambda rows: [_event_from_row(row) for row in rows],
    )


async def forget_events(transaction: Transaction, graph_id: GraphId, node_key: str) -> None:
    """Remove the lines that name a node."""
    await transaction.send(_SQL["forget_events"], {"graph_id": graph_id, "node_key": node_key})


def _event_from_row(row: Row) -> TimelineEvent:
    event_id, at, summary, source, tool, node_key, meta = row
    return TimelineEvent(
        id=event_id,
        entry=TimelineEntry(
            at=from_microseconds(at),
            summary=summary,
            source=source,
            tool=tool,
            node_key=node_key,
            meta=from_json(meta),
        ),
    )
