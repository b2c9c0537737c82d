"""Copies from SQLite to PostgreSQL and back: every byte, whatever interrupts them."""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize
from psycopg import sql

from hivemem.errors import Conflict, Corruption, InvalidInput, Unavailable
from hivemem.service.copying import CopyResult, copy_database
from hivemem.service.database_urls import DatabaseUrl, database_url, open_source, open_target
from hivemem.storage.postgres import PostgresStore
from hivemem.storage.rows import Row, content
from hivemem.storage.sqlite.rows import SqliteTarget
from hivemem.storage.tables import TABLES, ColumnKind, Table
from tests.conformance.store.backends import BACKENDS
from tests.conformance.store.test_state_machine import TwoStores
from tests.storage.copying import GRAPH, contents, filled
from tests.support.builders import api_key, batch, graph, node, user
from tests.support.postgres import fresh_database, with_parameters

REPOSITORY = Path(__file__).resolve().parents[2]
BY_NAME = {table.name: table for table in TABLES}


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return filled(tmp_path / "source.db")


@pytest.fixture
def postgres() -> str:
    return fresh_database()


def copied(source: str | Path, target: str | Path, **options: Any) -> CopyResult:
    with (
        contextlib.closing(open_source(database_url(str(source)))) as reading,
        contextlib.closing(open_target(database_url(str(target)))) as writing,
    ):
        return copy_database(reading, writing, **{"report": lambda *_: None, **options})


def execute(url: str, statement: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(statement.encode())


def tables_of(url: str) -> set[str]:
    with psycopg.connect(url) as connection:
        found = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = current_schema()")
        return {name for (name,) in found}


def empty(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        names = sql.SQL(", ").join(sql.Identifier(table.name) for table in TABLES)
        connection.execute("ALTER TABLE audit_events DISABLE TRIGGER USER")
        connection.execute(sql.SQL("TRUNCATE {}").format(names))
        connection.execute("ALTER TABLE audit_events ENABLE TRIGGER USER")


class Interrupted(Exception):
    pass


def interrupt_after(rows: int) -> Any:
    def report(doing: str, done: int, total: int) -> None:
        if done >= rows:
            raise Interrupted

    return report


def digests(result: CopyResult) -> list[tuple[str, int, str]]:
    return [(table.name, table.target.rows, table.target.sha256) for table in result.tables]


def test_there_and_back_every_table_is_the_same(source: Path, postgres: str, tmp_path: Path) -> None:
    there = copied(source, postgres)
    again = copied(postgres, other := fresh_database())
    back = copied(other, tmp_path / "back.db")
    assert there.equal and again.equal and back.equal
    assert digests(there) == digests(again) == digests(back)
    assert contents(tmp_path / "back.db") == contents(source)
    assert "copy_note" not in tables_of(postgres)


async def test_the_copy_is_a_working_store(tmp_path: Path, postgres: str) -> None:
    source = await asyncio.to_thread(filled, tmp_path / "source.db")
    await asyncio.to_thread(copied, source, postgres)
    store = await PostgresStore.open(postgres, connections=2)
    try:
        assert await store.revision(GRAPH) == 2
        assert await store.apply(GRAPH, batch(node("new_1"))) == 3
        assert len((await store.changes(GRAPH, 0, model_id="test-model")).nodes) == 6
        assert await store.keys() == [api_key()]
    finally:
        await store.close()


texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=5)
numbers = st.integers(-(2**63), 2**63 - 1) | st.integers(-3, 3)
VALUES = {ColumnKind.TEXT: texts, ColumnKind.INTEGER: numbers, ColumnKind.BYTES: st.binary(max_size=9)}


def rows_of(table: Table) -> st.SearchStrategy[list[Row]]:
    columns = [
        VALUES[column.kind] | st.none() if column.nullable else VALUES[column.kind]
        for column in table.columns
    ]
    return st.lists(
        st.tuples(*columns), max_size=12, unique_by=lambda row: tuple(row[i] for i in table.key_positions)
    )


@pytest.fixture(scope="module")
def two_targets(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Any, Any]]:
    folder = tmp_path_factory.mktemp("targets")
    with (
        contextlib.closing(SqliteTarget.open(folder / "memory.db")) as sqlite,
        contextlib.closing(open_target(database_url(fresh_database()))) as postgres,
    ):
        yield sqlite, postgres


