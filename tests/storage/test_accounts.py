"""Accounts in a SQLite file: older files, the log that nobody changes, and what deleting leaves."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from hivemem.domain.accounts import Graph, User
from hivemem.errors import NotFound
from hivemem.storage.sqlite import SqliteStore, filling, migrate
from hivemem.storage.sqlite.statements import migration_names, read_sql, split_script
from hivemem.storage.times import from_microseconds
from tests.conformance.store.content import all_of, fill_graph
from tests.support.builders import api_key, audit_event, batch, graph, minutes, node, user

GRAPH, OTHER_GRAPH = "graph_one", "graph_two"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "memory.db"


@contextlib.contextmanager
def opened(path: Path) -> Iterator[sqlite3.Connection]:
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        yield connection


def on_disk(path: Path, text: str) -> list[str]:
    """Names of the files of a database that hold `text`."""
    files = [file for file in path.parent.iterdir() if file.name.startswith(path.name)]
    return [file.name for file in files if text.encode() in file.read_bytes()]


def secure_delete(connection: sqlite3.Connection) -> int:
    return connection.execute("PRAGMA secure_delete").fetchone()[0]


async def test_accounts_of_an_older_file(path: Path) -> None:
    with opened(path) as connection:
        for script in migration_names()[:6]:
            for statement in split_script(read_sql(script)):
                connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {migrate.APPLICATION_ID}")
        connection.execute("PRAGMA user_version = 6")
        connection.executemany(
            "INSERT INTO users VALUES (?, ?, ?)", [("u_b", "B", 5), ("u_a", "A", 5), ("u_c", "C", 9)]
        )
        connection.executemany(
            "INSERT INTO graphs VALUES (?, ?, 'personal', ?, ?)",
            [
                ("g_3", "late", "u_a", 8),
                ("g_2", "first", "u_a", 7),
                ("g_1", "same", "u_a", 7),
                ("g_4", "of c", "u_c", 9),
            ],
        )
        key = api_key(user_id="u_a", graph_id="g_3")
        connection.execute(
            "INSERT INTO api_keys VALUES (?, ?, 'laptop', 'u_a', 'g_3', 'owner', 10, 11)",
            (key.key_id, key.hash),
        )
        connection.execute(
            "INSERT INTO oauth_clients VALUES ('c', 'n', '[]', '[]', '[]', 'none', NULL, 1, NULL)"
        )
        connection.execute(
            "INSERT INTO oauth_grants VALUES ('g', 'c', 'u_a', 'g_3', ?, '[]', 'r', 12, NULL)", (key.key_id,)
        )
        connection.execute("INSERT INTO oauth_sign_ins VALUES ('h', 'c', '{}', 99, NULL, NULL)")
    store = await SqliteStore.open(path)
    try:
        moments = {name: from_microseconds(at) for name, at in (("five", 5), ("nine", 9))}
        assert await store.users() == [
            User(user_id="u_a", name="A", created_at=moments["five"], operator=True),
            User(user_id="u_b", name="B", created_at=moments["five"]),
            User(user_id="u_c", name="C", created_at=moments["nine"]),
        ]
        assert [(one.graph_id, one.is_default) for one in await store.graphs("u_a")] == [
            ("g_1", True),
            ("g_2", False),
            ("g_3", False),
        ]
        assert await store.graphs("u_c") == [
            Graph(
                graph_id="g_4", name="of c", owner_id="u_c", created_at=from_microseconds(9), is_default=True
            )
        ]
        (kept,) = await store.keys()
        assert (kept.admin, kept.expires_at, kept.last_used_at) == (False, None, None)
        assert kept.revoked_at == from_microseconds(11)
        assert [one.grant_id for one in await store.grants("u_a")] == ["g"]
        assert await store.leftovers() == {}
    finally:
        await store.close()
    with opened(path) as connection:
        assert connection.execute("SELECT hash, external FROM oauth_sign_ins").fetchall() == [("h", None)]
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE audit_events SET action = 'other'",
        "UPDATE audit_events SET event_id = 99 WHERE event_id = 1",
        "DELETE FROM audit_events",
        "DELETE FROM audit_events WHERE event_id = 1",
        "INSERT OR REPLACE INTO audit_events SELECT event_id, at + 1, 'other', user_id, credential, "
        "graph_id, organization_id, target, address, request_id, detail FROM audit_events",
    ],
)
async def test_the_audit_log_is_append_only_for_sql_too(path: Path, statement: str) -> None:
    store = await SqliteStore.open(path)
    await store.add_audit_events([audit_event(), audit_event("second")])
    await store.close()
    with opened(path) as connection:
        before = connection.execute("SELECT * FROM audit_events").fetchall()
        with pytest.raises(sqlite3.IntegrityError, match="append-only"):
            connection.execute(statement)
        assert connection.execute("SELECT * FROM audit_events").fetchall() == before
        assert len(before) == 2


async def test_removed_texts_are_nowhere_on_the_disk(path: Path) -> None:
    store = await SqliteStore.open(path)
    try:
        await store.add_user(user(), graph())
        await store.add_user(user("user_two"), graph(OTHER_GRAPH, "user_two"))
        await fill_graph(store, GRAPH, "Ganymed", nodes=300)
        await fill_graph(store, OTHER_GRAPH, "Kallisto")
        kept = await all_of(store, OTHER_GRAPH)
        assert on_disk(path, "Ganymed")
        assert await store.remove_graph(GRAPH, minutes(5))
        while await store.purge_graph(GRAPH, 100):
            pass
        await store.reclaim()
        assert on_disk(path, "Ganymed") == []
        assert on_disk(path, "Kallisto") == [path.name]
        assert path.with_name("memory.db-wal").stat().st_size == 0
        assert await all_of(store, OTHER_GRAPH) == kept
        # The store goes on after its file was written anew.
        await fill_graph(store, "graph_three", "Europa")
    finally:
        await store.close()
    assert on_disk(path, "Ganymed") == []
    assert on_disk(path, "Europa")


async def test_purging_overwrites_what_it_removes(path: Path) -> None:
    """Also before the file is written anew, which takes long for a large one."""
    store = await SqliteStore.open(path)
    try:
        await store.add_user(user(), graph())
        await fill_graph(store, GRAPH, "Ganymed", nodes=300)
        await store.remove_user("user_one", minutes(5))
        while await store.purge_graph(GRAPH, 100):
            pass
        await store.apply(OTHER_GRAPH, batch(node("a_1")))
    finally:
        await store.close()
    assert on_disk(path, "Ganymed") == []


async def test_other_writes_overwrite_nothing(path: Path) -> None:
    """Overwriting doubles what a removal writes, so it is for purging alone."""
    store = await SqliteStore.open(path)
    try:
        await store.add_user(user(), graph())
        await store.remove_graph(GRAPH, minutes(1))
        before = await store._writer.run(secure_delete)
        await store.purge_graph(GRAPH)
        assert await store._writer.run(secure_delete) == before
    finally:
        await store.close()


async def test_filling_a_deleted_graph_is_refused(path: Path) -> None:
    store = await SqliteStore.open(path)
    try:
        await store.add_user(user(), graph())
        await store.remove_graph(GRAPH, minutes(1))
        with pytest.raises(NotFound, match=GRAPH):
            filling.fill_graph(path, 1.0, GRAPH, lambda _: ())
        assert await store.leftovers() == {}
    finally:
        await store.close()
