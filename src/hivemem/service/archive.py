"""The archive of a graph: its rows, table by table, in a zip file that any later hivemem can read.

`tables/NAME.jsonl` holds a row a line, as a JSON array of the columns that the manifest names, without the
graph's id; bytes are `{"base64": ...}`. `files/SHA256` holds the bytes of an uploaded file. `manifest.json`
says how many rows each table has and what the SHA-256 of its lines is.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import hashlib
import json
import zipfile
import zlib
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

import hivemem
from hivemem.domain.graph import GraphId
from hivemem.domain.node import EnrichmentStatus
from hivemem.errors import Corruption, InvalidInput, NotFound
from hivemem.storage.rows import GraphRows, Row, Value
from hivemem.storage.tables import GRAPH_TABLES, ColumnKind, Table

FORMAT = "hivemem-archive"
FORMAT_VERSION = 1

_MANIFEST = "manifest.json"
_MAX_MANIFEST_BYTES = 16 * 1024 * 1024
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))
_INTEGERS = range(-(2**63), 2**63)
_READ_BYTES = 1 << 18

OnRow = Callable[[int], None]
"""Told how many rows are done, of all tables."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableEntry:
    """A table in an archive, and the SHA-256 of its lines."""

    name: str
    columns: tuple[str, ...]
    rows: int
    sha256: str


class ArchiveWriter:
    """An archive being written; `close` makes it whole."""

    def __init__(self, file: IO[bytes]) -> None:
        self._zip = zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=6)
        self._tables: list[TableEntry] = []
        self._files = 0

    def add_tables(self, source: GraphRows, graph_id: GraphId, *, vectors: bool, on_row: OnRow) -> int:
        """Write the graph's rows; without `vectors`, its nodes wait to be embedded. The number of rows."""
        done = 0
        for table in GRAPH_TABLES:
            if table.name == "node_vectors" and not vectors:
                continue
            digest, rows = hashlib.sha256(), 0
            with self._zip.open(f"tables/{table.name}.jsonl", "w", force_zip64=True) as entry:
                for row in source.rows_of(table, graph_id):
                    told = _without_vectors(table, row) if table.name == "nodes" and not vectors else row
                    line = _ENCODER.encode([_encoded(value) for value in told[1:]]).encode() + b"\n"
                    digest.update(line)
                    entry.write(line)
                    rows, done = rows + 1, done + 1
                    on_row(done)
            columns = table.names[1:]
            self._tables.append(
                TableEntry(name=table.name, columns=columns, rows=rows, sha256=digest.hexdigest())
            )
        return done

    def file(self, sha256: str) -> IO[bytes]:
        """Where to write the bytes of an uploaded file; close it."""
        self._files += 1
        # Not packed again: most uploads are.
        return self._zip.open(zipfile.ZipInfo(f"files/{sha256}"), "w", force_zip64=True)

    def close(self, graph_id: GraphId, exported_at: str, *, vectors: bool) -> None:
        """Write the manifest, and end the file."""
        manifest = {
            "format": FORMAT,
            "format_version": FORMAT_VERSION,
            "program": hivemem.__version__,
            "graph_id": graph_id,
            "exported_at": exported_at,
            "vectors": vectors,
            "tables": [
                {"name": one.name, "columns": one.columns, "rows": one.rows, "sha256": one.sha256}
                for one in self._tables
            ],
            "files": self._files,
        }
        self._zip.writestr(_MANIFEST, json.dumps(manifest, ensure_ascii=False, indent=1))
        self._zip.close()


class ArchiveReader:
    """An archive to read; make it with `open`, and close it."""

    def __init__(self, path: Path, packed: zipfile.ZipFile, tables: dict[str, TableEntry]) -> None:
        self._path = path
        self._zip = packed
        self._tables = tables

    @classmethod
    def open(cls, path: Path) -> ArchiveReader:
        """Read the manifest, and see that every row has a place in the present tables.

        Raises:
            NotFound: There is no such file.
            InvalidInput: Another zip file, or a newer hivemem's archive.
            Corruption: A damaged archive.
        """
        try:
            packed = zipfile.ZipFile(path)
        except FileNotFoundError as error:
            raise NotFound(f"there is no archive {path}; check the path.") from error
        except PermissionError as error:
            raise InvalidInput(f"{path} cannot be read: {error.strerror}.") from error
        except (zipfile.BadZipFile, OSError, NotImplementedError) as error:
            raise Corruption(f"{path} is not a whole archive: {error}.") from error
        try:
            with _damage(path):
                tables, files = _checked_manifest(path, packed)
            archive = cls(path, packed, tables)
            # A name is not part of any SHA-256: a file under another one would be passed over.
            if (found := len(archive.file_hashes())) != files:
                raise Corruption(f"{path} is damaged: it has {found} of {files} files. Use another copy.")
        except BaseException:
            packed.close()
            raise
        return archive

    @property
    def row_count(self) -> int:
        """The rows of all tables."""
        return sum(entry.rows for entry in self._tables.values())

    def rows_of(self, table: Table, graph_id: GraphId) -> Iterator[Row]:
        """The rows of a table as those of `graph_id`; the end comes after count and hash were compared.

        Raises:
            Corruption: They are not what the manifest says.
        """
        entry = self._tables.get(table.name)
        if entry is None:
            return
        positions = [entry.columns.index(name) if name in entry.columns else None for name in table.names[1:]]
        digest, count = hashlib.sha256(), 0
        with _damage(self._path), self._zip.open(f"tables/{table.name}.jsonl") as lines:
            for line in lines:
                digest.update(line)
                count += 1
                values = json.loads(line)
                row = [None if position is None else values[position] for position in positions]
                yield (graph_id, *_decoded(table, row))
        if (count, digest.hexdigest()) != (entry.rows, entry.sha256):
            raise Corruption(
                f"the rows of {table.name} in {self._path} are not those that were exported: {count} of "
                f"{entry.rows}, or changed. Use another copy of the archive."
            )

    def file_hashes(self) -> list[str]:
        """The names of the uploaded files whose bytes are here."""
        names = (name.split("/") for name in self._zip.namelist())
        return [parts[1] for parts in names if len(parts) == 2 and parts[0] == "files"]

    def file(self, sha256: str) -> Iterator[bytes]:
        """The bytes of an uploaded file."""
        with _damage(self._path), self._zip.open(f"files/{sha256}") as entry:
            while piece := entry.read(_READ_BYTES):
                yield piece

    def close(self) -> None:
        """Release the file."""
        self._zip.close()


