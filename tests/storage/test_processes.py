"""Many processes on one file: nothing is lost, whatever dies."""

from __future__ import annotations

import contextlib
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from hivemem.storage.sqlite import SqliteStore
from tests.conformance.store.observe import replica
from tests.storage.writing_process import GRAPH, SHARED_KEY

REPOSITORY = Path(__file__).resolve().parents[2]


@contextlib.contextmanager
def writing(path: Path, name: str, count: int | str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "tests.storage.writing_process", str(path), name, str(count)]
    with subprocess.Popen(
        command, cwd=REPOSITORY, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def integrity(path: Path) -> str:
    with contextlib.closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
        return connection.execute("PRAGMA integrity_check").fetchone()[0]


async def test_four_processes_start_at_once_and_lose_no_write(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    names = ("n", "o", "p", "q")
    with contextlib.ExitStack() as stack:
        processes = [stack.enter_context(writing(path, name, 100)) for name in names]
        outputs = [process.communicate() for process in processes]
        assert [process.returncode for process in processes] == [0] * 4, outputs
    keys = [f"{name}_{number}" for name in names for number in range(100)]
    assert sorted(line for out, _ in outputs for line in out.split()) == sorted(keys)
    assert integrity(path) == "ok"
    store = await SqliteStore.open(path)
    try:
        graph = await replica(store)
        assert set(graph.nodes) == {*keys, SHARED_KEY}
        assert len(graph.edges) == 4 * 99
        assert len(await store.timeline(GRAPH, limit=1000)) == 400
        # 40 increments by optimistic writes, and one revision for each write.
        assert graph.nodes[SHARED_KEY].node.data == {"count": 40}
        assert graph.revision == 440
    finally:
        await store.close()


@pytest.mark.parametrize("rounds", [4, pytest.param(60, marks=[pytest.mark.soak, pytest.mark.timeout(600)])])
async def test_a_killed_writer_leaves_a_whole_file_with_every_acknowledged_write(
    tmp_path: Path, rounds: int
) -> None:
    path = tmp_path / "memory.db"
    acknowledged: list[str] = []
    for number in range(rounds):
        with writing(path, f"round{number}", "endless") as process:
            assert process.stdout is not None
            first = range(7 + 13 * (number % 5))
            acknowledged += [process.stdout.readline().strip() for _ in first]
            process.kill()
            # Lines that were in the pipe when it died are acknowledged too; a cut one is not.
            rest = process.stdout.read()
            acknowledged += rest[: rest.rfind("\n") + 1].split()
        assert "" not in acknowledged
        assert integrity(path) == "ok"
        store = await SqliteStore.open(path)
        try:
            assert set(await store.nodes(GRAPH, acknowledged)) == set(acknowledged)
            graph = await replica(store)
            # One more write may have been stored than was told.
            assert len(graph.nodes.keys() - {SHARED_KEY} - set(acknowledged)) <= number + 1
            assert all(len(one.passages) == 1 for key, one in graph.nodes.items() if key != SHARED_KEY)
        finally:
            await store.close()
