"""Bytes of uploaded files go along: with backups, back again, and to other databases."""

from __future__ import annotations

import asyncio
import base64
import json
import tarfile
from pathlib import Path
from typing import Any

from hivemem.app import files_of_graph, open_store
from hivemem.ports.files import read_whole
from hivemem.service.file_bytes import CarriedFiles, carry_files
from hivemem.settings import load_settings
from hivemem.storage.files_memory import MemoryFiles
from tests.support.postgres import fresh_database
from tests.surfaces.serving import run_cli, served

TEXTS = {f"note_{number}.txt": f"Line of the note number {number}.\n".encode() * 50 for number in range(5)}
URL = "HIVEMEM_DATABASE_URL"


async def uploaded(folder: Path, **settings: Any) -> None:
    """Put the files into a memory."""
    folder.mkdir()
    async with served(folder, **settings) as api:
        for name, content in TEXTS.items():
            body = {"filename": name, "content_base64": base64.b64encode(content).decode()}
            answer = await api.client.post(
                "/mcp",
                json={
                    "jsonrpc": "2.0",
                    "id": 1,
                    "method": "tools/call",
                    "params": {"name": "hm_upload_file", "arguments": body},
                },
            )
            assert answer.json()["result"]["isError"] is False, answer.text


async def held(folder: Path, **settings: Any) -> dict[str, bytes]:
    """Name -> bytes of all files that a memory can read."""
    loaded = load_settings({"data_dir": str(folder), **settings}, {}).settings
    store = await open_store(loaded)
    try:
        files_of = files_of_graph(loaded, store)
        found: dict[str, bytes] = {}
        for user in await store.users():
            for graph in await store.graphs(user.user_id):
                for file in await store.files(graph.graph_id):
                    found[file.filename] = await read_whole(files_of(graph.graph_id), file.sha256)
        return found
    finally:
        await store.close()


def told(folder: Path, *arguments: str, **extra: str) -> tuple[Any, str]:
    """The answer with `--json`, and standard error."""
    done = run_cli(folder, *arguments, "--json", **extra)
    assert done.returncode == 0, done.stderr.decode()
    return json.loads(done.stdout), done.stderr.decode()


def blobs(folder: Path) -> list[Path]:
    return sorted(path for path in (folder / "files").rglob("*") if len(path.name) == 64)


async def test_a_backup_holds_the_files_and_gives_them_back(tmp_path: Path) -> None:
    await uploaded(tmp_path / "data")
    file = tmp_path / "one.backup"
    made, warned = await asyncio.to_thread(told, tmp_path / "data", "backup", str(file))
    archive = tmp_path / "one.backup.files.tar"
    assert made["files"]["archive"] == str(archive)
    assert (made["files"]["count"], made["files"]["missing"], warned) == (5, 0, "")
    assert archive.stat().st_mode & 0o777 == 0o600
    elsewhere = tmp_path / "elsewhere"
    done, warned = await asyncio.to_thread(told, elsewhere, "restore", str(file))
    assert (done["files"], warned) == ({"restored": 5, "missing": 0}, "")
    assert await held(elsewhere) == TEXTS
    words = await asyncio.to_thread(run_cli, tmp_path / "data", "backup", str(tmp_path / "two.backup"))
    assert "uploaded files: 5 in" in words.stdout.decode()
    assert not list(tmp_path.glob(".*partial"))


async def test_what_a_backup_lacks_is_said(tmp_path: Path) -> None:
    await uploaded(tmp_path / "data")
    first, second, *_ = blobs(tmp_path / "data")
    first.unlink()
    second.write_bytes(b"other bytes")
    file = tmp_path / "one.backup"
    made, warned = await asyncio.to_thread(told, tmp_path / "data", "backup", str(file))
    assert (made["files"]["count"], made["files"]["missing"]) == (3, 2)
    assert "the bytes of 2 uploaded files are absent or damaged" in warned
    done, warned = await asyncio.to_thread(told, tmp_path / "back", "restore", str(file))
    assert done["files"] == {"restored": 3, "missing": 2}
    assert "one.backup.files.tar" in warned


async def test_a_restore_without_the_archive_says_so_and_can_be_repeated(tmp_path: Path) -> None:
    await uploaded(tmp_path / "data")
    file, archive = tmp_path / "one.backup", tmp_path / "one.backup.files.tar"
    await asyncio.to_thread(told, tmp_path / "data", "backup", str(file))
    archive.rename(tmp_path / "aside")
    back = tmp_path / "back"
    done, warned = await asyncio.to_thread(told, back, "restore", str(file))
    assert done["files"] == {"restored": 0, "missing": 5}
    assert "the bytes of 5 uploaded files are not in" in warned
    (tmp_path / "aside").rename(archive)
    done, _ = await asyncio.to_thread(told, back, "restore", str(file), "--force")
    assert done["files"] == {"restored": 5, "missing": 0}
    assert await held(back) == TEXTS


