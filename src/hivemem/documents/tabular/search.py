"""Search in a workbook by words: regions, headers, labels, values and number formats."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from heapq import heappush, heapreplace

from hivemem.documents.limits import DocumentLimits
from hivemem.documents.tabular.a1 import Area
from hivemem.documents.tabular.answers import HitKind, SearchAnswer, SearchHit
from hivemem.documents.tabular.number_formats import format_words
from hivemem.documents.tabular.regions import Region, is_text, sheet_use
from hivemem.documents.tabular.workbook import Cell, CellBudget, Row, Sheet, Workbook, sheet_named, shown
from hivemem.errors import InvalidInput
from hivemem.retrieval.analyse import analyse_query, document_terms

MAX_HITS = 50
MAX_QUERY_CHARACTERS = 1_000
_MAX_WORDS = 16
_HIT_CHARACTERS = 300
_READ_CHARACTERS = 2_000
_REMEMBERED_TEXTS = 1 << 16
_REMEMBERED_CHARACTERS = 256

_KIND_WEIGHTS: dict[HitKind, float] = {
    "header": 1.2,
    "label": 1.15,
    "region": 1.1,
    "value": 1.0,
    "format": 0.8,
}
"""What names numbers is worth more than what is one among many; a judgement, not a measurement."""

Matched = tuple[tuple[int, float], ...]
"""Position of a query word and the weight of the form that was found, in order."""


@dataclass(frozen=True, slots=True)
class _Found:
    sheet: str
    kind: HitKind
    range: str
    text: str
    matched: Matched
    length: int


def search(
    workbook: Workbook,
    limits: DocumentLimits,
    *,
    file_id: str,
    query: str,
    sheet: str | None = None,
    limit: int = 25,
) -> SearchAnswer:
    """Places where words of the query stand, the best first. Reads the sheets twice.

    The score of a hit is the sum over its matched words of their rarity among the file's texts, the
    `idf` of BM25, times the weight of the matched form, times a factor of the kind, divided by
    `1 + ln(1 + words of the text) / 4`, so that short texts come first. Equal scores keep the order of
    the file. A number in the query matches cells of that value, however they are formatted.

    Args:
        workbook: What is searched.
        limits: How many cells are read.
        file_id: Told in the answer.
        query: Words; every character is data.
        sheet: Name or id of the only sheet to search; None for all.
        limit: Hits to tell, 1 to 50.

    Raises:
        InvalidInput: A blank or very long query, `limit` out of range, or a broken file.
        NotFound: There is no such sheet.
        LimitExceeded: The file is beyond the limits.
    """
    if not query.strip() or len(query) > MAX_QUERY_CHARACTERS:
        raise InvalidInput(f"/query must have 1 to {MAX_QUERY_CHARACTERS:,} characters, got {len(query):,}.")
    if not 1 <= limit <= MAX_HITS:
        raise InvalidInput(f"/limit is {limit}; it must be from 1 to {MAX_HITS}.")
    parts = workbook.parts
    sheets = parts.sheets if sheet is None else (sheet_named(parts, sheet),)
    matcher = _Matcher(query)
    best = _Best(limit)
    outline_budget, budget = CellBudget(limits.max_cells), CellBudget(limits.max_cells)
    cut = False
    for one in sheets:
        use = sheet_use(one, outline_budget.rows(workbook, one), parts.tables)
        cut = cut or use.cut
        for found in _in_sheet(one, use.regions, budget.rows(workbook, one), matcher):
            best.add(found)
    hits = best.ranked(matcher)
    return SearchAnswer(
        file_id=file_id,
        query=query,
        hits=tuple(hits),
        count=len(hits),
        truncated=cut or budget.exhausted,
    )


class _Matcher:
    """Finds the words of a query in texts, and counts in how many texts each of them is."""

    def __init__(self, query: str) -> None:
        self.words = [word for word in analyse_query(query, max_words=_MAX_WORDS).words if word.informative]
        self._forms: dict[str, list[tuple[int, float]]] = {}
        for position, word in enumerate(self.words):
            for term in word.terms:
                self._forms.setdefault(term.text, []).append((position, term.weight))
        self._numbers: dict[float, Matched] = {}
        for literal in query.split():
            number = _number(literal.strip(",;:()"))
            if number is not None:
                named = [(at, 1.0) for at, word in enumerate(self.words) if word.surface in literal]
                self._numbers[number] = tuple(named)
        self.texts = 0
        self.frequencies: Counter[int] = Counter()
        self._remembered: dict[str, Matched] = {}

    def text(self, text: str) -> Matched:
        """Words of the query that a text holds."""
        self.texts += 1
        matched = self._remembered.get(text)
        if matched is None:
            weights: dict[int, float] = {}
            for term in document_terms(text[:_READ_CHARACTERS]).frequencies:
                for position, weight in self._forms.get(term, ()):
                    weights[position] = max(weight, weights.get(position, 0.0))
            matched = tuple(sorted(weights.items()))
            if len(self._remembered) >= _REMEMBERED_TEXTS:
                self._remembered.clear()
            if len(text) <= _REMEMBERED_CHARACTERS:
                self._remembered[text] = matched
        self.frequencies.update(position for position, _ in matched)
        return matched

    def cell(self, cell: Cell) -> Matched:
        """Words of the query that a cell holds."""
        if isinstance(cell.value, str):
            return self.text(cell.value)
        if cell.value is None or isinstance(cell.value, bool):
            return ()
        self.texts += 1
        matched = self._numbers.get(cell.value, ())
        self.frequencies.update(position for position, _ in matched)
        return matched

    def rarity(self, position: int) -> float:
        """The idf of a word: larger for one that few texts hold. Source: docs/retrieval.md (BM25)."""
        frequency = self.frequencies[position]
        return math.log(1 + (self.texts - frequency + 0.5) / (frequency + 0.5))


class _Best:
    """Keeps, of all that matched the same words in the same way, the first and shortest ones.

    The scores are known only at the end, when all texts have been counted; among equals in words and
    kind their order is already known, so that no hit that could be told is ever dropped.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._order = 0
        self._heaps: dict[tuple[Matched, HitKind], list[tuple[int, int, _Found]]] = {}

    def add(self, found: _Found) -> None:
        self._order += 1
        heap = self._heaps.setdefault((found.matched, found.kind), [])
        entry = (-found.length, -self._order, found)
        if len(heap) < self._limit:
            heappush(heap, entry)
        elif entry > heap[0]:
            heapreplace(heap, entry)

    def ranked(self, matcher: _Matcher) -> list[SearchHit]:
        scored: list[tuple[float, int, _Found]] = []
        for (matched, kind), heap in self._heaps.items():
            weight = sum(matcher.rarity(position) * form for position, form in matched)
            for _, order, found in heap:
                score = weight * _KIND_WEIGHTS[kind] / (1 + math.log1p(found.length) / 4)
                scored.append((-score, -order, found))
        scored.sort(key=lambda item: item[:2])
        return [
            SearchHit(
                sheet=found.sheet,
                kind=found.kind,
                range=found.range,
                text=found.text[:_HIT_CHARACTERS],
                score=round(-score, 4),
            )
            for score, _, found in scored[: self._limit]
        ]


