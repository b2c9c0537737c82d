"""Queries with the meaning of their rows, and the two ways to send them: in a snapshot, or in a write."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeAlias, TypeVar, cast

from hivemem.storage.postgres.connection import Connection

T = TypeVar("T")
T1 = TypeVar("T1")
T2 = TypeVar("T2")
T3 = TypeVar("T3")
T4 = TypeVar("T4")
T5 = TypeVar("T5")
T6 = TypeVar("T6")
Row: TypeAlias = "tuple[Any, ...]"
Arguments: TypeAlias = "Mapping[str, Any]"

# PostgreSQL has no NUL in texts, and a lone surrogate has no UTF-8.
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")

_SNAPSHOT = b"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
_COMMIT = b"COMMIT"


@dataclass(frozen=True, slots=True, kw_only=True)
class Query(Generic[T]):
    """A statement that answers with rows, and what they mean."""

    sql: bytes
    arguments: Arguments
    decode: Callable[[list[Row]], T]


def findable(names: Iterable[str]) -> list[str]:
    """Each of `names` once, in order, without those that cannot be stored and so need not be looked for."""
    return [name for name in dict.fromkeys(names) if not _UNSTORABLE.search(name)]


async def snapshot_rows(connection: Connection, queries: Sequence[Query[Any]]) -> list[list[Row]]:
    """The rows of each query about one state of the database, in one round trip."""
    if len(queries) == 1:
        cursor = await connection.execute(queries[0].sql, queries[0].arguments, binary=True)
        return [await cursor.fetchall()]
    async with connection.pipeline():
        await connection.execute(_SNAPSHOT, prepare=False)
        cursors = [await connection.execute(q.sql, q.arguments, binary=True) for q in queries]
        await connection.execute(_COMMIT, prepare=False)
    return [await cursor.fetchall() for cursor in cursors]


class Transaction:
    """A write under way, in a pipeline: what is sent goes out at the next question, or with the commit.

    At READ COMMITTED each statement sees what was committed before it began, and all that was sent in
    this transaction before it.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def send(self, sql: bytes, arguments: Arguments) -> None:
        """Make a change, without waiting for it; its failure ends the transaction."""
        await self._connection.execute(sql, arguments)

    async def ask(self, query: Query[T]) -> T:
        """The answer to one query, in a round trip."""
        (rows,) = await self._rows(query)
        return query.decode(rows)

    async def ask_two(self, a: Query[T1], b: Query[T2]) -> tuple[T1, T2]:
        """The answers to two queries, in one round trip."""
        return cast("tuple[T1, T2]", decoded((a, b), await self._rows(a, b)))

    async def ask_three(self, a: Query[T1], b: Query[T2], c: Query[T3]) -> tuple[T1, T2, T3]:
        """As `ask_two`, of three queries."""
        return cast("tuple[T1, T2, T3]", decoded((a, b, c), await self._rows(a, b, c)))

    async def ask_six(
        self, a: Query[T1], b: Query[T2], c: Query[T3], d: Query[T4], e: Query[T5], f: Query[T6]
    ) -> tuple[T1, T2, T3, T4, T5, T6]:
        """As `ask_two`, of six queries."""
        rows = await self._rows(a, b, c, d, e, f)
        return cast("tuple[T1, T2, T3, T4, T5, T6]", decoded((a, b, c, d, e, f), rows))

    async def _rows(self, *queries: Query[Any]) -> list[list[Row]]:
        cursors = [await self._connection.execute(q.sql, q.arguments, binary=True) for q in queries]
        return [await cursor.fetchall() for cursor in cursors]


def decoded(queries: Sequence[Query[Any]], rows: Sequence[list[Row]]) -> tuple[Any, ...]:
    """What the rows of each query mean."""
    return tuple(query.decode(found) for query, found in zip(queries, rows, strict=True))
