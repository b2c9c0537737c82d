"""Files from the outside in: what an upload is, its text and summary, and questions about its cells."""

from __future__ import annotations

from collections.abc import AsyncIterable
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import TypeAdapter

from hivemem.documents.collected import ExtractedText
from hivemem.documents.kinds import KINDS, FileKind, checked_filename
from hivemem.documents.limits import DocumentLimits
from hivemem.documents.processes import WorkerProcesses
from hivemem.documents.summary import DEFAULT_CHARACTERS
from hivemem.documents.tabular.answers import (
    Direction,
    OutlineAnswer,
    RangeAnswer,
    SearchAnswer,
    TraceAnswer,
)
from hivemem.errors import InvalidInput, LimitExceeded
from hivemem.ports.files import Blob, Files, read_whole

_Answer = TypeVar("_Answer")

_OUTLINE = TypeAdapter(OutlineAnswer)
_RANGE = TypeAdapter(RangeAnswer)
_SEARCH = TypeAdapter(SearchAnswer)
_TRACE = TypeAdapter(TraceAnswer)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadFile:
    """What a file says: its kind, its text, and a summary of it (empty when there is no text)."""

    filename: str
    kind: FileKind
    extracted: ExtractedText
    summary: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredFile:
    """A file as whoever asks about it knows it: the id to tell, the name, and where the bytes are."""

    file_id: str
    filename: str
    sha256: str


class Documents:
    """The way into this layer. Every method parses in a worker process; none blocks the event loop.

    A use case calls `read` with the bytes of an upload, `keep` once it knows that it wants them, and
    then writes its own rows. What was kept and is referred to by no row is found by `Files.list`.

    Args:
        files: Where bytes are kept.
        limits: What one file may cost.
        max_processes: How many files are read at once.
        max_waiting: How many may wait.
    """

    def __init__(
        self,
        files: Files,
        *,
        limits: DocumentLimits | None = None,
        max_processes: int = 2,
        max_waiting: int = 32,
    ) -> None:
        self.limits = limits or DocumentLimits()
        self._files = files
        self._processes = WorkerProcesses(self.limits, max_processes=max_processes, max_waiting=max_waiting)

    async def read(
        self, data: bytes, filename: str, *, summary_characters: int = DEFAULT_CHARACTERS
    ) -> ReadFile:
        """Decide what bytes are, and read them. Nothing is kept.

        Args:
            data: The bytes of a file.
            filename: As the sender calls it; folders in it are dropped.
            summary_characters: How long the summary may be, at least 1.

        Raises:
            InvalidInput: A bad name, no bytes, an unsupported kind (`unsupported_file_type`), another
                kind than the name says (`file_type_mismatch`), an encrypted (`file_encrypted`) or a
                broken file (`file_unreadable`).
            LimitExceeded: Too large, an archive bomb (`archive_bomb`), or too much work
                (`file_too_complex`).
            Unavailable: Too many files are being read.
        """
        name = checked_filename(filename)
        if not data:
            raise InvalidInput(f"{name!r} is empty; send a file with content.", code="file_unreadable")
        if len(data) > self.limits.max_file_bytes:
            raise LimitExceeded(
                f"{name!r} has {len(data):,} bytes; at most {self.limits.max_file_bytes:,} are taken.",
                limit=self.limits.max_file_bytes,
            )
        told = await self._processes.run("read", name, data, {"max_characters": summary_characters})
        return ReadFile(
            filename=name,
            kind=KINDS[told["kind"]],
            extracted=ExtractedText(
                text=told["text"],
                title=told["title"],
                truncated=told["truncated"],
                warnings=tuple(told["warnings"]),
            ),
            summary=told["summary"],
        )

    async def keep(self, content: bytes | AsyncIterable[bytes]) -> Blob:
        """Keep bytes for good. Errors as in `Files.put`."""
        return await self._files.put(content, max_bytes=self.limits.max_file_bytes)

    async def read_again(self, file: StoredFile, *, summary_characters: int = DEFAULT_CHARACTERS) -> ReadFile:
        """Read a kept file anew. Errors as in `read` and `Files.read`."""
        data = await read_whole(self._files, file.sha256)
        return await self.read(data, file.filename, summary_characters=summary_characters)

    async def outline(
        self, file: StoredFile, *, include_regions: bool = True, max_sheets: int = 250
    ) -> OutlineAnswer:
        """As `tabular.outline.outline`; `InvalidInput` (`file_not_tabular`) for a file without cells."""
        arguments = {"include_regions": include_regions, "max_sheets": max_sheets}
        return await self._ask("outline", file, arguments, _OUTLINE)

    async def range(
        self, file: StoredFile, *, sheet: str, address: str, max_cells: int = 2_000
    ) -> RangeAnswer:
        """As `tabular.outline.cell_range`; `InvalidInput` (`file_not_tabular`) for a file without cells."""
        arguments = {"sheet": sheet, "address": address, "max_cells": max_cells}
        return await self._ask("range", file, arguments, _RANGE)

    async def search(
        self, file: StoredFile, *, query: str, sheet: str | None = None, limit: int = 25
    ) -> SearchAnswer:
        """As `tabular.search.search`; `InvalidInput` (`file_not_tabular`) for a file without cells."""
        arguments = {"query": query, "sheet": sheet, "limit": limit}
        return await self._ask("search", file, arguments, _SEARCH)

    async def trace(
        self,
        file: StoredFile,
        *,
        sheet: str,
        cell: str,
        direction: Direction = "precedents",
        max_depth: int = 6,
        max_nodes: int = 200,
    ) -> TraceAnswer:
        """As `tabular.trace.trace`; `InvalidInput` (`file_not_tabular`) for a file without cells."""
        arguments = {
            "sheet": sheet,
            "cell": cell,
            "direction": direction,
            "max_depth": max_depth,
            "max_nodes": max_nodes,
        }
        return await self._ask("trace", file, arguments, _TRACE)

    async def _ask(
        self, mode: str, file: StoredFile, arguments: dict[str, Any], answer: TypeAdapter[_Answer]
    ) -> _Answer:
        data = await read_whole(self._files, file.sha256)
        told = await self._processes.run(mode, file.filename, data, {"file_id": file.file_id, **arguments})
        return answer.validate_python(told)
