"""Addresses of cells in A1 notation."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from hivemem.errors import InvalidInput

MAX_ROW = 1_048_576
MAX_COLUMN = 16_384
"""Of the Office Open XML format: the last cell is XFD1048576."""

_CELL = r"\$?([A-Za-z]{1,3})\$?([0-9]{1,7})"
_SINGLE = re.compile(_CELL)
_PAIR = re.compile(f"{_CELL}:{_CELL}")
_COLUMNS = re.compile(r"\$?([A-Za-z]{1,3}):\$?([A-Za-z]{1,3})")
_ROWS = re.compile(r"\$?([0-9]{1,7}):\$?([0-9]{1,7})")


@dataclass(frozen=True, slots=True)
class Area:
    """A rectangle of cells. Rows and columns count from 1, both ends are inside, first <= last."""

    first_row: int
    first_column: int
    last_row: int
    last_column: int

    def __contains__(self, cell: tuple[int, int]) -> bool:
        row, column = cell
        return self.first_row <= row <= self.last_row and self.first_column <= column <= self.last_column

    @property
    def is_cell(self) -> bool:
        """Whether it is one cell."""
        return self.first_row == self.last_row and self.first_column == self.last_column

    def joined(self, other: Area) -> Area:
        """The smallest area around both."""
        return Area(
            min(self.first_row, other.first_row),
            min(self.first_column, other.first_column),
            max(self.last_row, other.last_row),
            max(self.last_column, other.last_column),
        )

    def meets(self, other: Area) -> bool:
        """Whether both have a cell in common."""
        return (
            self.first_row <= other.last_row
            and other.first_row <= self.last_row
            and self.first_column <= other.last_column
            and other.first_column <= self.last_column
        )

    def __str__(self) -> str:
        """A1 notation: `B2`, `B2:D9`, `B:D` for whole columns, `2:9` for whole rows."""
        if self.is_cell:
            return cell_name(self.first_row, self.first_column)
        if self.first_row == 1 and self.last_row == MAX_ROW:
            return f"{column_name(self.first_column)}:{column_name(self.last_column)}"
        if self.first_column == 1 and self.last_column == MAX_COLUMN:
            return f"{self.first_row}:{self.last_row}"
        first = cell_name(self.first_row, self.first_column)
        return f"{first}:{cell_name(self.last_row, self.last_column)}"


@lru_cache(maxsize=MAX_COLUMN)
def column_name(column: int) -> str:
    """The letters of a column.

    Example:
        >>> column_name(1), column_name(27), column_name(16_384)
        ('A', 'AA', 'XFD')
    """
    name = ""
    while column:
        column, letter = divmod(column - 1, 26)
        name = chr(ord("A") + letter) + name
    return name


@lru_cache(maxsize=MAX_COLUMN)
def column_number(letters: str) -> int:
    """The number of a column from its letters in any case; beyond `MAX_COLUMN` for some of three."""
    number = 0
    for letter in letters.upper():
        number = number * 26 + ord(letter) - ord("A") + 1
    return number


def cell_name(row: int, column: int) -> str:
    """A1 notation of one cell."""
    return f"{column_name(column)}{row}"


def parse_area(text: str, field: str = "/range") -> Area:
    """The area that an address names: `B2`, `$B$2:D9`, `B:D` or `2:9`, ends in any order.

    Raises:
        InvalidInput: It is no such address, or lies outside of a sheet.

    Example:
        >>> str(parse_area("d9:$B$2")), str(parse_area("C:A"))
        ('B2:D9', 'A:C')
    """
    address = text.strip()
    if found := _SINGLE.fullmatch(address):
        column, row = column_number(found[1]), int(found[2])
        area = Area(row, column, row, column)
    elif found := _PAIR.fullmatch(address):
        area = _between(int(found[2]), column_number(found[1]), int(found[4]), column_number(found[3]))
    elif found := _COLUMNS.fullmatch(address):
        area = _between(1, column_number(found[1]), MAX_ROW, column_number(found[2]))
    elif found := _ROWS.fullmatch(address):
        area = _between(int(found[1]), 1, int(found[2]), MAX_COLUMN)
    else:
        raise InvalidInput(f"{field} {text!r} is not in A1 notation; write B2, B2:D9, B:D or 2:9.")
    if area.first_row < 1 or area.last_row > MAX_ROW or area.last_column > MAX_COLUMN:
        raise InvalidInput(f"{field} {text!r} lies outside of a sheet, which ends at XFD{MAX_ROW}.")
    return area


def parse_cell(text: str, field: str = "/cell") -> tuple[int, int]:
    """Row and column of one cell. Raises `InvalidInput` as `parse_area`, and for more than one cell."""
    area = parse_area(text, field)
    if not area.is_cell:
        raise InvalidInput(f"{field} {text!r} is more than one cell; name one, such as B2.")
    return area.first_row, area.first_column


def _between(row: int, column: int, other_row: int, other_column: int) -> Area:
    return Area(
        min(row, other_row), min(column, other_column), max(row, other_row), max(column, other_column)
    )
