"""hm_tokens: what agents report of the tokens they used."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from hivemem.domain.access import Principal
from hivemem.domain.text import JsonObject, storable_text
from hivemem.domain.tokens import TokenReport
from hivemem.errors import InvalidInput
from hivemem.ports.clock import Clock
from hivemem.ports.store import TokenStore
from hivemem.service.limits import Limits
from hivemem.service.store_request import checked_data
from hivemem.service.timeline import parse_time

CATEGORIES = (
    *("reasoning", "memory", "doc_processing", "automation", "personal", "chatting", "research", "design"),
    *("calculations", "coding", "planning", "productivity", "writing", "unmatched"),
)
_WHOLE = 100


class Tokens:
    """Keeps one report for each turn of a conversation."""

    def __init__(self, *, store: TokenStore, clock: Clock, limits: Limits) -> None:
        self._store = store
        self._clock = clock
        self._limits = limits

    async def record(
        self, principal: Principal, session_id: str, turn_sequence: int, report: JsonObject
    ) -> tuple[TokenReport, bool]:
        """Keep a report; the kept one, and whether the turn had been reported before.

        Raises:
            InvalidInput: Segments that break a rule of `check_segments`, or a time that is none.
            LimitExceeded: A report that is too large.
            Unavailable: The store is busy or down.
        """
        if not storable_text(session_id, "/session_id", max_characters=256).strip():
            raise InvalidInput("/session_id is blank; name the conversation.")
        check_segments(report.get("segments"))
        timestamp = report.get("timestamp")
        if isinstance(timestamp, str):
            parse_time(timestamp, "/timestamp")
        sent = TokenReport(
            event_id=self._clock.new_id("tok"),
            user_id=principal.user_id,
            session_id=session_id,
            turn_sequence=turn_sequence,
            report=checked_data(report, "", self._limits),
            recorded_at=self._clock.now(),
        )
        kept = await self._store.record_tokens(principal.graph_id, sent)
        return kept, kept.event_id != sent.event_id


def check_segments(segments: object) -> None:
    """Refuse segments that do not share out a turn: known categories, each once, weights of 100 in all.

    Raises:
        InvalidInput: The message begins with the JSON pointer of what is wrong.
    """
    if not isinstance(segments, list):
        raise InvalidInput('/segments is not of type "array".')
    seen: set[str] = set()
    total = 0
    for index, item in enumerate(cast("Sequence[object]", segments)):
        where = f"/segments/{index}"
        if not isinstance(item, Mapping):
            raise InvalidInput(f'{where} is not of type "object".')
        segment = cast("Mapping[str, object]", item)
        category, weight = segment.get("category"), segment.get("weight")
        if category not in CATEGORIES:
            raise InvalidInput(f"{where}/category is {category!r:.60}; use one of {', '.join(CATEGORIES)}.")
        if category in seen:
            raise InvalidInput(f"{where}/category {category!r} is there twice; add its weights up.")
        if isinstance(weight, bool) or not isinstance(weight, int) or not 1 <= weight <= _WHOLE:
            raise InvalidInput(f"{where}/weight is {weight!r:.60}; use a whole number from 1 to {_WHOLE}.")
        seen.add(cast("str", category))
        total += weight
    if total != _WHOLE:
        raise InvalidInput(f"/segments have weights of {total} in all; they must make exactly {_WHOLE}.")
