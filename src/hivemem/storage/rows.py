"""Rows as they are stored, for copying a whole database: what each store reads and writes, and their digest.

Calls block; a copy runs in a thread, or in a process of its own.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from hivemem.storage.tables import Table

Value: TypeAlias = "str | int | bytes | None"
Row: TypeAlias = "tuple[Value, ...]"
Key: TypeAlias = "tuple[Value, ...]"


class GraphRows(Protocol):
    """Where the rows of single graphs come from."""

    def rows_of(self, table: Table, graph_id: str) -> Iterator[Row]:
        """The rows that a table of `GRAPH_TABLES` has of one graph, in the order of its key."""
        ...


class RowSource(GraphRows, Protocol):
    """One state of a database, however much is written meanwhile. Close it."""

    def count(self, table: Table) -> int:
        """How many rows a table has."""
        ...

    def rows(self, table: Table, after: Key | None = None) -> Iterator[Row]:
        """The rows of a table in the order of its key, after a key or all, read as they are asked for."""
        ...

    def close(self) -> None:
        """Release the database. Safe to call twice."""
        ...


class RowTarget(RowSource, Protocol):
    """A database that a copy fills, for this process alone. Others cannot use it before `publish`.

    A note of the copy's state is stored with each write, so that a copy that was interrupted can go on.
    """

    def note(self) -> str | None:
        """The note of an unfinished copy; None when there is none, and then the database is empty."""
        ...

    def write(self, table: Table, rows: Sequence[Row], note: str) -> None:
        """Insert rows and store the note: both or neither, so that no row is ever written twice.

        Raises:
            Conflict: A row of that key is there; somebody else writes to the target.
        """
        ...

    def discard(self) -> None:
        """Remove what an unfinished copy has written, and its note."""
        ...

    def publish(self) -> None:
        """Remove the note and let others use the database. It is closed afterwards."""
        ...


class FillGraph(Protocol):
    """Puts rows in the place of an empty graph: all of them or none."""

    def __call__(self, graph_id: str, rows: Callable[[Table], Iterable[Row]]) -> None:
        """Ask for the rows of each table of `GRAPH_TABLES` in turn, and insert them.

        A blank `user_profile`, which every graph begins with, gives way. Whatever `rows` raises ends it, with
        nothing written. Other writers of a SQLite file wait meanwhile.

        Raises:
            Conflict: The graph is not empty (`graph_not_empty`).
            InvalidInput: The rows contradict each other, or the schema.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class TableContent:
    """What a table holds: equal contents have equal digests, in whatever database."""

    rows: int
    sha256: str


def content(rows: Iterable[Row]) -> TableContent:
    """Number and digest of rows, which come in the order of their key.

    The digest is the SHA-256 of all values one after the other: `n` for NULL, `i42;` for an integer, `t3:abc`
    for a text and `b3:...` for bytes, with the number of bytes before the colon. A value ends where it says,
    so that different rows never spell the same.

    Example:
        >>> content([("a", 1, None)]).sha256 == hashlib.sha256(b"t1:ai1;n").hexdigest()
        True
    """
    digest, count = hashlib.sha256(), 0
    for row in rows:
        count += 1
        digest.update(b"".join(map(_spelled, row)))
    return TableContent(rows=count, sha256=digest.hexdigest())


def size_bytes(row: Row) -> int:
    """About how much memory the texts and bytes of a row take, in characters and bytes."""
    return sum(len(value) for value in row if isinstance(value, str | bytes))


def _spelled(value: Value) -> bytes:
    if value is None:
        return b"n"
    if isinstance(value, str):
        raw = value.encode()
        return b"t%d:%b" % (len(raw), raw)
    if isinstance(value, bytes):
        return b"b%d:%b" % (len(value), value)
    return b"i%d;" % value
