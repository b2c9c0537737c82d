"""A data directory on a file system that became read-only, as after a disk error."""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from hivemem.errors import Unavailable
from hivemem.storage.sqlite import SqliteStore, migrate
from hivemem.storage.sqlite.connection import connect
from tests.durability.conftest import mount
from tests.support.builders import batch, node
from tests.surfaces.serving import Server, run_cli

GRAPH = "graph_one"
NOBODY = 65534


class Switch:
    """Makes a file system read-only and back."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def off(self) -> None:
        assert mount("-o", "remount,ro", self.folder)

    def on(self) -> None:
        assert mount("-o", "remount,rw", self.folder)


@pytest.fixture
def writing(small_disk: Path) -> Iterator[Switch]:
    switch = Switch(small_disk)
    yield switch
    switch.on()


@pytest.mark.parametrize("killed", [False, True], ids=["after a stop", "after a kill"])
def test_commands_read_and_say_why_they_cannot_write(writing: Switch, killed: bool) -> None:
    data_dir = writing.folder / "data"
    with Server(data_dir) as server:
        stored = run_cli(data_dir, "store", "note_ferry", "The ferry leaves at nine.")
        assert stored.returncode == 0, stored.stderr
        if killed:
            server.process.kill()
            server.process.wait(20)
    # Killed, it leaves a log beside the file that nobody can move into it now.
    assert (data_dir / "hivemem.sqlite3-wal").exists() == killed
    writing.off()
    recalled = run_cli(data_dir, "recall", "--json", "when does the ferry leave")
    assert recalled.returncode == 0, recalled.stderr
    assert [hit["key"] for hit in json.loads(recalled.stdout)["results"]] == ["note_ferry"]
    refused = run_cli(data_dir, "store", "--json", "note_late", "Late.")
    assert refused.returncode == 8
    error = json.loads(refused.stderr.splitlines()[-1])
    assert error["error"] == "storage_read_only"
    assert "writable" in error["detail"]
    served = run_cli(data_dir, "serve", "--port", "0")
    assert served.returncode == 8
    assert b"Traceback" not in served.stderr
    assert b"Read-only file system. Make the folder writable" in served.stderr
    writing.on()
    with Server(data_dir):
        assert run_cli(data_dir, "store", "note_late", "Late.").returncode == 0


async def test_a_read_only_file_of_an_older_schema_asks_for_an_upgrade(writing: Switch) -> None:
    path = writing.folder / "memory.db"
    store = await SqliteStore.open(path)
    await store.close()
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA user_version = {migrate.latest_version() - 1}")
    connection.close()
    writing.off()
    with pytest.raises(Unavailable, match="upgrade") as caught:
        await SqliteStore.open(path)
    assert caught.value.code == "storage_read_only"


async def test_a_folder_without_the_right_to_write_is_named_as_what_keeps_a_reader_out() -> None:
    # Not tmp_path, which nobody but its owner can enter.
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "memory.db"
        store = await SqliteStore.open(path)
        await store.close()
        path.chmod(0o444)
        Path(folder).chmod(0o555)
        try:
            with (
                without_roots_rights(),
                pytest.raises(Unavailable, match="may not write its folder") as caught,
            ):
                connect(path, 1.0, read_only=True).execute("SELECT count(*) FROM nodes")
        finally:
            Path(folder).chmod(0o700)
    assert caught.value.code == "storage_read_only"


@contextlib.contextmanager
def without_roots_rights() -> Iterator[None]:
    """Another user for a while, since root may write whatever the rights say."""
    if os.getuid() != 0:
        yield
        return
    os.setresuid(NOBODY, NOBODY, 0)
    try:
        yield
    finally:
        os.setresuid(0, 0, 0)


async def test_a_file_without_the_right_to_write_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "memory.db"
    store = await SqliteStore.open(path)
    await store.apply(GRAPH, batch(node("a_1")))
    # Held open elsewhere, as by a server of another user: its log is beside the file.
    path.chmod(0o400)
    # Root may write whatever the rights say.
    allowed = sys.modules["os"].access
    monkeypatch.setattr("os.access", lambda file, mode: Path(file) != path and allowed(file, mode))
    reading = await SqliteStore.open(path)
    try:
        assert list(await reading.nodes(GRAPH, ["a_1"])) == ["a_1"]
        await store.apply(GRAPH, batch(node("b_1")))
        assert list(await reading.nodes(GRAPH, ["a_1", "b_1"])) == ["a_1", "b_1"]
        with pytest.raises(Unavailable, match="read-only") as caught:
            await reading.apply(GRAPH, batch(node("c_1")))
        assert caught.value.code == "storage_read_only"
    finally:
        await reading.close()
        await store.close()
