"""The real command on a real database: servers side by side, and the verbs that open it themselves."""

from __future__ import annotations

import json
import signal
import sys
from pathlib import Path
from typing import Any

import httpx2
import pytest

from hivemem.app import open_store
from hivemem.errors import InvalidInput
from hivemem.settings import load_settings
from hivemem.surfaces.cli.database import OUTDATED
from tests.storage.postgres.test_failures import end_connections
from tests.surfaces.serving import REST, Server, bearer, run_cli

VARIABLE = "HIVEMEM_DATABASE_URL"


def post(server: Server, key: str, route: str, body: dict[str, Any]) -> dict[str, Any]:
    answer = httpx2.post(f"{server.url}{REST}/{route}", json=body, headers=bearer(key), timeout=30)
    assert answer.status_code == 200, answer.text
    return answer.json()


def told(folder: Path, *arguments: str, **extra: str) -> Any:
    done = run_cli(folder, *arguments, "--json", **extra)
    assert done.returncode == 0, done.stderr.decode()
    return json.loads(done.stdout)


def keys(answer: dict[str, Any]) -> list[str]:
    return [hit["key"] for hit in answer["results"]]


def test_two_servers_and_the_command_line_on_one_memory(url: str, tmp_path: Path) -> None:
    one_folder, other_folder = tmp_path / "one", tmp_path / "other"
    harbour = {"key": "place_harbour", "description": "The harbour office opens at seven."}
    motors = {"key": "person_ola", "description": "Ola repairs outboard motors."}
    with Server(one_folder, "--database-url", url) as one, Server(other_folder, **{VARIABLE: url}) as other:
        key = one.key
        assert key and not other.key, "one owner, whose key is shown once"
        assert post(one, key, "store", harbour)["status"] == "created"
        assert keys(post(other, key, "recall", {"query": "When does the harbour office open?"})) == [
            "place_harbour"
        ]
        post(other, key, "store", motors)
        end_connections(url)
        assert keys(post(one, key, "recall", {"query": "Who repairs outboard motors?"})) == ["person_ola"]
        assert told(tmp_path / "third", "overview", "--database-url", url)["nodes"] == 2
        code, _ = one.stop(signal.SIGTERM)
        assert code == 0
        assert keys(post(other, key, "recall", {"query": "harbour office"})) == ["place_harbour"]
    assert not list(one_folder.glob("*sqlite*"))


def test_the_verbs_that_open_the_memory(url: str, tmp_path: Path) -> None:
    place = {VARIABLE: url}
    (tmp_path / "nodes.jsonl").write_text('{"key": "fact_tide", "description": "High tide is at noon."}\n')
    told(tmp_path, "import", str(tmp_path / "nodes.jsonl"), **place)
    assert keys(told(tmp_path, "recall", "high tide", **place)) == ["fact_tide"]
    assert told(tmp_path, "reembed", **place) == {"embedded": 0}
    created = told(tmp_path, "key", "create", "--name", "laptop", **place)
    assert created["key_id"] in [one["key_id"] for one in told(tmp_path, "key", "list", **place)["keys"]]
    assert told(tmp_path, "config", "show", **place)["database_url"]["value"] == "***"
    assert told(tmp_path, "overview")["nodes"] < told(tmp_path, "overview", **place)["nodes"]


def test_db_migrate_says_what_it_finds_and_does(url: str, tmp_path: Path) -> None:
    for place in ({VARIABLE: url}, {}):
        folder = tmp_path / ("sqlite" if not place else "postgres")
        before = run_cli(folder, "db", "migrate", "--check", "--json", **place)
        assert before.returncode == OUTDATED
        found = json.loads(before.stdout)
        assert (found["version"], found["pending"][0]) == (0, "0001_initial")
        assert json.loads(run_cli(folder, "db", "migrate", "--check", "--json", **place).stdout) == found
        done = told(folder, "db", "migrate", **place)
        assert done["applied"] == found["pending"]
        assert done["version"] == done["latest_version"] == len(done["applied"])
        assert told(folder, "db", "migrate", "--check", **place)["pending"] == []
        assert told(folder, "db", "migrate", **place)["applied"] == []
        assert b"up to date" in run_cli(folder, "db", "migrate", **place).stdout


def test_manual_migrations_are_waited_for(url: str, tmp_path: Path) -> None:
    place = {VARIABLE: url, "HIVEMEM_DATABASE_MIGRATIONS": "manual"}
    refused = run_cli(tmp_path, "overview", **place)
    assert refused.returncode == 6
    assert b"hivemem db migrate" in refused.stderr
    told(tmp_path, "db", "migrate", **place)
    assert told(tmp_path, "overview", **place)["nodes"] == 0


def test_a_wrong_url_is_an_error_without_its_password(tmp_path: Path) -> None:
    for url in ("postgresql://me:tr0ub4dor@127.0.0.1:1/memory", "sqlite:///tr0ub4dor", "tr0ub4dor"):
        done = run_cli(tmp_path, "overview", **{VARIABLE: url})
        assert done.returncode in (6, 8)
        assert done.stderr.startswith(b"error: the database")
        assert b"tr0ub4dor" not in done.stdout + done.stderr


async def test_without_the_driver_the_error_names_the_command(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.startswith("hivemem.storage.postgres")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "psycopg", None)
    settings = load_settings({"data_dir": str(tmp_path), "database_url": url}, {}).settings
    with pytest.raises(InvalidInput, match=r"pip install 'hivemem\[postgres\]'"):
        await open_store(settings)
