"""Workbooks and CSV files as streams of rows."""

from __future__ import annotations

import io
from datetime import date, datetime, time
from typing import Any

import openpyxl
import pytest
import xlsxwriter
from hypothesis import given, settings
from hypothesis import strategies as st
from openpyxl.utils.datetime import CALENDAR_MAC_1904
from openpyxl.workbook.defined_name import DefinedName
from openpyxl.worksheet.table import Table

from hivemem.documents.limits import DocumentLimits
from hivemem.documents.tabular.a1 import parse_area
from hivemem.documents.tabular.csv_file import CsvWorkbook, detected_delimiter, typed
from hivemem.documents.tabular.number_formats import date_parts, format_words, moment
from hivemem.documents.tabular.workbook import Cell, CellValue, Workbook, sheet_named, shown
from hivemem.documents.tabular.xlsx import XlsxWorkbook
from hivemem.errors import LimitExceeded, NotFound
from tests.documents.making import LIMITS, csv_book, opened, replaced, sheet_of, workbook


def cells(book: Workbook, sheet: int = 0) -> dict[tuple[int, int], Cell]:
    return {
        (row.number, cell.column): cell for row in book.rows(book.parts.sheets[sheet]) for cell in row.cells
    }


def values(book: Workbook, sheet: int = 0) -> list[list[CellValue]]:
    return [[cell.value for cell in row.cells] for row in book.rows(book.parts.sheets[sheet])]


def test_values_of_every_kind() -> None:
    book = sheet_of(
        [
            ["text", 3, 2.5, True, date(2026, 3, 1), datetime(2026, 3, 1, 14, 30), time(6, 45), "=B1*2"],
            [None, "", 0],
        ]
    )

    assert values(book) == [
        ["text", 3, 2.5, True, "2026-03-01", "2026-03-01T14:30:00", "06:45:00", None],
        [0],
    ]
    assert cells(book)[1, 8].formula == "=B1*2"
    assert cells(book)[2, 3].value == 0


numbers = st.one_of(
    st.integers(-(10**14), 10**14), st.integers(-(10**12), 10**12).map(lambda number: number / 1000)
)
"""openpyxl writes 16 digits of a number."""
texts = st.text(alphabet=st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=20)


@settings(max_examples=25, deadline=None)
@given(
    st.lists(
        st.lists(st.one_of(st.none(), st.booleans(), numbers, texts), max_size=6), min_size=1, max_size=6
    )
)
def test_what_openpyxl_writes_is_read(rows: list[list[Any]]) -> None:
    # Text that begins like a formula or an error is one to the writer.
    rows = [[f"_{value}" if isinstance(value, str) else value for value in row] for row in rows]
    expected = {
        (at, column): value
        for at, row in enumerate(rows, start=1)
        for column, value in enumerate(row, start=1)
        if value is not None
    }
    found = {place: cell.value for place, cell in cells(sheet_of(rows)).items()}

    assert found == expected
    assert {place for place, value in found.items() if isinstance(value, bool)} == {
        place for place, value in expected.items() if isinstance(value, bool)
    }


def test_formats_are_told_and_the_general_one_is_not() -> None:
    found = cells(sheet_of([[0.25, 3, 1200]], A1="0%", C1='#,##0 "€"'))

    assert [cell.format for cell in found.values()] == ["0%", None, '#,##0 "€"']


def test_dates_of_the_other_epoch() -> None:
    def build(book: Any) -> None:
        book.epoch = CALENDAR_MAC_1904
        book.active.append([date(2026, 3, 1)])

    assert values(opened(build)) == [["2026-03-01"]]


def test_shared_formulas_are_told_in_full() -> None:
    sheet = (
        b'<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData>'
        b'<row r="1"><c r="B1"><f t="shared" ref="B1:B3" si="0">A1*$D$1</f><v>2</v></c></row>'
        b'<row r="2"><c r="B2"><f t="shared" si="0"/><v>4</v></c></row>'
        b'<row r="3"><c r="B3" t="str"><f t="shared" si="0"/><v>x</v></c></row></sheetData></worksheet>'
    )
    data = replaced(workbook(lambda book: None), {"xl/worksheets/sheet1.xml": sheet})
    found = cells(XlsxWorkbook(data, "a.xlsx", LIMITS))

    assert [(cell.formula, cell.value) for cell in found.values()] == [
        ("=A1*$D$1", 2),
        ("=A2*$D$1", 4),
        ("=A3*$D$1", "x"),
    ]


