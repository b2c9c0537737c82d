"""Bytes of uploaded files, kept under the name that their content gives them.

Contract of every backend, held by `tests/conformance/files`:

- A blob is named by the SHA-256 of its bytes, 64 lower-case hexadecimal digits. The same bytes are one
  blob, however often they are put; who refers to it is not known here.
- `put` is whole or nothing, durable when it returns, and repairs a damaged blob of that name.
- `read` never ends normally with other bytes than were put: it raises `Corruption` instead.
- No space, no connection or no permission raises `Unavailable`.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterable, AsyncIterator
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from hivemem.errors import InvalidInput

CHUNK_BYTES = 1 << 18
"""The largest chunk that `read` gives."""

_SHA256 = re.compile("[0-9a-f]{64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Blob:
    """A stored blob; `stored_at` is aware UTC, the last time that these bytes were put."""

    sha256: str
    size_bytes: int
    stored_at: datetime


class Files(Protocol):
    """Content-addressed blobs."""

    async def put(self, content: bytes | AsyncIterable[bytes], *, max_bytes: int | None = None) -> Blob:
        """Keep bytes, given at once or in chunks of any size.

        Args:
            content: The bytes.
            max_bytes: Refuse more than this as soon as it is exceeded; None for no limit.

        Raises:
            LimitExceeded: More than `max_bytes`.
            Unavailable: They cannot be kept now.
        """
        ...

    def read(self, sha256: str) -> AsyncIterator[bytes]:
        """The bytes in chunks of at most `CHUNK_BYTES`. The last one comes after the hash was compared.

        Raises:
            NotFound: There is no such blob.
            Corruption: The stored bytes have another hash.
        """
        ...

    async def exists(self, sha256: str) -> bool:
        """Whether there is such a blob. Its bytes are not read."""
        ...

    async def delete(self, sha256: str) -> bool:
        """Remove a blob; False when there was none."""
        ...

    async def remove_all(self) -> None:
        """Remove every blob, also those that are just arriving: the graph is gone."""
        ...

    def list(self) -> AsyncIterator[Blob]:
        """All blobs in ascending order of their hashes, for collecting those that nothing refers to.

        A collector leaves young blobs alone (see `stored_at`): the row that refers to one is written
        after its bytes.
        """
        ...


def checked_sha256(value: str) -> str:
    """Return `value` if it is the name of a blob.

    Raises:
        InvalidInput: It is not 64 lower-case hexadecimal digits.
    """
    if not _SHA256.fullmatch(value):
        raise InvalidInput(f"{value!r} is not a SHA-256: 64 lower-case hexadecimal digits are expected.")
    return value


async def read_whole(files: Files, sha256: str) -> bytes:
    """All bytes of a blob, compared with its hash. Errors as in `Files.read`."""
    return b"".join([chunk async for chunk in files.read(sha256)])
