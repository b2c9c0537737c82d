"""`hivemem restore`: a key brings back a memory, a path a whole backup, and nothing is guessed in silence."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hivemem.surfaces.cli.main import main
from hivemem.surfaces.cli.restore import kind_of
from tests.surfaces.serving import FAST


class Commands:
    """Runs commands in this process on one data directory."""

    def __init__(self, data_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self._data_dir = data_dir
        self._capsys = capsys

    def __call__(self, *arguments: str) -> tuple[int, Any]:
        """(exit code, the JSON that it printed)."""
        code = main([*arguments, "--json", "--data-dir", str(self._data_dir)])
        captured = self._capsys.readouterr()
        return code, json.loads(captured.err if code else captured.out)

    def text(self, *arguments: str) -> str:
        assert main([*arguments, "--data-dir", str(self._data_dir)]) == 0
        return self._capsys.readouterr().out

    def described(self, key: str) -> str:
        return self("nodes", key)[1]["nodes"][key]["node"]["description"]


@pytest.fixture
def hivemem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Commands:
    for name, value in FAST.items():
        monkeypatch.setenv(f"HIVEMEM_{name.upper()}", value)
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    commands = Commands(tmp_path / "data", capsys)
    for text in ("First.", "Second.", "Third."):
        assert commands("store", "fact_a", text, "--relate", "fact_b", "is near")[0] == 0
    return commands


@pytest.mark.parametrize(
    ("target", "kind"),
    [
        ("decision_jwt_auth", "key"),
        ("team/alpha notes", "key"),
        ("loc:attic", "key"),
        ("k" * 5_000, "key"),
        ("/backups/monday", "file"),
        ("./monday", "file"),
        ("../monday", "file"),
        ("~/monday", "file"),
        ("monday.sqlite3", "file"),
        ("folder/monday.DB", "file"),
        ("monday.backup", "file"),
    ],
)
def test_what_a_target_is_taken_for(target: str, kind: str) -> None:
    assert kind_of(target) == kind


def test_a_key_restores_the_state_before_or_the_version_asked_for(hivemem: Commands) -> None:
    code, answer = hivemem("restore", "fact_a")
    assert (code, answer["restored_version"], answer["write_version"]) == (0, 2, 4)
    assert hivemem.described("fact_a") == "Second."
    assert hivemem("restore", "fact_a", "--version", "1")[1]["write_version"] == 5
    assert hivemem.described("fact_a") == "First."
    code, error = hivemem("restore", "fact_a", "--version", "9")
    assert (code, error["error"]) == (5, "not_found")
    assert "it has 5, 4, 3, 2, 1" in error["detail"]


def test_a_forgotten_node_comes_back_and_a_person_is_told(hivemem: Commands) -> None:
    assert hivemem("forget", "--key", "fact_a")[0] == 0
    told = hivemem.text("restore", "fact_a")
    assert told.startswith("restored fact_a to version 3; it is now version 1, with 1 relationships\n")
    assert "Third." in told


def test_a_path_restores_the_backup(hivemem: Commands, tmp_path: Path) -> None:
    backup = tmp_path / "monday"
    assert hivemem("backup", str(backup))[0] == 0
    assert hivemem("update", "--key", "fact_a", "--description", "Fourth.")[0] == 0
    code, error = hivemem("restore", str(backup))
    assert (code, error["error"]) == (6, "conflict")
    code, answer = hivemem("restore", str(backup), "--force")
    assert (code, Path(answer["database"]).name) == (0, "hivemem.sqlite3")
    assert hivemem.described("fact_a") == "Third."


def test_a_file_of_the_same_name_wins_unless_a_key_is_meant(hivemem: Commands) -> None:
    assert hivemem("backup", "fact_a")[0] == 0
    code, answer = hivemem("restore", "fact_a", "--force")
    assert (code, "database" in answer) == (0, True)
    code, answer = hivemem("restore", "fact_a", "--as", "key")
    assert (code, answer["restored_version"]) == (0, 2)


def test_what_is_neither_is_told_as_both(hivemem: Commands) -> None:
    code, error = hivemem("restore", "fact_none")
    assert (code, error["error"]) == (5, "not_found")
    assert "never was a node 'fact_none'" in error["detail"]
    assert "there is no file 'fact_none' here" in error["detail"]
    code, error = hivemem("restore", "monday.sqlite3")
    assert (code, error["error"]) == (5, "not_found")
    assert "there is no backup" in error["detail"]


def test_options_of_the_other_kind_are_usage_errors(hivemem: Commands) -> None:
    code, error = hivemem("restore", "monday.sqlite3", "--version", "2")
    assert code == 2
    assert "--as key" in error["detail"]
    code, error = hivemem("restore", "fact_a", "--force")
    assert code == 2
    assert "--as file" in error["detail"]
    assert hivemem.described("fact_a") == "Third."


def test_help_tells_both_promises(hivemem: Commands, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["restore", "--help"])
    told = " ".join(capsys.readouterr().out.split())
    assert "KEY [--version N]" in told
    assert "FILE [--force]" in told
    assert "made by `hivemem backup`" in told
