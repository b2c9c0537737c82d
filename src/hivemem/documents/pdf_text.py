"""The text layer of a PDF."""

from __future__ import annotations

import io
import logging
from typing import Any

from pypdf import PdfReader
from pypdf.errors import PyPdfError

from hivemem.documents.collected import CollectedText
from hivemem.documents.kinds import encrypted, unreadable
from hivemem.documents.limits import DocumentLimits
from hivemem.documents.lines import unwrapped
from hivemem.errors import LimitExceeded

# Damaged files are common, and what was left out is said in the result.
logging.getLogger("pypdf").setLevel(logging.CRITICAL)

# What pypdf lets through on broken files beside its own errors.
_BROKEN = (
    PyPdfError,
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    NotImplementedError,
    OSError,
    RecursionError,
    TypeError,
    ValueError,
)


def collect_pdf(data: bytes, filename: str, limits: DocumentLimits, collected: CollectedText) -> str | None:
    """Add the text of each page, and return the title that the file states.

    A page that cannot be read is left out and named in a warning. Files that only restrict printing
    or copying open without a password, and are read.

    Raises:
        InvalidInput: The file needs a password, or is broken as a whole.
        LimitExceeded: It has too many objects.
        Enough: A limit of the collection is reached.
    """
    try:
        reader = PdfReader(io.BytesIO(data), strict=False)
        if reader.is_encrypted and not reader.decrypt(""):
            raise encrypted(filename)
        _check_objects(reader, filename, limits)
        pages = len(reader.pages)
    except _BROKEN as error:
        raise unreadable(filename, f"the PDF is broken ({_reason(error)})") from error
    title = _title(reader)
    found = False
    skipped: list[str] = []
    for number in range(min(pages, limits.max_pdf_pages)):
        try:
            page = reader.pages[number]
            # Extraction itself takes a page that unpacks without end for an empty one; this raises.
            page.get_contents()
            text = page.extract_text()
        except _BROKEN:
            skipped.append(str(number + 1))
            continue
        found = found or bool(text.strip())
        for paragraph in unwrapped(text.splitlines()):
            collected.paragraph(paragraph)
    if pages > limits.max_pdf_pages:
        collected.cut(f"{limits.max_pdf_pages:,} of {pages:,} pages were read")
    if skipped:
        more = " and more" if len(skipped) > 20 else ""
        collected.cut(f"pages that could not be read: {', '.join(skipped[:20])}{more}")
    elif not found:
        collected.warn("the PDF has no text layer; it may be a scan")
    return title


def _check_objects(reader: PdfReader, filename: str, limits: DocumentLimits) -> None:
    objects = sum(map(len, reader.xref.values())) + len(reader.xref_objStm)
    if objects > limits.max_pdf_objects:
        raise LimitExceeded(
            f"{filename!r} has {objects:,} PDF objects; at most {limits.max_pdf_objects:,} are taken.",
            limit=limits.max_pdf_objects,
        )


def _title(reader: PdfReader) -> str | None:
    try:
        title: Any = reader.metadata.title if reader.metadata else None
    except _BROKEN:
        return None
    return title if isinstance(title, str) else None


def _reason(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"[:200]
