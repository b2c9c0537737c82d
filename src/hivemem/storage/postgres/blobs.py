"""Bytes of files in chunked rows: the `Files` port, on the connections of a store."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import AsyncIterable, AsyncIterator
from datetime import UTC, datetime
from typing import IO

from hivemem.domain.graph import GraphId
from hivemem.ports.files import CHUNK_BYTES, Blob, checked_sha256
from hivemem.storage.files_memory import check_size, chunks_of, damaged, missing
from hivemem.storage.postgres import purging
from hivemem.storage.postgres.pool import Pool
from hivemem.storage.postgres.statements import named_statements
from hivemem.storage.postgres.transaction import Query, Transaction
from hivemem.storage.times import from_microseconds, to_microseconds

_SQL = named_statements("blobs.sql")
_LIST_PAGE = 500
_MEMORY_BYTES = 4 << 20
"""What arrives is kept in memory up to this, then in a temporary file: the hash comes at the end."""


class PostgresFiles:
    """Keeps the contract of `hivemem.ports.files.Files` for one graph; every server sees the same bytes."""

    def __init__(self, pool: Pool, graph_id: GraphId) -> None:
        self._pool = pool
        self._graph_id = graph_id

    async def put(self, content: bytes | AsyncIterable[bytes], *, max_bytes: int | None = None) -> Blob:
        """As the port says."""
        digest, size = hashlib.sha256(), 0
        with tempfile.SpooledTemporaryFile(max_size=_MEMORY_BYTES) as arrived:
            async for chunk in chunks_of(content):
                size += len(chunk)
                check_size(size, max_bytes)
                digest.update(chunk)
                arrived.write(chunk)
            sha256 = digest.hexdigest()
            blob = Blob(sha256=sha256, size_bytes=size, stored_at=datetime.now(UTC))
            # Repeated after a lost connection, it puts the same bytes again.
            await self._pool.write(lambda transaction: _put(transaction, self._graph_id, blob, arrived))
        return blob

    async def read(self, sha256: str) -> AsyncIterator[bytes]:
        """As the port says."""
        found = await self._pool.ask(_blob(self._graph_id, checked_sha256(sha256)))
        if found is None:
            raise missing(sha256)
        digest, size, ordinal = hashlib.sha256(), 0, 0
        held: bytes | None = None
        while size < found.size_bytes:
            chunk = await self._pool.ask(_chunk(self._graph_id, sha256, ordinal))
            if not chunk:
                raise damaged(sha256)
            digest.update(chunk)
            size, ordinal = size + len(chunk), ordinal + 1
            if held is not None:
                yield held
            held = chunk
        if digest.hexdigest() != sha256:
            raise damaged(sha256)
        if held is not None:
            yield held

    async def exists(self, sha256: str) -> bool:
        """As the port says."""
        return await self._pool.ask(_blob(self._graph_id, checked_sha256(sha256))) is not None

    async def delete(self, sha256: str) -> bool:
        """As the port says."""
        query = Query(
            sql=_SQL["delete_blob"],
            arguments={"graph_id": self._graph_id, "content_hash": checked_sha256(sha256)},
            decode=lambda rows: bool(rows),
        )
        return await self._pool.write(lambda transaction: transaction.ask(query))

    async def remove_all(self) -> None:
        """As the port says."""
        async for blob in self.list():
            await self.delete(blob.sha256)

    async def list(self) -> AsyncIterator[Blob]:
        """As the port says."""
        after = ""
        while True:
            page = await self._pool.ask(_page(self._graph_id, after))
            for blob in page:
                yield blob
            if len(page) < _LIST_PAGE:
                return
            after = page[-1].sha256


async def _put(transaction: Transaction, graph_id: GraphId, blob: Blob, arrived: IO[bytes]) -> None:
    own = {"graph_id": graph_id, "content_hash": blob.sha256}
    stored_at = to_microseconds(blob.stored_at)
    await purging.hold_graph(transaction, graph_id)
    await transaction.send(_SQL["put_blob"], {**own, "size_bytes": blob.size_bytes, "stored_at": stored_at})
    await transaction.send(_SQL["drop_chunks"], own)
    arrived.seek(0)
    ordinal = 0
    while chunk := arrived.read(CHUNK_BYTES):
        await transaction.send(_SQL["put_chunk"], {**own, "ordinal": ordinal, "content": chunk})
        ordinal += 1


def _blob(graph_id: GraphId, sha256: str) -> Query[Blob | None]:
    return Query(
        sql=_SQL["blob"],
        arguments={"graph_id": graph_id, "content_hash": sha256},
        decode=lambda rows: _made(sha256, *rows[0]) if rows else None,
    )


def _chunk(graph_id: GraphId, sha256: str, ordinal: int) -> Query[bytes]:
    return Query(
        sql=_SQL["chunk"],
        arguments={"graph_id": graph_id, "content_hash": sha256, "ordinal": ordinal},
        decode=lambda rows: bytes(rows[0][0]) if rows else b"",
    )


def _page(graph_id: GraphId, after: str) -> Query[list[Blob]]:
    return Query(
        sql=_SQL["blobs"],
        arguments={"graph_id": graph_id, "after": after, "limit": _LIST_PAGE},
        decode=lambda rows: [_made(*row) for row in rows],
    )


def _made(sha256: str, size_bytes: int, stored_at: int) -> Blob:
    return Blob(sha256=sha256, size_bytes=size_bytes, stored_at=from_microseconds(stored_at))
