"""Exports: the document of a whole graph, made in the background and kept for a day.

The order and the pieces of the document are rows, so that any server can make it, go on after another that
stopped, and serve it. Work that a stopped server left is taken up by whoever is next asked how far it is.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import logging
import secrets
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from typing import Protocol, TypeVar

from hivemem.domain.access import Principal
from hivemem.domain.exports import Export, ExportStatus
from hivemem.domain.graph import GraphId
from hivemem.errors import Corruption, HivememError, NotFound
from hivemem.ports.clock import Clock
from hivemem.ports.store import ExportStore, LeaseStore
from hivemem.service.exporting_document import document_pieces
from hivemem.service.exporting_records import GraphRecords
from hivemem.service.leased_work import LeasedWork
from hivemem.storage.rows import RowSource

TOKEN_LIFETIME = timedelta(minutes=15)
_FORGOTTEN_AFTER = timedelta(days=7)
"""How long an expired export can still be asked for, to learn that it is expired."""

_AT_ONCE = 2
_EXPIRED = "export_expired"

log = logging.getLogger(__name__)
ResultT = TypeVar("ResultT")


class JobStore(ExportStore, LeaseStore, Protocol):
    """What of a store this use case needs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportState:
    """An export as its owner sees it; `token` opens the document, for a short time."""

    export: Export
    token: str | None


