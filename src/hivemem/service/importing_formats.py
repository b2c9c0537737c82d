"""What can be imported: each format read as nodes and relationships, one after the other."""

from __future__ import annotations

import enum
import hashlib
import json
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeAlias, cast

from hivemem.domain.keys import normalise_key
from hivemem.domain.node_types import resolve_node_type
from hivemem.errors import HivememError, InvalidInput, NotFound
from hivemem.service.exporting_document import FORMAT_VERSION as DOCUMENT_VERSION
from hivemem.service.exporting_files import HYPEREDGES, LINKS, NOTES
from hivemem.service.exporting_records import GraphRecords

_NEEDED_OF_EDGES = ("from_key", "to_key", "relationship", "description", "data")
_SECTION = re.compile(r'"(\w+)":\[')
_SNIFFED_BYTES = 1 << 16
_ZIP = b"PK\x03\x04"
_MAX_SLUG_CHARACTERS = 80


class Format(enum.StrEnum):
    """How a file is read."""

    ARCHIVE = "archive"
    DOCUMENT = "document"
    NOTES = "notes"
    MCP_MEMORY = "mcp-memory"
    """The file of the reference MCP server `memory`: an entity or a relation a line."""
    MEM0 = "mem0"
    """What `get_all` of mem0 answers."""
    LINES = "lines"
    """Store requests, one a line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeItem:
    """A node to store; with a blank description, one that is only named."""

    where: str
    key: str
    description: str
    node_type: str | None = None
    data: dict[str, Any] | None = None
    assets: Sequence[str] | None = None
    search_text: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RelationshipItem:
    """A relationship to add, with the fields of an item of hm_add_relationships."""

    where: str
    fields: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """A part of the file that cannot be read."""

    where: str
    error: HivememError


NodeItems: TypeAlias = "Iterator[NodeItem | Problem]"
RelationshipItems: TypeAlias = "Iterator[RelationshipItem | Problem]"


class ImportSource(Protocol):
    """A file as what it says of a graph."""

    def nodes(self) -> NodeItems:
        """All nodes."""
        ...

    def relationships(self) -> RelationshipItems:
        """All relationships; their ends may be nodes of the file or not."""
        ...


def recognise(path: Path) -> Format:
    """The format of a file or folder, by its content; store requests when it is nothing else.

    Raises:
        NotFound: There is no such file.
        InvalidInput: It is XML, such as an export for graph programs, which no format is.
    """
    if path.is_dir():
        return Format.NOTES
    if not path.is_file():
        raise NotFound(f"{path} cannot be read: there is no such file.")
    with path.open("rb") as file:
        start = file.read(_SNIFFED_BYTES).removeprefix(b"\xef\xbb\xbf").lstrip()
    # Also where the rest is missing: whoever reads it says so.
    if start.startswith(_ZIP):
        return Format.ARCHIVE
    if start.startswith(b"<"):
        raise InvalidInput(
            f"{path} is XML, which cannot be imported; export the memory as an archive (.hivemem), "
            "a document (.json) or a folder of notes."
        )
    first = _object(start.split(b"\n", 1)[0])
    if first is not None and "key" in first:
        return Format.LINES
    if first is not None and first.get("type") in ("entity", "relation"):
        return Format.MCP_MEMORY
    if start.startswith(b'{"format_version":'):
        return Format.DOCUMENT
    if not start.startswith((b"{", b"[")) or (first is not None and len(start.splitlines()) > 1):
        return Format.LINES
    try:
        whole = _whole(path)
    except InvalidInput:
        return Format.LINES
    if isinstance(whole, dict):
        named = cast("dict[str, object]", whole)
        if isinstance(named.get("nodes"), list) and isinstance(named.get("edges"), list):
            return Format.DOCUMENT
        return Format.MEM0 if isinstance(named.get("results"), list) else Format.LINES
    return Format.MEM0


def source_of(path: Path, format: Format) -> ImportSource:
    """The reader of a file of a format, but for archives and store requests."""
    readers: dict[Format, Callable[[Path], ImportSource]] = {
        Format.DOCUMENT: DocumentSource,
        Format.NOTES: NotesSource,
        Format.MCP_MEMORY: McpMemorySource,
        Format.MEM0: Mem0Source,
    }
    return readers[format](path)


class RecordsSource:
    """The rows of an archive."""

    def __init__(self, records: GraphRecords) -> None:
        self._records = records

    def nodes(self) -> NodeItems:
        """See `ImportSource.nodes`."""
        return _node_items((f"node {record['key']!r}", record) for record in self._records.nodes())

    def relationships(self) -> RelationshipItems:
        """See `ImportSource.relationships`."""
        yield from _edge_items((_edge_place(record), record) for record in self._records.edges())
        hyperedges = self._records.hyperedges()
        yield from _hyperedge_items((f"hyperedge {one['hyperedge_id']}", one) for one in hyperedges)


class DocumentSource:
    """The JSON document of an export: read line by line as we write it, as a whole otherwise."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def nodes(self) -> NodeItems:
        """See `ImportSource.nodes`."""
        return _node_items(self._records("nodes"))

    def relationships(self) -> RelationshipItems:
        """See `ImportSource.relationships`."""
        yield from _edge_items(self._records("edges"))
        yield from _hyperedge_items(self._records("hyperedges"))

    def _records(self, kind: str) -> Iterator[tuple[str, object]]:
        # A byte that is no UTF-8 shall cost its line alone.
        with self._path.open(encoding="utf-8-sig", errors="surrogateescape", newline="\n") as file:
            head = file.readline()
            if head.startswith('{"format_version":1,') and head.endswith(",\n"):
                section = None
                for number, line in enumerate(file, start=2):
                    begins = _SECTION.fullmatch(line.rstrip("\n"))
                    if begins:
                        section = begins[1]
                    elif section == kind and line[:1] != "]":
                        yield f"line {number}", _parsed(line.rstrip("\n").removesuffix(","))
                return
        whole = _whole(self._path)
        document = cast("dict[str, object]", whole) if isinstance(whole, dict) else {}
        version = document.get("format_version", DOCUMENT_VERSION)
        if version != DOCUMENT_VERSION:
            raise InvalidInput(
                f"{self._path} has format version {version!r:.20}, and this hivemem reads "
                f"{DOCUMENT_VERSION}; upgrade, then repeat."
            )
        records = document.get(kind)
        if isinstance(records, list):
            for index, record in enumerate(cast("list[object]", records)):
                yield f"/{kind}/{index}", record


