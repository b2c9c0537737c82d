"""Blobs in a folder: `ab/cd/abcd...`, written beside and renamed, compared with their hash when read."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import secrets
import shutil
import time
from collections.abc import AsyncIterable, AsyncIterator, Generator, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO

from hivemem.domain.graph import GraphId
from hivemem.errors import Unavailable
from hivemem.ports.files import CHUNK_BYTES, Blob, checked_sha256
from hivemem.storage.files_memory import check_size, chunks_of, damaged, missing

_INCOMING = "incoming"
_LEFTOVER_SECONDS = 24 * 3600
_LIST_PAGE = 500


def graph_folder(folder: Path, graph_id: GraphId) -> Path:
    """Where the bytes of a graph's files are in the folder of all files."""
    # The id of a graph may hold what a file system does not take.
    return folder / hashlib.sha256(graph_id.encode()).hexdigest()[:32]


class FolderFiles:
    """Keeps the contract of `hivemem.ports.files.Files` in a folder of its own.

    Bytes arrive in `incoming/`, which lies in the same file system, and are renamed to their place
    once they are on the disk; a reader sees a whole blob or none. Files have the mode 0600, folders
    0700. Several processes may use one folder.

    Args:
        folder: Created when absent. What writers that were killed left in `incoming/` a day ago is
            removed.

    Raises:
        Unavailable: The folder cannot be created or read.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        with _disk(folder):
            for path in (folder, folder / _INCOMING):
                path.mkdir(mode=0o700, parents=True, exist_ok=True)
            _remove_leftovers(folder / _INCOMING)

    async def put(self, content: bytes | AsyncIterable[bytes], *, max_bytes: int | None = None) -> Blob:
        """As the port says."""
        arriving = self._folder / _INCOMING / secrets.token_hex(16)
        digest = hashlib.sha256()
        size = 0
        file = await asyncio.to_thread(_create, arriving)
        try:
            async for chunk in chunks_of(content):
                size += len(chunk)
                check_size(size, max_bytes)
                digest.update(chunk)
                await asyncio.to_thread(_write, file, chunk, arriving)
            sha256 = digest.hexdigest()
            stored_at = await asyncio.to_thread(_move_in, file, arriving, self._path(sha256))
        except BaseException:
            # A full disk fails again when the buffer is flushed; the first error is the one to tell.
            with contextlib.suppress(OSError):
                file.close()
            arriving.unlink(missing_ok=True)
            raise
        return Blob(sha256=sha256, size_bytes=size, stored_at=stored_at)

    async def read(self, sha256: str) -> AsyncIterator[bytes]:
        """As the port says."""
        file = await asyncio.to_thread(_open, self._path(checked_sha256(sha256)), sha256)
        digest = hashlib.sha256()
        held = b""
        try:
            while chunk := await asyncio.to_thread(_read, file, sha256):
                digest.update(chunk)
                if held:
                    yield held
                held = chunk
        finally:
            file.close()
        if digest.hexdigest() != sha256:
            raise damaged(sha256)
        if held:
            yield held

    async def exists(self, sha256: str) -> bool:
        """As the port says."""
        return await asyncio.to_thread(_exists, self._path(checked_sha256(sha256)))

    async def delete(self, sha256: str) -> bool:
        """As the port says."""
        return await asyncio.to_thread(_delete, self._path(checked_sha256(sha256)))

    async def remove_all(self) -> None:
        """As the port says. The folder goes too."""
        await asyncio.to_thread(_remove_tree, self._folder)

    async def list(self) -> AsyncIterator[Blob]:
        """As the port says."""
        blobs = _blobs(self._folder)
        while page := await asyncio.to_thread(_page, blobs, self._folder):
            for blob in page:
                yield blob

    def _path(self, sha256: str) -> Path:
        return self._folder / sha256[:2] / sha256[2:4] / sha256


@contextlib.contextmanager
def _disk(what: object) -> Generator[None]:
    """Turns an error of the file system into ours, naming the file."""
    try:
        yield
    except OSError as error:
        raise Unavailable(
            f"file storage: {error.strerror or error} ({what}); free space or correct the permissions.",
            code="file_storage_unavailable",
        ) from error


def _create(path: Path) -> BinaryIO:
    with _disk(path):
        return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")


def _write(file: BinaryIO, chunk: bytes, path: Path) -> None:
    with _disk(path):
        file.write(chunk)


def _move_in(file: BinaryIO, arrived: Path, target: Path) -> datetime:
    """Bring the bytes to the disk, then the name; returns when."""
    with _disk(target):
        file.flush()
        os.fsync(file.fileno())
        stored_at = datetime.fromtimestamp(os.fstat(file.fileno()).st_mtime, UTC)
        file.close()
        for folder in (target.parent.parent, target.parent):
            try:
                folder.mkdir(mode=0o700)
            except FileExistsError:
                continue
            _sync_folder(folder.parent)
        arrived.replace(target)
        _sync_folder(target.parent)
        return stored_at


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _open(path: Path, sha256: str) -> BinaryIO:
    with _disk(path):
        try:
            return path.open("rb", buffering=0)
        except FileNotFoundError:
            raise missing(sha256) from None


def _read(file: BinaryIO, sha256: str) -> bytes:
    with _disk(sha256):
        return file.read(CHUNK_BYTES)


def _exists(path: Path) -> bool:
    with _disk(path):
        return path.is_file()


def _delete(path: Path) -> bool:
    with _disk(path):
        try:
            path.unlink()
        except FileNotFoundError:
            return False
        _sync_folder(path.parent)
        return True


def _remove_tree(folder: Path) -> None:
    with _disk(folder), contextlib.suppress(FileNotFoundError):
        shutil.rmtree(folder)


def _blobs(folder: Path) -> Iterator[Blob]:
    for first in sorted(folder.glob("[0-9a-f][0-9a-f]")):
        for second in sorted(first.glob("[0-9a-f][0-9a-f]")):
            for path in sorted(second.iterdir()):
                with contextlib.suppress(FileNotFoundError):  # deleted meanwhile
                    status = path.stat()
                    stored_at = datetime.fromtimestamp(status.st_mtime, UTC)
                    yield Blob(sha256=path.name, size_bytes=status.st_size, stored_at=stored_at)


def _page(blobs: Iterator[Blob], folder: Path) -> list[Blob]:
    with _disk(folder):
        return [blob for blob, _ in zip(blobs, range(_LIST_PAGE), strict=False)]


def _remove_leftovers(incoming: Path) -> None:
    before = time.time() - _LEFTOVER_SECONDS
    for path in incoming.iterdir():
        with contextlib.suppress(FileNotFoundError):
            if path.stat().st_mtime < before:
                path.unlink()
