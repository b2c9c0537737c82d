"""Database files: made, upgraded, refused, locked, damaged."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from hivemem.domain.graph import Kind
from hivemem.domain.node import EnrichmentStatus
from hivemem.errors import Corruption, InvalidInput, Unavailable
from hivemem.storage.sqlite import SqliteStore, migrate
from tests.support.builders import batch, create, minutes, node, passage, vectors

GRAPH = "graph_one"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "memory.db"


@contextlib.contextmanager
def raw(path: Path) -> Iterator[sqlite3.Connection]:
    """A plain connection, as of another program or an older version."""
    with contextlib.closing(sqlite3.connect(path, isolation_level=None, timeout=0)) as connection:
        yield connection


async def made(path: Path) -> None:
    store = await SqliteStore.open(path)
    await store.apply(GRAPH, batch(create(node("a_1"), vectors(passage(1.0)))))
    await store.close()


async def test_a_new_file_and_its_folder_are_for_their_owner_only(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "er" / "mémoire ?#%.db"
    store = await SqliteStore.open(path)
    try:
        await store.apply(GRAPH, batch(node("a_1")))
        files = sorted(path.parent.iterdir())
        assert [file.name[len(path.name) :] for file in files] == ["", "-shm", "-wal"]
        assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    finally:
        await store.close()
    assert list(path.parent.iterdir()) == [path]


async def test_a_file_has_write_ahead_log_mark_and_version(path: Path) -> None:
    await made(path)
    with raw(path) as connection:
        pragmas = [
            connection.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("journal_mode", "application_id", "user_version")
        ]
    assert pragmas == ["wal", migrate.APPLICATION_ID, migrate.latest_version()]


@pytest.mark.parametrize(
    "content", [b"This is a diary, not a database.\n" * 200, b"SQLite format 3\0" + b"\xff" * 8000]
)
async def test_a_file_that_is_no_database_is_refused_by_name_and_left_alone(
    path: Path, content: bytes
) -> None:
    path.write_bytes(content)
    with pytest.raises(Corruption, match=r"memory\.db"):
        await SqliteStore.open(path)
    assert path.read_bytes() == content


async def test_another_programs_database_is_refused_and_left_alone(path: Path) -> None:
    with raw(path) as connection:
        connection.execute("CREATE TABLE nodes (id)")
    content = path.read_bytes()
    with pytest.raises(Corruption, match="another program"):
        await SqliteStore.open(path)
    assert path.read_bytes() == content


async def test_a_newer_schema_is_refused_with_both_versions(path: Path) -> None:
    await made(path)
    with raw(path) as connection:
        connection.execute("PRAGMA user_version = 99")
    with pytest.raises(Corruption, match=rf"version 99.* up to {migrate.latest_version()};") as caught:
        await SqliteStore.open(path)
    assert caught.value.code == "schema_too_new"


async def test_a_path_that_cannot_be_opened_is_unavailable(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    for path in (tmp_path, tmp_path / "file" / "memory.db"):
        with pytest.raises(Unavailable, match="cannot open"):
            await SqliteStore.open(path)


async def test_an_older_file_gets_the_missing_migrations(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    await made(path)
    add_later_migration(monkeypatch, "CREATE TABLE later (graph_id TEXT);\nINSERT INTO later VALUES ('g');\n")
    store = await SqliteStore.open(path)
    try:
        assert list(await store.nodes(GRAPH, ["a_1"])) == ["a_1"]
    finally:
        await store.close()
    with raw(path) as connection:
        assert connection.execute("SELECT * FROM later").fetchall() == [("g",)]
        assert migrate.schema_version(connection) == migrate.latest_version()


@pytest.mark.parametrize(
    ("script", "error"),
    [
        ("CREATE TABLE later (x);\nCREATE TABLE nodes (x);\n", Unavailable),
        ("CREATE TABLE later (x);\nDELETE FROM nodes;\n", Corruption),
    ],
    ids=["a failing statement", "vectors without their node"],
)
async def test_a_migration_that_fails_changes_nothing(
    path: Path, monkeypatch: pytest.MonkeyPatch, script: str, error: type[Exception]
) -> None:
    await made(path)
    with monkeypatch.context() as patched:
        add_later_migration(patched, script)
        with pytest.raises(error):
            await SqliteStore.open(path)
    store = await SqliteStore.open(path)
    try:
        assert list(await store.nodes(GRAPH, ["a_1"])) == ["a_1"]
    finally:
        await store.close()
    with raw(path) as connection:
        assert not connection.execute("SELECT * FROM sqlite_schema WHERE name = 'later'").fetchall()


def add_later_migration(monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    names, read = migrate.migration_names(), migrate.read_sql
    monkeypatch.setattr(migrate, "migration_names", lambda: [*names, "later.sql"])
    monkeypatch.setattr(migrate, "read_sql", lambda name: script if name == "later.sql" else read(name))


async def test_a_write_that_waits_too_long_for_another_process_is_unavailable(path: Path) -> None:
    store = await SqliteStore.open(path, busy_timeout_seconds=0.05)
    try:
        with raw(path) as other:
            other.execute("BEGIN IMMEDIATE")
            writes = [store.apply(GRAPH, batch(node(f"n_{i}"))) for i in range(5)]
            outcomes = await asyncio.gather(*writes, return_exceptions=True)
            assert {type(outcome) for outcome in outcomes} == {Unavailable}
            assert "busy" in str(outcomes[0])
            # Reading needs no lock.
            assert await store.revision(GRAPH) == 0
            other.execute("COMMIT")
        assert await store.apply(GRAPH, batch(node("a_1"))) == 1
    finally:
        await store.close()


async def test_a_write_waits_for_another_process_while_the_event_loop_runs(path: Path) -> None:
    store = await SqliteStore.open(path)
    try:
        with raw(path) as other:
            other.execute("BEGIN IMMEDIATE")
            write = asyncio.ensure_future(store.apply(GRAPH, batch(node("a_1"))))
            for _ in range(10):
                assert await store.revision(GRAPH) == 0
                await asyncio.sleep(0.005)
            assert not write.done()
            other.execute("COMMIT")
        assert await write == 1
    finally:
        await store.close()


async def test_opening_a_locked_file_is_unavailable(path: Path) -> None:
    with raw(path) as other:
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(Unavailable, match="busy"):
            await SqliteStore.open(path, busy_timeout_seconds=0.05)


async def test_damaged_pages_are_corruption_that_names_the_file(path: Path) -> None:
    await (await SqliteStore.open(path)).close()
    # The pages of the schema stay whole, whatever it grows to: the file can be opened.
    schema = path.stat().st_size
    store = await SqliteStore.open(path)
    await store.apply(GRAPH, batch(*(node(f"n_{i}", "x" * 3000) for i in range(100))))
    await store.close()
    content = bytearray(path.read_bytes())
    for offset in range(schema, len(content), 4096):
        content[offset : offset + 200] = b"\x5a" * 200
    path.write_bytes(content)
    store = await SqliteStore.open(path)
    try:
        with pytest.raises(Corruption, match=r"memory\.db"):
            await store.scan(GRAPH)
        with pytest.raises(Corruption, match=r"memory\.db"):
            await store.apply(GRAPH, batch(*(node(f"m_{i}", "x" * 3000) for i in range(100))))
    finally:
        await store.close()


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE nodes SET data = '{'",
        "UPDATE nodes SET node_type = 'unheard of'",
        "UPDATE nodes SET enrichment_status = 'unheard of'",
        "UPDATE nodes SET created_at = 9223372036854775807",
        "UPDATE nodes SET description = CAST(X'FF' AS TEXT)",
        "UPDATE versions SET state = '{}'",
    ],
)
async def test_a_row_that_breaks_the_rules_is_corruption(path: Path, damage: str) -> None:
    await made(path)
    with raw(path) as connection:
        connection.execute(damage)
    store = await SqliteStore.open(path)
    try:
        with pytest.raises(Corruption, match=r"'a_1'|memory\.db"):
            await store.nodes(GRAPH, ["a_1"])
            await store.versions(GRAPH, Kind.NODE, "a_1")
        assert await store.revision(GRAPH) == 1
    finally:
        await store.close()


async def test_a_damaged_row_that_a_write_meets_is_corruption_too(path: Path) -> None:
    await made(path)
    with raw(path) as connection:
        connection.execute("UPDATE nodes SET data = '{'")
    store = await SqliteStore.open(path)
    try:
        with pytest.raises(Corruption, match="'a_1'"):
            await store.put_vectors(GRAPH, "a_1", 1, vectors(), EnrichmentStatus.SKIPPED)
    finally:
        await store.close()


async def test_values_that_sqlite_cannot_hold_are_invalid_input(path: Path) -> None:
    store = await SqliteStore.open(path)
    try:
        with pytest.raises(InvalidInput, match="surrogate"):
            await store.touch(GRAPH, "\ud800", [], minutes(1))
        with pytest.raises(InvalidInput, match="surrogate"):
            await store.timeline(GRAPH, node_key="\udfff")
        assert await store.nodes(GRAPH, ["\ud800"]) == {}
        with pytest.raises(InvalidInput, match="64 bits"):
            await store.apply(GRAPH, batch(node("a_1", write_version=2**63)))
    finally:
        await store.close()
