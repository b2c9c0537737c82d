"""The file stores that the suite runs on. A new backend is one adapter and one line in `BACKENDS`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from hivemem.ports.files import Files
from hivemem.storage.files_folder import FolderFiles
from hivemem.storage.files_memory import MemoryFiles

Damage = Callable[[Files, Path, str], Awaitable[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Backend:
    """How to open a store in a folder, and how to spoil the last byte of a blob behind its back."""

    name: str
    durable: bool
    open: Callable[[Path], Awaitable[Files]]
    damage: Damage


async def _open_memory(folder: Path) -> Files:
    return MemoryFiles()


async def _open_folder(folder: Path) -> Files:
    return FolderFiles(folder / "files")


async def _damage_memory(files: Files, folder: Path, sha256: str) -> None:
    assert isinstance(files, MemoryFiles)
    data, stored_at = files._blobs[sha256]
    files._blobs[sha256] = (spoiled(data), stored_at)


async def _damage_folder(files: Files, folder: Path, sha256: str) -> None:
    path = folder / "files" / sha256[:2] / sha256[2:4] / sha256
    path.write_bytes(spoiled(path.read_bytes()))


def spoiled(data: bytes) -> bytes:
    return data[:-1] + bytes([data[-1] ^ 1])


BACKENDS = (
    Backend(name="memory", durable=False, open=_open_memory, damage=_damage_memory),
    Backend(name="folder", durable=True, open=_open_folder, damage=_damage_folder),
)
