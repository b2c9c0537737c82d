"""What the folder of blobs promises beyond the port: modes, leftovers, errors of the disk."""

from __future__ import annotations

import errno
import os
import stat
import time
from pathlib import Path

import pytest

from hivemem.errors import Unavailable
from hivemem.storage.files_folder import FolderFiles


def contents(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


async def test_only_the_owner_can_read(tmp_path: Path) -> None:
    root = tmp_path / "files"
    blob = await FolderFiles(root).put(b"private")

    path = root / blob.sha256[:2] / blob.sha256[2:4] / blob.sha256
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    folders = [root, *(folder for folder in root.rglob("*") if folder.is_dir())]
    assert len(folders) == 4
    assert {stat.S_IMODE(folder.stat().st_mode) for folder in folders} == {0o700}


async def test_bytes_reach_the_disk_before_their_name_and_the_name_before_the_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = FolderFiles(tmp_path / "files")
    seen: list[str] = []
    sync, replace = os.fsync, Path.replace

    def fsync(descriptor: int) -> None:
        seen.append("folder" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "bytes")
        sync(descriptor)

    def renamed(path: Path, target: Path) -> Path:
        seen.append("name")
        return replace(path, target)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(Path, "replace", renamed)
    await files.put(b"durable")

    assert seen == ["bytes", "folder", "folder", "name", "folder"]


async def test_a_full_disk_is_said_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = FolderFiles(tmp_path / "files")

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(Unavailable, match="No space left on device") as caught:
        await files.put(b"too much")
    assert caught.value.code == "file_storage_unavailable"
    assert contents(tmp_path) == []


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file")
    with pytest.raises(Unavailable, match="taken"):
        FolderFiles(tmp_path / "taken")


async def test_leftovers_of_killed_writers_go_after_a_day(tmp_path: Path) -> None:
    FolderFiles(tmp_path)
    old, young = tmp_path / "incoming" / "old", tmp_path / "incoming" / "young"
    for path in (old, young):
        path.write_bytes(b"half a file")
    day_before = time.time() - 25 * 3600
    os.utime(old, (day_before, day_before))

    files = FolderFiles(tmp_path)

    assert contents(tmp_path) == [young]
    assert [blob async for blob in files.list()] == []
