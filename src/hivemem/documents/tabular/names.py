"""From what a formula names to the cells that are meant: sheets, defined names, tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from hivemem.documents.tabular.a1 import Area
from hivemem.documents.tabular.formulas import (
    AreaReference,
    ExternalReference,
    NameReference,
    Reference,
    SheetSpan,
    TableReference,
    references,
)
from hivemem.documents.tabular.workbook import Table, WorkbookParts

_MAX_NAME_STEPS = 16
_MAX_WARNINGS = 20


class Resolver:
    """Knows the sheets, names and tables of one workbook.

    Attributes:
        warnings: What could not be resolved, each once.
    """

    def __init__(self, parts: WorkbookParts) -> None:
        self.warnings: list[str] = []
        self._sheets = [sheet.name for sheet in parts.sheets]
        self._positions = {name.casefold(): at for at, name in reversed(list(enumerate(self._sheets)))}
        self._tables = {table.name.casefold(): table for table in parts.tables}
        self._names = {
            (name.sheet.casefold() if name.sheet else None, name.name.casefold()): name.formula
            for name in parts.names
        }

    def areas(self, found: Iterable[Reference], place: tuple[str, int, int]) -> Iterator[tuple[str, Area]]:
        """Sheet and area of each reference of the formula at `place`, each once, in reading order."""
        seen: set[tuple[str, Area]] = set()
        for reference in found:
            for one in self._areas(reference, place, 0):
                if one not in seen:
                    seen.add(one)
                    yield one

    def _areas(
        self, reference: Reference, place: tuple[str, int, int], steps: int
    ) -> Iterator[tuple[str, Area]]:
        match reference:
            case AreaReference():
                for sheet in self._span(reference.sheets, place[0]):
                    yield sheet, reference.area
            case NameReference():
                yield from self._named(reference, place, steps)
            case TableReference():
                yield from self._table_part(reference, place)
            case ExternalReference():
                self._warn(f"another file is not followed: {reference.text}")

    def _span(self, sheets: SheetSpan | None, own: str) -> Iterator[str]:
        if sheets is None:
            yield own
            return
        first, last = (self._positions.get(name.casefold()) for name in (sheets.first, sheets.last))
        if first is None or last is None:
            self._warn(f"a formula names a sheet that is not in the file: {sheets.first!r}")
            return
        yield from self._sheets[min(first, last) : max(first, last) + 1]

    def _named(
        self, reference: NameReference, place: tuple[str, int, int], steps: int
    ) -> Iterator[tuple[str, Area]]:
        name = reference.name.casefold()
        scope = (reference.sheets.first if reference.sheets else place[0]).casefold()
        formula = self._names.get((scope, name)) or self._names.get((None, name))
        if formula is not None:
            # Names may name each other, and badly made ones themselves.
            if steps < _MAX_NAME_STEPS:
                for inner in references(formula):
                    yield from self._areas(inner, place, steps + 1)
        elif table := self._tables.get(name):
            yield table.sheet, _body(table)
        else:
            self._warn(f"a formula names what the file does not define: {reference.name!r}")

    def _table_part(
        self, reference: TableReference, place: tuple[str, int, int]
    ) -> Iterator[tuple[str, Area]]:
        if reference.table is None:
            sheet, row, column = place
            table = next(
                (one for one in self._tables.values() if one.sheet == sheet and (row, column) in one.area),
                None,
            )
        else:
            table = self._tables.get(reference.table.casefold())
        if table is None:
            self._warn(f"a formula names a table that is not in the file: {reference.table!r}")
            return
        rows = _rows(table, reference.items, place)
        columns = _columns(table, reference.columns)
        if rows and columns:
            yield table.sheet, Area(rows[0], columns[0], rows[1], columns[1])

    def _warn(self, warning: str) -> None:
        if warning not in self.warnings and len(self.warnings) < _MAX_WARNINGS:
            self.warnings.append(warning[:300])


def _body(table: Table) -> Area:
    area = table.area
    first = min(area.first_row + table.header_rows, area.last_row)
    last = max(first, area.last_row - table.totals_rows)
    return Area(first, area.first_column, last, area.last_column)


def _rows(table: Table, items: frozenset[str], place: tuple[str, int, int]) -> tuple[int, int] | None:
    """First and last row of the named items together; None when the table has none of them."""
    area, body = table.area, _body(table)
    found: list[tuple[int, int]] = []
    for item in items or {"#data"}:
        if item == "#all":
            found.append((area.first_row, area.last_row))
        elif item == "#data":
            found.append((body.first_row, body.last_row))
        elif item == "#headers" and table.header_rows:
            found.append((area.first_row, area.first_row + table.header_rows - 1))
        elif item == "#totals" and table.totals_rows:
            found.append((area.last_row - table.totals_rows + 1, area.last_row))
        elif item == "#this row" and body.first_row <= place[1] <= body.last_row:
            found.append((place[1], place[1]))
    if not found:
        return None
    return min(first for first, _ in found), max(last for _, last in found)


def _columns(table: Table, named: tuple[str, str] | None) -> tuple[int, int] | None:
    if named is None:
        return table.area.first_column, table.area.last_column
    positions = {column.casefold(): at for at, column in enumerate(table.columns)}
    ends = [positions.get(name.casefold()) for name in named]
    known = [end for end in ends if end is not None]
    if len(known) < len(ends):
        return None
    return table.area.first_column + min(known), table.area.first_column + max(known)
