"""`hivemem db copy` as a command: what it prints, refuses and returns."""

from __future__ import annotations

import contextlib
import json
import signal
import sqlite3
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from hivemem.storage.tables import TABLES
from tests.storage.copying import contents, copied, filled
from tests.support.postgres import fresh_database
from tests.surfaces.serving import command, environment, run_cli


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return filled(tmp_path / "source.db")


def copy(tmp_path: Path, source: object, target: object, *options: str) -> tuple[int, Any, str]:
    """(exit code, answer, standard error) of a copy with `--json`."""
    done = run_cli(tmp_path, "db", "copy", "--from", str(source), "--to", str(target), "--json", *options)
    return done.returncode, json.loads(done.stdout) if done.stdout else None, done.stderr.decode()


class Interrupted(Exception):
    pass


def interrupt(doing: str, done: int, total: int) -> None:
    if done > 12:
        raise Interrupted


def test_there_and_back_again(tmp_path: Path, source: Path) -> None:
    postgres, back = fresh_database(), tmp_path / "back.db"
    code, there, _ = copy(tmp_path, f"sqlite://{source}", postgres)
    assert code == 0
    assert copy(tmp_path, postgres, f"sqlite://{back}")[0] == 0
    assert contents(back) == contents(source)
    assert there["equal"] is True
    assert there["from"] == str(source)
    assert there["to"].startswith("PostgreSQL postgres at ")
    assert [table["table"] for table in there["tables"]] == [table.name for table in TABLES]
    for table in there["tables"]:
        assert table["source"] == table["target"]
        assert table["source"]["rows"] == len(contents(source)[table["table"]])
        assert len(table["source"]["sha256"]) == 64


def test_a_database_is_not_copied_onto_itself(tmp_path: Path, source: Path) -> None:
    before = contents(source)
    (tmp_path / "link.db").symlink_to(source)
    for target in (source, tmp_path / "link.db"):
        code, _, err = copy(tmp_path, source, target)
        assert code == 6 and "--from and --to are both" in json.loads(err)["detail"]
    assert contents(source) == before


def test_people_get_a_table(tmp_path: Path, source: Path) -> None:
    done = run_cli(
        tmp_path, "db", "copy", "--from", str(source), "--to", str(tmp_path / "copy.db"), "--progress"
    )
    assert done.returncode == 0
    lines = done.stdout.decode().splitlines()
    assert lines[0].split() == ["TABLE", "ROWS", "SHA-256"]
    assert [line.split()[0] for line in lines[1:-2]] == [table.name for table in TABLES]
    assert {line.split()[-1] for line in lines[1:-2]} == {"equal"}
    # A record without bytes, which is said and copied all the same.
    assert lines[-2] == "uploaded files: 0 of 1 whole, 0 copied now"
    assert b"warning: the bytes of 1 uploaded files are absent" in done.stderr
    rows = sum(map(len, contents(source).values()))
    assert f"copy.db: {rows} rows copied in " in lines[-1]
    assert b"copying: 100%" in done.stderr
    assert b"comparing: 100%" in done.stderr


def test_an_interrupted_copy_is_finished_by_the_same_command(tmp_path: Path, source: Path) -> None:
    target = tmp_path / "copy.db"
    with pytest.raises(Interrupted):
        copied(source, target, report=interrupt, max_page_rows=1)
    done = run_cli(tmp_path, "db", "copy", "--from", str(source), "--to", str(target))
    assert done.returncode == 0
    assert "rows copied (13 before) in" in done.stdout.decode()
    assert contents(target) == contents(source)


def test_ctrl_c_ends_quietly_and_leaves_a_copy_to_go_on_with(tmp_path: Path) -> None:
    source, target = filled(tmp_path / "source.db", nodes=8_000), tmp_path / "copy.db"
    words = command("db", "copy", "--from", str(source), "--to", str(target), "--data-dir", str(tmp_path))
    with subprocess.Popen(words, env=environment(), stderr=subprocess.PIPE) as process:
        unfinished = tmp_path / "copy.db.copying-wal"
        deadline = time.monotonic() + 30
        while not (unfinished.exists() and unfinished.stat().st_size > 500_000):
            assert time.monotonic() < deadline, "nothing is copied"
            time.sleep(0.002)
        process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=30)
    # If it was quicker than the signal, there is nothing to go on with.
    assert process.returncode in (0, 130)
    assert b"Traceback" not in told
    if process.returncode:
        code, answer, _ = copy(tmp_path, source, target)
        assert (code, answer["equal"]) == (0, True)
    assert contents(target) == contents(source)


def test_what_differs_is_printed_and_an_error(tmp_path: Path, source: Path) -> None:
    target = tmp_path / "copy.db"
    with pytest.raises(Interrupted):
        copied(source, target, report=interrupt, max_page_rows=1)
    with contextlib.closing(sqlite3.connect(source, isolation_level=None)) as connection:
        connection.execute("UPDATE users SET created_at = 5")
    code, answer, told = copy(tmp_path, source, target)
    assert code == 6
    assert json.loads(told)["error"] == "copies_differ"
    assert [table["table"] for table in answer["tables"] if not table["equal"]] == ["users"]
    done = run_cli(tmp_path, "db", "copy", "--from", str(source), "--to", str(target))
    assert done.returncode == 6
    users = done.stdout.decode().splitlines()[1:3]
    assert [line.split()[-1] for line in users] == ["source", "target"]
    assert "users differ" in done.stderr.decode()
    assert not target.exists()
    assert copy(tmp_path, source, target, "--restart")[0] == 0


def test_refusals_have_their_exit_codes_and_no_password(tmp_path: Path, source: Path) -> None:
    full = filled(tmp_path / "full.db", nodes=3)
    secret = "postgresql://me:s3cret@127.0.0.1:1/name"
    cases = [
        ((source, full), 6, "target_not_empty"),
        ((tmp_path / "nothing.db", full), 5, "not_found"),
        ((source, "mysql://me:s3cret@host/name"), 6, "validation_error"),
        ((source, secret), 8, "unavailable"),
        ((secret, tmp_path / "copy.db"), 8, "unavailable"),
    ]
    for (begin, end), expected, error in cases:
        code, _, told = copy(tmp_path, begin, end)
        assert (code, json.loads(told)["error"]) == (expected, error)
        assert "s3cret" not in told
    assert not (tmp_path / "copy.db").exists()
