"""Reports of the tokens that agents used."""

from __future__ import annotations

import sqlite3
from dataclasses import replace

from hivemem.domain.graph import GraphId
from hivemem.domain.tokens import TokenReport
from hivemem.storage.sqlite.statements import named_statements
from hivemem.storage.states import from_json, to_json
from hivemem.storage.times import from_microseconds, to_microseconds

_SQL = named_statements("tokens.sql")


def record(connection: sqlite3.Connection, graph_id: GraphId, report: TokenReport) -> TokenReport:
    """Keep a report unless its turn has one, and return the kept one."""
    arguments = {
        "graph_id": graph_id,
        "user_id": report.user_id,
        "session_id": report.session_id,
        "turn_sequence": report.turn_sequence,
        "event_id": report.event_id,
        "report": to_json(report.report),
        "recorded_at": to_microseconds(report.recorded_at),
    }
    connection.execute(_SQL["keep"], arguments)
    event_id, sent, recorded_at = connection.execute(_SQL["kept"], arguments).fetchone()
    return replace(
        report, event_id=event_id, report=from_json(sent), recorded_at=from_microseconds(recorded_at)
    )
