"""`hivemem backup` and `hivemem restore`, as commands, beside servers, writers and damaged files."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest

from hivemem.service.backup import back_up, restore
from hivemem.storage.sqlite import migrate
from hivemem.storage.sqlite.statements import read_sql, split_script
from hivemem.surfaces.cli.main import main
from tests.storage.copying import contents, describe, filled
from tests.surfaces.serving import FAST, REST, Server, bearer, run_cli

REPOSITORY = Path(__file__).resolve().parents[2]
Command = Callable[..., tuple[int, Any]]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A data directory with a database."""
    (tmp_path / "data").mkdir()
    filled(tmp_path / "data" / "hivemem.sqlite3")
    return tmp_path / "data"


@pytest.fixture
def database(data: Path) -> Path:
    return data / "hivemem.sqlite3"


@pytest.fixture
def hivemem(data: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """Run a command with `--json` in this process: (exit code, what it printed)."""
    for name in [name for name in os.environ if name.startswith("HIVEMEM_")]:
        monkeypatch.delenv(name)
    for name, value in FAST.items():
        monkeypatch.setenv(f"HIVEMEM_{name.upper()}", value)

    def run(*arguments: str, data_dir: Path = data) -> tuple[int, Any]:
        code = main([*arguments, "--json", "--data-dir", str(data_dir)])
        captured = capsys.readouterr()
        return code, json.loads(captured.err if code else captured.out)

    return run


def execute(path: Path, *statements: str) -> None:
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement)


def ask(server: Server, route: str, credential: str, /, **body: Any) -> dict[str, Any]:
    answer = httpx2.post(f"{server.url}{REST}/{route}", json=body, headers=bearer(credential), timeout=20)
    assert answer.status_code == 200, answer.text
    return answer.json()


def found(server: Server, key: str, query: str) -> list[str]:
    return [item["key"] for item in ask(server, "recall", key, query=query)["results"]]


def test_a_server_is_backed_up_while_it_runs_and_forgets_later_writes_when_restored(tmp_path: Path) -> None:
    data, file = tmp_path / "data", tmp_path / "one.backup"
    with Server(data) as server:
        key = server.key
        ask(server, "store", key, key="fact_before", description="Zebras graze before noon.")
        done = run_cli(data, "backup", str(file))
        assert done.returncode == 0, done.stderr
        assert done.stdout.decode().startswith(f"backed up {data}/hivemem.sqlite3 to {file}: ")
        for number in range(3):
            ask(
                server,
                "store",
                key,
                key=f"fact_after_{number}",
                description=f"Otters swim after dusk {number}.",
            )
        ask(server, "store", key, key="fact_before", description="Zebras sleep before noon.")
        assert "fact_after_1" in found(server, key, "otters swim after dusk")
        refused = run_cli(data, "restore", str(file), "--force", "--json")
        assert refused.returncode == 6
        assert json.loads(refused.stderr)["error"] == "already_running"
        assert "fact_after_1" in found(server, key, "otters swim after dusk")
    done = run_cli(data, "restore", str(file), "--force", "--json")
    assert done.returncode == 0, done.stderr
    kept = Path(json.loads(done.stdout)["kept_aside"])
    assert "fact_after_1" in {row[1] for row in contents(kept)["nodes"]}
    with Server(data) as server:
        assert found(server, key, "otters swim after dusk") == []
        assert found(server, key, "zebras") == ["fact_before"]
        # The graph goes on from the older revision.
        ask(server, "store", key, key="fact_new", description="Herons wade at dawn.")
        assert found(server, key, "herons wade at dawn") == ["fact_new"]
        nodes = ask(server, "nodes", key, keys=["fact_before", "fact_after_1"])
        assert nodes["nodes"]["fact_before"]["node"]["description"] == "Zebras graze before noon."
        assert "fact_after_1" not in nodes["nodes"]