@pytest.mark.parametrize("name", ["versions", "timeline", "tombstones", "sessions", "nodes", "hyperedges"])
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_storable_row_is_the_same_in_both_and_in_the_same_order(
    two_targets: tuple[Any, Any], name: str, data: st.DataObject
) -> None:
    """Also where a locale would order otherwise, and beyond the basic plane."""
    table = BY_NAME[name]
    rows = data.draw(rows_of(table))
    found: list[list[Row]] = []
    for target in two_targets:
        target.discard()
        target.write(table, rows, "note")
        found.append(list(target.rows(table)))
        assert target.count(table) == len(rows)
        assert target.note() == "note"
        for row in found[-1][::4]:
            key = tuple(row[i] for i in table.key_positions)
            assert list(target.rows(table, key)) == found[-1][found[-1].index(row) + 1 :]
    assert found[0] == found[1]
    assert {tuple(row) for row in found[0]} == set(rows)
    assert content(found[0]) == content(found[1])


class RoundTrip(TwoStores):
    """Any operations on a SQLite store, and at the end its way to PostgreSQL and back."""

    backend = next(backend for backend in BACKENDS if backend.name == "sqlite")
    postgres: str

    @initialize()
    def open(self) -> None:
        self.real = self.runner.run(self.backend.open(Path(self.folder.name)))
        self.both(lambda store: store.add_user(user(name="日本 \U0001f600"), graph()))
        self.both(lambda store: store.add_key(api_key()))

    def teardown(self) -> None:
        if hasattr(self, "real"):
            self.runner.run(self.real.close())
            folder = Path(self.folder.name)
            empty(self.postgres)
            there = copied(folder / "memory.db", self.postgres)
            back = copied(self.postgres, folder / "back.db")
            assert there.equal and back.equal
            assert digests(there) == digests(back)
            assert contents(folder / "memory.db") == contents(folder / "back.db")
        self.runner.close()
        self.folder.cleanup()


@pytest.mark.parametrize(
    ("examples", "steps"),
    [(12, 12), pytest.param(200, 40, marks=[pytest.mark.soak, pytest.mark.timeout(3600)])],
    ids=["short", "long"],
)
def test_any_memory_survives_the_way_there_and_back(tmp_path: Path, examples: int, steps: int) -> None:
    postgres = fresh_database()
    copied(filled(tmp_path / "first.db", 3), postgres)
    machine = type("Machine", (RoundTrip,), {"postgres": postgres})
    machine.TestCase.settings = settings(
        max_examples=examples,
        stateful_step_count=steps,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    machine.TestCase().runTest()


@pytest.mark.parametrize("way", ["to PostgreSQL", "from PostgreSQL"])
@pytest.mark.parametrize("pages", [1, 6, 13])
def test_a_killed_copy_goes_on_where_it_stopped(
    source: Path, postgres: str, tmp_path: Path, way: str, pages: int
) -> None:
    begin, end = str(source), postgres
    if way == "from PostgreSQL":
        copied(source, postgres)
        begin, end = postgres, str(tmp_path / "target.db")
    command = [sys.executable, "-m", "tests.storage.copying_process", begin, end, str(pages)]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, cwd=REPOSITORY, **pipes) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline().split() for _ in range(pages)]
        with pytest.raises((Conflict, Unavailable)):
            open_target(database_url(end))
        process.kill()
    result = copied_once_free(begin, end)
    assert result.resumed_rows == int(lines[-1][1]) > 0
    assert result.copied_rows > 0
    assert result.equal
    back = copied(end, tmp_path / "back.db")
    assert back.equal
    assert contents(tmp_path / "back.db") == contents(source)


def copied_once_free(source: str, target: str) -> CopyResult:
    """The server needs a moment to notice that the killed process is gone."""
    for _ in range(200):
        try:
            return copied(source, target)
        except Conflict as error:
            if "is running" not in error.message:
                raise
    raise AssertionError("the lock of a killed copy stays")


