"""No space for what is to be stored: a full disk, and a limit on the size of files."""

from __future__ import annotations

import contextlib
import resource
from collections.abc import Iterator
from pathlib import Path

import httpx2

from tests.durability.following import Follower, check_integrity
from tests.durability.load import Acknowledged, Writers
from tests.surfaces.serving import REST, Server, bearer, run_cli

DATABASE = "hivemem.sqlite3"
# Together the texts of one call of each writer are larger than the space that may be left.
CHARACTERS = 10_000


@contextlib.contextmanager
def client_of(server: Server, key: str) -> Iterator[httpx2.Client]:
    with httpx2.Client(base_url=f"{server.url}{REST}", headers=bearer(key), timeout=20) as client:
        yield client


def write_until_refused(server: Server, key: str, name: str) -> Acknowledged:
    writers = Writers(server.url, key, name, characters=CHARACTERS)
    try:
        writers.wait_for_refusals(20)
    finally:
        told = writers.finish(stop=True)
    return told


def fill(disk: Path) -> Path:
    filler = disk / "filler"
    with filler.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(b"\1" * 4096)
    return filler


def check_reading(client: httpx2.Client, told: Acknowledged) -> None:
    present = [key for key, one in told.nodes.items() if one.description is not None]
    assert client.get("/overview").json()["nodes"] >= len(present)
    answer = client.post("/recall", json={"query": present[-1]}).json()
    assert answer["results"][0]["key"] == present[-1]


async def check_file(data_dir: Path, told: Acknowledged) -> None:
    """All that was acknowledged is there, and nothing that was refused."""
    check_integrity(data_dir / DATABASE)
    await Follower(data_dir / DATABASE).check(told, absent=told.never_stored)


async def test_on_a_full_disk_writes_are_refused_reads_go_on_and_space_is_enough(small_disk: Path) -> None:
    data_dir = small_disk / "data"
    with Server(data_dir) as server:
        key = server.key
        with client_of(server, key) as client:
            assert client.post("/store", json={"key": "note_first", "description": "One."}).status_code == 200
            filler = fill(small_disk)
            told = write_until_refused(server, key, "full")
            for refusal in told.refusals:
                assert (refusal["status"], refusal["error"]) == (503, "storage_full"), refusal
                assert refusal["retryable"]
                assert "free some space" in refusal["detail"]
            assert client.post("/recall", json={"query": "note_first"}).json()["results"]
            filler.unlink()
            more = Writers(server.url, key, "again")
            more.wait_for_the_first()
            told.add(more.finish(stop=True))
            check_reading(client, told)
    await check_file(data_dir, told)


async def test_a_server_that_is_killed_on_a_full_disk_starts_and_reads_there(small_disk: Path) -> None:
    data_dir = small_disk / "data"
    with Server(data_dir) as server:
        key = server.key
        writers = Writers(server.url, key, "some")
        writers.wait_for_the_first()
        told = writers.finish(stop=True)
        filler = fill(small_disk)
        told.add(write_until_refused(server, key, "full"))
        server.process.kill()
        server.process.wait(20)
    with Server(data_dir) as server, client_of(server, key) as client:
        check_reading(client, told)
        # Opening the database may have freed a little.
        told.add(write_until_refused(server, key, "late"))
        filler.unlink()
        assert client.post("/store", json={"key": "note_late", "description": "Late."}).status_code == 200
    await check_file(data_dir, told)


def test_a_first_start_on_a_full_disk_says_so(small_disk: Path) -> None:
    data_dir = small_disk / "data"
    data_dir.mkdir()
    fill(small_disk)
    started = run_cli(data_dir, "serve", "--port", "0")
    assert started.returncode == 8
    assert b"Traceback" not in started.stderr
    assert b"space" in started.stderr


async def test_a_limit_on_the_size_of_files_refuses_writes_and_can_be_lifted(tmp_path: Path) -> None:
    with Server(tmp_path) as server, client_of(server, server.key) as client:
        writers = Writers(server.url, server.key, "some")
        writers.wait_for_the_first()
        told = writers.finish(stop=True)
        log = tmp_path / f"{DATABASE}-wal"
        limit = log.stat().st_size + CHARACTERS
        _, hard = resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (limit, hard))
        told.add(write_until_refused(server, server.key, "limited"))
        for refusal in told.refusals:
            assert (refusal["status"], refusal["retryable"]) == (503, True), refusal
            assert "space and quotas" in refusal["detail"]
        check_reading(client, told)
        resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (hard, hard))
        more = Writers(server.url, server.key, "again")
        more.wait_for_the_first()
        told.add(more.finish(stop=True))
        assert server.stop()[0] == 0
    await check_file(tmp_path, told)
