"""A small pool of threads with a read-only connection each, so that reading never blocks the event loop."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
import threading
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar

from hivemem.errors import Unavailable
from hivemem.storage.sqlite.connection import connect, our_errors

_P = ParamSpec("_P")
_R = TypeVar("_R")


class Readers:
    """Runs reads, each in one read transaction: it sees one state of the database."""

    def __init__(self, path: Path, *, threads: int, busy_timeout_seconds: float) -> None:
        self._path = path
        self._busy_timeout_seconds = busy_timeout_seconds
        self._local = threading.local()
        self._connections: list[sqlite3.Connection] = []
        self._executor = ThreadPoolExecutor(threads, thread_name_prefix="hivemem-sqlite-reader")
        self._prompt: sqlite3.Connection | None = None
        self._prompt_lock = threading.Lock()
        self._closed = False

    async def run(
        self,
        read: Callable[Concatenate[sqlite3.Connection, _P], _R],
        *args: _P.args,
        **kwargs: _P.kwargs,
    ) -> _R:
        """The result of `read(connection, ...)`.

        Raises:
            Unavailable: Closed, or the file is busy or out of reach.
            Corruption: The file, or a row that was read, is damaged.
        """
        if self._closed:
            raise Unavailable("the store is closed; open it again.")

        def work() -> _R:
            return self._read(lambda connection: read(connection, *args, **kwargs))

        return await asyncio.get_running_loop().run_in_executor(self._executor, work)

    async def run_promptly(
        self,
        read: Callable[Concatenate[sqlite3.Connection, _P], _R],
        *args: _P.args,
        **kwargs: _P.kwargs,
    ) -> _R:
        """The result of `read(connection, ...)`, which finds a few rows by their keys.

        Such a read takes ten to a hundred microseconds, handing it to a thread a quarter of a millisecond.
        So it is done on the spot, on a connection that waits for no lock; when there is one to wait for, a
        thread does. What runs several statements puts them into `one_state`.

        Raises:
            Unavailable: Closed, or the file is busy or out of reach.
            Corruption: The file, or a row that was read, is damaged.
        """
        if not self._closed and self._prompt_lock.acquire(blocking=False):
            try:
                if self._prompt is not None:
                    return read(self._prompt, *args, **kwargs)
            except sqlite3.Error:
                # In the way is a lock, or an error that the thread below will say in our words.
                pass
            finally:
                self._prompt_lock.release()
        found = await self.run(read, *args, **kwargs)
        with self._prompt_lock:
            if self._prompt is None and not self._closed:
                self._prompt = connect(self._path, 0.0, read_only=True)
                self._connections.append(self._prompt)
        return found

    async def close(self) -> None:
        """Finish running reads and close the connections."""
        self._closed = True
        await asyncio.to_thread(self._executor.shutdown)
        while self._connections:
            self._connections.pop().close()

    def _read(self, read: Callable[[sqlite3.Connection], _R]) -> _R:
        with our_errors(self._path):
            connection = self._connection()
            with one_state(connection):
                return read(connection)

    def _connection(self) -> sqlite3.Connection:
        connection: sqlite3.Connection | None = getattr(self._local, "connection", None)
        if connection is None:
            connection = connect(self._path, self._busy_timeout_seconds, read_only=True)
            self._local.connection = connection
            self._connections.append(connection)
        return connection


@contextlib.contextmanager
def one_state(connection: sqlite3.Connection) -> Generator[None]:
    """All statements inside see one state of the database; without it, each sees the newest one."""
    if connection.in_transaction:
        yield
        return
    connection.execute("BEGIN")
    try:
        yield
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
