"""The file stores that the suite runs on. A new backend is one adapter and one line in `BACKENDS`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

import psycopg

from hivemem.ports.files import Files
from hivemem.storage.files_folder import FolderFiles
from hivemem.storage.files_memory import MemoryFiles
from hivemem.storage.postgres import PostgresStore
from hivemem.storage.postgres.blobs import PostgresFiles
from tests.support.postgres import fresh_database

Damage = Callable[[Files, Path, str], Awaitable[None]]


async def _nothing_to_close(_: Files) -> None:
    return


@dataclass(frozen=True, slots=True, kw_only=True)
class Backend:
    """How to open a store in a folder, end it, and spoil the last byte of a blob behind its back."""

    name: str
    durable: bool
    open: Callable[[Path], Awaitable[Files]]
    damage: Damage
    close: Callable[[Files], Awaitable[None]] = _nothing_to_close


async def _open_memory(folder: Path) -> Files:
    return MemoryFiles()


async def _open_folder(folder: Path) -> Files:
    return FolderFiles(folder / "files")


async def _open_postgres(folder: Path) -> Files:
    url = folder / "database-url"
    if not url.exists():
        url.write_text(fresh_database(), encoding="utf-8")
    store = await PostgresStore.open(url.read_text(encoding="utf-8"), connections=2)
    return store.blobs("graph_one")


async def _close_postgres(files: Files) -> None:
    assert isinstance(files, PostgresFiles)
    await files._pool.close()


async def _damage_memory(files: Files, folder: Path, sha256: str) -> None:
    assert isinstance(files, MemoryFiles)
    data, stored_at = files._blobs[sha256]
    files._blobs[sha256] = (spoiled(data), stored_at)


async def _damage_folder(files: Files, folder: Path, sha256: str) -> None:
    path = folder / "files" / sha256[:2] / sha256[2:4] / sha256
    path.write_bytes(spoiled(path.read_bytes()))


async def _damage_postgres(files: Files, folder: Path, sha256: str) -> None:
    assert isinstance(files, PostgresFiles)
    url = (folder / "database-url").read_text(encoding="utf-8")
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
        last = "(SELECT max(ordinal) FROM blob_chunks WHERE sha256 = %s)"
        rows = await connection.execute(
            f"SELECT ordinal, content FROM blob_chunks WHERE sha256 = %s AND ordinal = {last}",
            (sha256, sha256),
        )
        [(ordinal, content)] = await rows.fetchall()
        await connection.execute(
            "UPDATE blob_chunks SET content = %s WHERE sha256 = %s AND ordinal = %s",
            (spoiled(content), sha256, ordinal),
        )


def spoiled(data: bytes) -> bytes:
    return data[:-1] + bytes([data[-1] ^ 1])


BACKENDS = (
    Backend(name="memory", durable=False, open=_open_memory, damage=_damage_memory),
    Backend(
        name="postgres", durable=True, open=_open_postgres, damage=_damage_postgres, close=_close_postgres
    ),
    Backend(name="folder", durable=True, open=_open_folder, damage=_damage_folder),
)
