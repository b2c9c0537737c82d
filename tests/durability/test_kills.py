"""SIGKILL in the middle of writing, again and again on one data directory."""

from __future__ import annotations

import random
import signal
import subprocess
import time
from pathlib import Path

import httpx2
import pytest

from hivemem.server_lock import read_holder
from tests.durability.following import Follower, check_integrity
from tests.durability.load import HUB, Acknowledged, Writers
from tests.surfaces.serving import REST, Server, bearer, command, environment

DATABASE = "hivemem.sqlite3"


def kill(server: Server) -> None:
    server.process.send_signal(signal.SIGKILL)
    server.process.wait(20)


def kill_while_it_starts(data_dir: Path, after_seconds: float) -> None:
    arguments = command("serve", "--port", "0", "--json", "--data-dir", str(data_dir))
    with subprocess.Popen(
        arguments, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as starting:
        time.sleep(after_seconds)
        starting.kill()


@pytest.mark.parametrize(
    "rounds", [10, pytest.param(100, marks=[pytest.mark.soak, pytest.mark.timeout(1800)])]
)
async def test_a_killed_server_loses_nothing_that_it_acknowledged(tmp_path: Path, rounds: int) -> None:
    database = tmp_path / DATABASE
    moments = random.Random(rounds)
    follower = Follower(database)
    everything = Acknowledged()
    key = ""
    for number in range(rounds):
        killed = read_holder(tmp_path)
        with Server(tmp_path) as server:
            # The lock file of the killed server stands in nobody's way, and its first key is still good.
            holder = read_holder(tmp_path)
            assert holder is not None
            assert holder.pid == server.process.pid
            assert killed is None or killed.pid != holder.pid
            key = key or server.key
            check_answers(server, key, everything)
            writers = Writers(server.url, key, f"r{number}")
            writers.wait_for_the_first()
            time.sleep(moments.uniform(0.0, 0.4))
            kill(server)
            told = writers.finish()
        assert told.refusals == []
        everything.add(told)
        if number % 3 == 2:
            kill_while_it_starts(tmp_path, moments.uniform(0.2, 1.0))
        # Whoever opens the file first recovers it: SQLite alone, hivemem, or (below) the next server.
        if number % 3 == 0:
            check_integrity(database)
        if number % 3 != 1 or number == rounds - 1:
            await follower.check(everything)
            check_integrity(database)
    assert everything.writes > 5 * rounds


def check_answers(server: Server, key: str, everything: Acknowledged) -> None:
    """The server, whose index is built from zero, has and finds what was acknowledged."""
    with httpx2.Client(base_url=f"{server.url}{REST}", headers=bearer(key), timeout=20) as client:
        overview = client.get("/overview").json()
        present = [name for name, told in everything.nodes.items() if told.description is not None]
        surely = [name for name in present if name not in everything.unanswered]
        assert overview["nodes"] >= len(surely)
        assert not everything.nodes or overview["top_nodes"][0]["key"] == HUB
        for name in surely[-3:]:
            answer = client.post("/recall", json={"query": name}).json()
            assert [hit["key"] for hit in answer["results"]][:1] == [name]