def test_cells_without_addresses_and_out_of_order() -> None:
    sheet = (
        b'<x:worksheet xmlns:x="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><x:sheetData>'
        b"<x:row><x:c><x:v>1</x:v></x:c><x:c t='inlineStr'><x:is><x:r><x:t>a</x:t></x:r>"
        b"<x:rPh><x:t>no</x:t></x:rPh></x:is></x:c></x:row>"
        b'<x:row r="4"><x:c r="C4"><x:v>3</x:v></x:c><x:c r="A4"><x:v>1</x:v></x:c></x:row>'
        b"</x:sheetData></x:worksheet>"
    )
    data = replaced(workbook(lambda book: None), {"xl/worksheets/sheet1.xml": sheet})
    found = cells(XlsxWorkbook(data, "a.xlsx", LIMITS))

    assert {place: cell.value for place, cell in found.items()} == {
        (1, 1): 1,
        (1, 2): "a",
        (4, 1): 1,
        (4, 3): 3,
    }


def test_sheets_names_and_tables() -> None:
    def build(book: Any) -> None:
        book.active.title = "Sales"
        for row in (["Item", "Price"], ["Pump", 120], ["Hose", 30]):
            book.active.append(row)
        table = Table(displayName="Prices", ref="A1:B3")
        book.active.add_table(table)
        book.create_sheet("Secret").sheet_state = "hidden"
        book.create_chartsheet("Chart")
        book.defined_names["Tax"] = DefinedName("Tax", attr_text="Sales!$B$2")
        book["Secret"].defined_names["Local"] = DefinedName("Local", attr_text="Secret!$A$1")

    parts = opened(build).parts
    assert [(sheet.sheet_id, sheet.name, sheet.hidden) for sheet in parts.sheets] == [
        ("1", "Sales", False),
        ("2", "Secret", True),
    ]
    (table,) = parts.tables
    assert (table.name, table.sheet, table.area, table.columns) == (
        "Prices",
        "Sales",
        parse_area("A1:B3"),
        ("Item", "Price"),
    )
    assert {(name.name, name.formula, name.sheet) for name in parts.names} == {
        ("Tax", "Sales!$B$2", None),
        ("Local", "Secret!$A$1", "Secret"),
    }


def test_a_sheet_is_found_by_name_in_any_case_or_by_id() -> None:
    def build(book: Any) -> None:
        book.active.title = "2"
        book.create_sheet("Prices")

    parts = opened(build).parts
    assert sheet_named(parts, "prices").sheet_id == "2"
    assert sheet_named(parts, "2").sheet_id == "1"
    assert sheet_named(parts, "1").name == "2"
    with pytest.raises(NotFound, match=r"'Costs'.*'2', 'Prices'"):
        sheet_named(parts, "Costs")


def with_shared_texts(texts: list[str]) -> bytes:
    """A file as Excel writes them: texts in a table of their own, results beside formulas."""
    stream = io.BytesIO()
    with xlsxwriter.Workbook(stream) as book:
        sheet = book.add_worksheet("Ünits")
        bold = book.add_format({"bold": True, "num_format": "0.00"})
        for at, text in enumerate(texts):
            sheet.write_string(at, 0, text)
        sheet.write_rich_string(0, 1, "two ", bold, "runs")
        sheet.write_formula(0, 2, "=A1&B1", None, "result")
        sheet.write_formula(1, 2, "=1/0", bold, "#DIV/0!")
        sheet.write_boolean(1, 3, True)
    return stream.getvalue()


def test_shared_texts_and_results_of_formulas() -> None:
    found = cells(XlsxWorkbook(with_shared_texts(["a & b", " blank ", "a & b"]), "a.xlsx", LIMITS))

    assert {place: (cell.value, cell.formula, cell.format) for place, cell in found.items()} == {
        (1, 1): ("a & b", None, None),
        (1, 2): ("two runs", None, None),
        (1, 3): ("result", "=A1&B1", None),
        (2, 1): (" blank ", None, None),
        (2, 3): ("#DIV/0!", "=1/0", "0.00"),
        (2, 4): (True, None, None),
        (3, 1): ("a & b", None, None),
    }


def test_a_large_table_of_texts_is_refused() -> None:
    data = with_shared_texts([f"text {at}" for at in range(50)])
    with pytest.raises(LimitExceeded, match="200"):
        XlsxWorkbook(data, "a.xlsx", DocumentLimits(max_shared_string_characters=200))


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("yyyy\\-mm\\-dd", "date"),
        ("[$-409]d mmm yyyy;@", "date"),
        ("m/d/yy h:mm", "datetime"),
        ("[h]:mm:ss", "time"),
        ("mm:ss", "time"),
        ("mmm", "date"),
        ('0.0 "days"', ""),
        ("[Red]0.00", ""),
        ("#,##0.00 [$€-407]", ""),
        ("General", ""),
        ("@", ""),
    ],
)
def test_date_formats_are_told_from_others(code: str, expected: str) -> None:
    assert date_parts(code) == expected