class NotesSource:
    """A folder of Markdown notes, as an export writes it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        if not (folder / NOTES).is_dir():
            raise InvalidInput(f"{folder} has no folder {NOTES!r}; it is not an export of notes.")

    def nodes(self) -> NodeItems:
        """See `ImportSource.nodes`."""
        for place, header, text in self._notes(NOTES):
            if isinstance(header, HivememError):
                yield Problem(where=place, error=header)
                continue
            yield from _node_items([(place, {**header, "description": text})])

    def relationships(self) -> RelationshipItems:
        """See `ImportSource.relationships`."""
        for place, header, _ in self._notes(NOTES):
            if not isinstance(header, HivememError):
                edges = header.get("relationships", ())
                given = cast("list[object]", edges) if isinstance(edges, list) else [edges] if edges else []
                for edge in given:
                    fields = cast("dict[str, object]", edge) if isinstance(edge, dict) else {}
                    yield from _edge_items([(place, {"from_key": header.get("key"), **fields})])
        for place, header, _ in self._notes(HYPEREDGES):
            if isinstance(header, HivememError):
                yield Problem(where=place, error=header)
                continue
            keys = header.pop("participant_keys", None)
            members = cast("list[object]", keys) if isinstance(keys, list) else []
            participants = [{"node_key": key} for key in members]
            yield from _hyperedge_items([(place, {**header, "participants": participants})])

    def _notes(self, folder: str) -> Iterator[tuple[str, dict[str, Any] | HivememError, str]]:
        for path in sorted((self._folder / folder).glob("*.md")):
            place = f"{folder}/{path.name}"
            try:
                header, text = _note(path.read_bytes().decode(), place)
            except (UnicodeDecodeError, InvalidInput) as error:
                problem = error if isinstance(error, InvalidInput) else InvalidInput(f"{place} is not UTF-8.")
                yield place, problem, ""
                continue
            yield place, header, text


class McpMemorySource:
    """The file of the reference MCP server `memory`."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._keys: dict[str, str] = {}

    def nodes(self) -> NodeItems:
        """See `ImportSource.nodes`."""
        for place, record in self._lines("entity"):
            try:
                name, kind = _text(record, "name"), _text(record, "entityType")
                told = record.get("observations", [])
                observations = (
                    [str(one) for one in cast("list[object]", told)] if isinstance(told, list) else []
                )
            except InvalidInput as error:
                yield Problem(where=place, error=error)
                continue
            sentences = [one.strip() for one in observations if one.strip()]
            yield NodeItem(
                where=place,
                key=self._key(name, kind),
                description="\n".join([f"{name} ({kind})", *sentences]),
                node_type=resolve_node_type(kind, "").node_type,
                data={"name": name, "entity_type": kind, "observations": observations},
            )

    def relationships(self) -> RelationshipItems:
        """See `ImportSource.relationships`."""
        if not self._keys:
            for _ in self.nodes():
                pass
        for place, record in self._lines("relation"):
            try:
                ends = (_text(record, "from"), _text(record, "to"))
                label = _text(record, "relationType")
            except InvalidInput as error:
                yield Problem(where=place, error=error)
                continue
            source, target = (self._keys.get(end) or self._key(end, "concept") for end in ends)
            fields = {"from_key": source, "to_key": target, "relationship": label}
            yield RelationshipItem(where=place, fields=fields)

    def _key(self, name: str, kind: str) -> str:
        """The key of a name, the same for each mention; two names never share one."""
        known = self._keys.get(name)
        if known is None:
            key = f"{resolve_node_type(kind, '').node_type}_{slug(name)}"
            known = key if key not in self._keys.values() else f"{key}_{_digest(name)}"
            self._keys[name] = known
        return known

    def _lines(self, kind: str) -> Iterator[tuple[str, dict[str, Any]]]:
        with self._path.open("rb") as lines:
            for number, line in enumerate(lines, start=1):
                record = _object(line.removeprefix(b"\xef\xbb\xbf"))
                if record is None:
                    if line.strip() and kind == "entity":
                        # One of the kinds reports lines that are neither.
                        yield f"line {number}", {}
                elif record.get("type") == kind:
                    yield f"line {number}", record


