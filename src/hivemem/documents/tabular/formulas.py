"""What a formula refers to, read from its text.

Source of the grammar: ISO/IEC 29500-1, 18.17 (formulas), and for structured references the `Table[...]`
notation that files store. Text that is no formula gives some references or none; nothing here raises.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from hivemem.documents.tabular.a1 import MAX_COLUMN, MAX_ROW, Area, column_name, column_number

_TOKEN = re.compile(
    r"""
      (?P<string>"(?:[^"]|"")*+(?:"|$))
    | (?P<error>\#[A-Za-z0-9/]++[!?]?)
    | (?P<sheet>'(?:[^']|'')*+'!|(?:\[[^\[\]]*+\])?[\w.]++(?::[\w.]++)?!)?
      (?:
        (?P<area>\$?[A-Za-z]{1,3}\$?[0-9]{1,7}(?::\$?[A-Za-z]{1,3}\$?[0-9]{1,7})?)(?![\w.(\[])
      | (?P<columns>\$?[A-Za-z]{1,3}:\$?[A-Za-z]{1,3})(?![\w.(\[$])
      | (?P<rows>\$?[0-9]{1,7}:\$?[0-9]{1,7})(?![\w.(\[$])
      | (?P<name>[^\W\d][\w.?]*+)(?P<after>[(\[])?
      )
    | (?P<table>\[)
    | '(?:[^']|'')*+(?:'|$)
    | [0-9.]++(?:[eE][-+]?[0-9]++)?
    | .
    """,
    re.VERBOSE | re.DOTALL,
)
_CELL = re.compile(r"(\$?)([A-Za-z]{1,3})(\$?)([0-9]{1,7})")
_WORDS = frozenset(("TRUE", "FALSE"))
_LOST = "#REF!"


@dataclass(frozen=True, slots=True, kw_only=True)
class SheetSpan:
    """The sheets that a reference names: from `first` to `last` in the order of the workbook."""

    first: str
    last: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AreaReference:
    """Cells of the formula's own sheet, or of the named ones."""

    area: Area
    sheets: SheetSpan | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NameReference:
    """A defined name, or a whole table, with the sheet that it is said to be of."""

    name: str
    sheets: SheetSpan | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TableReference:
    """A part of a table.

    Attributes:
        table: Its name; None for the table around the formula.
        items: `#all`, `#data`, `#headers`, `#totals` or `#this row`, lower-case; empty for the data.
        columns: First and last column by name; None for all.
    """

    table: str | None
    items: frozenset[str]
    columns: tuple[str, str] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ExternalReference:
    """Cells or a name of another file, which is not followed."""

    text: str


Reference = AreaReference | NameReference | TableReference | ExternalReference


def references(formula: str) -> list[Reference]:
    """What a formula refers to, in reading order, each once.

    Names of functions are left out, and so is what `INDIRECT` or `OFFSET` would find only by
    calculating.

    Example:
        >>> [str(found.area) for found in references("=SUM(A1:B2)+LOG10($C$3)")]
        ['A1:B2', 'C3']
    """
    return list(dict.fromkeys(_references(formula)))


def _references(formula: str) -> Iterator[Reference]:
    position = 1 if formula.startswith("=") else 0
    while token := _TOKEN.match(formula, position):
        position = token.end()
        sheet = token["sheet"]
        table = token["table"] is not None or token["after"] == "["
        inner = ""
        if table:
            position, inner = _bracketed(formula, position)
        if sheet and "[" in sheet:
            yield ExternalReference(text=token[0])
        elif table:
            yield _table_reference(token["name"], inner)
        elif token["area"] or token["columns"] or token["rows"]:
            area = _area(token)
            if area:
                yield AreaReference(area=area, sheets=_span(sheet))
        elif token["name"] and token["after"] is None and token["name"].upper() not in _WORDS:
            yield NameReference(name=token["name"], sheets=_span(sheet))


def moved(formula: str, rows: int, columns: int) -> str:
    """The formula as it reads when it is copied so far down and to the right.

    Relative parts move, those with `$` stay; a reference that would leave the sheet becomes `#REF!`.

    Example:
        >>> moved("=A1+$B$1+C$2&LOG10(2)", 2, 1)
        '=B3+$B$1+D$2&LOG10(2)'
    """
    parts: list[str] = []
    position = 0
    while token := _TOKEN.match(formula, position):
        position = token.end()
        prefix = token["sheet"] or ""
        if token["area"]:
            ends = [_moved_cell(end, rows, columns) for end in token["area"].split(":")]
        elif token["columns"]:
            ends = [_moved_column(end, columns) for end in token["columns"].split(":")]
        elif token["rows"]:
            ends = [_moved_row(end, rows) for end in token["rows"].split(":")]
        else:
            parts.append(token[0])
            if token["table"] or token["after"] == "[":
                start = position
                position, _ = _bracketed(formula, position)
                parts.append(formula[start:position])
            continue
        parts.append(prefix + (_LOST if None in ends else ":".join(filter(None, ends))))
    return "".join(parts)


def _moved_cell(text: str, rows: int, columns: int) -> str | None:
    found = _CELL.fullmatch(text)
    if found is None:
        return None
    column, row = _moved_column(found[1] + found[2], columns), _moved_row(found[3] + found[4], rows)
    return column + row if column and row else None


def _moved_column(text: str, columns: int) -> str | None:
    if text.startswith("$"):
        return text
    number = column_number(text) + columns
    return column_name(number) if 1 <= number <= MAX_COLUMN else None


def _moved_row(text: str, rows: int) -> str | None:
    if text.startswith("$"):
        return text
    number = int(text) + rows
    return str(number) if 1 <= number <= MAX_ROW else None


def _area(token: re.Match[str]) -> Area | None:
    if token["area"]:
        ends = [_CELL.fullmatch(end) for end in token["area"].split(":")]
        rows = [int(end[4]) for end in ends if end]
        columns = [column_number(end[2]) for end in ends if end]
    elif token["columns"]:
        rows = [1, MAX_ROW]
        columns = [column_number(end.lstrip("$")) for end in token["columns"].split(":")]
    else:
        rows = [int(end.lstrip("$")) for end in token["rows"].split(":")]
        columns = [1, MAX_COLUMN]
    area = Area(min(rows), min(columns), max(rows), max(columns))
    inside = area.first_row >= 1 and area.last_row <= MAX_ROW and area.last_column <= MAX_COLUMN
    return area if inside else None


def _span(prefix: str | None) -> SheetSpan | None:
    if not prefix:
        return None
    name = prefix[:-1]
    if name.startswith("'"):
        name = name[1:-1].replace("''", "'")
    # A colon cannot be part of a sheet's name, quoted or not.
    first, _, last = name.partition(":")
    return SheetSpan(first=first, last=last or first)


def _bracketed(formula: str, start: int) -> tuple[int, str]:
    """The end of the brackets whose first one stands before `start`, and the text inside of them."""
    depth, position = 1, start
    while position < len(formula):
        character = formula[position]
        if character == "'":
            position += 1
        elif character == "[":
            depth += 1
        elif character == "]":
            depth -= 1
            if not depth:
                return position + 1, formula[start:position]
        position += 1
    return len(formula), formula[start:]


_GROUP = re.compile(r"\[((?:[^\[\]']|'.)*+)\]", re.DOTALL)


def _table_reference(table: str | None, inner: str) -> TableReference:
    items: set[str] = set()
    columns: list[str] = []
    text = inner.strip()
    if text.startswith("@"):
        items.add("#this row")
        text = text[1:]
    groups = [found[1] for found in _GROUP.finditer(text)] or ([text] if text else [])
    for group in groups:
        if group.startswith("#"):
            items.add(group.lower())
        else:
            columns.append(re.sub("'(.)", r"\1", group, flags=re.DOTALL))
    return TableReference(
        table=table, items=frozenset(items), columns=(columns[0], columns[-1]) if columns else None
    )