@pytest.mark.parametrize(
    ("serial", "code", "expected"),
    [
        (1, "yyyy-mm-dd", "1900-01-01"),
        (59, "yyyy-mm-dd", "1900-02-28"),
        (61, "yyyy-mm-dd", "1900-03-01"),
        (46082, "d.m.yyyy", "2026-03-01"),
        (46082.999999, "d.m.yyyy h:mm", "2026-03-02T00:00:00"),
        (1.5, "[h]:mm", "36:00:00"),
        (0.25, "h:mm", "06:00:00"),
        (-1, "yyyy-mm-dd", None),
        (3e6, "yyyy-mm-dd", None),
        (2958465, "yyyy-mm-dd", "9999-12-31"),
        (5, "0.00", None),
    ],
)
def test_serial_numbers(serial: float, code: str, expected: str | None) -> None:
    assert moment(serial, code, epoch_1904=False) == expected


def test_formats_are_found_by_words() -> None:
    assert "percent" in format_words("0.0%")
    assert "euro" in format_words("#,##0.00 [$€-407]") and "currency" in format_words("#,##0.00 [$€-407]")
    assert "date" in format_words("dd.mm.yyyy")


def test_numbers_are_shown_without_loss() -> None:
    assert [shown(value) for value in (None, True, 3, 3.0, 0.1, "x")] == ["", "TRUE", "3", "3", "0.1", "x"]


@pytest.mark.parametrize(
    ("text", "delimiter"),
    [
        ("a,b,c\n1,2,3\n", ","),
        ("a;b\n1,5;2,5\n3,5;4,5\n", ";"),
        ("1,5;2,5\n3,5;4,5\n", ";"),
        ("a\tb\nx, y\tz\n", "\t"),
        ("a|b\n1|2\n", "|"),
        ('name,note\n"Ann; Bob","a;b"\n"Cy","c"\n', ","),
        ("one column\nof text\n", ","),
        ("", ","),
    ],
)
def test_delimiters_are_detected(text: str, delimiter: str) -> None:
    assert detected_delimiter(text) == delimiter


def test_a_csv_file_is_one_sheet_named_by_its_stem() -> None:
    book = csv_book('name;price\n"Pump; large";12.5\n\n"two\nlines";007\n', "spare parts.2026.csv")

    assert [sheet.name for sheet in book.parts.sheets] == ["spare parts.2026"]
    assert {place: cell.value for place, cell in cells(book).items()} == {
        (1, 1): "name",
        (1, 2): "price",
        (2, 1): "Pump; large",
        (2, 2): 12.5,
        (4, 1): "two\nlines",
        (4, 2): "007",
    }
    assert values(book) == values(book)


def test_csv_encodings_and_the_separator_line() -> None:
    latin = CsvWorkbook("Käse;5\nBrötchen;1\n".encode("cp1252"), "a.csv", LIMITS)
    excel = CsvWorkbook("sep=|\r\na|b\r\n".encode("utf-16"), "a.csv", LIMITS)

    assert values(latin) == [["Käse", 5], ["Brötchen", 1]]
    assert "Latin-1" in latin.parts.warnings[0]
    assert values(excel) == [["a", "b"]]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("12", 12),
        ("-0.5", -0.5),
        (".5", 0.5),
        ("1e5", "1e5"),
        ("1.5e3", 1500.0),
        ("007", "007"),
        ("1,200", "1,200"),
        ("١٢", "١٢"),
        ("9" * 30, "9" * 30),
        ("2026-03-01", "2026-03-01"),
    ],
)
def test_csv_texts_that_are_numbers(text: str, value: CellValue) -> None:
    assert typed(text) == value
    assert type(typed(text)) is type(value)


def test_the_sheets_are_read_as_openpyxl_reads_them_after_excel_like_edits() -> None:
    def build(book: Any) -> None:
        sheet = book.active
        sheet["C3"] = "corner"
        sheet.merge_cells("C3:E4")
        sheet["G10"] = 7

    book = opened(build)
    again = openpyxl.load_workbook(io.BytesIO(workbook(build)))
    expected = {
        (cell.row, cell.column): cell.value
        for row in again.active.iter_rows()
        for cell in row
        if cell.value is not None
    }
    assert {place: cell.value for place, cell in cells(book).items()} == expected
