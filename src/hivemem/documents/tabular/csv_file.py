"""A CSV file as a workbook of one sheet."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import PurePosixPath

from hivemem.documents.decoding import decode
from hivemem.documents.limits import DocumentLimits
from hivemem.documents.tabular.a1 import MAX_COLUMN, MAX_ROW
from hivemem.documents.tabular.workbook import Cell, CellValue, Row, Sheet, WorkbookParts
from hivemem.errors import InvalidInput, LimitExceeded

_DELIMITERS = ("\t", ";", "|", ",")
_SAMPLE_LINES = 200
_SAMPLE_CHARACTERS = 1 << 16
_INTEGER = re.compile(r"-?(0|[1-9][0-9]{0,14})")
_NUMBER = re.compile(r"-?(0|[1-9][0-9]{0,14})?\.[0-9]{1,17}([eE][-+]?[0-9]{1,2})?")


class CsvWorkbook:
    """The rows of a CSV file. There are no formulas, formats or tables in it.

    Text that is a plain number in English notation becomes one; numbers with leading zeros, spaces,
    thousands or a decimal comma stay text, as do dates: they may be names.

    Args:
        data: The bytes of the file.
        filename: Its name; the sheet is called as its stem.
        limits: Cells, and the length of a single one.
    """

    def __init__(self, data: bytes, filename: str, limits: DocumentLimits) -> None:
        decoded = decode(data)
        self._text = decoded.text
        self._limits = limits
        self._filename = filename
        declared = re.match(r"sep=(.)\n", self._text, re.IGNORECASE)
        self._start = declared.end() if declared else 0
        self.delimiter = declared[1] if declared else detected_delimiter(self._text)
        name = PurePosixPath(filename).stem or filename
        self.parts = WorkbookParts(
            sheets=(Sheet(sheet_id="1", name=name),),
            warnings=decoded.warnings,
        )

    def rows(self, sheet: Sheet) -> Iterator[Row]:
        """As the port says."""
        source = io.StringIO(self._text, newline="")
        source.seek(self._start)
        csv.field_size_limit(self._limits.max_xml_text_bytes)
        reader = csv.reader(source, delimiter=self.delimiter)
        number = 0
        try:
            for number, fields in enumerate(reader, start=1):
                if number > MAX_ROW or len(fields) > MAX_COLUMN:
                    raise LimitExceeded(
                        f"{self._filename!r} is larger than a sheet of {MAX_ROW:,} rows and {MAX_COLUMN:,} "
                        f"columns at row {number:,}; split it.",
                    )
                cells = [
                    Cell(column, typed(text), None, None)
                    for column, text in enumerate(fields, start=1)
                    if text and not text.isspace()
                ]
                if cells:
                    yield Row(number, cells)
        except csv.Error as error:
            raise InvalidInput(
                f"{self._filename!r} cannot be read at row {number + 1}: {error}.", code="file_unreadable"
            ) from error


def typed(text: str) -> CellValue:
    """The number that a text is, or the text without outer blanks.

    Example:
        >>> typed(" 12 "), typed("0.5"), typed("007"), typed("1,5"), typed("12 kg")
        (12, 0.5, '007', '1,5', '12 kg')
    """
    text = text.strip()
    if _INTEGER.fullmatch(text):
        return int(text)
    if _NUMBER.fullmatch(text):
        return float(text)
    return text


def detected_delimiter(text: str) -> str:
    """The delimiter that splits the first rows most evenly: tab, semicolon, bar or comma.

    For each candidate: the share of rows that have the commonest number of columns, if that is more
    than one, times 0.3 when the first row has another number. The first of equals wins; the comma is
    last, because a decimal comma can stand in each row of a file with semicolons.
    """
    sample = text[:_SAMPLE_CHARACTERS]
    if len(sample) < len(text):
        sample = sample[: sample.rfind("\n") + 1] or sample
    best, best_score = _DELIMITERS[-1], 0.0
    for delimiter in _DELIMITERS:
        widths: list[int] = []
        try:
            for fields in csv.reader(io.StringIO(sample, newline=""), delimiter=delimiter):
                if fields:
                    widths.append(len(fields))
                if len(widths) >= _SAMPLE_LINES:
                    break
        except csv.Error:
            continue
        if not widths:
            continue
        width, rows = max(Counter(widths).items(), key=lambda item: (item[1], item[0]))
        score = rows / len(widths) * (1.0 if widths[0] == width else 0.3) if width > 1 else 0.0
        if score > best_score:
            best, best_score = delimiter, score
    return best
