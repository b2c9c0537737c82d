"""Where a sheet is used: connected blocks of cells, their headers and kinds, found in one pass.

Cells are connected when they touch, also at a corner. The blocks are found row by row, as connected
components are in images by runs (Rosenfeld and Pfaltz, JACM 1966, doi:10.1145/321356.321357): memory is
in proportion to the blocks and the width of the sheet, not to its cells.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from hivemem.documents.tabular.a1 import Area
from hivemem.documents.tabular.number_formats import date_parts
from hivemem.documents.tabular.workbook import Cell, Row, Sheet, Table, shown

RegionKind = Literal["table", "list", "form", "cell", "block"]
MAX_REGIONS = 500
"""Regions of one sheet; more are left out, the last ones."""

_TOP_ROWS = 4
_TOP_COLUMNS = 512
_HEADER_CHARACTERS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Region:
    """A used part of a sheet.

    Attributes:
        region_id: Sheet id and position from 1, such as `2.1`.
        area: The rectangle around its cells.
        kind: `table`: columns under headers; `list`: one column; `form`: labels with a value beside
            each; `cell`: a single one; `block`: anything else.
        headers: Column headers from left to right, empty text for a column without one; empty when
            there is no header row.
        header_row: The row of the headers.
        title: A line of its own above, or the name of a table.
    """

    region_id: str
    area: Area
    kind: RegionKind
    headers: tuple[str, ...] = ()
    header_row: int | None = None
    title: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SheetUse:
    """How much of a sheet is used: last row, last column (0 when empty), and its regions.

    `cut` says that regions were left out.
    """

    row_count: int
    column_count: int
    regions: tuple[Region, ...]
    cut: bool


@dataclass(slots=True)
class _Block:
    """Cells that are connected so far: the rectangle, the first rows, and what the columns hold."""

    area: Area
    top: dict[int, dict[int, Cell]] = field(default_factory=dict[int, dict[int, Cell]])
    texts: dict[int, int] = field(default_factory=dict[int, int])
    others: dict[int, int] = field(default_factory=dict[int, int])
    joined_to: _Block | None = None

    def root(self) -> _Block:
        block = self
        while block.joined_to is not None:
            block = block.joined_to
        # Point straight to the root, so that the next walk is short.
        step = self
        while step.joined_to is not None:
            step.joined_to, step = block, step.joined_to
        return block

    def add(self, row: int, cells: Iterable[Cell]) -> None:
        keep = row in self.top or len(self.top) < _TOP_ROWS
        for cell in cells:
            counts = self.texts if is_text(cell) else self.others
            counts[cell.column] = counts.get(cell.column, 0) + 1
            if keep:
                kept = self.top.setdefault(row, {})
                if len(kept) < _TOP_COLUMNS:
                    kept[cell.column] = cell

    def take(self, other: _Block) -> None:
        self.area = self.area.joined(other.area)
        for mine, theirs in ((self.texts, other.texts), (self.others, other.others)):
            for column, count in theirs.items():
                mine[column] = mine.get(column, 0) + count
        rows = sorted(self.top.keys() | other.top.keys())[:_TOP_ROWS]
        self.top = {row: {**self.top.get(row, {}), **other.top.get(row, {})} for row in rows}
        other.top, other.texts, other.others = {}, {}, {}
        other.joined_to = self


def is_text(cell: Cell) -> bool:
    """Whether a cell holds words: no number, date or formula."""
    return (
        isinstance(cell.value, str)
        and cell.formula is None
        and not (cell.format is not None and date_parts(cell.format))
    )


def sheet_use(sheet: Sheet, rows: Iterable[Row], tables: Iterable[Table]) -> SheetUse:
    """The used part of a sheet from its rows, top to bottom. Cost: linear in the cells.

    Regions are ordered by their first row, then column. The tables of the file are regions as they
    are, and blocks that lie mostly in one are not told again.
    """
    finder = _Finder()
    row_count = column_count = 0
    for row in rows:
        row_count = row.number
        column_count = max(column_count, row.cells[-1].column)
        finder.add(row)
    blocks = _without_overlap(finder.finish())
    own = [table for table in tables if table.sheet == sheet.name]
    found = [_table_region(table) for table in own]
    found += [
        _described(block)
        for block in blocks
        if not any(_covers_half(table.area, block.area) for table in own)
    ]
    found.sort(key=lambda region: (region.area.first_row, region.area.first_column))
    regions = [
        Region(
            region_id=f"{sheet.sheet_id}.{position}",
            area=region.area,
            kind=region.kind,
            headers=region.headers,
            header_row=region.header_row,
            title=region.title,
        )
        for position, region in enumerate(found[:MAX_REGIONS], start=1)
    ]
    return SheetUse(
        row_count=row_count,
        column_count=column_count,
        regions=tuple(regions),
        cut=finder.cut or len(found) > MAX_REGIONS,
    )


class _Finder:
    """Joins the runs of each row with those of the row above that they touch."""

    def __init__(self) -> None:
        self.cut = False
        self._closed: list[_Block] = []
        self._above: list[tuple[int, int, _Block]] = []
        self._row = 0

    def add(self, row: Row) -> None:
        above = self._above if row.number == self._row + 1 else []
        runs: list[tuple[int, int, _Block]] = []
        start = 0
        cells = row.cells
        first = 0
        for end in range(1, len(cells) + 1):
            if end < len(cells) and cells[end].column == cells[end - 1].column + 1:
                continue
            left, right = cells[start].column, cells[end - 1].column
            while first < len(above) and above[first][1] < left - 1:
                first += 1
            block = _Block(Area(row.number, left, row.number, right))
            block.add(row.number, cells[start:end])
            at = first
            while at < len(above) and above[at][0] <= right + 1:
                other = above[at][2].root()
                if other is not block.root():
                    larger, smaller = other, block.root()
                    if len(larger.texts) + len(larger.others) < len(smaller.texts) + len(smaller.others):
                        larger, smaller = smaller, larger
                    larger.take(smaller)
                at += 1
            runs.append((left, right, block))
            start = end
        self._close(runs)
        self._above, self._row = runs, row.number

    def finish(self) -> list[_Block]:
        self._close([])
        return self._closed

    def _close(self, runs: list[tuple[int, int, _Block]]) -> None:
        alive = {id(block.root()) for _, _, block in runs}
        for _, _, block in self._above:
            root = block.root()
            if id(root) in alive:
                continue
            alive.add(id(root))
            # Twice as many, since some of them may yet become one.
            if len(self._closed) < 2 * MAX_REGIONS:
                self._closed.append(root)
            else:
                self.cut = True


def _without_overlap(blocks: list[_Block]) -> list[_Block]:
    """Blocks whose rectangles lie in one another, such as the corner of an L, made one."""
    blocks = sorted(blocks, key=lambda block: (block.area.first_row, block.area.first_column))
    position = 0
    while position < len(blocks):
        block = blocks[position]
        meeting = [other for other in blocks if other is not block and other.area.meets(block.area)]
        for other in meeting:
            block.take(other)
        if meeting:
            # The rectangle grew: look again, from here, since earlier ones may now meet it.
            blocks = [other for other in blocks if other.joined_to is None]
            position = blocks.index(block)
        else:
            position += 1
    return blocks


def _covers_half(table: Area, block: Area) -> bool:
    if not table.meets(block):
        return False
    rows = min(table.last_row, block.last_row) - max(table.first_row, block.first_row) + 1
    columns = min(table.last_column, block.last_column) - max(table.first_column, block.first_column) + 1
    height, width = block.last_row - block.first_row + 1, block.last_column - block.first_column + 1
    return 2 * rows * columns >= height * width


def _table_region(table: Table) -> Region:
    return Region(
        region_id="",
        area=table.area,
        kind="table",
        headers=tuple(column[:_HEADER_CHARACTERS] for column in table.columns),
        header_row=table.area.first_row if table.header_rows else None,
        title=table.name or None,
    )


def _described(block: _Block) -> Region:
    area = block.area
    width = area.last_column - area.first_column + 1
    if area.is_cell:
        return Region(region_id="", area=area, kind="cell")
    rows = sorted(block.top)
    title: str | None = None
    while width > 1 and len(rows) > 1 and len(block.top[rows[0]]) == 1:
        (cell,) = block.top[rows[0]].values()
        if not is_text(cell):
            break
        title = title or shown(cell.value)[:_HEADER_CHARACTERS]
        rows.pop(0)
    header = block.top[rows[0]] if rows and rows[0] < area.last_row else {}
    if _is_header(block, header, width):
        headers = tuple(
            shown(header[column].value)[:_HEADER_CHARACTERS] if column in header else ""
            for column in range(area.first_column, min(area.last_column, max(header)) + 1)
        )
        kind: RegionKind = "table" if width > 1 else "list"
        return Region(region_id="", area=area, kind=kind, headers=headers, header_row=rows[0], title=title)
    kind = "list" if width == 1 else "form" if _is_form(block, width) else "block"
    return Region(region_id="", area=area, kind=kind, title=title)


def _is_header(block: _Block, header: Mapping[int, Cell], width: int) -> bool:
    """Whether a row names the columns under it.

    It does when it is of different short texts, in at least half of the columns, and either a column
    under it is mostly of numbers, dates or formulas, or all is text, in several columns and rows.
    """
    texts = [shown(cell.value) for cell in header.values()]
    if not header or not all(map(is_text, header.values())) or 2 * len(header) < min(width, _TOP_COLUMNS):
        return False
    if len({text.casefold() for text in texts}) < len(texts) or max(map(len, texts)) > _HEADER_CHARACTERS:
        return False
    for column in header:
        others, words = block.others.get(column, 0), block.texts.get(column, 0) - 1
        if others and others >= 4 * words:
            return True
    only_words = not any(block.others.values())
    height = block.area.last_row - block.area.first_row + 1
    return only_words and width > 1 and height > 2 and not any(text.endswith(":") for text in texts)


def _is_form(block: _Block, width: int) -> bool:
    left = block.area.first_column
    labels = block.texts.get(left, 0)
    return 2 <= width <= 3 and labels > 1 and not block.others.get(left, 0)
