"""The text of a file of any accepted kind. Runs in a worker process: bytes from outside are parsed here."""

from __future__ import annotations

import json
from collections.abc import Sequence

from hivemem.documents.collected import CollectedText, Enough, ExtractedText
from hivemem.documents.decoding import declared_charset, decode
from hivemem.documents.html_text import HtmlText
from hivemem.documents.kinds import FileKind, unreadable
from hivemem.documents.limits import DocumentLimits
from hivemem.documents.package import Package
from hivemem.documents.slides_text import collect_slides
from hivemem.documents.tabular.workbook import Cell, CellBudget, shown
from hivemem.documents.tabular.xlsx import XlsxWorkbook
from hivemem.documents.word_text import collect_word
from hivemem.documents.xml_stream import BrokenXml

_TITLE_CHARACTERS = 120


def extract_text(data: bytes, filename: str, kind: FileKind, limits: DocumentLimits) -> ExtractedText:
    """The text of a file whose kind is known.

    Args:
        data: The bytes.
        filename: For messages.
        kind: As `kinds.kind_of` found it.
        limits: Where extraction ends.

    Returns:
        The text; empty, with a warning, for kinds without text.

    Raises:
        InvalidInput: The file is broken (`file_unreadable`) or encrypted (`file_encrypted`).
        LimitExceeded: The file is beyond a limit that refuses.
    """
    collected = CollectedText(limits)
    title: str | None = None
    try:
        match kind.name:
            case "txt" | "md" | "csv" | "json" | "html" | "rdf":
                title = _text(data, kind, collected)
            case "pdf":
                from hivemem.documents.pdf_text import collect_pdf

                title = collect_pdf(data, filename, limits, collected)
            case "docx":
                title = collect_word(Package(data, filename, limits), collected)
            case "pptx":
                title = collect_slides(Package(data, filename, limits), collected)
            case "xlsx":
                _workbook(XlsxWorkbook(data, filename, limits), limits, collected)
            case _:
                collected.warn(_without_text(kind))
    except Enough:
        pass
    except BrokenXml as error:
        raise unreadable(filename, error) from error
    return collected.result(title)


def _text(data: bytes, kind: FileKind, collected: CollectedText) -> str | None:
    """Add the text of a text format; returns its title."""
    declared = declared_charset(data) if kind.name == "html" else None
    decoded = decode(data, declared=declared)
    for warning in decoded.warnings:
        collected.warn(warning)
    if kind.name == "html":
        page = HtmlText(collected)
        page.feed(decoded.text)
        page.close()
        return page.title
    if kind.name == "json":
        try:
            json.loads(decoded.text)
        except (ValueError, RecursionError) as error:
            collected.warn(f"the text is not valid JSON ({type(error).__name__}) and was kept as it stands")
    collected.raw(decoded.text)
    lines = decoded.text[:10_000].split("\n")
    if kind.name == "md":
        return next((line.lstrip("#").strip() for line in lines if line.startswith("#")), None)
    return _first_line(lines) if kind.name == "txt" else None


def _first_line(lines: Sequence[str]) -> str | None:
    """The first line, if it stands alone like a title does: short, and no sentence."""
    for position, line in enumerate(lines):
        title = line.strip()
        if not title:
            continue
        alone = position + 1 < len(lines) and not lines[position + 1].strip()
        is_title = len(title) <= _TITLE_CHARACTERS and not title.endswith((".", ",", ";", "。"))
        return title if alone and is_title else None
    return None


def _workbook(workbook: XlsxWorkbook, limits: DocumentLimits, collected: CollectedText) -> None:
    budget = CellBudget(limits.max_cells)
    for sheet in workbook.parts.sheets:
        named = False
        for row in budget.rows(workbook, sheet):
            if not named:
                collected.paragraph(sheet.name, level=2)
                named = True
            collected.paragraph(" | ".join(_shown(cell) for cell in row.cells))
    if budget.exhausted:
        collected.cut(f"only the first {limits.max_cells:,} cells were read")


def _shown(cell: Cell) -> str:
    return " ".join(shown(cell.value).split()) or (cell.formula or "")


def _without_text(kind: FileKind) -> str:
    if kind.file_type == "document":
        return f"files of the old format {kind.name} are kept without their text; save them as {kind.name}x"
    return f"the file is kept; no text is read from {kind.file_type} files"
