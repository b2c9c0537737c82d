"""Blobs in memory: the reference of the port, and the store of tests."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterable, AsyncIterator, Callable
from datetime import UTC, datetime

from hivemem.errors import Corruption, LimitExceeded, NotFound
from hivemem.ports.files import CHUNK_BYTES, Blob, checked_sha256


class MemoryFiles:
    """A dictionary that keeps the contract of `hivemem.ports.files.Files`.

    Args:
        now: Gives the time of a put, aware UTC.
    """

    def __init__(self, *, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._now = now
        self._blobs: dict[str, tuple[bytes, datetime]] = {}

    async def put(self, content: bytes | AsyncIterable[bytes], *, max_bytes: int | None = None) -> Blob:
        """As the port says."""
        parts: list[bytes] = []
        size = 0
        async for chunk in chunks_of(content):
            size += len(chunk)
            check_size(size, max_bytes)
            parts.append(bytes(chunk))
        data = b"".join(parts)
        sha256 = hashlib.sha256(data).hexdigest()
        self._blobs[sha256] = (data, self._now())
        return Blob(sha256=sha256, size_bytes=size, stored_at=self._blobs[sha256][1])

    async def read(self, sha256: str) -> AsyncIterator[bytes]:
        """As the port says."""
        found = self._blobs.get(checked_sha256(sha256))
        if found is None:
            raise missing(sha256)
        data = found[0]
        if hashlib.sha256(data).hexdigest() != sha256:
            raise damaged(sha256)
        for start in range(0, len(data), CHUNK_BYTES):
            yield data[start : start + CHUNK_BYTES]

    async def exists(self, sha256: str) -> bool:
        """As the port says."""
        return checked_sha256(sha256) in self._blobs

    async def delete(self, sha256: str) -> bool:
        """As the port says."""
        return self._blobs.pop(checked_sha256(sha256), None) is not None

    async def remove_all(self) -> None:
        """As the port says."""
        self._blobs.clear()

    async def list(self) -> AsyncIterator[Blob]:
        """As the port says."""
        for sha256, (data, stored_at) in sorted(self._blobs.items()):
            yield Blob(sha256=sha256, size_bytes=len(data), stored_at=stored_at)


async def chunks_of(content: bytes | AsyncIterable[bytes]) -> AsyncIterator[bytes]:
    """The chunks of what `put` was given."""
    if isinstance(content, bytes):
        yield content
        return
    async for chunk in content:
        yield chunk


def check_size(size: int, max_bytes: int | None) -> None:
    """Refuse more bytes than are allowed.

    Raises:
        LimitExceeded: `size` is above `max_bytes`.
    """
    if max_bytes is not None and size > max_bytes:
        raise LimitExceeded(
            f"the file has more than {max_bytes:,} bytes, the most that is kept; "
            "send a smaller one, or raise the limit in the settings.",
            limit=max_bytes,
        )


def missing(sha256: str) -> NotFound:
    """The error of a blob that is not there."""
    return NotFound(f"there is no blob {sha256}; its file was deleted, or never uploaded here.")


def damaged(sha256: str) -> Corruption:
    """The error of a blob whose bytes have changed."""
    return Corruption(f"blob {sha256} has other bytes than were stored; upload the file again to repair it.")