def test_servers_do_not_open_an_unfinished_copy(source: Path, postgres: str) -> None:
    with pytest.raises(Interrupted):
        copied(source, postgres, report=interrupt_after(9), max_page_rows=2)
    for attempt in (PostgresStore.open(postgres), PostgresStore.open(postgres, migrate=False)):
        with pytest.raises(Conflict, match="unfinished copy"):
            asyncio.run(attempt)
    with pytest.raises(Conflict, match="unfinished copy"):
        open_source(database_url(postgres))
    assert copied(source, postgres).resumed_rows > 0
    asyncio.run(asyncio.wait_for(opened_and_closed(postgres), 20))


async def opened_and_closed(url: str) -> None:
    await (await PostgresStore.open(url, connections=1)).close()


def test_a_source_that_changed_is_refused_until_the_copy_begins_again(
    source: Path, postgres: str, tmp_path: Path
) -> None:
    copied(source, postgres)
    target = fresh_database()
    with pytest.raises(Interrupted):
        copied(postgres, target, report=interrupt_after(9), max_page_rows=2)
    execute(postgres, "UPDATE graph_counters SET revision = revision + 1")
    with pytest.raises(Conflict, match="'graph_one' has been written since") as caught:
        copied(postgres, target)
    assert caught.value.code == "source_changed"
    assert copied(postgres, target, restart=True).equal


def test_a_database_with_rows_is_refused_and_left_alone(source: Path, postgres: str, tmp_path: Path) -> None:
    asyncio.run(opened_and_closed(postgres))
    execute(postgres, "INSERT INTO users VALUES ('u', 'Somebody', 5)")
    for restart in (False, True):
        with pytest.raises(Conflict, match="is not empty: users has rows") as caught:
            copied(source, postgres, restart=restart)
        assert caught.value.code == "target_not_empty"
    assert "copy_note" not in tables_of(postgres)
    with psycopg.connect(postgres) as connection:
        assert connection.execute("SELECT user_id FROM users").fetchall() == [("u",)]


def test_rows_of_somebody_else_during_a_copy_are_told(source: Path, postgres: str) -> None:
    def intrude(doing: str, done: int, total: int) -> None:
        if done == 1:
            execute(postgres, "INSERT INTO timeline VALUES ('graph_one', 1, 1, '', '', NULL, NULL, '{}')")

    with pytest.raises(Conflict, match="has got rows in timeline"):
        copied(source, postgres, report=intrude, max_page_rows=1)
    execute(postgres, "DELETE FROM timeline")
    execute(postgres, "INSERT INTO tombstones VALUES ('g', 'node', 'x', 1)")
    result = copied(source, postgres)
    assert [table.name for table in result.tables if not table.equal] == ["tombstones"]
    with pytest.raises(Conflict, match="unfinished copy"):
        asyncio.run(opened_and_closed(postgres))
    assert copied(source, postgres, restart=True).equal


def test_a_source_that_is_written_meanwhile_is_copied_as_it_was(
    source: Path, postgres: str, tmp_path: Path
) -> None:
    copied(source, postgres)

    def write(doing: str, done: int, total: int) -> None:
        execute(postgres, f"INSERT INTO users VALUES ('{doing}_{done}', '{doing}_{done}', 1)")
        execute(postgres, "UPDATE nodes SET description = 'Changed.'")

    assert copied(postgres, tmp_path / "back.db", report=write, max_page_rows=5).equal
    assert contents(tmp_path / "back.db") == contents(source)


def test_a_connection_that_is_lost_can_be_resumed(source: Path, postgres: str) -> None:
    def end_all(doing: str, done: int, total: int) -> None:
        if done >= 9:
            execute(
                postgres,
                "SELECT pg_terminate_backend(pid) FROM pg_locks JOIN pg_stat_activity USING (pid)"
                " WHERE locktype = 'advisory' AND pid <> pg_backend_pid()",
            )

    with pytest.raises(Unavailable):
        copied(source, postgres, report=end_all, max_page_rows=2)
    result = copied_once_free(str(source), postgres)
    assert result.resumed_rows >= 9
    assert result.equal


