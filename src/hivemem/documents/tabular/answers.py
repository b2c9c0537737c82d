"""The answers about a spreadsheet. Field names are those of the wire."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from hivemem.documents.tabular.regions import RegionKind
from hivemem.documents.tabular.workbook import CellValue

HitKind = Literal["region", "header", "label", "value", "format"]
Direction = Literal["precedents", "dependents"]


@dataclass(frozen=True, slots=True, kw_only=True)
class OutlineRegion:
    """A used part of a sheet; `range` in A1 notation, the rest as `regions.Region` says."""

    region_id: str
    range: str
    kind: RegionKind
    headers: tuple[str, ...]
    title: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class OutlineSheet:
    """A sheet; `row_count` and `column_count` are its last used row and column, 0 when it is empty."""

    sheet_id: str
    name: str
    hidden: bool
    row_count: int
    column_count: int
    regions: tuple[OutlineRegion, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class OutlineAnswer:
    """The sheets of a file. `truncated`: sheets, regions or cells were left out because of a limit."""

    file_id: str
    sheets: tuple[OutlineSheet, ...]
    truncated: bool
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RangeCell:
    """A cell: its address, what it shows, and its formula and number format where it has them."""

    cell: str
    value: CellValue
    formula: str | None = None
    format: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RangeAnswer:
    """Cells of a range, one inner list a row, empty cells included up to the last used one.

    `range` is what is told, in A1 notation; `truncated`: rows or columns were left out because of the
    limit of cells.
    """

    file_id: str
    sheet: str
    range: str
    rows: tuple[tuple[RangeCell, ...], ...]
    truncated: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchHit:
    """A place where words of the query stand. `score` is positive and compares within one answer."""

    sheet: str
    kind: HitKind
    range: str
    text: str
    score: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchAnswer:
    """Hits, the best first; `count` is their number, `truncated`: not all cells were read."""

    file_id: str
    query: str
    hits: tuple[SearchHit, ...]
    count: int
    truncated: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceNode:
    """A cell, or a range of cells that a formula reads as a whole (its `value` is null).

    `depth` counts formulas from the cell that was asked for, which has 0.
    """

    id: str
    sheet: str
    cell: str
    value: CellValue
    depth: int
    formula: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceEdge:
    """Data flows from the node `source` to the formula `target`, in both directions of a trace.

    On the wire they are `from` and `to`. A cell inside a range has an edge to the range.
    """

    source: str
    target: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceAnswer:
    """What a cell depends on, or what depends on it, nearest first.

    `truncated`: there is more than the limits of depth, nodes or formulas allow to tell.
    """

    file_id: str
    sheet: str
    cell: str
    direction: Direction
    nodes: tuple[TraceNode, ...]
    edges: tuple[TraceEdge, ...]
    truncated: bool
    warnings: tuple[str, ...] = ()
