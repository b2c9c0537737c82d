"""The audit log: lines are added and read, nothing else; triggers of the schema refuse the rest."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable

from hivemem.domain.accounts import AuditEvent, AuditQuery
from hivemem.storage import account_rows as rows
from hivemem.storage.sqlite.statements import named_statements

_SQL = named_statements("audit.sql")
_BEYOND_ALL_IDS = 2**63 - 1


def add(connection: sqlite3.Connection, events: Iterable[AuditEvent]) -> None:
    """Keep lines, in their order."""
    connection.executemany(_SQL["add"], [rows.audit_arguments(event) for event in events])


def events(connection: sqlite3.Connection, query: AuditQuery) -> list[AuditEvent]:
    """The newest lines that `query` asks for, newest first."""
    arguments = {
        "user_id": query.user_id,
        "graph_id": query.graph_id,
        "organization_id": query.organization_id,
        "action": query.action,
        "since": rows.optional_microseconds(query.since),
        "before_id": _BEYOND_ALL_IDS if query.before_id is None else query.before_id,
        "limit": max(0, query.limit),
    }
    # Each has an index of its own, which also gives the order.
    if query.organization_id is not None:
        sql = _SQL["of_organization"]
    elif query.graph_id is not None:
        sql = _SQL["of_graph"]
    elif query.user_id is not None:
        sql = _SQL["of_user"]
    else:
        sql = _SQL["all"]
    return [rows.audit_from_row(row) for row in connection.execute(sql, arguments)]
