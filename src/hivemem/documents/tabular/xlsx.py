"""An Excel workbook, read from its XML parts as a stream: values, formulas and formats in one pass.

Source: ISO/IEC 29500-1, SpreadsheetML (18.3 worksheets, 18.4 shared strings, 18.5 tables, 18.8 styles).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from hivemem.documents.decoding import storable
from hivemem.documents.limits import DocumentLimits
from hivemem.documents.package import Package, main_part
from hivemem.documents.tabular.a1 import MAX_COLUMN, MAX_ROW, parse_area, parse_cell
from hivemem.documents.tabular.formulas import moved
from hivemem.documents.tabular.number_formats import BUILT_IN, moment
from hivemem.documents.tabular.workbook import (
    Cell,
    CellValue,
    DefinedName,
    Row,
    Sheet,
    Table,
    WorkbookParts,
)
from hivemem.documents.xml_stream import BrokenXml, feed
from hivemem.errors import InvalidInput, LimitExceeded

_YES = frozenset(("1", "true", "on"))


class XlsxWorkbook:
    """The sheets of an Excel file (XLSX or XLSM; macros are never looked at).

    Args:
        data: The bytes of the file.
        filename: Its name, for messages.
        limits: What may be unpacked and kept.

    Raises:
        InvalidInput: The file is broken or encrypted.
        LimitExceeded: It is beyond the limits.
    """

    def __init__(self, data: bytes, filename: str, limits: DocumentLimits) -> None:
        self._package = Package(data, filename, limits)
        self._limits = limits
        main = main_part(self._package)
        relations = self._package.relations(main)
        book = _Book()
        self._package.parse(main, book)
        self._epoch_1904 = book.epoch_1904
        self._targets: dict[str, str] = {}
        sheets: list[Sheet] = []
        for name, relation_id, hidden in book.sheets:
            relation = relations.get(relation_id)
            # Chart sheets have no cells; a sheet whose part is lost is as good as one.
            if relation is None or relation.kind != "worksheet" or relation.target not in self._package:
                continue
            sheet = Sheet(sheet_id=str(len(sheets) + 1), name=storable(name), hidden=hidden)
            sheets.append(sheet)
            self._targets[sheet.sheet_id] = relation.target
        if not sheets:
            raise self._package.broken("the workbook has no sheet with cells")
        self._strings: list[str] = []
        self._formats: list[str | None] = []
        for relation in relations.values():
            if relation.kind == "sharedStrings" and relation.target in self._package:
                strings = _SharedStrings(limits)
                self._package.parse(relation.target, strings)
                self._strings = strings.texts
            elif relation.kind == "styles" and relation.target in self._package:
                styles = _Styles()
                self._package.parse(relation.target, styles)
                self._formats = styles.cell_formats()
        in_order = {index: name for index, (name, _, _) in enumerate(book.sheets)}
        self.parts = WorkbookParts(
            sheets=tuple(sheets),
            tables=tuple(table for sheet in sheets for table in self._tables(sheet)),
            names=tuple(
                DefinedName(
                    name=name, formula=formula, sheet=in_order.get(local) if local is not None else None
                )
                for name, formula, local in book.names
            ),
        )

    def rows(self, sheet: Sheet) -> Iterator[Row]:
        """As the port says."""
        handler = _Cells(self._strings, self._formats, self._epoch_1904)
        part = self._targets[sheet.sheet_id]
        try:
            for _ in feed(self._package.chunks(part), handler, self._limits):
                yield from handler.take()
        except BrokenXml as error:
            raise self._package.broken(f"in its sheet {sheet.name!r}, {error}") from error

    def _tables(self, sheet: Sheet) -> Iterator[Table]:
        for relation in self._package.relations(self._targets[sheet.sheet_id]).values():
            if relation.kind == "table" and relation.target in self._package:
                handler = _TablePart()
                self._package.parse(relation.target, handler)
                if handler.reference:
                    try:
                        area = parse_area(handler.reference, "a table's area")
                    except InvalidInput as error:
                        raise self._package.broken(error.message) from error
                    yield Table(
                        name=storable(handler.name),
                        sheet=sheet.name,
                        area=area,
                        columns=tuple(handler.columns),
                        header_rows=handler.header_rows,
                        totals_rows=handler.totals_rows,
                    )


class _Book:
    def __init__(self) -> None:
        self.sheets: list[tuple[str, str, bool]] = []
        self.names: list[tuple[str, str, int | None]] = []
        self.epoch_1904 = False
        self._name: tuple[str, int | None] | None = None
        self._formula: list[str] = []

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        if name == "sheet":
            link = next((value for key, value in attributes.items() if key.endswith("}id")), "")
            hidden = attributes.get("state", "visible") != "visible"
            self.sheets.append((attributes.get("name", ""), link, hidden))
        elif name == "workbookPr":
            self.epoch_1904 = attributes.get("date1904", "0") in _YES
        elif name == "definedName":
            local = attributes.get("localSheetId")
            self._name = (attributes.get("name", ""), int(local) if local else None)
            self._formula.clear()

    def end(self, name: str) -> None:
        if name == "definedName" and self._name:
            self.names.append((self._name[0], storable("".join(self._formula)), self._name[1]))
            self._name = None

    def text(self, data: str) -> None:
        if self._name:
            self._formula.append(data)


class _SharedStrings:
    """Texts that cells refer to by position; phonetic readings (`rPh`) are left out."""

    def __init__(self, limits: DocumentLimits) -> None:
        self.texts: list[str] = []
        self._limit = limits.max_shared_string_characters
        self._size = 0
        self._parts: list[str] = []
        self._text = False
        self._phonetic = False

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        self._text = name == "t" and not self._phonetic
        if name == "rPh":
            self._phonetic = True

    def end(self, name: str) -> None:
        self._text = False
        if name == "rPh":
            self._phonetic = False
        elif name == "si":
            text = storable("".join(self._parts))
            self._parts.clear()
            self._size += len(text) + 8
            if self._size > self._limit:
                raise LimitExceeded(
                    f"the workbook has more than {self._limit:,} characters of text; split it.",
                    limit=self._limit,
                )
            self.texts.append(text)

    def text(self, data: str) -> None:
        if self._text:
            self._parts.append(data)


class _Styles:
    def __init__(self) -> None:
        self._codes = dict(BUILT_IN)
        self._ids: list[int] = []
        self._inside = False

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        if name == "numFmt":
            self._codes[int(attributes.get("numFmtId", "0"))] = storable(attributes.get("formatCode", ""))
        elif name == "cellXfs":
            self._inside = True
        elif name == "xf" and self._inside:
            self._ids.append(int(attributes.get("numFmtId", "0")))

    def end(self, name: str) -> None:
        if name == "cellXfs":
            self._inside = False

    def text(self, data: str) -> None:
        pass

    def cell_formats(self) -> list[str | None]:
        """The format code of each cell style, None for the general one."""
        codes = [self._codes.get(id) for id in self._ids]
        return [None if code is None or code.lower() == "general" else code for code in codes]


class _TablePart:
    def __init__(self) -> None:
        self.name = ""
        self.reference = ""
        self.columns: list[str] = []
        self.header_rows = 1
        self.totals_rows = 0

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        if name == "table":
            self.name = attributes.get("displayName") or attributes.get("name", "")
            self.reference = attributes.get("ref", "")
            self.header_rows = int(attributes.get("headerRowCount", "1"))
            self.totals_rows = int(attributes.get("totalsRowCount", "0"))
        elif name == "tableColumn":
            # Line breaks in a header are written as _x000a_.
            self.columns.append(storable(attributes.get("name", "").replace("_x000a_", "\n")))

    def end(self, name: str) -> None:
        pass

    def text(self, data: str) -> None:
        pass


class _Cells:
    """Cells of a worksheet; `take` hands out the rows that are complete."""

    def __init__(self, strings: list[str], formats: list[str | None], epoch_1904: bool) -> None:
        self._strings = strings
        self._formats = formats
        self._epoch_1904 = epoch_1904
        self._ready: list[Row] = []
        self._cells: list[Cell] = []
        self._row = 0
        self._last_row = 0
        self._column = 0
        self._in_order = True
        self._type = "n"
        self._format: str | None = None
        self._value: list[str] = []
        self._formula: list[str] = []
        self._has_formula = False
        self._into: list[str] | None = None
        self._phonetic = False
        self._shared_id: str | None = None
        self._shared: dict[str, tuple[str, int, int]] = {}

    def take(self) -> list[Row]:
        """Complete rows since the last call."""
        ready, self._ready = self._ready, []
        return ready

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        if name == "c":
            reference = attributes.get("r")
            if reference:
                row, self._column = _position(reference)
                if row != self._row:
                    raise ValueError(f"the cell {reference} lies in row {self._row}")
            else:
                self._column += 1
            self._type = attributes.get("t", "n")
            style = int(attributes.get("s", "0"))
            self._format = self._formats[style] if style < len(self._formats) else None
            self._value = []
            self._formula = []
            self._has_formula = False
        elif name == "v":
            self._into = self._value
        elif name == "f":
            self._into = self._formula
            self._has_formula = True
            self._shared_id = attributes.get("si") if attributes.get("t") == "shared" else None
        elif name == "t":
            self._into = None if self._phonetic else self._value
        elif name == "rPh":
            self._phonetic = True
        elif name == "row":
            self._row = int(attributes.get("r", self._row + 1))
            self._column = 0

    def end(self, name: str) -> None:
        if name == "c":
            value = self._typed("".join(self._value)) if self._value else None
            formula = self._finished_formula() if self._has_formula else None
            if (value is not None and value != "") or formula:
                if not (1 <= self._row <= MAX_ROW and 1 <= self._column <= MAX_COLUMN):
                    raise ValueError(f"a cell lies at row {self._row} and column {self._column}")
                if self._cells and self._column <= self._cells[-1].column:
                    self._in_order = False
                self._cells.append(Cell(self._column, value, formula, self._format))
        elif name in ("v", "f", "t"):
            self._into = None
        elif name == "rPh":
            self._phonetic = False
        elif name == "row" and self._cells:
            if self._row <= self._last_row:
                raise ValueError(f"row {self._row} comes after row {self._last_row}")
            self._last_row = self._row
            if not self._in_order:
                self._cells = [
                    cell for _, cell in sorted({cell.column: cell for cell in self._cells}.items())
                ]
                self._in_order = True
            self._ready.append(Row(self._row, self._cells))
            self._cells = []

    def text(self, data: str) -> None:
        if self._into is not None:
            self._into.append(data)

    def _finished_formula(self) -> str | None:
        text = "".join(self._formula)
        if self._shared_id is not None:
            if text:
                self._shared[self._shared_id] = (text, self._row, self._column)
            elif self._shared_id in self._shared:
                text, row, column = self._shared[self._shared_id]
                text = moved(text, self._row - row, self._column - column)
        return "=" + storable(text) if text else None

    def _typed(self, text: str) -> CellValue:
        kind = self._type
        if kind == "s":
            index = int(text)
            if not 0 <= index < len(self._strings):
                raise ValueError(f"a cell shows text {index} of {len(self._strings)}")
            return self._strings[index]
        if kind == "n":
            number = float(text)
            if self._format and (date := moment(number, self._format, epoch_1904=self._epoch_1904)):
                return date
            if number != number or number in (float("inf"), float("-inf")):
                return text
            return int(number) if number.is_integer() and abs(number) < 1e15 else number
        if kind == "b":
            return text.strip() == "1"
        return storable(text)


def _position(reference: str) -> tuple[int, int]:
    """Row and column of a plain reference such as `BC12`, as fast as Python can."""
    letters = reference.rstrip("0123456789")
    column = _COLUMN_NUMBERS.get(letters)
    if column is None:
        try:
            row, column = parse_cell(reference, "the cell")
        except InvalidInput as error:
            raise ValueError(error.message) from error
        _COLUMN_NUMBERS[letters] = column
        return row, column
    return int(reference[len(letters) :]), column


_COLUMN_NUMBERS: dict[str, int] = {}
