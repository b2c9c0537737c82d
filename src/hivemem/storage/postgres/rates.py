"""Counts of rate limits in the database: several servers on it count together."""

from __future__ import annotations

from hivemem.domain.rates import Allowance, Bucket, Rate, allowance
from hivemem.storage.postgres.pool import Pool
from hivemem.storage.postgres.statements import named_statements
from hivemem.storage.postgres.transaction import Query, Row, Transaction

_SQL = named_statements("rates.sql")
_CLEAN_EVERY = 1_000


class PostgresRateCounts:
    """Keeps the contract of `hivemem.ports.rates.RateCounts`; a row for each bucket that is not full.

    The rows of full buckets go with every thousandth call of a server.
    """

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._calls = 0

    async def take(self, bucket: Bucket, subject: str, rate: Rate, now: int) -> Allowance:
        """As the port says."""
        arguments = {
            "subject": subject,
            "bucket": bucket.value,
            "now": now,
            "step": rate.step,
            "first": now + rate.step,
            "latest": now + rate.window,
        }
        query = Query(sql=_SQL["take"], arguments=arguments, decode=lambda rows: rows[0])
        self._calls += 1
        cleans = self._calls % _CLEAN_EVERY == 0

        async def work(transaction: Transaction) -> Row:
            if cleans:
                await transaction.send(_SQL["remove_full"], {"now": now})
            return await transaction.ask(query)

        full_at, allowed = await self._pool.write(work)
        return allowance(rate, full_at, now, allowed=bool(allowed))
