"""`hivemem doctor`: every check, what it says, and the exit code."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hivemem.surfaces.cli import doctor
from hivemem.surfaces.cli.main import main
from tests.surfaces.serving import Server, run_cli


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with Server(tmp_path_factory.mktemp("examined")) as running:
        yield running


def examine(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, dict[str, dict[str, Any]]]:
    """(exit code, check by name)."""
    code = main(["doctor", "--json", *arguments])
    body = json.loads(capsys.readouterr().out)
    assert body["ok"] is (code == 0)
    for check in body["checks"]:
        assert check["detail"]
        assert check["state"] in ("ok", "skipped") or check["next"]
    return code, {check["name"]: check for check in body["checks"]}


def test_all_is_well(
    home: Path, server: Server, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HM_API_KEY", server.key)
    assert main(["setup", "claude", "--data-dir", str(server.data_dir)]) == 0
    assert server.url in (home / ".claude.json").read_text()
    capsys.readouterr()
    code, checks = examine(capsys, "--data-dir", str(server.data_dir))
    assert code == 0
    looked_at = (
        "database",
        "server",
        "version",
        "key",
        "runtime",
        "graph_writes",
        "embedder",
        "reranker",
        "agent",
    )
    # How full the disk of the test machine is, is not the test's business.
    assert {name: check["state"] for name, check in checks.items() if name != "disk"} == dict.fromkeys(
        looked_at, "ok"
    )
    assert checks["key"]["detail"] == "valid: read and write"
    assert main(["doctor", "--data-dir", str(server.data_dir)]) == 0
    text = capsys.readouterr().out
    assert "FAILED" not in text
    assert len(text.splitlines()) == len(checks)


def test_a_key_that_only_reads_and_one_that_is_wrong(
    home: Path, server: Server, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = ("--data-dir", str(server.data_dir))
    made = run_cli(server.data_dir, "key", "create", "--read-only", "--json")
    monkeypatch.setenv("HM_API_KEY", json.loads(made.stdout)["key"])
    code, checks = examine(capsys, *folder)
    assert (code, checks["key"]["detail"]) == (0, "valid: read only")
    monkeypatch.setenv("HM_API_KEY", "hm_" + "0" * 64)
    code, checks = examine(capsys, *folder)
    assert (code, checks["key"]["state"]) == (1, "failed")
    assert "401" in checks["key"]["detail"]
    assert checks["embedder"]["state"] == "ok"
    monkeypatch.delenv("HM_API_KEY")
    code, checks = examine(capsys, *folder)
    assert (code, checks["key"]["state"]) == (0, "warning")


def test_a_named_server_is_asked_instead_of_this_machine(
    home: Path, server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    code, checks = examine(capsys, "--url", server.url, "--data-dir", str(home / "none"))
    assert code == 0
    assert "database" not in checks
    assert checks["models"]["state"] == "skipped"
    code, checks = examine(capsys, "--url", "http://127.0.0.1:9")
    assert (code, checks["server"]["state"]) == (1, "failed")
    code, checks = examine(capsys, "--url", f"{server.url}/elsewhere")
    assert (code, checks["server"]["state"]) == (1, "failed")
    assert "404" in checks["server"]["detail"]


def test_without_anything(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, checks = examine(capsys)
    assert code == 1
    assert {name: check["state"] for name, check in checks.items() if name != "disk"} == {
        "database": "skipped",
        "server": "failed",
        "agents": "skipped",
    }
    assert "hivemem serve" in checks["server"]["next"]
    assert list(home.iterdir()) == []
    assert main(["doctor", "--set", "prot=1"]) == 2
    _, checks = examine(capsys, "--database-url", "postgresql://user:secret@nowhere/db")
    assert checks["database"]["state"] == "skipped"
    assert "secret" not in str(checks)


def test_a_database_that_cannot_be_written(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor, "_WRITE_SECONDS", 0.05)
    file = tmp_path / "hivemem.sqlite3"
    file.write_bytes(b"this is not a database, whatever its name says" * 20)
    _, checks = examine(capsys, "--data-dir", str(tmp_path))
    assert checks["database"]["state"] == "failed"
    file.unlink()
    holder = sqlite3.connect(file, isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    _, checks = examine(capsys, "--data-dir", str(tmp_path))
    assert "locked" in checks["database"]["detail"]
    holder.close()
    _, checks = examine(capsys, "--data-dir", str(tmp_path))
    assert checks["database"]["state"] == "ok"


@pytest.mark.parametrize(
    ("statement", "told"),
    [("CREATE TABLE theirs (a)", "another program"), ("PRAGMA user_version = 9999", "upgrade hivemem")],
)
def test_a_database_that_this_program_cannot_open(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], statement: str, told: str
) -> None:
    if statement.startswith("PRAGMA"):
        assert run_cli(tmp_path, "overview").returncode == 0
    with contextlib.closing(sqlite3.connect(tmp_path / "hivemem.sqlite3", isolation_level=None)) as database:
        database.execute(statement)
    code, checks = examine(capsys, "--data-dir", str(tmp_path))
    assert (code, checks["database"]["state"]) == (1, "failed")
    assert told in checks["database"]["detail"]


def test_a_folder_that_cannot_be_written(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Root may write whatever the rights say.
    monkeypatch.setattr(doctor.os, "access", lambda path, mode: Path(path) != tmp_path)
    _, checks = examine(capsys, "--data-dir", str(tmp_path))
    assert checks["database"]["state"] == "failed"
    assert str(tmp_path) in checks["database"]["detail"]


@pytest.mark.parametrize(("free", "state"), [(10**10, "ok"), (5 * 10**8, "warning"), (10**7, "failed")])
def test_a_disk_that_fills_up(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, free: int, state: str
) -> None:
    monkeypatch.setattr(doctor.shutil, "disk_usage", lambda _: SimpleNamespace(free=free))
    _, checks = examine(capsys)
    assert checks["disk"]["state"] == state


def test_agents_whose_files_are_not_as_setup_wrote_them(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["setup", "kimi"]) == 0
    assert main(["setup", "codex"]) == 0
    config = home / ".kimi-code/config.toml"
    written = config.read_text()
    config.write_text(written.replace("hook stop", "hook stop --loud"))
    (home / ".kimi-code/mcp.json").unlink()
    capsys.readouterr()
    assert main(["doctor"]) == 1
    text = capsys.readouterr().out
    assert "kimi (user): MCP entry is missing" in text
    assert "stop hook is missing" in text
    assert "next: run `hivemem setup kimi --scope user` again." in text
    assert "codex (user): all as setup wrote it" in text
    config.write_text("[[hooks")
    assert main(["doctor"]) == 1
    assert str(config) in capsys.readouterr().out
    config.write_text(written)
    assert main(["setup", "kimi"]) == 0
    monkeypatch.setattr("hivemem.surfaces.setup.agents.skill_text", lambda: "a newer skill")
    capsys.readouterr()
    assert main(["doctor"]) == 1
    assert "written by another version" in capsys.readouterr().out
    (home / ".config/hivemem/setup.json").write_text("{")
    assert main(["doctor"]) == 1
    assert "not a journal" in capsys.readouterr().out
