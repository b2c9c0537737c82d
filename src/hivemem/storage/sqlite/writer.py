"""The one thread of a process that writes, with group commit.

Writes that wait for each other share a transaction, so that one fsync makes all of them durable. Each but
the first has a savepoint: one that fails is rolled back to it and leaves the others alone. The first needs
none, since nothing is lost when its whole transaction is rolled back; a savepoint makes SQLite copy every
page before the write changes it, a quarter of a lone write's time.

Checkpoints, which bring the write-ahead log into the database file, take as long as ten writes. They are
made in a pause, so that no write waits for one unless there was no pause for long.
"""

from __future__ import annotations

import asyncio
import contextlib
import queue
import random
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

from hivemem.errors import Unavailable
from hivemem.storage.sqlite.connection import connect, is_busy, our_errors
from hivemem.waiting import answer

_P = ParamSpec("_P")
_R = TypeVar("_R")

_GROUP_SECONDS = 0.05
"""After this time a group takes no further writes, so that other processes get their turn."""

_CHECKPOINT_ROWS = 500
"""So many changed rows, those of some 40 store calls, make a checkpoint due."""

_PAUSE_SECONDS = 0.002

_CHECKPOINT_PAGES = 4_000
"""At so many pages in the log, 16 MB, the commit that reaches it makes the checkpoint, pause or not."""


@dataclass(slots=True, kw_only=True, eq=False)
class _Job:
    """A write, and what its caller waits for."""

    work: Callable[[sqlite3.Connection], Any]
    future: asyncio.Future[Any]

    @property
    def withdrawn(self) -> bool:
        """Whether the caller was cancelled."""
        return self.future.cancelled()


@dataclass(slots=True, kw_only=True)
class _Outcome:
    result: Any = None
    refusal: Exception | None = None


class Writer:
    """Runs writes one after the other, each as one transaction for its caller."""

    def __init__(self, path: Path, *, busy_timeout_seconds: float) -> None:
        self._path = path
        self._busy_timeout_seconds = busy_timeout_seconds
        # No waiting inside SQLite, which looks for the lock ever more rarely, up to 100 ms apart, and
        # so misses the short gaps between the commits of a busy process. `_begin` looks more often.
        self._connection = connect(path, 0)
        # Savepoints keep their copies of pages in memory; above 64 KiB SQLite would make a file for them.
        self._connection.execute("PRAGMA temp_store = MEMORY")
        self._connection.execute(f"PRAGMA wal_autocheckpoint = {_CHECKPOINT_PAGES}")
        self._rows_at_checkpoint = 0
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="hivemem-sqlite-writer", daemon=True)
        self._thread.start()

    async def run(
        self,
        write: Callable[Concatenate[sqlite3.Connection, _P], _R],
        *args: _P.args,
        **kwargs: _P.kwargs,
    ) -> _R:
        """The result of `write(connection, ...)`, once it is durable.

        A caller that is cancelled while its write waits withdraws it; a running write is finished.

        Raises:
            Unavailable: Closed, or the file stayed locked for the busy timeout, or is out of reach.
            Corruption: The file is damaged.
        """
        job = _Job(
            work=lambda connection: write(connection, *args, **kwargs),
            future=asyncio.get_running_loop().create_future(),
        )
        with self._lock:
            if self._closed:
                raise Unavailable("the store is closed; open it again.")
            self._jobs.put(job)
        return await job.future

    async def close(self) -> None:
        """Finish the writes that wait, and close the connection."""
        with self._lock:
            if not self._closed:
                self._closed = True
                self._jobs.put(None)
        await asyncio.to_thread(self._thread.join)

    def _run(self) -> None:
        while (job := self._wait()) is not None:
            self._commit_group(job)
        self._connection.close()

    def _wait(self) -> _Job | None:
        """The next job; a checkpoint that is due is made when none comes for a moment."""
        if self._connection.total_changes - self._rows_at_checkpoint >= _CHECKPOINT_ROWS:
            try:
                return self._jobs.get(timeout=_PAUSE_SECONDS)
            except queue.Empty:
                self._checkpoint()
        return self._jobs.get()

    def _checkpoint(self) -> None:
        self._rows_at_checkpoint = self._connection.total_changes
        # A disk that is full, or a file that is locked, is told by the next write, if it is so still.
        with contextlib.suppress(sqlite3.Error):
            self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()

    def _commit_group(self, first: _Job) -> None:
        taken: list[_Job] = []
        outcomes: list[_Outcome] = []
        try:
            with our_errors(self._path):
                for job in self._group(first):
                    taken.append(job)
                    outcomes.append(self._attempt(job))
                if self._connection.in_transaction:
                    self._connection.execute("COMMIT")
        except BaseException as error:
            if self._connection.in_transaction:
                with contextlib.suppress(sqlite3.Error):
                    self._connection.execute("ROLLBACK")
            if not outcomes:
                # The lock was not to be had. Those behind have waited too; each of them would only
                # wait its timeout again.
                taken += iter(self._next_job, None)
            for job in taken:
                answer(job.future, error=error)
            return
        # Also a refusal is told only now: it may rest on a write of the same group.
        for job, outcome in zip(taken, outcomes, strict=True):
            answer(job.future, outcome.result, outcome.refusal)

    def _group(self, first: _Job) -> Iterator[_Job]:
        """`first` and those that wait behind it, as long as the group is open."""
        deadline = time.monotonic() + _GROUP_SECONDS
        job: _Job | None = first
        while job is not None:
            yield job
            job = self._next_job() if time.monotonic() < deadline else None

    def _next_job(self) -> _Job | None:
        """The job that waits next; None when none does, or only the order to stop."""
        try:
            job = self._jobs.get_nowait()
        except queue.Empty:
            return None
        if job is None:
            self._jobs.put(None)
        return job

    def _begin(self) -> None:
        deadline = time.monotonic() + self._busy_timeout_seconds
        while True:
            try:
                self._connection.execute("BEGIN IMMEDIATE")
                return
            except sqlite3.OperationalError as error:
                if not is_busy(error) or time.monotonic() > deadline:
                    raise
                time.sleep(random.uniform(0.0005, 0.005))

    def _attempt(self, job: _Job) -> _Outcome:
        """Run one write, so that its failing undoes it alone."""
        alone = not self._connection.in_transaction
        if alone:
            self._begin()
        if job.withdrawn:
            return _Outcome()
        if not alone:
            self._connection.execute("SAVEPOINT job")
        try:
            with our_errors(self._path):
                result = job.work(self._connection)
        except Exception as error:
            if not self._connection.in_transaction:
                # SQLite gave up the whole transaction (disk full, for instance): nobody's write holds.
                raise
            self._connection.execute("ROLLBACK" if alone else "ROLLBACK TO job")
            if not alone:
                self._connection.execute("RELEASE job")
            return _Outcome(refusal=error)
        if not alone:
            self._connection.execute("RELEASE job")
        return _Outcome(result=result)
