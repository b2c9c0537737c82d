"""Leases: who does a piece of work that one process at a time should do."""

from __future__ import annotations

from datetime import datetime

from hivemem.storage.postgres.statements import named_statements
from hivemem.storage.postgres.transaction import Query, Transaction
from hivemem.storage.times import to_microseconds

_SQL = named_statements("leases.sql")


async def acquire(
    transaction: Transaction, name: str, holder: str, at: datetime, expires_at: datetime
) -> bool:
    """Take or renew a lease; False while somebody else's runs."""
    arguments = {
        "name": name,
        "holder": holder,
        "at": to_microseconds(at),
        "expires_at": to_microseconds(expires_at),
    }
    return await transaction.ask(Query(sql=_SQL["acquire"], arguments=arguments, decode=bool))


async def release(transaction: Transaction, name: str, holder: str) -> None:
    """Give a lease back that `holder` still has."""
    await transaction.send(_SQL["release"], {"name": name, "holder": holder})