async def test_a_damaged_archive_replaces_nothing(tmp_path: Path) -> None:
    await uploaded(tmp_path / "data")
    file, archive = tmp_path / "one.backup", tmp_path / "one.backup.files.tar"
    await asyncio.to_thread(told, tmp_path / "data", "backup", str(file))
    whole = archive.read_bytes()
    for damaged in (whole[:700], whole.replace(b"note number 3", b"note number 4"), b"no archive"):
        archive.write_bytes(damaged)
        done = await asyncio.to_thread(run_cli, tmp_path / "back", "restore", str(file))
        assert done.returncode != 0
        assert "is damaged, or no archive of a backup" in done.stderr.decode()
        assert not (tmp_path / "back" / "hivemem.sqlite3").exists()
    with tarfile.open(archive, "w") as tar:
        tar.add(file, "../../outside")
    done = await asyncio.to_thread(run_cli, tmp_path / "back", "restore", str(file))
    assert done.returncode != 0
    assert not (tmp_path.parent / "outside").exists()


async def test_an_archive_is_not_replaced_unasked(tmp_path: Path) -> None:
    await uploaded(tmp_path / "data")
    file, archive = tmp_path / "one.backup", tmp_path / "one.backup.files.tar"
    archive.write_bytes(b"somebody else's")
    done = await asyncio.to_thread(run_cli, tmp_path / "data", "backup", str(file))
    assert done.returncode == 6
    assert archive.read_bytes() == b"somebody else's"
    await asyncio.to_thread(told, tmp_path / "data", "backup", str(file), "--force")
    assert tarfile.is_tarfile(archive)


async def test_copies_between_databases_take_the_files_along(tmp_path: Path) -> None:
    await uploaded(tmp_path / "data")
    there, back = fresh_database(), tmp_path / "back"
    back.mkdir()
    source, target = str(tmp_path / "data" / "hivemem.sqlite3"), str(back / "hivemem.sqlite3")
    copied, warned = await asyncio.to_thread(told, tmp_path, "db", "copy", "--from", source, "--to", there)
    assert copied["files"] == {"count": 5, "copied": 5, "missing": 0, "lost": 0}
    assert (copied["equal"], warned) == (True, "")
    assert await held(tmp_path / "other", database_url=there) == TEXTS
    copied, _ = await asyncio.to_thread(told, tmp_path, "db", "copy", "--from", there, "--to", target)
    assert copied["files"]["copied"] == 5
    assert await held(back) == TEXTS


async def test_a_copy_goes_on_with_the_files_and_names_what_is_missing(tmp_path: Path) -> None:
    await uploaded(tmp_path / "data")
    source, back = tmp_path / "data" / "hivemem.sqlite3", tmp_path / "back"
    back.mkdir()
    first, second, *_ = blobs(tmp_path / "data")
    # One is there from a run that was interrupted, one is damaged there, one is nowhere.
    for path in blobs(tmp_path / "data")[1:3]:
        copy = back / path.relative_to(tmp_path / "data")
        copy.parent.mkdir(parents=True)
        copy.write_bytes(path.read_bytes() if path == second else b"half")
    first.unlink()
    copied, warned = await asyncio.to_thread(
        told, tmp_path, "db", "copy", "--from", str(source), "--to", str(back / "hivemem.sqlite3")
    )
    assert copied["files"] == {"count": 5, "copied": 3, "missing": 1, "lost": 0}
    assert "the bytes of 1 uploaded files are absent or damaged" in warned


class Forgetful(MemoryFiles):
    """Keeps nothing."""

    async def put(self, content: Any, *, max_bytes: int | None = None) -> Any:
        blob = await super().put(content, max_bytes=max_bytes)
        await self.delete(blob.sha256)
        return blob


async def test_a_target_that_loses_bytes_is_found_out() -> None:
    source, target = MemoryFiles(), Forgetful()
    name = ("graph_one", (await source.put(b"bytes")).sha256)
    done = await carry_files([name], lambda _: source, lambda _: target, lambda *_: None)
    assert done == CarriedFiles(count=1, copied=1, missing=(), lost=(name,))
