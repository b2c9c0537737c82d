"""The `AuditStore` port in a list, a part of `MemoryStore`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from hivemem.domain.accounts import AuditEvent, AuditQuery


class MemoryAudit:
    """Who did what: see `hivemem.ports.store.AuditStore` for the contract."""

    def __init__(self, check_open: Callable[[], None]) -> None:
        self._check_audit_open = check_open
        self._audit_events: list[AuditEvent] = []

    async def add_audit_events(self, events: Sequence[AuditEvent]) -> None:
        """See `AuditStore.add_audit_events`."""
        self._check_audit_open()
        for event in events:
            self._audit_events.append(replace(event, id=len(self._audit_events) + 1))

    async def audit_events(self, query: AuditQuery) -> Sequence[AuditEvent]:
        """See `AuditStore.audit_events`."""
        self._check_audit_open()
        found = [
            event
            for event in reversed(self._audit_events)
            if query.user_id in (None, event.user_id)
            and query.graph_id in (None, event.graph_id)
            and query.organization_id in (None, event.organization_id)
            and query.action in (None, event.action)
            and (query.since is None or query.since <= event.at)
            and (query.before_id is None or event.id < query.before_id)
        ]
        return found[: max(0, query.limit)]