class Mem0Source:
    """What `get_all` of mem0 answers: an object with `results`, or their list."""

    def __init__(self, path: Path) -> None:
        whole = _whole(path)
        answer = cast("dict[str, object]", whole) if isinstance(whole, dict) else {"results": whole}
        self._results = _list(answer.get("results"))
        self._relations = _list(answer.get("relations"))

    def nodes(self) -> NodeItems:
        """See `ImportSource.nodes`."""
        for index, result in enumerate(self._results):
            place = f"/results/{index}"
            try:
                record = _mapping(result, place)
                memory, id = _text(record, "memory"), _text(record, "id")
            except InvalidInput as error:
                yield Problem(where=place, error=error)
                continue
            # The owner's ids, times and whatever else was said of it.
            data = {name: value for name, value in record.items() if name != "memory" and value is not None}
            key = f"fact_{slug(id)}"
            yield NodeItem(where=place, key=key, description=memory, node_type="fact", data={"mem0": data})

    def relationships(self) -> RelationshipItems:
        """See `ImportSource.relationships`."""
        for index, relation in enumerate(self._relations):
            place = f"/relations/{index}"
            try:
                record = _mapping(relation, place)
                target = record.get("target") or record.get("destination")
                ends = (_text(record, "source"), _text({"target": target}, "target"))
                label = _text(record, "relationship")
            except InvalidInput as error:
                yield Problem(where=place, error=error)
                continue
            source, goal = (f"concept_{slug(end)}" for end in ends)
            fields = {"from_key": source, "to_key": goal, "relationship": label}
            yield RelationshipItem(where=place, fields=fields)


def slug(name: str) -> str:
    """A name as a part of a key: small letters and digits with underscores between.

    Example:
        >>> slug("  Mara López-Ruiz! "), slug("!!!")
        ('mara_lópez_ruiz', 'e84c')
    """
    folded = unicodedata.normalize("NFKC", name).casefold()
    words = "".join(character if character.isalnum() else " " for character in folded).split()
    return "_".join(words)[:_MAX_SLUG_CHARACTERS].rstrip("_") or _digest(name)[:4]


def _digest(name: str) -> str:
    return hashlib.sha256(name.encode(errors="surrogatepass")).hexdigest()[:8]


