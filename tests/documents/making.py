"""Real files, written by the libraries that people use, for what reads them."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable, Mapping
from typing import Any

import docx
import openpyxl
import pptx
from fpdf import FPDF
from pypdf import PdfReader, PdfWriter

from hivemem.documents.collected import ExtractedText
from hivemem.documents.extract import extract_text
from hivemem.documents.kinds import kind_of
from hivemem.documents.limits import DocumentLimits
from hivemem.documents.tabular.csv_file import CsvWorkbook
from hivemem.documents.tabular.xlsx import XlsxWorkbook

LIMITS = DocumentLimits()


def extracted(data: bytes, filename: str, limits: DocumentLimits = LIMITS) -> ExtractedText:
    """The text of a file, read in this process."""
    return extract_text(data, filename, kind_of(data, filename, limits), limits)


def workbook(build: Callable[[Any], None]) -> bytes:
    """An Excel file; `build` gets an openpyxl workbook with one empty sheet, `Sheet`."""
    book = openpyxl.Workbook()
    build(book)
    stream = io.BytesIO()
    book.save(stream)
    return stream.getvalue()


def sheet_of(rows: list[list[Any]], **formats: str) -> XlsxWorkbook:
    """A workbook of one sheet; `formats` gives number formats by address."""

    def build(book: Any) -> None:
        for row in rows:
            book.active.append(row)
        for address, code in formats.items():
            book.active[address].number_format = code

    return opened(build)


def opened(build: Callable[[Any], None], limits: DocumentLimits = LIMITS) -> XlsxWorkbook:
    """The workbook that `build` makes, as hivemem sees it."""
    return XlsxWorkbook(workbook(build), "book.xlsx", limits)


def csv_book(text: str, filename: str = "prices.csv") -> CsvWorkbook:
    return CsvWorkbook(text.encode(), filename, LIMITS)


def document(build: Callable[[Any], None]) -> bytes:
    """A Word file; `build` gets a python-docx document."""
    made = docx.Document()
    build(made)
    stream = io.BytesIO()
    made.save(stream)
    return stream.getvalue()


def presentation(build: Callable[[Any], None]) -> bytes:
    """A PowerPoint file; `build` gets a python-pptx presentation."""
    made = pptx.Presentation()
    build(made)
    stream = io.BytesIO()
    made.save(stream)
    return stream.getvalue()


def pdf(*pages: str, title: str = "") -> bytes:
    """A PDF with the built-in font; each text is wrapped on a page of its own."""
    made = FPDF()
    if title:
        made.set_title(title)
    made.set_font("Helvetica", size=12)
    for page in pages:
        made.add_page()
        made.multi_cell(0, 8, page)
    return bytes(made.output())


def encrypted_pdf(data: bytes, user: str, owner: str) -> bytes:
    writer = PdfWriter(clone_from=PdfReader(io.BytesIO(data)))
    writer.encrypt(user_password=user, owner_password=owner, algorithm="AES-256")
    stream = io.BytesIO()
    writer.write(stream)
    return stream.getvalue()


def replaced(archive: bytes, parts: Mapping[str, bytes | Callable[[bytes], bytes]]) -> bytes:
    """An archive with other parts: new bytes, or what a function makes of the old ones."""
    stream = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(archive)) as source, zipfile.ZipFile(stream, "w", 8) as target:
        for name in source.namelist():
            old = source.read(name)
            new = parts.get(name, old)
            target.writestr(name, new(old) if callable(new) else new)
        for name, new in parts.items():
            if name not in source.namelist():
                assert isinstance(new, bytes)
                target.writestr(name, new)
    return stream.getvalue()
