"""Where the value of a cell comes from, and where it goes."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

from hivemem.documents.limits import DocumentLimits
from hivemem.documents.tabular.a1 import Area, parse_cell
from hivemem.documents.tabular.answers import Direction, TraceAnswer, TraceEdge, TraceNode
from hivemem.documents.tabular.formulas import references
from hivemem.documents.tabular.names import Resolver
from hivemem.documents.tabular.workbook import CellBudget, CellValue, Workbook, sheet_named
from hivemem.errors import InvalidInput

MAX_DEPTH = 8
MAX_NODES = 500
_BLOCK_ROWS = 256
_BLOCKS_OF_A_RANGE = 16
_REFERENCES_A_FORMULA = 4

Place: TypeAlias = tuple[str, int, int]
"""Sheet name, row, column."""


class _Formula(NamedTuple):
    text: str
    value: CellValue


class _Reach(NamedTuple):
    """Cells of one sheet."""

    sheet: str
    area: Area

    @property
    def id(self) -> str:
        return f"{self.sheet}!{self.area}"


def trace(
    workbook: Workbook,
    limits: DocumentLimits,
    *,
    file_id: str,
    sheet: str,
    cell: str,
    direction: Direction = "precedents",
    max_depth: int = 6,
    max_nodes: int = 200,
) -> TraceAnswer:
    """The cells that a cell is calculated from, or those that are calculated from it.

    Breadth first, so that nearer cells come first, and each cell once, so that circles end. A range
    that a formula reads is one node; cells inside of it that hold formulas are followed. Ranges on
    other sheets, over several sheets, by defined name and by table are resolved; what `INDIRECT` and
    `OFFSET` calculate is not, and neither are other files. Reads the workbook once, and the sheets of
    the answer once more.

    Args:
        workbook: What is asked about.
        limits: How many cells and formulas are read.
        file_id: Told in the answer.
        sheet: Name or id of a sheet.
        cell: One cell in A1 notation.
        direction: `precedents` or `dependents`.
        max_depth: Formulas to go from the cell, 1 to 8.
        max_nodes: Nodes to tell, the cell itself included, 1 to 500.

    Raises:
        NotFound: There is no such sheet.
        InvalidInput: `cell` is no cell, a number is out of range, or the file is broken.
        LimitExceeded: The file is beyond the limits.
    """
    for value, field, maximum in ((max_depth, "max_depth", MAX_DEPTH), (max_nodes, "max_nodes", MAX_NODES)):
        if not 1 <= value <= maximum:
            raise InvalidInput(f"/{field} is {value}; it must be from 1 to {maximum}.")
    row, column = parse_cell(cell)
    found = sheet_named(workbook.parts, sheet)
    formulas = _Formulas(workbook, limits)
    graph = _Graph(max_nodes)
    start = _Reach(found.name, Area(row, column, row, column))
    graph.node(start, 0)
    resolver = Resolver(workbook.parts)
    if direction == "precedents":
        _precedents(graph, start, formulas, resolver, max_depth)
    else:
        _dependents(graph, start, formulas, resolver, max_depth, limits)
    return TraceAnswer(
        file_id=file_id,
        sheet=found.name,
        cell=str(start.area),
        direction=direction,
        nodes=_told(graph, formulas, workbook, limits),
        edges=tuple(TraceEdge(source=source, target=target) for source, target in graph.edges),
        truncated=graph.cut or formulas.cut,
        warnings=tuple(resolver.warnings),
    )


class _Graph:
    """Nodes in the order of their finding, and edges, both bounded."""

    def __init__(self, max_nodes: int) -> None:
        self.nodes: dict[_Reach, int] = {}
        self.edges: dict[tuple[str, str], None] = {}
        self.cut = False
        self._max_nodes = max_nodes

    def node(self, reach: _Reach, depth: int) -> bool | None:
        """Add a node: True when it is new, False when it is known, None when there is no room."""
        if reach in self.nodes:
            return False
        if len(self.nodes) >= self._max_nodes:
            self.cut = True
            return None
        self.nodes[reach] = depth
        return True

    def edge(self, source: _Reach, target: _Reach) -> None:
        self.edges[source.id, target.id] = None


class _Formulas:
    """All formulas of a workbook with their results, and where they are."""

    def __init__(self, workbook: Workbook, limits: DocumentLimits) -> None:
        self.at: dict[Place, _Formula] = {}
        self.rows: dict[str, dict[int, list[int]]] = {}
        self._sorted: dict[str, list[int]] = {}
        budget = CellBudget(limits.max_cells)
        self.cut = False
        for sheet in workbook.parts.sheets:
            for row in budget.rows(workbook, sheet):
                for cell in row.cells:
                    if cell.formula is None:
                        continue
                    if len(self.at) >= limits.max_formulas:
                        self.cut = True
                        break
                    self.at[sheet.name, row.number, cell.column] = _Formula(cell.formula, cell.value)
                    self.rows.setdefault(sheet.name, {}).setdefault(row.number, []).append(cell.column)
        self.cut = self.cut or budget.exhausted

    def inside(self, reach: _Reach) -> Iterator[Place]:
        """Places of formulas in a range, row by row."""
        rows = self.rows.get(reach.sheet, {})
        order = self._sorted.setdefault(reach.sheet, sorted(rows))
        area = reach.area
        for row in order[bisect_left(order, area.first_row) : bisect_right(order, area.last_row)]:
            for column in rows[row]:
                if area.first_column <= column <= area.last_column:
                    yield reach.sheet, row, column


def _precedents(
    graph: _Graph, start: _Reach, formulas: _Formulas, resolver: Resolver, max_depth: int
) -> None:
    level = [start]
    for depth in range(1, max_depth + 2):
        following: list[_Reach] = []
        for reader in level:
            place = (reader.sheet, reader.area.first_row, reader.area.first_column)
            formula = formulas.at.get(place)
            if formula is None:
                continue
            for sheet, area in resolver.areas(references(formula.text), place):
                source = _Reach(sheet, area)
                if depth > max_depth and source not in graph.nodes:
                    graph.cut = True
                    return
                new = graph.node(source, depth)
                if new is None:
                    continue
                graph.edge(source, reader)
                if not new:
                    continue
                if area.is_cell:
                    following.append(source)
                    continue
                for name, row, column in formulas.inside(source):
                    member = _Reach(name, Area(row, column, row, column))
                    added = graph.node(member, depth)
                    if added is None:
                        break
                    graph.edge(member, source)
                    if added:
                        following.append(member)
        level = following


def _dependents(
    graph: _Graph,
    start: _Reach,
    formulas: _Formulas,
    resolver: Resolver,
    max_depth: int,
    limits: DocumentLimits,
) -> None:
    readers = _Readers(formulas, resolver, _REFERENCES_A_FORMULA * limits.max_formulas)
    graph.cut = graph.cut or readers.cut
    level = [start]
    for depth in range(1, max_depth + 2):
        following: list[_Reach] = []
        for source in level:
            for place in readers.of(source.sheet, source.area.first_row, source.area.first_column):
                target = _Reach(place[0], Area(place[1], place[2], place[1], place[2]))
                if depth > max_depth and target not in graph.nodes:
                    graph.cut = True
                    return
                new = graph.node(target, depth)
                if new is None:
                    continue
                graph.edge(source, target)
                if new:
                    following.append(target)
        level = following


class _Readers:
    """For each cell the formulas that read it, alone or in a range.

    Ranges are kept by blocks of rows, so that few of them are looked at for one cell; those over many
    blocks, such as whole columns, are looked at always, and are few in number when told once each.
    """

    def __init__(self, formulas: _Formulas, resolver: Resolver, max_references: int) -> None:
        self.cut = False
        self._cells: dict[Place, list[Place]] = {}
        self._ranges: dict[_Reach, list[Place]] = {}
        self._blocks: dict[tuple[str, int], list[_Reach]] = {}
        self._long: dict[str, list[_Reach]] = {}
        count = 0
        for place, formula in formulas.at.items():
            for sheet, area in resolver.areas(references(formula.text), place):
                count += 1
                if count > max_references:
                    self.cut = True
                    return
                if area.is_cell:
                    self._cells.setdefault((sheet, area.first_row, area.first_column), []).append(place)
                    continue
                reach = _Reach(sheet, area)
                known = self._ranges.get(reach)
                if known is not None:
                    known.append(place)
                    continue
                self._ranges[reach] = [place]
                first, last = area.first_row // _BLOCK_ROWS, area.last_row // _BLOCK_ROWS
                if last - first < _BLOCKS_OF_A_RANGE:
                    for block in range(first, last + 1):
                        self._blocks.setdefault((sheet, block), []).append(reach)
                else:
                    self._long.setdefault(sheet, []).append(reach)

    def of(self, sheet: str, row: int, column: int) -> Iterator[Place]:
        """Places of the formulas that read a cell, those that name it alone first."""
        yield from self._cells.get((sheet, row, column), ())
        for reaches in (self._blocks.get((sheet, row // _BLOCK_ROWS), ()), self._long.get(sheet, ())):
            for reach in reaches:
                if (row, column) in reach.area:
                    yield from self._ranges[reach]


def _told(
    graph: _Graph, formulas: _Formulas, workbook: Workbook, limits: DocumentLimits
) -> tuple[TraceNode, ...]:
    wanted: dict[str, set[tuple[int, int]]] = {}
    for reach in graph.nodes:
        place = (reach.sheet, reach.area.first_row, reach.area.first_column)
        if reach.area.is_cell and place not in formulas.at:
            wanted.setdefault(reach.sheet, set()).add(place[1:])
    values = _values(wanted, workbook, limits)
    nodes: list[TraceNode] = []
    for reach, depth in graph.nodes.items():
        place = (reach.sheet, reach.area.first_row, reach.area.first_column)
        formula = formulas.at.get(place) if reach.area.is_cell else None
        nodes.append(
            TraceNode(
                id=reach.id,
                sheet=reach.sheet,
                cell=str(reach.area),
                value=formula.value if formula else values.get(place) if reach.area.is_cell else None,
                formula=formula.text if formula else None,
                depth=depth,
            )
        )
    return tuple(nodes)


def _values(
    wanted: dict[str, set[tuple[int, int]]], workbook: Workbook, limits: DocumentLimits
) -> dict[Place, CellValue]:
    values: dict[Place, CellValue] = {}
    budget = CellBudget(limits.max_cells)
    for sheet in workbook.parts.sheets:
        places = wanted.get(sheet.name)
        if not places:
            continue
        rows = {row for row, _ in places}
        last = max(rows)
        for row in budget.rows(workbook, sheet):
            if row.number > last:
                break
            if row.number in rows:
                for cell in row.cells:
                    if (row.number, cell.column) in places:
                        values[sheet.name, row.number, cell.column] = cell.value
    return values