def _edge_place(record: Mapping[str, Any]) -> str:
    return f"edge {record['edge_id']}"


def _node_items(records: Iterable[tuple[str, object]]) -> NodeItems:
    for place, record in records:
        try:
            if isinstance(record, HivememError):
                raise record
            fields = _mapping(record, place)
            yield NodeItem(
                where=place,
                key=normalise_key(_text(fields, "key")),
                description=_optional(fields, "description", str) or "",
                node_type=_optional(fields, "node_type", str),
                data=_optional(fields, "data", dict),
                assets=_strings(_optional(fields, "assets", list)),
                search_text=_optional(fields, "search_text", str),
            )
        except HivememError as error:
            yield Problem(where=place, error=error)


def _edge_items(records: Iterable[tuple[str, object]]) -> RelationshipItems:
    for place, record in records:
        try:
            if isinstance(record, HivememError):
                raise record
            fields = _mapping(record, place)
        except HivememError as error:
            yield Problem(where=place, error=error)
            continue
        yield RelationshipItem(where=place, fields={name: fields.get(name) for name in _NEEDED_OF_EDGES})


def _hyperedge_items(records: Iterable[tuple[str, object]]) -> RelationshipItems:
    for place, record in records:
        try:
            if isinstance(record, HivememError):
                raise record
            fields = _mapping(record, place)
            members = [_mapping(one, place) for one in _list(fields.get("participants"))]
            keys = [_text(member, "node_key") for member in members]
        except HivememError as error:
            yield Problem(where=place, error=error)
            continue
        kept = {name: fields.get(name) for name in ("relationship", "description", "data")}
        yield RelationshipItem(where=place, fields={**kept, "participant_keys": keys})


def _note(text: str, place: str) -> tuple[dict[str, Any], str]:
    """Header and text of a note."""
    begin, rule, rest = text.partition("---\n")
    lines, end, body = rest.partition("\n---\n")
    if begin.strip("\ufeff") or not rule or not end:
        raise InvalidInput(f"{place} does not begin with a header between two lines of three dashes.")
    header: dict[str, Any] = {}
    for line in lines.split("\n"):
        name, colon, value = line.partition(":")
        if not colon:
            raise InvalidInput(f"{place} has the line {line[:60]!r} in its header; write `name: value`.")
        try:
            header[name.strip()] = _json(value, place)
        except InvalidInput:
            # A person wrote it without quotes.
            header[name.strip()] = value.strip()
    body = body.removeprefix("\n")
    body = body.rpartition(f"\n\n{LINKS}\n")[0] if f"\n\n{LINKS}\n" in body else body.removesuffix("\n")
    return header, body


def _whole(path: Path) -> object:
    return _json(path.read_bytes(), str(path))


def _parsed(line: str) -> object:
    """The value of a line, or the error that it is none."""
    try:
        return _json(line, "it")
    except InvalidInput as error:
        return error


def _json(text: bytes | str, what: str) -> Any:
    """The value of a JSON text.

    Raises:
        InvalidInput: It is none, or lies in more brackets than Python can follow.
    """
    try:
        return json.loads(text)
    except ValueError as error:
        raise InvalidInput(f"{what} is not JSON: {error}.") from error
    except RecursionError as error:
        raise InvalidInput(f"{what} is nested too deeply; flatten it.") from error


def _object(line: bytes) -> dict[str, Any] | None:
    try:
        value = _json(line, "it")
    except InvalidInput:
        return None
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None


def _mapping(value: object, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise InvalidInput(f'{where} is not of type "object".')
    return cast("dict[str, Any]", value)


def _list(value: object) -> list[object]:
    return cast("list[object]", value) if isinstance(value, list) else []


def _text(fields: Mapping[str, Any], name: str) -> str:
    value = fields.get(name)
    if not isinstance(value, str) or not value.strip():
        raise InvalidInput(f"/{name} is missing, or is not a text.")
    return value


def _optional(fields: Mapping[str, Any], name: str, kind: type) -> Any:
    value = fields.get(name)
    if value is not None and not isinstance(value, kind):
        raise InvalidInput(f"/{name} is not of the type that a node has there.")
    return value


def _strings(values: list[object] | None) -> list[str] | None:
    if values is None or all(isinstance(value, str) for value in values):
        return cast("list[str] | None", values)
    raise InvalidInput("/assets has an item that is not a text.")
