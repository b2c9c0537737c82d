"""Connections to the server, and what to do when one of them, or the server, goes away.

No acknowledged write is lost, and a write is never made twice unless that is harmless:

- A connection that is lost before COMMIT was sent has changed nothing. The write is repeated.
- One that is lost after that leaves open whether the write happened. It is repeated with that question in
  front, and locks make the question wait for the end of the lost transaction.
- A deadlock rolls one transaction back whole; it is repeated.
- A connection whose prepared statements are gone is closed; what was asked of it has changed nothing, and is
  repeated on another.

Reads are repeated too. All this ends after `wait_seconds`, with `Unavailable`.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import select
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Iterator
from typing import Any, TypeVar, cast

import psycopg
from psycopg_pool import AsyncConnectionPool, PoolTimeout

from hivemem.errors import Unavailable
from hivemem.storage.postgres.connection import (
    Address,
    Connection,
    is_collision,
    is_forgotten,
    is_lost,
    our_errors,
    prepare_connection,
)
from hivemem.storage.postgres.transaction import Query, Transaction, decoded, snapshot_rows

T = TypeVar("T")
T1 = TypeVar("T1")
T2 = TypeVar("T2")
T3 = TypeVar("T3")
T4 = TypeVar("T4")
T5 = TypeVar("T5")
T6 = TypeVar("T6")

_BEGIN = b"BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"
_COMMIT = b"COMMIT"
_ROLLBACK = b"ROLLBACK"
_SETUP = (
    b"SELECT set_config('statement_timeout', %s, false), set_config('lock_timeout', %s, false),"
    b" set_config('idle_in_transaction_session_timeout', %s, false)"
)

_RECONNECT_SECONDS = 1.5
"""Then the pool stops connecting until somebody asks again, instead of trying ever more rarely."""

_TURN_SECONDS = 1.0
"""How long to wait for the pool before asking it again."""

_FIRST_DELAY_SECONDS = 0.01
_LONGEST_DELAY_SECONDS = 0.5


class _Unanswered(Exception):
    """The connection went away after COMMIT was sent."""

    def __init__(self, result: Any, cause: psycopg.Error) -> None:
        super().__init__()
        self.result = result
        self.cause = cause


class Pool:
    """Runs reads and writes on a bounded number of connections; make it with `open`."""

    def __init__(self, address: Address, *, size: int, wait_seconds: float, statement_seconds: float) -> None:
        self._address = address
        self._size = size
        self._wait_seconds = wait_seconds
        # A transaction that pauses between its statements holds locks: its process is stuck or gone.
        seconds = (statement_seconds, wait_seconds, statement_seconds)
        self._timeouts = [f"{max(1, round(1000 * limit))}ms" for limit in seconds]
        self._connections: AsyncConnectionPool[Connection] = AsyncConnectionPool(
            kwargs={**address.parameters, "autocommit": True},
            min_size=1,
            max_size=size,
            open=False,
            configure=self._configure,
            reconnect_timeout=_RECONNECT_SECONDS,
        )
        self._in_use = 0
        self._closed = False
        self._under_way: set[asyncio.Task[Any]] = set()

    async def open(self) -> None:
        """Begin to connect."""
        await self._connections.open()

    async def close(self) -> None:
        """Finish what is under way and close the connections. Safe to call twice."""
        self._closed = True
        while self._under_way:
            await asyncio.wait(self._under_way)
        await self._connections.close()

    async def ask(self, query: Query[T]) -> T:
        """The answer to one query.

        Raises:
            Unavailable: Closed, unreachable, or busy for too long.
            Corruption: The database, or a row that was read, is damaged.
        """
        return cast("T", (await self._ask(query))[0])

    async def ask_three(self, a: Query[T1], b: Query[T2], c: Query[T3]) -> tuple[T1, T2, T3]:
        """The answers to three queries about one state of the database, in one round trip."""
        return cast("tuple[T1, T2, T3]", await self._ask(a, b, c))

    async def ask_four(self, a: Query[T1], b: Query[T2], c: Query[T3], d: Query[T4]) -> tuple[T1, T2, T3, T4]:
        """As `ask_three`, of four queries."""
        return cast("tuple[T1, T2, T3, T4]", await self._ask(a, b, c, d))

    async def ask_six(
        self, a: Query[T1], b: Query[T2], c: Query[T3], d: Query[T4], e: Query[T5], f: Query[T6]
    ) -> tuple[T1, T2, T3, T4, T5, T6]:
        """As `ask_three`, of six queries."""
        return cast("tuple[T1, T2, T3, T4, T5, T6]", await self._ask(a, b, c, d, e, f))

    async def write(
        self,
        work: Callable[[Transaction], Awaitable[T]],
        *,
        happened: Callable[[Transaction, T], Awaitable[bool]] | None = None,
    ) -> T:
        """The result of `work`, once it is durable. A caller that is cancelled leaves it to be finished.

        Args:
            work: Makes the changes in the transaction and returns the result; may run more than once.
            happened: Whether the transaction that would have returned this result was committed. Asked in
                a new transaction, which it must make wait for the end of the lost one by a lock that both
                take, and which is rolled back. Without it `work` is repeated, and must be right in
                either case.

        Raises:
            Unavailable: Closed, unreachable, or busy for too long. Nothing was changed, unless the fact
                `outcome` is `unknown`.
            Corruption: The database is damaged.
        """
        return await asyncio.shield(self.start(self.commit(work, happened, self.deadline())))

    async def commit(
        self,
        work: Callable[[Transaction], Awaitable[T]],
        happened: Callable[[Transaction, T], Awaitable[bool]] | None,
        deadline: float,
    ) -> T:
        """As `write`, in a task of `start`, and with an end of its own."""
        delays = _delays()
        unanswered: _Unanswered | None = None
        while True:
            try:
                with our_errors(self._address):
                    try:
                        return await self._attempt(work, happened, unanswered, deadline)
                    except _Unanswered as error:
                        unanswered = error
                        await self._recover(error.cause, deadline, next(delays))
                    except psycopg.Error as error:
                        await self._recover(error, deadline, next(delays))
            except Unavailable as refusal:
                if unanswered is None:
                    raise
                raise Unavailable(
                    f"{refusal.message} The connection was lost while the write was committed, so that "
                    "it may have been stored; repeat the call.",
                    outcome="unknown",
                ) from None

    def start(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """A task of `work`, which `close` waits for.

        Raises:
            Unavailable: Closed.
        """
        try:
            self.check_open()
        except Unavailable:
            work.close()
            raise
        task = asyncio.create_task(work)
        self._under_way.add(task)
        task.add_done_callback(self._ended)
        return task

    def check_open(self) -> None:
        """Let a call pass that began before `close`.

        Raises:
            Unavailable: Closed.
        """
        if self._closed:
            raise Unavailable("the store is closed; open it again.")

    def deadline(self) -> float:
        """When a call that begins now has waited for too long, in the time of the event loop."""
        return asyncio.get_running_loop().time() + self._wait_seconds

    def waited_too_long(self) -> Unavailable:
        """The refusal of a write whose turn did not come before its deadline."""
        return Unavailable(
            f"other writes to the same graph took longer than {self._wait_seconds:g} seconds; try again."
        )

    async def _ask(self, *queries: Query[Any]) -> tuple[Any, ...]:
        with our_errors(self._address):
            rows = await self.start(self._read(*queries))
            return decoded(queries, rows)

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._under_way.discard(task)
        if not task.cancelled():
            # The caller may be gone; asked here, asyncio does not report that nobody did.
            task.exception()

    async def _read(self, *queries: Query[Any]) -> list[list[tuple[Any, ...]]]:
        deadline = self.deadline()
        delays = _delays()
        while True:
            try:
                async with self._connection(deadline) as connection:
                    return await snapshot_rows(connection, queries)
            except psycopg.Error as error:
                await self._recover(error, deadline, next(delays))

    async def _attempt(
        self,
        work: Callable[[Transaction], Awaitable[T]],
        happened: Callable[[Transaction, T], Awaitable[bool]] | None,
        unanswered: _Unanswered | None,
        deadline: float,
    ) -> T:
        async with self._connection(deadline) as connection:
            if unanswered is not None and happened is not None:
                result: T = unanswered.result
                if await _look(connection, lambda transaction: happened(transaction, result)):
                    return result
            return await _transaction(connection, work)

    async def _recover(self, error: psycopg.Error, deadline: float, delay: float) -> None:
        """Wait a moment before the next attempt; raise `error` when there is none."""
        worth_it = is_lost(error) or is_collision(error) or is_forgotten(error)
        if not worth_it or asyncio.get_running_loop().time() + delay > deadline:
            raise error
        await asyncio.sleep(delay)

    @contextlib.asynccontextmanager
    async def _connection(self, deadline: float) -> AsyncGenerator[Connection, None]:
        connection = await self._open_connection(deadline)
        self._in_use += 1
        try:
            yield connection
        except BaseException as error:
            if is_forgotten(error):
                await connection.close()
            if not connection.closed:
                with contextlib.suppress(psycopg.Error):
                    await connection.execute(_ROLLBACK, prepare=False)
            raise
        finally:
            self._in_use -= 1
            await self._connections.putconn(connection)

    async def _open_connection(self, deadline: float) -> Connection:
        """A connection that the server has not ended meanwhile, as far as can be told without asking it."""
        while True:
            remaining = deadline - asyncio.get_running_loop().time()
            try:
                # In short turns, because each new request makes the pool connect again.
                connection = await self._connections.getconn(timeout=min(remaining, _TURN_SECONDS))
            except PoolTimeout:
                if remaining > _TURN_SECONDS:
                    continue
                raise self._no_connection() from None
            if not _has_news(connection):
                return connection
            await connection.close()
            await self._connections.putconn(connection)

    def _no_connection(self) -> Unavailable:
        if self._in_use >= self._size:
            return Unavailable(
                f"all {self._size} connections to the database were busy for {self._wait_seconds:g} seconds; "
                "try again, or raise database_connections."
            )
        return Unavailable(
            f"the database {self._address} could not be reached for {self._wait_seconds:g} seconds; check "
            "that it runs."
        )

    async def _configure(self, connection: Connection) -> None:
        prepare_connection(connection)
        await connection.execute(_SETUP, self._timeouts)


async def _transaction(connection: Connection, work: Callable[[Transaction], Awaitable[T]]) -> T:
    """The result of `work`, once it is committed.

    Raises:
        _Unanswered: The connection was lost while it was committed.
        psycopg.Error: Nothing was changed.
    """
    sent = False
    result: Any = None
    try:
        async with connection.pipeline():
            await connection.execute(_BEGIN, prepare=False)
            result = await work(Transaction(connection))
            sent = True
            # Skipped by the server when a statement before it has failed.
            await connection.execute(_COMMIT, prepare=False)
    except psycopg.Error as error:
        if sent and is_lost(error):
            raise _Unanswered(result, error) from error
        raise
    return result


async def _look(connection: Connection, question: Callable[[Transaction], Awaitable[T]]) -> T:
    """The answer to `question`; what it changes is taken back."""
    async with connection.pipeline():
        await connection.execute(_BEGIN, prepare=False)
        answer = await question(Transaction(connection))
        await connection.execute(_ROLLBACK, prepare=False)
    return answer


def _has_news(connection: Connection) -> bool:
    """Whether something came in while nothing was asked: that is the end of the connection."""
    poll = select.poll()
    poll.register(connection.fileno(), select.POLLIN)
    return bool(poll.poll(0))


def _delays() -> Iterator[float]:
    """Seconds before each further attempt: longer and longer, and not the same for everybody."""
    delay = _FIRST_DELAY_SECONDS
    while True:
        yield delay * random.uniform(0.5, 1.0)
        delay = min(2 * delay, _LONGEST_DELAY_SECONDS)