def test_databases_that_cannot_be_copied_are_refused(source: Path, postgres: str, tmp_path: Path) -> None:
    with pytest.raises(Corruption, match="hivemem db migrate"):
        open_source(database_url(postgres))
    asyncio.run(opened_and_closed(postgres))
    execute(postgres, "UPDATE schema_version SET version = version - 1")
    for attempt in (open_source, open_target):
        if attempt is open_source:
            with pytest.raises(Conflict, match="schema version"):
                attempt(database_url(postgres))
    other = fresh_database()
    execute(other, "CREATE TABLE nodes (id TEXT)")
    with pytest.raises(Corruption, match="another program"):
        open_target(database_url(other))
    nowhere = "postgresql://me:s3cret-word@127.0.0.1:1/db"
    with pytest.raises(Unavailable) as caught:
        open_source(database_url(nowhere))
    assert "s3cret" not in str(caught.value)


def test_a_text_that_postgresql_cannot_hold_is_told(source: Path, postgres: str) -> None:
    import sqlite3

    with contextlib.closing(sqlite3.connect(source, isolation_level=None)) as connection:
        connection.execute("UPDATE nodes SET description = 'a' || char(0) || 'b' WHERE key = 'n_00002'")
    with pytest.raises(InvalidInput):
        copied(source, postgres)


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("sqlite:///var/lib/hivemem.sqlite3", "/var/lib/hivemem.sqlite3"),
        ("sqlite:////var/lib/hivemem.sqlite3", "/var/lib/hivemem.sqlite3"),
        ("sqlite:///a%20b/%23c.db", "/a b/#c.db"),
        ("/a b/c.db", "/a b/c.db"),
        ("postgresql://me@host/name", None),
        ("postgres://host/name", None),
    ],
)
def test_urls_name_databases(text: str, path: str | None) -> None:
    assert database_url(text).path == (None if path is None else Path(path))


def test_a_relative_path_names_a_file_of_the_working_folder() -> None:
    assert database_url("data/a.db").path == Path.cwd() / "data" / "a.db"


@pytest.mark.parametrize(
    "text",
    ["", "mysql://me:s3cret@host/name", "sqlite://", "sqlite:///", "sqlite://a.db", "password=s3cret:x"],
)
def test_other_urls_are_refused_without_repeating_them(text: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        database_url(text)
    assert "s3cret" not in str(caught.value)


def test_a_password_is_shown_nowhere() -> None:
    for url in ("postgresql://me:s3cret@h/n", "postgresql://me@h/n?password=s3cret&sslpassword=s3cret"):
        shown: list[object] = [database_url(url), database_url(url).shown, DatabaseUrl(path=None, url=url)]
        assert "s3cret" not in json.dumps([str(one) for one in shown] + [repr(one) for one in shown])
    with pytest.raises(InvalidInput) as caught:
        # The password is `p@s3cret/x`, not escaped.
        print(database_url("postgresql://me:p@s3cret/x@h/n").shown)
    assert "s3cret" not in str(caught.value)


def test_parameters_of_a_url_reach_the_connection(source: Path, postgres: str) -> None:
    url = with_parameters(postgres, application_name="copies")
    with contextlib.closing(open_target(database_url(url))), psycopg.connect(postgres) as connection:
        found = connection.execute("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'copies'")
        assert found.fetchone() == (1,)


@pytest.mark.soak
@pytest.mark.timeout(600)
@pytest.mark.parametrize("way", ["to PostgreSQL", "from PostgreSQL"])
def test_a_copy_that_is_killed_at_any_moment_again_and_again_gets_whole(
    postgres: str, tmp_path: Path, way: str
) -> None:
    source = filled(tmp_path / "source.db", nodes=2_000)
    begin, end = str(source), postgres
    if way == "from PostgreSQL":
        copied(source, postgres)
        begin, end = postgres, str(tmp_path / "target.db")
    command = [sys.executable, "-m", "tests.storage.copying_process", begin, end, "0"]
    chance = random.Random(5)
    finished = False
    for _ in range(8):
        with subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            for _ in range(chance.randrange(20, 500)):
                finished = finished or not process.stdout.readline()
            process.kill()
    assert finished or copied_once_free(begin, end).resumed_rows > 0
    copied(end, tmp_path / "back.db")
    assert contents(tmp_path / "back.db") == contents(source)
