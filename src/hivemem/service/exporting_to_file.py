"""A graph written to a file or folder, in any of the formats."""

from __future__ import annotations

import asyncio
import contextlib
import enum
import os
from collections import Counter
from collections.abc import Callable, Generator
from pathlib import Path
from typing import BinaryIO

from hivemem.domain.graph import GraphId
from hivemem.errors import Conflict, Unavailable
from hivemem.ports.clock import Clock
from hivemem.ports.files import Files
from hivemem.service.archive import ArchiveWriter
from hivemem.service.exporting_document import document_pieces
from hivemem.service.exporting_files import graphml_texts, write_notes
from hivemem.service.exporting_records import GraphRecords
from hivemem.storage.rows import RowSource
from hivemem.storage.tables import GRAPH_TABLES

Report = Callable[[int, int], None]
"""Told (rows done, about how many there are in all)."""

_FILES = next(table for table in GRAPH_TABLES if table.name == "files")
_HASH = _FILES.names.index("sha256")
_COUNTED = {"nodes", "edges", "hyperedges"}


class ExportFormat(enum.StrEnum):
    """What to write."""

    ARCHIVE = "archive"
    JSON = "json"
    GRAPHML = "graphml"
    MARKDOWN = "markdown"


class FileExport:
    """Writes one state of a graph; others go on writing to the database meanwhile."""

    def __init__(
        self, *, open_rows: Callable[[], RowSource], files_of: Callable[[GraphId], Files], clock: Clock
    ) -> None:
        self._open_rows = open_rows
        self._files_of = files_of
        self._clock = clock

    async def write(
        self, graph_id: GraphId, path: Path, format: ExportFormat, *, vectors: bool = True, report: Report
    ) -> Counter[str]:
        """Write a graph to `path`, which must not exist yet; how many there are of each kind.

        Raises:
            Conflict: There is something at `path`.
            Unavailable: It cannot be written, or the database is down.
        """
        if path.exists() and not (path.is_dir() and not any(path.iterdir())):
            raise Conflict(
                f"{path} is there already; choose another name, or move it.", code="already_exists"
            )
        source = await asyncio.to_thread(self._open_rows)
        try:
            with _our_errors(path):
                if format is ExportFormat.ARCHIVE:
                    return await self._archive(source, graph_id, path, vectors, report)
                return await asyncio.to_thread(self._readable, source, graph_id, path, format, report)
        finally:
            source.close()

    async def _archive(
        self, source: RowSource, graph_id: GraphId, path: Path, vectors: bool, report: Report
    ) -> Counter[str]:
        total = sum(source.count(table) for table in GRAPH_TABLES)
        files = self._files_of(graph_id)
        counts: Counter[str] = Counter()
        moment = self._clock.now().isoformat().replace("+00:00", "Z")
        with _new_file(path) as out:
            writer = ArchiveWriter(out)

            def moved(done: int) -> None:
                report(done, total)

            counts["rows"] = await asyncio.to_thread(
                writer.add_tables, source, graph_id, vectors=vectors, on_row=moved
            )
            hashes = sorted({str(row[_HASH]) for row in source.rows_of(_FILES, graph_id)})
            for sha256 in hashes:
                # The bytes of a forgotten node's file may be gone.
                if await files.exists(sha256):
                    with writer.file(sha256) as entry:
                        async for piece in files.read(sha256):
                            entry.write(piece)
                    counts["files"] += 1
            writer.close(graph_id, moment, vectors=vectors)
        return counts

    def _readable(
        self, source: RowSource, graph_id: GraphId, path: Path, format: ExportFormat, report: Report
    ) -> Counter[str]:
        counts: Counter[str] = Counter()
        total = sum(source.count(table) for table in GRAPH_TABLES if table.name in _COUNTED)

        def count(kind: str) -> None:
            counts[kind] += 1
            done = sum(counts.values())
            report(done, max(total, done))

        records = GraphRecords(source, graph_id)
        if format is ExportFormat.MARKDOWN:
            path.mkdir(mode=0o700, exist_ok=True)
            write_notes(path, lambda: records, count)
            return counts
        with _new_file(path) as out:
            if format is ExportFormat.JSON:
                for piece in document_pieces(records, graph_id, self._clock.now(), on_record=count):
                    out.write(piece)
            else:
                for text in graphml_texts(records, count):
                    out.write(text.encode())
        return counts


@contextlib.contextmanager
def _new_file(path: Path) -> Generator[BinaryIO]:
    """A file that only its owner can read, which has its name once it is whole."""
    unfinished = path.with_name(f"{path.name}.part")
    try:
        descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as out:
            yield out
            out.flush()
            os.fsync(out.fileno())
        unfinished.replace(path)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise


@contextlib.contextmanager
def _our_errors(path: Path) -> Generator[None]:
    try:
        yield
    except OSError as error:
        raise Unavailable(f"{path} cannot be written: {error.strerror or error}.") from error
