"""What a workbook is, whatever file it came from: sheets that are read as streams of rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, TypeAlias

from hivemem.documents.tabular.a1 import Area
from hivemem.errors import NotFound

CellValue: TypeAlias = "str | bool | int | float | None"
"""What a cell shows: dates and times as ISO 8601 text, errors as text such as `#DIV/0!`, None for a
formula whose result the file does not hold."""


class Cell(NamedTuple):
    """A cell that holds something.

    `formula` begins with `=`. `format` is the code of a number format, None for the general one.
    """

    column: int
    value: CellValue
    formula: str | None
    format: str | None


class Row(NamedTuple):
    """A row of a sheet, counted from 1, with its cells that hold something from left to right."""

    number: int
    cells: Sequence[Cell]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sheet:
    """A sheet: `sheet_id` is its position from 1 as text, `name` is unique in any case."""

    sheet_id: str
    name: str
    hidden: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A named table of a sheet, header and totals rows inside `area`."""

    name: str
    sheet: str
    area: Area
    columns: tuple[str, ...]
    header_rows: int = 1
    totals_rows: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class DefinedName:
    """A name for a formula, without the leading `=`; of one sheet when `sheet` is given."""

    name: str
    formula: str
    sheet: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkbookParts:
    """What is known of a workbook before its cells are read."""

    sheets: tuple[Sheet, ...]
    tables: tuple[Table, ...] = ()
    names: tuple[DefinedName, ...] = ()
    warnings: tuple[str, ...] = field(default=())


class Workbook(Protocol):
    """A workbook that can be read from its beginning any number of times."""

    @property
    def parts(self) -> WorkbookParts:
        """Sheets, tables and names."""
        ...

    def rows(self, sheet: Sheet) -> Iterator[Row]:
        """The rows of a sheet that hold something, from top to bottom.

        Raises:
            InvalidInput: The file is broken.
            LimitExceeded: It is beyond the limits.
        """
        ...


class CellBudget:
    """How many more cells are read; one budget may serve several sheets.

    Args:
        cells: The limit.

    Attributes:
        exhausted: Whether cells were left out.
    """

    def __init__(self, cells: int) -> None:
        self._left = cells
        self.exhausted = False

    def rows(self, workbook: Workbook, sheet: Sheet) -> Iterator[Row]:
        """Whole rows of a sheet until the budget is used up."""
        for row in workbook.rows(sheet):
            self._left -= len(row.cells)
            if self._left < 0:
                self.exhausted = True
                return
            yield row


def sheet_named(parts: WorkbookParts, wanted: str) -> Sheet:
    """The sheet with this name, in any case, or else with this id.

    Raises:
        NotFound: There is none; the message names the first sheets that there are.
    """
    by_name: Mapping[str, Sheet] = {sheet.name.casefold(): sheet for sheet in reversed(parts.sheets)}
    found = by_name.get(wanted.casefold()) or next(
        (sheet for sheet in parts.sheets if sheet.sheet_id == wanted), None
    )
    if found is None:
        names = [repr(sheet.name) for sheet in parts.sheets[:20]]
        more = f" and {len(parts.sheets) - 20} more" if len(parts.sheets) > 20 else ""
        raise NotFound(
            f"there is no sheet {wanted!r} in the file; its sheets are {', '.join(names)}{more}.",
            sheets=[sheet.name for sheet in parts.sheets[:100]],
        )
    return found


def shown(value: CellValue) -> str:
    """A value as text, as short as it can be without loss: `1`, `0.5`, `TRUE`."""
    match value:
        case None:
            return ""
        case bool():
            return "TRUE" if value else "FALSE"
        case float():
            return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)
        case _:
            return str(value)
