"""Regions of sheets, and ranges of cells."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from openpyxl.worksheet.table import Table

from hivemem.documents.limits import DocumentLimits
from hivemem.documents.tabular.a1 import Area, cell_name
from hivemem.documents.tabular.answers import RangeAnswer
from hivemem.documents.tabular.outline import cell_range, outline
from hivemem.documents.tabular.regions import MAX_REGIONS, SheetUse, sheet_use
from hivemem.documents.tabular.workbook import Cell, Row, Sheet
from hivemem.errors import InvalidInput, NotFound
from tests.documents.making import LIMITS, csv_book, opened, sheet_of


def told(book: Any, **options: Any) -> list[tuple[str, str, tuple[str, ...], str | None]]:
    answer = outline(book, LIMITS, file_id="f", **options)
    return [(one.range, one.kind, one.headers, one.title) for sheet in answer.sheets for one in sheet.regions]


def test_a_table_under_its_headers() -> None:
    book = sheet_of([["Item", "Price"], ["Pump", 120], ["Hose", 30.5]])
    assert told(book) == [("A1:B3", "table", ("Item", "Price"), None)]


def test_blocks_that_do_not_touch_are_regions_of_their_own() -> None:
    book = sheet_of(
        [
            ["Report 2026", None, None, None, "Note"],
            [],
            ["Rent", 900],
            ["Food", 420],
            ["Power", 80],
            [],
            [None, None, "Name", "City", "Team"],
            [None, None, "Ann", "Oslo", "Sales"],
            [None, None, "Bob", "Rome", "Sales"],
        ]
    )
    assert told(book) == [
        ("A1", "cell", (), None),
        ("E1", "cell", (), None),
        ("A3:B5", "form", (), None),
        ("C7:E9", "table", ("Name", "City", "Team"), None),
    ]


def test_a_line_above_the_headers_is_the_title() -> None:
    book = sheet_of(
        [["Prices in spring"], ["Item", "Price", ""], ["Pump", 120, "=B3*2"], ["Hose", 30, "=B4*2"]]
    )
    assert told(book) == [("A1:C4", "table", ("Item", "Price"), "Prices in spring")]


def test_columns_without_a_header_keep_their_place() -> None:
    book = sheet_of([["Item", None, "Price"], ["Pump", "x", 120], ["Hose", "y", 30]])
    assert told(book) == [("A1:C3", "table", ("Item", "", "Price"), None)]


@pytest.mark.parametrize(
    ("rows", "kind", "headers"),
    [
        ([["Amount"], [1], [2]], "list", ("Amount",)),
        ([["one"], ["two"], ["three"]], "list", ()),
        ([[1, 2], [3, 4]], "block", ()),
        ([["Name:", "Ann"], ["City:", "Oslo"], ["Age:", 31]], "form", ()),
        ([["Total", 12]], "block", ()),
        ([["a", "a"], [1, 2]], "block", ()),
        ([["2025", "2026"], ["=A1", "=B1"]], "table", ("2025", "2026")),
    ],
)
def test_kinds(rows: list[list[Any]], kind: str, headers: tuple[str, ...]) -> None:
    ((_, found, names, _),) = told(sheet_of(rows))
    assert (found, names) == (kind, headers)


def test_dates_under_a_header_count_as_values() -> None:
    book = sheet_of([["Day", "Who"], [46082, "Ann"], [46083, "Bob"]], A2="yyyy-mm-dd", A3="yyyy-mm-dd")
    assert told(book) == [("A1:B3", "table", ("Day", "Who"), None)]


def test_tables_of_the_file_are_regions_as_they_are() -> None:
    def build(book: Any) -> None:
        for row in (["Item", "Price"], ["Pump", "dear"], [], ["alone"]):
            book.active.append(row)
        book.active.add_table(Table(displayName="Prices", ref="A1:B2"))

    assert told(opened(build)) == [
        ("A1:B2", "table", ("Item", "Price"), "Prices"),
        ("A4", "cell", (), None),
    ]


def test_a_ring_and_what_is_inside_are_one_region() -> None:
    rows: list[list[Any]] = [[1] * 7, *([1, *[None] * 5, 1] for _ in range(5)), [1] * 7]
    rows[3][3] = 5
    assert told(sheet_of(rows)) == [("A1:G7", "block", (), None)]


def test_sheets_sizes_and_limits() -> None:
    def build(book: Any) -> None:
        book.active["C5"] = 1
        for number in range(3):
            book.create_sheet(f"S{number}").append([1, None, 3])
        book["S0"].sheet_state = "hidden"

    book = opened(build)
    answer = outline(book, LIMITS, file_id="f1")
    assert answer.file_id == "f1" and not answer.truncated
    assert [
        (one.sheet_id, one.name, one.hidden, one.row_count, one.column_count) for one in answer.sheets
    ] == [
        ("1", "Sheet", False, 5, 3),
        ("2", "S0", True, 1, 3),
        ("3", "S1", False, 1, 3),
        ("4", "S2", False, 1, 3),
    ]
    assert [one.region_id for one in answer.sheets[1].regions] == ["2.1", "2.2"]

    assert outline(book, LIMITS, file_id="f", max_sheets=2).truncated
    assert told(book, include_regions=False) == []
    few = outline(book, DocumentLimits(max_cells=2), file_id="f")
    assert few.truncated and [sheet.row_count for sheet in few.sheets] == [5, 0, 0, 0]
    for number in (0, 501):
        with pytest.raises(InvalidInput, match=f"max_sheets is {number}"):
            outline(book, LIMITS, file_id="f", max_sheets=number)


def use_of(places: set[tuple[int, int]]) -> SheetUse:
    rows = [
        Row(row, [Cell(column, 1, None, None) for at, column in sorted(places) if at == row])
        for row in sorted({row for row, _ in places})
    ]
    return sheet_use(Sheet(sheet_id="1", name="s"), rows, ())


def flooded(places: set[tuple[int, int]]) -> list[Area]:
    """Rectangles around connected cells by flooding, joined while they meet: slow and plain."""
    left, areas = set(places), list[Area]()
    while left:
        waiting, area = [left.pop()], None
        while waiting:
            row, column = waiting.pop()
            one = Area(row, column, row, column)
            area = area.joined(one) if area else one
            near = {(r, c) for r in (row - 1, row, row + 1) for c in (column - 1, column, column + 1)} & left
            left -= near
            waiting += near
        assert area is not None
        while met := [other for other in areas if other.meets(area)]:
            for other in met:
                areas.remove(other)
                area = area.joined(other)
        areas.append(area)
    return sorted(areas, key=lambda one: (one.first_row, one.first_column))


@settings(max_examples=50, deadline=None)
@given(st.sets(st.tuples(st.integers(1, 12), st.integers(1, 12)), max_size=60))
def test_regions_are_those_that_flooding_finds(places: set[tuple[int, int]]) -> None:
    assert [region.area for region in use_of(places).regions] == flooded(places)


def test_very_many_regions_are_cut() -> None:
    use = use_of({(3 * at, 1) for at in range(1, MAX_REGIONS + 5)})

    assert len(use.regions) == MAX_REGIONS and use.cut
    assert use.row_count == 3 * (MAX_REGIONS + 4)


PRICES = [["Item", "Price", "Twice"], ["Pump", 120, "=B2*2"], [], ["Hose", 0.5, None]]


def plain(answer: RangeAnswer) -> list[list[Any]]:
    return [[cell.value for cell in row] for row in answer.rows]


def test_a_range_gives_rectangles_with_formulas_and_formats() -> None:
    answer = cell_range(sheet_of(PRICES, B4="0%"), file_id="f", sheet="Sheet", address="b2:$C$4")

    assert (answer.sheet, answer.range, answer.truncated) == ("Sheet", "B2:C4", False)
    assert [[cell.cell for cell in row] for row in answer.rows] == [["B2", "C2"], ["B3", "C3"], ["B4", "C4"]]
    assert plain(answer) == [[120, None], [None, None], [0.5, None]]
    assert answer.rows[0][1].formula == "=B2*2"
    assert answer.rows[2][0].format == "0%"


@pytest.mark.parametrize(
    ("address", "range", "rows"),
    [
        ("A:A", "A1:A4", [["Item"], ["Pump"], [None], ["Hose"]]),
        ("2:2", "A2:C2", [["Pump", 120, None]]),
        ("A2:Z99", "A2:C4", [["Pump", 120, None], [None, None, None], ["Hose", 0.5, None]]),
        ("A1", "A1", [["Item"]]),
        ("X1:Z9", "X1:Z9", []),
    ],
)
def test_ranges_end_with_their_last_used_cell(address: str, range: str, rows: list[list[Any]]) -> None:
    answer = cell_range(sheet_of(PRICES), file_id="f", sheet="1", address=address)

    assert (answer.range, plain(answer), answer.truncated) == (range, rows, False)


def test_whole_columns_begin_with_their_first_used_cell() -> None:
    book = opened(lambda made: made.active.__setitem__("B5000", 7))
    answer = cell_range(book, file_id="f", sheet="Sheet", address="A:C")

    assert (answer.range, plain(answer)) == ("A5000:B5000", [[None, 7]])


def test_as_many_whole_rows_as_fit() -> None:
    book = sheet_of([[row * 10 + column for column in range(5)] for row in range(10)])

    answer = cell_range(book, file_id="f", sheet="1", address="A1:E10", max_cells=12)
    assert (answer.range, answer.truncated) == ("A1:E2", True)
    wide = cell_range(book, file_id="f", sheet="1", address="A3:E10", max_cells=3)
    assert (wide.range, plain(wide), wide.truncated) == ("A3:C3", [[20, 21, 22]], True)
    exact = cell_range(book, file_id="f", sheet="1", address="A1:B5", max_cells=10)
    assert len(exact.rows) == 5 and not exact.truncated


def test_ranges_of_csv_files() -> None:
    answer = cell_range(csv_book("a;b\n1;2,5\n"), file_id="f", sheet="PRICES", address="A1:B2")
    assert plain(answer) == [["a", "b"], [1, "2,5"]]


def test_wrong_questions_name_what_is_wrong() -> None:
    book = sheet_of(PRICES)
    with pytest.raises(NotFound, match="'Sheet'"):
        cell_range(book, file_id="f", sheet="Prices", address="A1")
    with pytest.raises(InvalidInput, match="'A1:'"):
        cell_range(book, file_id="f", sheet="Sheet", address="A1:")
    with pytest.raises(InvalidInput, match="2001"):
        cell_range(book, file_id="f", sheet="Sheet", address="A1", max_cells=2001)


@settings(max_examples=30, deadline=None)
@given(
    st.dictionaries(st.tuples(st.integers(1, 8), st.integers(1, 8)), st.integers(0, 99), max_size=20),
    st.tuples(*[st.integers(1, 9)] * 4),
    st.integers(1, 40),
)
def test_a_range_tells_no_other_cell_and_no_more_than_allowed(
    places: dict[tuple[int, int], int], ends: tuple[int, int, int, int], most: int
) -> None:
    lines = [[places.get((row, column), "") for column in range(1, 9)] for row in range(1, 9)]
    book = csv_book("\n".join(",".join(map(str, line)) for line in lines))
    rows, columns = sorted(ends[:2]), sorted(ends[2:])
    area = Area(rows[0], columns[0], rows[1], columns[1])
    address = f"{cell_name(rows[0], columns[0])}:{cell_name(rows[1], columns[1])}"
    answer = cell_range(book, file_id="f", sheet="1", address=address, max_cells=most)

    found = {cell.cell: cell.value for row in answer.rows for cell in row if cell.value is not None}
    inside = {cell_name(*place): value for place, value in places.items() if place in area}
    assert sum(map(len, answer.rows)) <= most
    assert found.items() <= inside.items()
    assert answer.truncated or found == inside
