"""Addresses in A1 notation."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from openpyxl.utils import get_column_letter

from hivemem.documents.tabular.a1 import (
    MAX_COLUMN,
    MAX_ROW,
    Area,
    column_name,
    column_number,
    parse_area,
    parse_cell,
)
from hivemem.errors import InvalidInput

ROWS = st.integers(1, MAX_ROW)
COLUMNS = st.integers(1, MAX_COLUMN)


@settings(max_examples=50)
@given(COLUMNS)
def test_columns_are_named_as_everywhere(column: int) -> None:
    assert column_name(column) == get_column_letter(column)
    assert column_number(column_name(column).lower()) == column


@settings(max_examples=50)
@given(ROWS, COLUMNS, ROWS, COLUMNS, st.booleans())
def test_what_is_written_is_read(
    row: int, column: int, other_row: int, other_column: int, fixed: bool
) -> None:
    area = Area(
        min(row, other_row), min(column, other_column), max(row, other_row), max(column, other_column)
    )
    ends = (column_name(other_column), other_row, column_name(column), row)
    text = ("${}${}:${}${}" if fixed else "{}{}:{}{}").format(*ends)

    assert parse_area(str(area)) == area
    assert parse_area(f" {text.lower()} ") == area
    assert parse_cell(f"{column_name(column)}{row}") == (row, column)


def test_whole_columns_and_rows() -> None:
    assert parse_area("C:$A") == Area(1, 1, MAX_ROW, 3)
    assert parse_area("9:2") == Area(2, 1, 9, MAX_COLUMN)
    assert str(parse_area("b:b")) == "B:B"
    assert str(parse_area("$7:7")) == "7:7"
    assert str(parse_area("A1:XFD1048576")) == "A:XFD"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "B",
        "7",
        "B0",
        "XFE1",
        "A1048577",
        "A1:",
        ":A1",
        "A1:B2:C3",
        "Sheet1!A1",
        "A-1",
        "Ä1",
        "A1;B2",
        "²1",
        "0:3",
    ],
)
def test_what_is_no_address_is_named(text: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_area(text)
    assert repr(text) in caught.value.message
    assert "/range" in caught.value.message


def test_one_cell_is_asked_for() -> None:
    with pytest.raises(InvalidInput, match="A1:B2"):
        parse_cell("A1:B2")


@settings(max_examples=50)
@given(st.tuples(ROWS, COLUMNS, ROWS, COLUMNS), st.tuples(ROWS, COLUMNS, ROWS, COLUMNS))
def test_areas_meet_when_a_cell_is_in_both(one: tuple[int, ...], two: tuple[int, ...]) -> None:
    first, second = (Area(min(r, s), min(c, d), max(r, s), max(c, d)) for r, c, s, d in (one, two))
    corner = (max(first.first_row, second.first_row), max(first.first_column, second.first_column))

    assert first.meets(second) == second.meets(first) == (corner in first and corner in second)
    joined = first.joined(second)
    assert joined.meets(first) and (joined.last_row, joined.last_column) in joined
