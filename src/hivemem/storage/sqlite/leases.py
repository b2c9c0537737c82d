"""Leases: who does a piece of work that one process at a time should do."""

from __future__ import annotations

import sqlite3
from datetime import datetime

from hivemem.storage.sqlite.statements import named_statements
from hivemem.storage.times import to_microseconds

_SQL = named_statements("leases.sql")


def acquire(
    connection: sqlite3.Connection, name: str, holder: str, at: datetime, expires_at: datetime
) -> bool:
    """Take or renew a lease; False while somebody else's runs."""
    arguments = {
        "name": name,
        "holder": holder,
        "at": to_microseconds(at),
        "expires_at": to_microseconds(expires_at),
    }
    return connection.execute(_SQL["acquire"], arguments).rowcount == 1


def release(connection: sqlite3.Connection, name: str, holder: str) -> None:
    """Give a lease back that `holder` still has."""
    connection.execute(_SQL["release"], {"name": name, "holder": holder})
