"""Copies of whole databases: complete, compared, resumed, and refused where they would do harm."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from hivemem.errors import Conflict, Corruption, HivememError, NotFound, Unavailable
from hivemem.service.copying import copy_database
from hivemem.storage.rows import Row, content
from hivemem.storage.sqlite import SqliteStore, migrate
from hivemem.storage.sqlite.migrate import prepare_database
from hivemem.storage.sqlite.rows import SqliteSource, SqliteTarget
from hivemem.storage.tables import TABLES, Table
from tests.storage.copying import GRAPH, contents, copied, describe, filled

REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return filled(tmp_path / "source.db")


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "new folder" / "target.db"


def unfinished(target: Path) -> Path:
    return target.with_name(f"{target.name}.copying")


def execute(path: Path, sql: str) -> None:
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute(sql)


class Interrupted(Exception):
    pass


def interrupt_after(rows: int) -> Any:
    def report(doing: str, done: int, total: int) -> None:
        if done >= rows:
            raise Interrupted

    return report


def test_every_table_is_copied_and_compared(source: Path, target: Path) -> None:
    there = contents(source)
    assert [name for name, rows in there.items() if not rows] == [], "let `fill` write such rows too"
    result = copied(source, target)
    assert result.equal
    assert contents(target) == there
    assert [(table.name, table.source.rows) for table in result.tables] == [
        (table.name, len(there[table.name])) for table in TABLES
    ]
    total = sum(map(len, there.values()))
    assert (result.copied_rows, result.resumed_rows) == (total, 0)
    assert [path.name for path in target.parent.iterdir()] == [target.name]
    assert stat.S_IMODE(target.stat().st_mode) == 0o600


async def test_the_copy_is_a_working_store(tmp_path: Path) -> None:
    source, target = tmp_path / "source.db", tmp_path / "target.db"
    await asyncio.to_thread(filled, source)
    await asyncio.to_thread(copied, source, target)
    await describe(target, "n_00001", "After the copy.")
    store = await SqliteStore.open(target)
    try:
        assert (await store.nodes(GRAPH, ["n_00001"]))["n_00001"].description == "After the copy."
        assert await store.revision(GRAPH) == 3
    finally:
        await store.close()


def test_an_empty_database_can_be_copied_and_be_a_target(tmp_path: Path, source: Path, target: Path) -> None:
    empty = tmp_path / "empty.db"
    prepare_database(empty, 1)
    prepare_database(target, 1)
    assert copied(empty, target).copied_rows == 0
    assert copied(source, target).equal
    assert contents(target) == contents(source)


@pytest.mark.parametrize(("rows", "size"), [(1, 10**9), (3, 10**9), (10**9, 1), (10**9, 200)])
def test_pages_are_bounded_in_rows_and_in_bytes(source: Path, target: Path, rows: int, size: int) -> None:
    pages: list[Sequence[Row]] = []

    class Watched(SqliteTarget):
        def write(self, table: Table, rows: Sequence[Row], note: str) -> None:
            pages.append(rows)
            super().write(table, rows, note)

    with (
        contextlib.closing(SqliteSource.open(source)) as reading,
        contextlib.closing(Watched.open(target)) as writing,
    ):
        copy_database(reading, writing, report=lambda *_: None, max_page_rows=rows, max_page_bytes=size)
    assert max(map(len, pages)) <= rows
    # Without its last row, a page is below the limit.
    assert all(
        sum(len(v) for row in page[:-1] for v in row if isinstance(v, str | bytes)) < size for page in pages
    )
    assert contents(target) == contents(source)


def test_a_source_that_is_written_meanwhile_is_copied_as_it_was(source: Path, target: Path) -> None:
    there = contents(source)

    def write_once(doing: str, done: int, total: int) -> None:
        execute(source, f"INSERT INTO organizations VALUES ('late_{doing}_{done}', 'late_{doing}_{done}', 1)")

    assert copied(source, target, report=write_once, max_page_rows=4).equal
    assert contents(target) == there
    assert len(contents(source)["organizations"]) > 2


@pytest.mark.parametrize("rows", [1, 9, 20, 36])
def test_an_interrupted_copy_goes_on_where_it_stopped(source: Path, target: Path, rows: int) -> None:
    with pytest.raises(Interrupted):
        copied(source, target, report=interrupt_after(rows), max_page_rows=2)
    assert not target.exists()
    result = copied(source, target)
    assert rows <= result.resumed_rows < rows + 2
    assert result.equal
    assert result.resumed_rows + result.copied_rows == sum(map(len, contents(source).values()))
    assert contents(target) == contents(source)
    assert not unfinished(target).exists()


@pytest.mark.parametrize("pages", [1, 4, 9, 14])
def test_a_killed_copy_goes_on_where_it_stopped(source: Path, target: Path, pages: int) -> None:
    command = [sys.executable, "-m", "tests.storage.copying_process", str(source), str(target), str(pages)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, cwd=REPOSITORY, text=True, **pipes) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline().split() for _ in range(pages)]
        with pytest.raises((Unavailable, Conflict)):
            SqliteTarget.open(target)
        process.kill()
    assert not target.exists()
    result = copied(source, target)
    assert result.resumed_rows == int(lines[-1][1]) > 0
    assert result.copied_rows > 0
    assert result.equal
    assert contents(target) == contents(source)


async def test_a_source_that_changed_is_refused_until_the_copy_begins_again(tmp_path: Path) -> None:
    source, target = tmp_path / "source.db", tmp_path / "target.db"
    await asyncio.to_thread(filled, source)
    with pytest.raises(Interrupted):
        await asyncio.to_thread(copied, source, target, report=interrupt_after(9), max_page_rows=2)
    await describe(source, "n_00000", "Changed in place.")
    with pytest.raises(Conflict, match=r"'graph_one' has been written since.*--restart") as caught:
        await asyncio.to_thread(copied, source, target)
    assert caught.value.code == "source_changed"
    result = await asyncio.to_thread(lambda: copied(source, target, restart=True))
    assert (result.equal, result.resumed_rows) == (True, 0)
    assert contents(target) == contents(source)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (
            "INSERT INTO organizations VALUES ('u', 'u', 1)",
            "the table organizations had 1 rows then and has 2 now",
        ),
        ("INSERT INTO graph_counters VALUES ('g', 1, 1)", "the graph 'g' was not there then"),
        ("DELETE FROM graph_counters", "the graph 'graph_one' was there then"),
    ],
)
def test_what_differs_from_the_copy_that_was_begun_is_said(
    source: Path, target: Path, change: str, told: str
) -> None:
    with pytest.raises(Interrupted):
        copied(source, target, report=interrupt_after(1), max_page_rows=1)
    execute(source, change)
    with pytest.raises(Conflict, match=told):
        copied(source, target)


def test_a_change_that_no_counter_shows_is_found_by_the_comparison(source: Path, target: Path) -> None:
    with pytest.raises(Interrupted):
        copied(source, target, report=interrupt_after(9), max_page_rows=2)
    execute(source, "UPDATE api_keys SET revoked_at = 5")
    result = copied(source, target)
    assert not result.equal
    assert [table.name for table in result.tables if not table.equal] == ["api_keys"]
    # Nobody can take it for the real thing.
    assert not target.exists()
    assert copied(source, target, restart=True).equal
    assert contents(target) == contents(source)


def test_a_row_that_was_damaged_on_the_way_is_found(source: Path, target: Path) -> None:
    def damage(doing: str, done: int, total: int) -> None:
        # After the last page, through the connection that holds the lock.
        if doing == "copying" and done == total:
            writing._connection.execute("UPDATE node_vectors SET vector = zeroblob(8) WHERE ordinal = 0")

    with (
        contextlib.closing(SqliteSource.open(source)) as reading,
        contextlib.closing(SqliteTarget.open(target)) as writing,
    ):
        result = copy_database(reading, writing, report=damage)
    (different,) = [table for table in result.tables if not table.equal]
    assert different.name == "node_vectors"
    assert different.source.rows == different.target.rows
    assert not target.exists()


def test_a_target_with_rows_is_refused_and_left_alone(source: Path, tmp_path: Path) -> None:
    target = filled(tmp_path / "target.db", nodes=3)
    before = contents(target)
    for restart in (False, True):
        with pytest.raises(Conflict, match=r"target\.db is not empty: users has rows") as caught:
            copied(source, target, restart=restart)
        assert caught.value.code == "target_not_empty"
    assert contents(target) == before
    assert not unfinished(target).exists()


def test_a_target_that_fills_up_meanwhile_is_refused_and_left_alone(source: Path, target: Path) -> None:
    def fill_target(doing: str, done: int, total: int) -> None:
        if doing == "copying" and done == total:
            filled(target, nodes=3)

    with pytest.raises(Conflict, match="not empty"):
        copied(source, target, report=fill_target)
    assert len(contents(target)["nodes"]) == 3


def test_a_target_that_somebody_has_open_is_refused(source: Path, target: Path) -> None:
    prepare_database(target, 1)
    with contextlib.closing(sqlite3.connect(target)) as other:
        other.execute("SELECT * FROM users").fetchall()
        with pytest.raises(Conflict, match="open in another process"):
            copied(source, target)
    assert copied(source, target).equal


def test_a_file_that_was_complete_but_not_renamed_is_made_again(source: Path, target: Path) -> None:
    copied(source, target)
    target.rename(unfinished(target))
    execute(unfinished(target), "DELETE FROM timeline")
    assert copied(source, target).resumed_rows == 0
    assert contents(target) == contents(source)


def test_a_database_is_not_copied_to_itself(source: Path) -> None:
    with pytest.raises(Conflict):
        copied(source, source)


def test_sources_that_cannot_be_copied_are_refused(tmp_path: Path, source: Path) -> None:
    with pytest.raises(NotFound, match="no database"):
        SqliteSource.open(tmp_path / "nothing.db")
    text = tmp_path / "diary.txt"
    text.write_text("This is a diary, not a database.\n" * 200)
    other = tmp_path / "other.db"
    execute(other, "CREATE TABLE nodes (id)")
    for path in (text, other):
        with pytest.raises(Corruption, match=path.name):
            SqliteSource.open(path)
    execute(source, f"PRAGMA user_version = {migrate.latest_version() - 1}")
    with pytest.raises(HivememError, match="schema version") as caught:
        SqliteSource.open(source)
    assert caught.value.code == "schema_too_old"


def test_a_damaged_source_is_corruption(source: Path, target: Path) -> None:
    execute(source, "UPDATE nodes SET description = CAST(X'FF' AS TEXT)")
    with pytest.raises(Corruption, match=r"source\.db"):
        copied(source, target)


def test_equal_spellings_mean_equal_rows() -> None:
    rows: list[Row] = [
        ("a", 1),
        ("a1",),
        ("a", "1"),
        ("a", b"1"),
        ("a", None),
        ("a", "n"),
        (1, "a"),
        ("", "a1"),
    ]
    digests = [content([row]).sha256 for row in rows]
    assert len(set(digests)) == len(rows)
    assert content(()).sha256 == hashlib.sha256(b"").hexdigest()
    assert (
        content([("é", -5, b"\x00", None)]).sha256 == hashlib.sha256(b"t2:\xc3\xa9i-5;b1:\x00n").hexdigest()
    )


def test_rows_are_read_in_order_after_a_key(source: Path) -> None:
    with contextlib.closing(SqliteSource.open(source)) as reading:
        (nodes,) = (table for table in TABLES if table.name == "nodes")
        assert next(reading.rows(nodes))[1] == "n_00000"
        assert next(reading.rows(nodes, (GRAPH, "n_00000")))[1] == "n_00001"
        assert list(reading.rows(nodes, (GRAPH, "n_99999"))) == []


def test_an_audit_log_that_was_never_published_can_be_discarded(source: Path, target: Path) -> None:
    (log,) = (table for table in TABLES if table.name == "audit_events")
    with (
        contextlib.closing(SqliteSource.open(source)) as reading,
        contextlib.closing(SqliteTarget.open(target)) as writing,
    ):
        rows = list(reading.rows(log))
        writing.write(log, rows, "note")
        writing.discard()
        assert (writing.count(log), writing.note()) == (0, None)
        writing.write(log, rows, "note")
        writing.publish()
    with pytest.raises(sqlite3.IntegrityError, match="append-only"):
        execute(target, "DELETE FROM audit_events")
    assert len(contents(target)["audit_events"]) == len(rows) > 0
