"""Backups of a memory in PostgreSQL, made with the commands of the page, and `hivemem` saying which."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import psycopg
import pytest

from hivemem.service.copying import CopyResult, copy_database
from hivemem.service.database_urls import database_url, open_source, open_target
from tests.docs.pages import REPOSITORY, shell_lines
from tests.storage.copying import contents, filled
from tests.support.postgres import programs_folder, server_url
from tests.surfaces.serving import run_cli

PAGE = REPOSITORY / "docs" / "operating" / "backup.md"


def named(database: str) -> str:
    return urlunsplit(urlsplit(server_url())._replace(path=f"/{database}"))


@pytest.fixture
def url() -> Iterator[str]:
    """A database of its own, since a dump is of a whole database."""
    names = (f"memory_{os.getpid()}", "hivemem_restored")
    with psycopg.connect(server_url(), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {names[0]}".encode())
        yield named(names[0])
        for name in names:
            connection.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)".encode())


def copied(source: str | Path, target: str | Path) -> CopyResult:
    with (
        contextlib.closing(open_source(database_url(str(source)))) as reading,
        contextlib.closing(open_target(database_url(str(target)))) as writing,
    ):
        return copy_database(reading, writing, report=lambda *_: None)


def test_the_commands_of_the_page_save_and_restore_everything(url: str, tmp_path: Path) -> None:
    commands = [line for line in shell_lines(PAGE) if not line.startswith("hivemem ")]
    assert [line.split()[0] for line in commands] == ["pg_dump", "createdb", "pg_restore"]
    source = filled(tmp_path / "source.db")
    assert copied(source, url).equal
    environment = {
        "PATH": f"{programs_folder()}:{os.environ['PATH']}",
        "HIVEMEM_DATABASE_URL": url,
        "RESTORED_DATABASE_URL": named("hivemem_restored"),
    }
    for command in commands:
        subprocess.run(command, shell=True, check=True, cwd=tmp_path, env=environment, timeout=60)
        with psycopg.connect(url, autocommit=True) as connection:
            # Later writes are in neither the dump nor what is made of it.
            connection.execute("UPDATE nodes SET description = 'Later.'")
    assert copied(named("hivemem_restored"), tmp_path / "restored.db").equal
    assert contents(tmp_path / "restored.db") == contents(source)


@pytest.mark.parametrize(("verb", "tool"), [("backup", "pg_dump"), ("restore", "pg_restore")])
def test_the_command_names_the_tool_and_no_password(verb: str, tool: str, tmp_path: Path) -> None:
    done = run_cli(
        tmp_path / "data", verb, "./FILE", "--json", HIVEMEM_DATABASE_URL="postgresql://me:s3cret@host/name"
    )
    assert done.returncode == 6
    told = json.loads(done.stderr)["detail"]
    options = next(line for line in shell_lines(PAGE) if line.startswith(tool)).split()
    assert {word.partition("=")[0] for word in options if word.startswith("-")} <= {
        word.partition("=")[0].strip("`.") for word in told.split()
    }
    assert "docs/operating/backup.md" in told
    assert "s3cret" not in done.stderr.decode()
    assert not (tmp_path / "data").exists()