def test_backups_of_a_database_that_others_write_are_whole(tmp_path: Path) -> None:
    """Each holds all that was acknowledged before it began, and no half of a write."""
    database, file = tmp_path / "memory.db", tmp_path / "backup.db"
    command = [sys.executable, "-m", "tests.storage.writing_process", str(database)]
    with contextlib.ExitStack() as stack:
        writers = [
            stack.enter_context(
                subprocess.Popen(
                    [*command, name, "endless"], cwd=REPOSITORY, stdout=subprocess.PIPE, text=True
                )
            )
            for name in ("n", "o")
        ]
        for process in writers:
            stack.callback(process.kill)
        acknowledged: set[str] = set()
        steps: list[tuple[int, int]] = []
        for _ in range(4):
            for process in writers:
                assert process.stdout is not None
                acknowledged |= {process.stdout.readline().strip() for _ in range(15)}
            steps.clear()
            made = back_up(database, file, overwrite=True, report=lambda *step: steps.append(step))
            rows = contents(file)
            keys = {row[1] for row in rows["nodes"]}
            assert acknowledged <= keys
            assert made.rows == {name: len(some) for name, some in rows.items()}
            # Every write of these processes stores a node, its vector and a line of the diary together.
            assert made.rows["node_vectors"] == made.rows["timeline"] == len(keys - {"shared_counter"})
            assert steps[-1][0] == steps[-1][1] > 0
    assert [path.name for path in tmp_path.iterdir() if "partial" in path.name] == []


def test_a_backup_is_one_checked_file_for_its_owner(hivemem: Command, database: Path, tmp_path: Path) -> None:
    file = tmp_path / "copies" / "a b?.sqlite3"
    assert hivemem("backup", str(file))[0] == 5
    file.parent.mkdir()
    code, answer = hivemem("backup", str(file))
    assert code == 0
    assert [path.name for path in file.parent.iterdir()] == [file.name]
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert contents(file) == contents(database)
    assert answer == {
        "file": str(file),
        "size_bytes": file.stat().st_size,
        "schema_version": migrate.latest_version(),
        "rows": {name: len(rows) for name, rows in contents(database).items()},
        # A record whose bytes nobody has.
        "files": {"archive": None, "count": 0, "size_bytes": 0, "missing": 1},
    }
    # It opens where nothing can be written beside it.
    with contextlib.closing(sqlite3.connect(f"{file.as_uri()}?immutable=1", uri=True)) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("delete",)


def test_an_existing_file_is_replaced_only_by_force(hivemem: Command, tmp_path: Path) -> None:
    file = tmp_path / "backup.db"
    file.write_text("something else")
    code, error = hivemem("backup", str(file))
    assert code == 6
    assert "--force" in error["detail"]
    assert file.read_text() == "something else"
    assert hivemem("backup", str(file), "--force")[0] == 0
    assert len(contents(file)["nodes"]) == 5


def test_the_database_is_no_place_for_its_backup(hivemem: Command, database: Path, tmp_path: Path) -> None:
    link = tmp_path / "link.db"
    link.symlink_to(database)
    for file in (database, link, database.parent):
        code, error = hivemem("backup", str(file), "--force")
        assert (code, error["error"]) == (6, "validation_error")
    for file in (database, link):
        assert hivemem("restore", str(file), "--force")[0] == 6
    assert len(contents(database)["nodes"]) == 5


def test_without_a_database_nothing_is_made(hivemem: Command, tmp_path: Path) -> None:
    assert hivemem("backup", str(tmp_path / "b.db"), data_dir=tmp_path / "nowhere")[0] == 5
    assert not (tmp_path / "nowhere").exists()
    assert not (tmp_path / "b.db").exists()
    assert hivemem("restore", str(tmp_path / "b.db"))[0] == 5


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        (b"This is a diary, not a database.\n" * 200, "no SQLite database"),
        (b"", "empty"),
        (None, "belongs to another program"),
    ],
    ids=["text", "empty", "another program's"],
)
@pytest.mark.parametrize("verb", ["backup", "restore"])
def test_what_is_no_database_of_ours_is_neither_backed_up_nor_restored(
    hivemem: Command, database: Path, tmp_path: Path, damage: bytes | None, told: str, verb: str
) -> None:
    backup = tmp_path / "backup.db"
    bad = database if verb == "backup" else backup
    before = contents(database)
    bad.unlink(missing_ok=True)
    if damage is None:
        execute(bad, "CREATE TABLE nodes (id)")
    else:
        bad.write_bytes(damage)
    code, error = hivemem(verb, str(backup), "--force")
    assert (code, error["error"]) == (8, "corruption")
    assert told in error["detail"]
    if verb == "backup":
        assert not backup.exists()
    else:
        assert contents(database) == before
    assert sorted(path.name for path in database.parent.iterdir() if "hivemem.sqlite3" in path.name) == [
        database.name
    ]


