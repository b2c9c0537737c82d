"""Files from the outside in: what an upload is, its text and summary, and questions about its cells."""

from __future__ import annotations

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
class NamedBytes:
    """A file as whoever asks about it knows it: the id to tell, the name, and the bytes."""

    file_id: str
    filename: str
    data: bytes


class Documents:
    """The way into this layer. Every method parses in a worker process; none blocks the event loop.

    Args:
        limits: What one file may cost.
        max_processes: How many files are read at once.
        max_waiting: How many may wait.
    """

    def __init__(
        self,
        *,
        limits: DocumentLimits | None = None,
        max_processes: int = 2,
        max_waiting: int = 32,
    ) -> None:
        self.limits = limits or DocumentLimits()
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

    async def outline(
        self, file: NamedBytes, *, include_regions: bool = True, max_sheets: int = 250
    ) -> OutlineAnswer:
        """As `tabular.outline.outline`; `InvalidInput` (`file_not_tabular`) for a file without cells."""
        arguments = {"include_regions": include_regions, "max_sheets": max_sheets}
        return await self._ask("outline", file, arguments, _OUTLINE)

    async def range(
        self, file: NamedBytes, *, sheet: str, address: str, max_cells: int = 2_000
    ) -> RangeAnswer:
        """As `tabular.outline.cell_range`; `InvalidInput` (`file_not_tabular`) for a file without cells."""
        arguments = {"sheet": sheet, "address": address, "max_cells": max_cells}
        return await self._ask("range", file, arguments, _RANGE)

    async def search(
        self, file: NamedBytes, *, query: str, sheet: str | None = None, limit: int = 25
    ) -> SearchAnswer:
        """As `tabular.search.search`; `InvalidInput` (`file_not_tabular`) for a file without cells."""
        arguments = {"query": query, "sheet": sheet, "limit": limit}
        return await self._ask("search", file, arguments, _SEARCH)

    async def trace(
        self,
        file: NamedBytes,
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
        self, mode: str, file: NamedBytes, arguments: dict[str, Any], answer: TypeAdapter[_Answer]
    ) -> _Answer:
        told = await self._processes.run(
            mode, file.filename, file.data, {"file_id": file.file_id, **arguments}
        )
        return answer.validate_python(told)
