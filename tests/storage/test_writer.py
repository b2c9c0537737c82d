"""Group commit: waiting writes share a transaction and stay independent."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import pytest

from hivemem.errors import InvalidInput, Unavailable
from hivemem.storage.sqlite.writer import Writer


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "lines.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE TABLE lines (line TEXT)")
    return path


@pytest.fixture
async def writer(path: Path) -> AsyncIterator[Writer]:
    writer = Writer(path, busy_timeout_seconds=5)
    yield writer
    await writer.close()


def lines(path: Path) -> list[str]:
    with closing(sqlite3.connect(path)) as connection:
        return [line for (line,) in connection.execute("SELECT line FROM lines ORDER BY rowid")]


def add(connection: sqlite3.Connection, line: str) -> str:
    connection.execute("INSERT INTO lines VALUES (?)", (line,))
    return f"added {line}"


def add_and_refuse(connection: sqlite3.Connection, line: str) -> None:
    add(connection, line)
    raise InvalidInput("no")


class Lock:
    """Another process's write, as long as it takes."""

    def __init__(self, path: Path) -> None:
        self._connection = sqlite3.connect(path, isolation_level=None)

    def __enter__(self) -> None:
        self._connection.execute("BEGIN IMMEDIATE")

    def __exit__(self, *_: object) -> None:
        self._connection.execute("COMMIT")
        self._connection.close()


async def test_writes_that_wait_together_are_committed_together(path: Path, writer: Writer) -> None:
    statements: list[str] = []
    await writer.run(lambda connection: connection.set_trace_callback(statements.append))
    with Lock(path):
        waiting = [asyncio.ensure_future(writer.run(add, str(i))) for i in range(20)]
        await asyncio.sleep(0.02)
    assert await asyncio.gather(*waiting) == [f"added {i}" for i in range(20)]
    assert lines(path) == [str(i) for i in range(20)]
    # The first COMMIT is that of the tracing job itself.
    transactions = statements.count("COMMIT") - 1
    assert 1 <= transactions <= 2
    assert statements.count("SAVEPOINT job") == 20 - transactions


async def test_a_refused_write_leaves_the_others_of_its_group_alone(path: Path, writer: Writer) -> None:
    with Lock(path):
        waiting = [
            asyncio.ensure_future(writer.run(add_and_refuse if i % 3 == 1 else add, str(i))) for i in range(6)
        ]
        await asyncio.sleep(0.02)
    outcomes = await asyncio.gather(*waiting, return_exceptions=True)
    assert [type(outcome).__name__ for outcome in outcomes] == ["str", "InvalidInput", "str"] * 2
    assert lines(path) == ["0", "2", "3", "5"]


async def test_refused_writes_in_front_leave_those_behind_them_alone(path: Path, writer: Writer) -> None:
    with Lock(path):
        waiting = [
            asyncio.ensure_future(writer.run(add_and_refuse if i < 2 else add, str(i))) for i in range(4)
        ]
        await asyncio.sleep(0.02)
    outcomes = await asyncio.gather(*waiting, return_exceptions=True)
    assert [type(outcome).__name__ for outcome in outcomes] == ["InvalidInput"] * 2 + ["str"] * 2
    assert lines(path) == ["2", "3"]
    with pytest.raises(InvalidInput):
        await writer.run(add_and_refuse, "alone")
    assert lines(path) == ["2", "3"]


async def test_when_the_whole_transaction_is_lost_every_write_of_the_group_fails(
    path: Path, writer: Writer
) -> None:
    def lose(connection: sqlite3.Connection) -> None:
        connection.execute("ROLLBACK")
        raise InvalidInput("the disk was full")

    with Lock(path):
        waiting = [
            asyncio.ensure_future(writer.run(add, "before")),
            asyncio.ensure_future(writer.run(lose)),
            asyncio.ensure_future(writer.run(add, "behind")),
        ]
        await asyncio.sleep(0.02)
    outcomes = await asyncio.gather(*waiting, return_exceptions=True)
    assert [type(outcome).__name__ for outcome in outcomes] == ["InvalidInput", "InvalidInput", "str"]
    assert lines(path) == ["behind"]
    assert await writer.run(add, "later") == "added later"


async def test_a_cancelled_write_that_still_waits_is_withdrawn(path: Path, writer: Writer) -> None:
    with Lock(path):
        waiting = [asyncio.ensure_future(writer.run(add, str(i))) for i in range(3)]
        await asyncio.sleep(0.02)
        waiting[1].cancel()
        await asyncio.sleep(0)
    outcomes = await asyncio.gather(*waiting, return_exceptions=True)
    assert isinstance(outcomes[1], asyncio.CancelledError)
    assert lines(path) == ["0", "2"]


async def test_an_error_that_is_a_mistake_in_the_code_is_told_as_it_is(path: Path, writer: Writer) -> None:
    with pytest.raises(ZeroDivisionError):
        await writer.run(lambda connection: 1 // 0)
    with pytest.raises(sqlite3.ProgrammingError):
        await writer.run(lambda connection: connection.execute("SELECT ?", ()))
    assert await writer.run(add, "still working") == "added still working"
    assert lines(path) == ["still working"]


async def test_closing_finishes_what_waits_and_refuses_what_comes(path: Path) -> None:
    writer = Writer(path, busy_timeout_seconds=5)
    with Lock(path):
        waiting = [asyncio.ensure_future(writer.run(add, str(i))) for i in range(3)]
        await asyncio.sleep(0.02)
        closing_down = asyncio.ensure_future(writer.close())
        await asyncio.sleep(0)
        with pytest.raises(Unavailable, match="closed"):
            await writer.run(add, "late")
    await closing_down
    assert await asyncio.gather(*waiting) == ["added 0", "added 1", "added 2"]
    await writer.close()
    assert lines(path) == ["0", "1", "2"]


async def test_a_checkpoint_is_made_in_a_pause_and_not_by_a_write(path: Path, writer: Writer) -> None:
    statements: list[str] = []
    await writer.run(lambda connection: connection.set_trace_callback(statements.append))

    def add_many(connection: sqlite3.Connection, count: int) -> None:
        connection.executemany("INSERT INTO lines VALUES (?)", [("x" * 3000,)] * count)

    def checkpoints() -> int:
        return sum("wal_checkpoint" in statement for statement in statements)

    await writer.run(add_many, 499)
    await asyncio.sleep(0.05)
    assert checkpoints() == 0
    await writer.run(add_many, 1)
    while not checkpoints():
        await asyncio.sleep(0.005)
    # Whoever reads the file without its log now sees all of it.
    while path.stat().st_size < 500 * 3000:
        await asyncio.sleep(0.005)
    await writer.run(add, "later")
    await asyncio.sleep(0.05)
    assert checkpoints() == 1