@pytest.mark.parametrize("verb", ["backup", "restore"])
@pytest.mark.parametrize("kind", ["page", "owner"])
def test_damage_inside_is_found_before_anything_is_replaced(
    hivemem: Command, database: Path, tmp_path: Path, verb: str, kind: str
) -> None:
    backup = tmp_path / "backup.db"
    assert hivemem("backup", str(backup))[0] == 0
    bad, good = (database, backup) if verb == "backup" else (backup, database)
    if kind == "owner":
        execute(bad, "PRAGMA foreign_keys = OFF", "DELETE FROM nodes WHERE key = 'n_00001'")
    else:
        content = bytearray(bad.read_bytes())
        # The end of the last used pages; their counts stay readable.
        content[-4096 * 3 : -4096 * 2] = b"\x5a" * 4096
        bad.write_bytes(content)
    before = contents(good)
    code, error = hivemem(verb, str(backup), "--force")
    assert (code, error["error"]) == (8, "corruption"), error
    assert contents(good) == before
    assert [
        path.name for path in (*tmp_path.iterdir(), *database.parent.iterdir()) if "partial" in path.name
    ] == []


def test_an_interrupted_backup_leaves_the_old_one(database: Path, tmp_path: Path) -> None:
    file = tmp_path / "backup.db"
    back_up(database, file, overwrite=False, report=lambda *_: None)
    before = file.read_bytes()

    def interrupt(done: int, total: int) -> None:
        raise KeyboardInterrupt

    for restored in (False, True):
        with pytest.raises(KeyboardInterrupt):
            if restored:
                restore(file, database, overwrite=True, report=interrupt)
            else:
                back_up(database, file, overwrite=True, report=interrupt)
    assert file.read_bytes() == before
    assert len(contents(database)["nodes"]) == 5
    names = {path.name for path in (*tmp_path.iterdir(), *database.parent.iterdir())}
    assert names == {"backup.db", "data", "hivemem.sqlite3"}


async def test_restoring_replaces_only_by_force_and_keeps_the_old_one(tmp_path: Path) -> None:
    data, backup = tmp_path / "data", tmp_path / "backup.db"
    data.mkdir()
    database = data / "hivemem.sqlite3"
    await describe(database, "fact_old", "Old.")
    back_up(database, backup, overwrite=False, report=lambda *_: None)
    await describe(database, "fact_newer", "Newer.")
    held = contents(database)
    refused = run_cli(data, "restore", str(backup))
    assert refused.returncode == 6
    assert "--force" in refused.stderr.decode()
    assert contents(database) == held
    names: list[str] = []
    for _ in range(3):
        done = run_cli(data, "restore", str(backup), "--force", "--json")
        assert done.returncode == 0, done.stderr
        names.append(json.loads(done.stdout)["kept_aside"])
        assert [row[1] for row in contents(database)["nodes"]] == ["fact_old"]
    assert contents(Path(names[0])) == held
    assert len(set(names)) == 3
    assert stat.S_IMODE(database.stat().st_mode) == 0o600


def test_a_new_directory_gets_the_backup(hivemem: Command, database: Path, tmp_path: Path) -> None:
    backup, elsewhere = tmp_path / "backup.db", tmp_path / "else" / "where"
    hivemem("backup", str(backup))
    code, answer = hivemem("restore", str(backup), data_dir=elsewhere)
    assert code == 0
    assert answer["kept_aside"] is None
    assert contents(elsewhere / "hivemem.sqlite3") == contents(database)
    assert stat.S_IMODE(elsewhere.stat().st_mode) == 0o700
    assert hivemem("overview", data_dir=elsewhere)[0] == 0