def _in_sheet(
    sheet: Sheet, regions: Sequence[Region], rows: Iterator[Row], matcher: _Matcher
) -> Iterator[_Found]:
    for region in regions:
        text = ", ".join(filter(None, (region.title, *region.headers)))
        if text and (matched := matcher.text(text)):
            yield _Found(sheet.name, "region", str(region.area), text, matched, _words(text))
    formats: dict[str, Area] = {}
    waiting = list(reversed(regions))
    active: list[Region] = []
    for row in rows:
        while waiting and waiting[-1].area.first_row <= row.number:
            active.append(waiting.pop())
        if any(region.area.last_row < row.number for region in active):
            active = [region for region in active if region.area.last_row >= row.number]
        for index, cell in enumerate(row.cells):
            if cell.format is not None:
                area = Area(row.number, cell.column, row.number, cell.column)
                known = formats.get(cell.format)
                formats[cell.format] = area if known is None else known.joined(area)
            if matched := matcher.cell(cell):
                yield _cell_hit(sheet, active, row, index, matched)
    for code, area in formats.items():
        if matched := matcher.text(format_words(code)):
            yield _Found(sheet.name, "format", str(area), code, matched, _words(code))


def _cell_hit(sheet: Sheet, active: Sequence[Region], row: Row, index: int, matched: Matched) -> _Found:
    cell = row.cells[index]
    region = next((one for one in active if (row.number, cell.column) in one.area), None)
    address = str(Area(row.number, cell.column, row.number, cell.column))
    text = shown(cell.value)
    length = _words(text)
    if region and region.header_row == row.number:
        return _Found(sheet.name, "header", address, text, matched, length)
    beside = row.cells[index + 1] if index + 1 < len(row.cells) else None
    if is_text(cell) and beside and beside.column == cell.column + 1 and not is_text(beside):
        return _Found(sheet.name, "label", address, f"{text}: {shown(beside.value)}", matched, length)
    if region and region.headers:
        at = cell.column - region.area.first_column
        header = region.headers[at] if at < len(region.headers) else ""
        if header:
            text = f"{header}: {text}"
    return _Found(sheet.name, "value", address, text, matched, length)


def _words(text: str) -> int:
    return len(text[:_READ_CHARACTERS].split())


def _number(literal: str) -> float | None:
    """The value of a number that is written with or without thousands, or as a percentage."""
    plain = literal.replace(",", "")
    try:
        return float(plain[:-1]) / 100 if plain.endswith("%") else float(plain)
    except ValueError:
        return None
