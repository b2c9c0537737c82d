"""The audit log: lines are added and read, nothing else; a trigger of the schema refuses the rest."""

from __future__ import annotations

from collections.abc import Sequence

from hivemem.domain.accounts import AuditEvent, AuditQuery
from hivemem.storage import account_rows as rows
from hivemem.storage.postgres.statements import named_statements
from hivemem.storage.postgres.transaction import Query, Row, Transaction

_SQL = named_statements("audit.sql")
_BEYOND_ALL_IDS = 2**63 - 1


async def add(transaction: Transaction, events: Sequence[AuditEvent]) -> list[int]:
    """Keep lines, in their order, and return their numbers."""
    if not events:
        return []
    lines = [rows.audit_arguments(event) for event in events]
    columns = {column: [line[column] for line in lines] for column in lines[0]}
    return await transaction.ask(Query(sql=_SQL["add"], arguments=columns, decode=_ids))


async def were_added(transaction: Transaction, event_ids: Sequence[int]) -> bool:
    """Whether the lines that got these numbers are there; the caller rolls back.

    A number is given once, also when the transaction that got it is rolled back.
    """
    if not event_ids:
        return True
    claim = Query(sql=_SQL["claim"], arguments={"event_id": event_ids[-1]}, decode=bool)
    return not await transaction.ask(claim)


def events(query: AuditQuery) -> Query[list[AuditEvent]]:
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
    return Query(
        sql=sql, arguments=arguments, decode=lambda found: [rows.audit_from_row(row) for row in found]
    )


def _ids(found: list[Row]) -> list[int]:
    return [event_id for (event_id,) in found]
