"""hm_timeline and hm_timeline_write: the diary of a graph."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

from hivemem.domain.access import Principal
from hivemem.domain.graph import TimelineEntry, TimelineEvent
from hivemem.domain.keys import normalise_key
from hivemem.domain.text import JsonObject, storable_text
from hivemem.errors import InvalidInput
from hivemem.ports.clock import Clock
from hivemem.ports.store import SessionStore
from hivemem.retrieval.analyse import analyse_query
from hivemem.service.limits import Limits
from hivemem.service.store_request import checked_data

PERIODS: dict[str, timedelta] = {
    "1h": timedelta(hours=1),
    "3h": timedelta(hours=3),
    "6h": timedelta(hours=6),
    "12h": timedelta(hours=12),
    "24h": timedelta(hours=24),
    "3d": timedelta(days=3),
    "7d": timedelta(days=7),
    "14d": timedelta(days=14),
    "30d": timedelta(days=30),
    "90d": timedelta(days=90),
    "1y": timedelta(days=365),
}
MAX_EVENTS = 200
MAX_SUMMARY_CHARACTERS = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class TimelineRequest:
    """Which lines of the diary; filters combine. Both times are ISO 8601.

    `start` is inclusive, `end` is not; but a date alone as `end` means until that day is over, in UTC.
    """

    query: str | None = None
    node_key: str | None = None
    period: str | None = None
    start: str | None = None
    end: str | None = None
    limit: int = 50


class Timeline:
    """Reads and writes the diary."""

    def __init__(self, *, store: SessionStore, clock: Clock, limits: Limits) -> None:
        self._store = store
        self._clock = clock
        self._limits = limits

    async def events(self, principal: Principal, request: TimelineRequest) -> Sequence[TimelineEvent]:
        """Lines of the diary, newest first.

        With `query`: those that hold each of its words, in any form of the word.

        Raises:
            InvalidInput: A value out of its range, an unknown period, or a time that is none.
            Unavailable: The store is busy or down.
        """
        if not 1 <= request.limit <= MAX_EVENTS:
            raise InvalidInput(f"/limit is {request.limit}; use 1 to {MAX_EVENTS}.")
        start, end = parse_time(request.start, "/start"), parse_time(request.end, "/end", day_ends=True)
        if start is not None and end is not None and start > end:
            raise InvalidInput(f"/start {request.start!r} is after /end {request.end!r}; swap the two.")
        if request.period is not None:
            length = PERIODS.get(request.period)
            if length is None:
                raise InvalidInput(f"/period {request.period[:50]!r} is not one of {', '.join(PERIODS)}.")
            since = self._clock.now() - length
            start = since if start is None else max(start, since)
        words: list[list[str]] = []
        if request.query is not None and request.query.strip():
            maximum = self._limits.max_query_characters
            query = analyse_query(storable_text(request.query, "/query", max_characters=maximum))
            words = [[term.text for term in word.terms] for word in query.words if word.informative]
            if not words:
                # Signs alone: no line is found by them.
                return []
        return await self._store.timeline(
            principal.graph_id,
            start=start,
            end=end,
            node_key=None if request.node_key is None else normalise_key(request.node_key, "/node_key"),
            words=words,
            limit=request.limit,
        )

    async def write(
        self, principal: Principal, summary: str, meta: JsonObject | None = None
    ) -> TimelineEvent:
        """Add a line by hand.

        Raises:
            Forbidden: The credential is read-only.
            InvalidInput: A blank summary, or `meta` that cannot be stored.
            LimitExceeded: A summary of more than 10,000 characters, or too large a `meta`.
            Unavailable: The store is busy or down; nothing was written.
        """
        principal.require_write()
        storable_text(summary, "/summary", max_characters=MAX_SUMMARY_CHARACTERS)
        if not summary.strip():
            raise InvalidInput("/summary is blank; write what happened.")
        entry = TimelineEntry(
            at=self._clock.now(),
            summary=summary,
            source="manual",
            meta={} if meta is None else checked_data(meta, "/meta", self._limits),
        )
        return await self._store.add_event(principal.graph_id, entry)


def parse_time(value: str | None, where: str, *, day_ends: bool = False) -> datetime | None:
    """An ISO 8601 time or date as aware UTC; one without a zone is UTC.

    Args:
        value: The text; None and a blank one are no time.
        where: JSON pointer for the message.
        day_ends: Whether a date alone means the midnight after it, instead of the one before.

    Raises:
        InvalidInput: Not in that form.

    Example:
        >>> parse_time("2026-05-01T10:00:00+02:00", "/start").isoformat()
        '2026-05-01T08:00:00+00:00'
    """
    if value is None or not value.strip():
        return None
    try:
        moment = datetime.fromisoformat(value.strip())
        if day_ends and _is_date(value.strip()):
            moment += min(timedelta(days=1), datetime.max - moment)
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise InvalidInput(
            f"{where} {value[:50]!r} is no ISO 8601 time, such as 2026-05-01T10:00:00Z or 2026-05-01."
        ) from error


def _is_date(value: str) -> bool:
    try:
        date.fromisoformat(value)
    except ValueError:
        return False
    return True
