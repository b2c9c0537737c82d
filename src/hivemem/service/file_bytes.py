"""Bytes of uploaded files on their way: to another database, into an archive beside a backup, and back.

They are named by graph and SHA-256, and compared with it wherever they are read. What is there already is
not copied again, so that everything here can be repeated after an interruption.
"""

from __future__ import annotations

import io
import re
import tarfile
import tempfile
from collections.abc import AsyncIterator, Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TypeAlias

from hivemem.domain.graph import GraphId
from hivemem.errors import Corruption, NotFound
from hivemem.ports.files import CHUNK_BYTES, Files
from hivemem.storage.files_folder import FolderFiles, graph_folder
from hivemem.storage.files_memory import MemoryFiles

BlobName: TypeAlias = "tuple[GraphId, str]"
"""(graph, SHA-256)"""

FilesOf: TypeAlias = "Callable[[GraphId], Files]"
Report: TypeAlias = "Callable[[int, int], None]"
"""Called with (files done, files in all)."""

_MEMBER = re.compile(r"([0-9a-f]{32})/([0-9a-f]{64})")
_MEMORY_BYTES = 8 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class CarriedFiles:
    """What became of the bytes that a database names."""

    count: int
    copied: int
    """Those that were not at the target before."""
    missing: tuple[BlobName, ...]
    """Absent or damaged at the source already, so that nobody can copy them."""
    lost: tuple[BlobName, ...]
    """Unreadable at the target, although the source has them: a disk is at fault."""


async def carry_files(
    names: Collection[BlobName], source: FilesOf, target: FilesOf, report: Report
) -> CarriedFiles:
    """Copy bytes to where a copy of their database is, and read all of them there again.

    Raises:
        Unavailable: A side cannot be reached, or is full.
    """
    copied = 0
    missing: list[BlobName] = []
    lost: list[BlobName] = []
    for done, (graph_id, sha256) in enumerate(names, start=1):
        there = target(graph_id)
        if not await is_whole(there, sha256):
            try:
                await there.put(source(graph_id).read(sha256))
            except (NotFound, Corruption):
                missing.append((graph_id, sha256))
            else:
                copied += 1
                if not await is_whole(there, sha256):
                    lost.append((graph_id, sha256))
        report(done, len(names))
    return CarriedFiles(count=len(names), copied=copied, missing=tuple(missing), lost=tuple(lost))


async def is_whole(files: Files, sha256: str) -> bool:
    """Whether all bytes of a blob are there and have its hash."""
    try:
        async for _ in files.read(sha256):
            pass
    except (NotFound, Corruption):
        return False
    return True


async def pack_files(
    names: Collection[BlobName], folder: Path, archive: Path, report: Report
) -> tuple[BlobName, ...]:
    """Write the bytes of files into a new tar file; the names of those that are absent or damaged.

    Args:
        names: Which.
        folder: Where the graphs' folders are.
        archive: Must not exist; it gets the mode 0600.
        report: Told after each file.

    Raises:
        OSError: The disk is full, for instance.
    """
    missing: list[BlobName] = []
    archive.touch(mode=0o600, exist_ok=False)
    with tarfile.open(archive, "w", format=tarfile.PAX_FORMAT) as tar:
        for done, (graph_id, sha256) in enumerate(names, start=1):
            own = graph_folder(folder, graph_id)
            with tempfile.SpooledTemporaryFile(max_size=_MEMORY_BYTES) as content:
                try:
                    async for chunk in _files_in(own).read(sha256):
                        content.write(chunk)
                except (NotFound, Corruption):
                    missing.append((graph_id, sha256))
                else:
                    member = tarfile.TarInfo(f"{own.name}/{sha256}")
                    member.size, member.mode = content.tell(), 0o600
                    content.seek(0)
                    tar.addfile(member, content)
            report(done, len(names))
    return tuple(missing)


async def unpack_files(archive: Path, folder: Path, report: Report) -> int:
    """Put the files of an archive to their places, beside what is there; the number of them.

    Raises:
        Corruption: The archive is damaged, or not one of ours.
        Unavailable: The disk is full, or out of reach.
    """
    damaged = Corruption(
        f"{archive} is damaged, or no archive of a backup; use the one that was made with it."
    )
    done = 0
    try:
        with tarfile.open(archive, "r:") as tar:
            size = archive.stat().st_size
            for member in tar:
                name = _MEMBER.fullmatch(member.name)
                content = tar.extractfile(member) if member.isfile() else None
                if name is None or content is None:
                    raise damaged
                blob = await FolderFiles(folder / name[1]).put(_chunks(content))
                if blob.sha256 != name[2]:
                    await FolderFiles(folder / name[1]).delete(blob.sha256)
                    raise damaged
                done += 1
                report(min(size, member.offset_data + member.size), size)
    except (tarfile.TarError, EOFError) as error:
        raise damaged from error
    return done


async def absent_files(names: Collection[BlobName], folder: Path) -> tuple[BlobName, ...]:
    """Those whose bytes are not in a folder."""
    return tuple(
        [
            (graph_id, sha256)
            for graph_id, sha256 in names
            if not await _files_in(graph_folder(folder, graph_id)).exists(sha256)
        ]
    )


def _files_in(folder: Path) -> Files:
    """What a folder holds. It is not made, should it be absent: reading leaves no trace."""
    return FolderFiles(folder) if folder.is_dir() else MemoryFiles()


async def _chunks(content: IO[bytes] | io.BufferedReader) -> AsyncIterator[bytes]:
    while chunk := content.read(CHUNK_BYTES):
        yield chunk
