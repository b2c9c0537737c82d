"""The outline of a workbook, and a range of its cells."""

from __future__ import annotations

from hivemem.documents.limits import DocumentLimits
from hivemem.documents.tabular.a1 import MAX_ROW, Area, cell_name, parse_area
from hivemem.documents.tabular.answers import (
    OutlineAnswer,
    OutlineRegion,
    OutlineSheet,
    RangeAnswer,
    RangeCell,
)
from hivemem.documents.tabular.regions import sheet_use
from hivemem.documents.tabular.workbook import Cell, CellBudget, Workbook, sheet_named
from hivemem.errors import InvalidInput

MAX_SHEETS = 500
MAX_RANGE_CELLS = 2_000


def outline(
    workbook: Workbook,
    limits: DocumentLimits,
    *,
    file_id: str,
    include_regions: bool = True,
    max_sheets: int = 250,
) -> OutlineAnswer:
    """The sheets with their sizes and regions. Reads the workbook once.

    Args:
        workbook: What is asked about.
        limits: How many cells are read, all sheets together.
        file_id: Told in the answer.
        include_regions: Whether regions are told.
        max_sheets: How many sheets are told, 1 to 500.

    Raises:
        InvalidInput: `max_sheets` is out of range, or the file is broken.
        LimitExceeded: The file is beyond the limits.
    """
    _check(max_sheets, "/max_sheets", MAX_SHEETS)
    parts = workbook.parts
    budget = CellBudget(limits.max_cells)
    sheets: list[OutlineSheet] = []
    cut = len(parts.sheets) > max_sheets
    for sheet in parts.sheets[:max_sheets]:
        use = sheet_use(sheet, budget.rows(workbook, sheet), parts.tables)
        cut = cut or (use.cut and include_regions)
        regions = tuple(
            OutlineRegion(
                region_id=region.region_id,
                range=str(region.area),
                kind=region.kind,
                headers=region.headers,
                title=region.title,
            )
            for region in (use.regions if include_regions else ())
        )
        sheets.append(
            OutlineSheet(
                sheet_id=sheet.sheet_id,
                name=sheet.name,
                hidden=sheet.hidden,
                row_count=use.row_count,
                column_count=use.column_count,
                regions=regions,
            )
        )
    return OutlineAnswer(
        file_id=file_id, sheets=tuple(sheets), truncated=cut or budget.exhausted, warnings=parts.warnings
    )


def cell_range(
    workbook: Workbook, *, file_id: str, sheet: str, address: str, max_cells: int = MAX_RANGE_CELLS
) -> RangeAnswer:
    """The cells of a range, whole rows from its top, as many as `max_cells` allows.

    Rows and columns after the last used cell of the range are left out, and for whole columns the empty
    rows above the first one too, so that `A:C` is as long as its cells. Reads the sheet down to the end
    of the range.

    Args:
        workbook: What is asked about.
        file_id: Told in the answer.
        sheet: Name or id of a sheet.
        address: In A1 notation: `B2`, `B2:D9`, `B:D` or `2:9`.
        max_cells: 1 to 2,000.

    Raises:
        NotFound: There is no such sheet.
        InvalidInput: `address` is not in A1 notation, `max_cells` is out of range, or the file is broken.
        LimitExceeded: The file is beyond the limits.
    """
    _check(max_cells, "/max_cells", MAX_RANGE_CELLS)
    wanted = parse_area(address)
    found = sheet_named(workbook.parts, sheet)
    used: dict[int, dict[int, Cell]] = {}
    first_row, first_column = wanted.first_row, wanted.first_column
    last_row, last_column = 0, 0
    truncated = False
    for row in workbook.rows(found):
        if row.number < first_row:
            continue
        if row.number > wanted.last_row:
            break
        cells = {cell.column: cell for cell in row.cells if first_column <= cell.column <= wanted.last_column}
        if not cells:
            continue
        if not used and (wanted.first_row, wanted.last_row) == (1, MAX_ROW):
            first_row = row.number
        widest = max(last_column, *cells)
        if (row.number - first_row + 1) * (widest - first_column + 1) > max_cells:
            truncated = True
            if not used:
                # Not even one row fits: as much of it as does. Empty rows above are told first.
                room = max_cells // (row.number - first_row + 1)
                cells = {column: cell for column, cell in cells.items() if column < first_column + room}
                if cells:
                    used[row.number] = cells
                    last_row, last_column = row.number, max(cells)
            break
        used[row.number] = cells
        last_row, last_column = row.number, widest
    if not used:
        return RangeAnswer(file_id=file_id, sheet=found.name, range=str(wanted), rows=(), truncated=truncated)
    told = Area(first_row, first_column, last_row, last_column)
    rows = tuple(
        tuple(
            _told(number, column, used.get(number, {}).get(column))
            for column in range(first_column, last_column + 1)
        )
        for number in range(first_row, last_row + 1)
    )
    return RangeAnswer(file_id=file_id, sheet=found.name, range=str(told), rows=rows, truncated=truncated)


def _told(row: int, column: int, cell: Cell | None) -> RangeCell:
    name = cell_name(row, column)
    if cell is None:
        return RangeCell(cell=name, value=None)
    return RangeCell(cell=name, value=cell.value, formula=cell.formula, format=cell.format)


def _check(value: int, field: str, maximum: int) -> None:
    if not 1 <= value <= maximum:
        raise InvalidInput(f"{field} is {value}; it must be from 1 to {maximum:,}.")
