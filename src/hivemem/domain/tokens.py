"""What an agent reports of the tokens it used."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from hivemem.domain.text import JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenReport:
    """One report of one turn of a conversation; `report` is what was sent. `recorded_at` is aware UTC."""

    event_id: str
    user_id: str
    session_id: str
    turn_sequence: int
    report: JsonObject
    recorded_at: datetime

    @property
    def identity(self) -> tuple[str, str, int]:
        """What makes a second report a repetition of this one."""
        return (self.user_id, self.session_id, self.turn_sequence)