class Exports:
    """Takes orders for documents, makes them, and hands them out.

    Args:
        store: Orders, documents and leases.
        open_rows: Begins to read one state of the database; may block.
        clock: Times and ids.
        retention: How long a document is kept.
    """

    def __init__(
        self, *, store: JobStore, open_rows: Callable[[], RowSource], clock: Clock, retention: timedelta
    ) -> None:
        self._store = store
        self._open_rows = open_rows
        self._clock = clock
        self._retention = retention
        self._leased = LeasedWork(store=store, clock=clock)
        self._at_once = asyncio.Semaphore(_AT_ONCE)
        self._running: dict[tuple[GraphId, str], asyncio.Task[None]] = {}
        self._closed = False

    async def order(self, principal: Principal, credential: str, idempotency_key: str | None) -> Export:
        """Order a document of the caller's graph; the same credential and key get the same export again.

        Raises:
            Unavailable: The store is busy or down.
        """
        await self.sweep(principal.graph_id)
        now = self._clock.now()
        asked = f"{credential}\0{idempotency_key}" if idempotency_key else secrets.token_hex(32)
        order = Export(
            export_id=self._clock.new_id("export"),
            user_id=principal.user_id,
            request=hashlib.sha256(asked.encode()).hexdigest(),
            secret=secrets.token_hex(32),
            created_at=now,
            expires_at=now + self._retention,
        )
        export = await self._store.add_export(principal.graph_id, order)
        self._take_up(principal.graph_id, export)
        return export

    async def state(self, principal: Principal, export_id: str) -> ExportState:
        """How far an export is. One that nobody works on is taken up.

        Raises:
            NotFound: There is none of this id, or it is somebody else's.
            Unavailable: The store is busy or down.
        """
        export = await self._own(principal, export_id)
        self._take_up(principal.graph_id, export)
        token = None
        if export.status is ExportStatus.PUBLISHED:
            until = int((self._clock.now() + TOKEN_LIFETIME).timestamp())
            token = f"{until}.{_signature(export, principal, until)}"
        return ExportState(export=export, token=token)

    async def document(
        self, principal: Principal, export_id: str, token: str
    ) -> tuple[Export, AsyncIterator[bytes]]:
        """A published export and the pieces of its document.

        Raises:
            NotFound: No such document, or the token is another's, or is over.
            Unavailable: The store is busy or down.
        """
        export = await self._own(principal, export_id)
        until, _, signature = token.partition(".")
        valid = (
            until.isascii()
            and until.isdecimal()
            and len(until) < 16
            and hmac.compare_digest(signature.encode(), _signature(export, principal, int(until)).encode())
            and int(until) > self._clock.now().timestamp()
        )
        if not valid or export.status is not ExportStatus.PUBLISHED:
            raise NotFound("the download link is invalid or expired; read the export's status for a new one.")
        return export, self._pieces(principal.graph_id, export)

    async def sweep(self, graph_id: GraphId) -> None:
        """Drop documents whose time is over, and what workers left behind."""
        now = self._clock.now()
        await self._store.drop_stale_exports(graph_id, now, now - _FORGOTTEN_AFTER)

    async def finished(self) -> None:
        """Wait for what this process works on."""
        while self._running:
            await asyncio.wait(self._running.values())

    async def close(self) -> None:
        """Stop; what is half done is taken up when somebody asks for it."""
        self._closed = True
        tasks = list(self._running.values())
        for task in tasks:
            task.cancel()
        for task in tasks:
            with suppress(asyncio.CancelledError):
                await task

    async def _own(self, principal: Principal, export_id: str) -> Export:
        export = await self._store.export(principal.graph_id, export_id)
        if export is None or export.user_id != principal.user_id:
            raise NotFound(f"there is no export {export_id[:100]!r}; order one with POST /exports.")
        if export.status is not ExportStatus.FAILED and export.expires_at <= self._clock.now():
            return replace(export, status=ExportStatus.EXPIRED, error_code=_EXPIRED)
        return export

    async def _pieces(self, graph_id: GraphId, export: Export) -> AsyncIterator[bytes]:
        sent, ordinal = 0, 0
        assert export.document is not None and export.size_bytes is not None
        while sent < export.size_bytes:
            piece = await self._store.export_chunk(graph_id, export.export_id, export.document, ordinal)
            if piece is None:
                raise Corruption(
                    f"piece {ordinal} of the export {export.export_id!r} is gone; order another."
                )
            yield piece
            sent += len(piece)
            ordinal += 1

    def _take_up(self, graph_id: GraphId, export: Export) -> None:
        place = (graph_id, export.export_id)
        if not export.status.unfinished or place in self._running or self._closed:
            return
        task = asyncio.create_task(self._work(graph_id, export), name=f"export {export.export_id}")
        self._running[place] = task
        task.add_done_callback(lambda _: self._running.pop(place, None))

    async def _work(self, graph_id: GraphId, export: Export) -> None:
        try:
            async with self._at_once:
                work = partial(self._make_or_fail, graph_id, export)
                await self._leased.run(f"export {graph_id} {export.export_id}", work)
        except HivememError as error:
            log.warning("the export %s waits: %s", export.export_id, error.message)

    async def _make_or_fail(self, graph_id: GraphId, export: Export) -> None:
        running = replace(export, status=ExportStatus.RUNNING)
        if not await self._store.advance_export(graph_id, running):
            return
        try:
            made = await self._make(graph_id, running)
        except HivememError as error:
            if error.retryable:
                raise
            made = replace(running, status=ExportStatus.FAILED, error_code=error.code)
            log.warning("the export %s failed: %s", export.export_id, error.message)
        except Exception:
            made = replace(running, status=ExportStatus.FAILED, error_code="internal_error")
            log.exception("the export %s failed", export.export_id)
        await self._store.advance_export(graph_id, made)

    async def _make(self, graph_id: GraphId, export: Export) -> Export:
        """Write the document under a name of its own: another worker may be at it too."""
        loop = asyncio.get_running_loop()
        # One thread, so that closing waits for the read that is under way.
        reader = ThreadPoolExecutor(1, thread_name_prefix="hivemem-export")
        document = self._clock.new_id("document")
        digest, size, ordinal, counts = hashlib.sha256(), 0, 0, {"nodes": 0}

        def count(kind: str) -> None:
            counts[kind] = counts.get(kind, 0) + 1

        source = await loop.run_in_executor(reader, self._open_rows)
        try:
            records = GraphRecords(source, graph_id)
            pieces = document_pieces(records, graph_id, self._clock.now(), on_record=count)
            while piece := await loop.run_in_executor(reader, _next_piece, pieces):
                await self._store.add_export_chunk(graph_id, export.export_id, document, ordinal, piece)
                digest.update(piece)
                size, ordinal = size + len(piece), ordinal + 1
        finally:
            reader.submit(source.close)
            reader.shutdown(wait=False)
        return replace(
            export,
            status=ExportStatus.PUBLISHED,
            document=document,
            size_bytes=size,
            sha256=digest.hexdigest(),
            node_count=counts["nodes"],
            expires_at=self._clock.now() + self._retention,
        )


def _next_piece(pieces: Iterator[bytes]) -> bytes:
    return next(pieces, b"")


def _signature(export: Export, principal: Principal, until: int) -> str:
    told = "\0".join((principal.graph_id, principal.user_id, export.export_id, str(until)))
    return hmac.digest(export.secret.encode(), told.encode(), "sha256").hex()
