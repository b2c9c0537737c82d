"""Copying a whole database to another, of the same kind or of the other, and proving that both are equal."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

from hivemem.errors import Conflict
from hivemem.service.file_bytes import BlobName, CarriedFiles
from hivemem.storage.rows import Row, RowSource, RowTarget, TableContent, content, size_bytes
from hivemem.storage.tables import TABLES, Table

Report = Callable[[str, int, int], None]
"""Called with (what is being done, rows done, rows in all)."""

Carry = Callable[[Collection[BlobName]], CarriedFiles]
"""Copies the bytes that are named."""

MAX_PAGE_ROWS = 2_000
MAX_PAGE_BYTES = 8_000_000
_REPORT_ROWS = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedTable:
    """A table on both sides."""

    name: str
    source: TableContent
    target: TableContent

    @property
    def equal(self) -> bool:
        """Whether both hold the same rows."""
        return self.source == self.target


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyResult:
    """What a copy did, and how the databases compare afterwards."""

    tables: tuple[ComparedTable, ...]
    resumed_rows: int
    """Rows that an earlier, interrupted run had copied."""
    copied_rows: int
    copy_seconds: float
    compare_seconds: float
    files: CarriedFiles | None
    """None when the bytes of uploaded files were not asked for, or the tables differ."""

    @property
    def equal(self) -> bool:
        """Whether every table and file is the same on both sides; only then the target can be used."""
        return all(table.equal for table in self.tables) and not (self.files and self.files.lost)


@dataclass(frozen=True, slots=True, kw_only=True)
class _State:
    """How far a copy is: the note that the target keeps until it is whole."""

    source: dict[str, Any]
    """What the source was when the copy began; see `_fingerprint`."""
    table: str
    after: tuple[Any, ...] | None
    """Key of the last row that was copied of `table`; the tables before it are complete."""
    rows: int
    """Rows copied, of all tables."""

    def encode(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def decode(cls, note: str) -> _State:
        fields: dict[str, Any] = json.loads(note)
        if fields["after"] is not None:
            fields["after"] = tuple(fields["after"])
        return cls(**fields)


def copy_database(
    source: RowSource,
    target: RowTarget,
    *,
    restart: bool = False,
    report: Report,
    carry: Carry | None = None,
    max_page_rows: int = MAX_PAGE_ROWS,
    max_page_bytes: int = MAX_PAGE_BYTES,
) -> CopyResult:
    """Copy every table of `source`, compare both sides, and let others use `target` if they are equal.

    A run that is interrupted, however hard, leaves a note in the target, and the next one goes on where it
    stopped. Memory holds one page of rows at a time.

    Args:
        source: Read in one state, from beginning to end.
        target: Empty, or with an unfinished copy of the same source.
        restart: Throw an unfinished copy away and begin again.
        report: Told after every page.
        carry: Copies the bytes of uploaded files, and compares them.
        max_page_rows: Rows written in one transaction.
        max_page_bytes: Size at which a page ends, roughly; a single row may be larger.

    Raises:
        Conflict: The source has changed since the unfinished copy began, or that is another source's
            (`source_changed`). With `restart` this cannot happen.
    """
    counts = {table.name: source.count(table) for table in TABLES}
    total = sum(counts.values())
    state = _begin(source, target, counts, restart=restart)
    resumed = state.rows
    started = time.perf_counter()
    first = [table.name for table in TABLES].index(state.table)
    for table in TABLES[first:]:
        after = state.after if table.name == state.table else None
        for page in _pages(source.rows(table, after), max_page_rows, max_page_bytes):
            state = _State(
                source=state.source,
                table=table.name,
                after=tuple(page[-1][position] for position in table.key_positions),
                rows=state.rows + len(page),
            )
            target.write(table, page, state.encode())
            report("copying", state.rows, total)
    copied = time.perf_counter()
    tables = tuple(_compared(source, target, report, 2 * total))
    carried = None
    if carry is not None and all(table.equal for table in tables):
        carried = carry(_blob_names(source))
    compared = time.perf_counter()
    result = CopyResult(
        files=carried,
        tables=tables,
        resumed_rows=resumed,
        copied_rows=state.rows - resumed,
        copy_seconds=copied - started,
        compare_seconds=compared - copied,
    )
    if result.equal:
        target.publish()
    return result


def _begin(source: RowSource, target: RowTarget, counts: dict[str, int], *, restart: bool) -> _State:
    """The state to go on from: of the unfinished copy, or the beginning."""
    fingerprint = _fingerprint(source, counts)
    note = target.note()
    if note is not None and restart:
        target.discard()
        note = None
    if note is None:
        state = _State(source=fingerprint, table=TABLES[0].name, after=None, rows=0)
        # Before the first row, so that rows without a note are nobody's copy.
        target.write(TABLES[0], (), state.encode())
        return state
    state = _State.decode(note)
    if state.source != fingerprint:
        raise Conflict(
            f"the copy was begun of a source in another state: {_difference(state.source, fingerprint)}. "
            "Begin again with --restart, which throws the unfinished copy away.",
            code="source_changed",
        )
    return state


def _fingerprint(source: RowSource, counts: dict[str, int]) -> dict[str, Any]:
    """What tells a source from another and from its own later states, without reading all of it.

    The counters of a graph grow with every write of it, and the number of rows with most others. The
    few changes that this misses (a key that is revoked, a node that a conversation touches again) show in
    the comparison at the end.
    """
    counters = next(table for table in TABLES if table.name == "graph_counters")
    return {
        "tables": hashlib.sha256(repr(TABLES).encode()).hexdigest(),
        "rows": counts,
        "graphs": {str(graph_id): list(numbers) for graph_id, *numbers in source.rows(counters)},
    }


def _blob_names(source: RowSource) -> Collection[BlobName]:
    """The bytes that the records of files name, each once."""
    table = next(table for table in TABLES if table.name == "files")
    graph, digest = table.names.index("graph_id"), table.names.index("sha256")
    return dict.fromkeys((str(row[graph]), str(row[digest])) for row in source.rows(table))


def _difference(then: dict[str, Any], now: dict[str, Any]) -> str:
    """One thing that differs, in words."""
    if then["tables"] != now["tables"]:
        return "it was begun by a hivemem with other tables"
    for graph_id in sorted({*then["graphs"], *now["graphs"]}):
        before, after = then["graphs"].get(graph_id), now["graphs"].get(graph_id)
        if before is None or after is None:
            return f"the graph {graph_id!r} was {'not there' if before is None else 'there'} then"
        if before != after:
            return f"the graph {graph_id!r} has been written since"
    changed = next(name for name, rows in now["rows"].items() if then["rows"][name] != rows)
    return f"the table {changed} had {then['rows'][changed]} rows then and has {now['rows'][changed]} now"


def _pages(rows: Iterable[Row], max_rows: int, max_bytes: int) -> Iterator[list[Row]]:
    """`rows` in pages of bounded number and size, at least one row each."""
    page: list[Row] = []
    size = 0
    for row in rows:
        page.append(row)
        size += size_bytes(row)
        if len(page) >= max_rows or size >= max_bytes:
            yield page
            page, size = [], 0
    if page:
        yield page


def _compared(source: RowSource, target: RowTarget, report: Report, total: int) -> Iterator[ComparedTable]:
    done = 0

    def counted(rows: Iterable[Row]) -> Iterator[Row]:
        nonlocal done
        for row in rows:
            done += 1
            if done % _REPORT_ROWS == 0 or done == total:
                report("comparing", done, total)
            yield row

    def both(table: Table) -> ComparedTable:
        return ComparedTable(
            name=table.name,
            source=content(counted(source.rows(table))),
            target=content(counted(target.rows(table))),
        )

    yield from map(both, TABLES)
