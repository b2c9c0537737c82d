"""Time and fresh ids, so that use cases can be replayed."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol


class Clock(Protocol):
    """What a use case may not invent."""

    def now(self) -> datetime:
        """The present, aware UTC, microsecond resolution."""
        ...

    def new_id(self, prefix: str) -> str:
        """A fresh opaque id, unique for good, starting with `prefix` and an underscore."""
        ...