def _checked_manifest(path: Path, packed: zipfile.ZipFile) -> tuple[dict[str, TableEntry], int]:
    """The tables, and the number of uploaded files."""
    if _MANIFEST not in packed.namelist():
        raise InvalidInput(f"{path} has no {_MANIFEST}; it is not an archive of hivemem.")
    if packed.getinfo(_MANIFEST).file_size > _MAX_MANIFEST_BYTES:
        raise InvalidInput(f"the manifest of {path} is too large to be one of ours.")
    manifest = json.loads(packed.read(_MANIFEST))
    if manifest["format"] != FORMAT:
        raise InvalidInput(f"{path} is not an archive of hivemem.")
    if manifest["format_version"] != FORMAT_VERSION:
        raise _newer(path, f"format version {manifest['format_version']}")
    known = {table.name: table for table in GRAPH_TABLES}
    found: dict[str, TableEntry] = {}
    for one in manifest["tables"]:
        entry = TableEntry(
            name=one["name"], columns=tuple(one["columns"]), rows=one["rows"], sha256=one["sha256"]
        )
        table = known.get(entry.name)
        if table is None or not set(entry.columns) <= set(table.names[1:]):
            if entry.rows:
                raise _newer(path, f"rows of {entry.name} that this one cannot hold")
            continue
        missing = [c.name for c in table.columns[1:] if c.name not in entry.columns and not c.nullable]
        if missing and entry.rows:
            raise InvalidInput(
                f"{path} has no {missing[0]} in {entry.name}; import it with the hivemem that made it "
                f"({manifest['program']}), bring that database up to date, and export it again."
            )
        found[entry.name] = entry
    return found, manifest["files"]


def _newer(path: Path, what: str) -> InvalidInput:
    return InvalidInput(f"{path} comes from a newer hivemem: it has {what}. Upgrade, then repeat.")


@contextlib.contextmanager
def _damage(path: Path) -> Generator[None]:
    """Raise what reading a damaged or forged archive can come to as ours."""
    try:
        yield
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError, NotImplementedError) as error:
        raise Corruption(f"{path} is damaged: {error}. Use another copy.") from error
    except (ValueError, KeyError, IndexError, TypeError, binascii.Error) as error:
        raise Corruption(f"{path} is damaged or was changed: {error!r:.200}. Use another copy.") from error


def _without_vectors(table: Table, row: Row) -> Row:
    """The row of a node that has no vectors and waits for them."""
    values = dict(zip(table.names, row, strict=True))
    if values["vector_model"] is not None:
        values |= {"vector_model": None, "enrichment_status": EnrichmentStatus.PENDING.value}
    return tuple(values.values())


def _encoded(value: Value) -> object:
    return {"base64": base64.b64encode(value).decode()} if isinstance(value, bytes) else value


def _decoded(table: Table, values: list[Any]) -> Iterator[Value]:
    """The values of a row, each of its column's kind."""
    for column, value in zip(table.columns[1:], values, strict=True):
        given: Any = value
        if column.kind is ColumnKind.BYTES and isinstance(given, dict):
            coded = cast("dict[str, Any]", given)
            given = base64.b64decode(coded["base64"], validate=True)
        fits = {
            ColumnKind.TEXT: isinstance(given, str),
            ColumnKind.INTEGER: type(given) is int and given in _INTEGERS,
            ColumnKind.BYTES: isinstance(given, bytes),
        }[column.kind]
        if not fits and not (given is None and column.nullable):
            raise ValueError(f"{table.name}.{column.name} is {given!r:.60}")
        yield given