def test_another_process_that_has_the_database_open_is_noticed(
    hivemem: Command, database: Path, tmp_path: Path
) -> None:
    """Such as `hivemem mcp`, which takes no lock: it would go on with the file that was moved away."""
    backup = tmp_path / "backup.db"
    hivemem("backup", str(backup))
    with contextlib.closing(sqlite3.connect(database)) as other:
        other.execute("SELECT * FROM users").fetchall()
        code, error = hivemem("restore", str(backup), "--force")
        assert (code, error["error"]) == (6, "conflict")
        assert "open in another process" in error["detail"]
    assert hivemem("restore", str(backup), "--force")[0] == 0


def test_what_lies_beside_a_lost_database_does_not_get_into_the_restored_one(
    hivemem: Command, database: Path, tmp_path: Path
) -> None:
    """SQLite plays a -wal file into whatever database has its name."""
    backup = tmp_path / "backup.db"
    hivemem("backup", str(backup))
    with contextlib.closing(sqlite3.connect(database, isolation_level=None)) as connection:
        connection.execute("UPDATE nodes SET description = 'Left behind.'")
        log = shutil.copy(f"{database}-wal", tmp_path / "log")
    database.unlink()
    shutil.move(log, f"{database}-wal")
    assert hivemem("restore", str(backup))[0] == 6
    code, answer = hivemem("restore", str(backup), "--force")
    assert code == 0
    assert contents(database) == contents(backup)
    assert Path(f"{answer['kept_aside']}-wal").is_file()


def test_a_damaged_database_can_be_replaced(hivemem: Command, database: Path, tmp_path: Path) -> None:
    backup = tmp_path / "backup.db"
    hivemem("backup", str(backup))
    database.write_bytes(b"not a database any more" * 1000)
    code, answer = hivemem("restore", str(backup), "--force")
    assert code == 0
    assert Path(answer["kept_aside"]).read_bytes().startswith(b"not a database")
    assert contents(database) == contents(backup)


def test_a_backup_of_an_older_schema_is_migrated_and_itself_left_alone(
    hivemem: Command, tmp_path: Path
) -> None:
    backup, elsewhere = tmp_path / "old.db", tmp_path / "elsewhere"
    script = list(split_script(read_sql("migrations/0001_initial.sql")))
    execute(
        backup,
        *script,
        f"PRAGMA application_id = {migrate.APPLICATION_ID}",
        "PRAGMA user_version = 1",
        "INSERT INTO users VALUES ('u', 'Name', 5)",
    )
    before = backup.read_bytes()
    code, answer = hivemem("restore", str(backup), data_dir=elsewhere)
    assert code == 0
    assert answer["schema_version"] == 1
    assert backup.read_bytes() == before
    with contextlib.closing(sqlite3.connect(elsewhere / "hivemem.sqlite3")) as connection:
        assert migrate.schema_version(connection) == migrate.latest_version()
        assert connection.execute("SELECT name FROM users").fetchall() == [("Name",)]
    # Also before an upgrade, a database of an older schema can be backed up as it is.
    shutil.copy(backup, elsewhere / "hivemem.sqlite3")
    code, answer = hivemem("backup", str(tmp_path / "again.db"), data_dir=elsewhere)
    assert (code, answer["schema_version"], answer["rows"]["users"]) == (0, 1, 1)


def test_a_backup_of_a_newer_schema_is_refused(hivemem: Command, database: Path, tmp_path: Path) -> None:
    backup = tmp_path / "new.db"
    hivemem("backup", str(backup))
    execute(backup, "PRAGMA user_version = 99")
    code, error = hivemem("restore", str(backup), "--force")
    assert (code, error["error"]) == (8, "schema_too_new")
    assert len(contents(database)["nodes"]) == 5


def test_a_disk_that_refuses_is_told_by_name(hivemem: Command, database: Path, tmp_path: Path) -> None:
    code, error = hivemem("backup", "/proc/backup.db")
    assert (code, error["error"]) == (8, "unavailable")
    assert "/proc/" in error["detail"]
    file = tmp_path / ("x" * 300)
    assert hivemem("backup", str(file))[0] == 8
