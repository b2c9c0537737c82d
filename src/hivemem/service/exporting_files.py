"""A graph as GraphML, and as a folder of Markdown notes."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import quote
from xml.sax.saxutils import escape, quoteattr

from hivemem.service.exporting_records import GraphRecords, Record

OnRecord = Callable[[str], None]
"""Told the kind of each record as it is written."""

NOTES, HYPEREDGES = "notes", "hyperedges"
"""The folders of a Markdown export."""

LINKS = "<!-- relationships -->"
"""The line between the text of a note and its links; what follows is written anew by every export."""

_MAX_NAME_BYTES = 120
_NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

_GRAPHML_HEAD = """<?xml version="1.0" encoding="UTF-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
"""
_NODE_FIELDS = (
    "kind",
    "node_type",
    "label",
    "description",
    "search_text",
    "data",
    "created_at",
    "updated_at",
)
_EDGE_FIELDS = ("relationship", "description", "data", "created_at", "updated_at")


def graphml_texts(records: GraphRecords, on_record: OnRecord) -> Iterator[str]:
    """The graph as GraphML, piece by piece.

    A hyperedge becomes a node of the kind `hyperedge` with an edge to each participant, labelled by its role:
    readers of GraphML know edges between two nodes only.
    """
    yield _GRAPHML_HEAD
    for scope, fields in (("node", _NODE_FIELDS), ("edge", _EDGE_FIELDS)):
        for field in fields:
            yield f'<key id="{scope}_{field}" for="{scope}" attr.name="{field}" attr.type="string"/>\n'
    yield '<graph edgedefault="directed">\n'
    for node in records.nodes():
        on_record("nodes")
        fields = {**node, "kind": "node", "label": node["key"]}
        yield f"<node id={_id(node['key'])}>{_data('node', _NODE_FIELDS, fields)}</node>\n"
    for edge in records.edges():
        on_record("edges")
        ends = f"source={_id(edge['from_key'])} target={_id(edge['to_key'])}"
        yield f"<edge id={_id(edge['edge_id'])} {ends}>{_data('edge', _EDGE_FIELDS, edge)}</edge>\n"
    for hyperedge in records.hyperedges():
        on_record("hyperedges")
        id = _id(hyperedge["hyperedge_id"])
        fields = {**hyperedge, "kind": "hyperedge", "label": hyperedge["relationship"]}
        yield f"<node id={id}>{_data('node', _NODE_FIELDS, fields)}</node>\n"
        for one in hyperedge["participants"]:
            role = _data("edge", _EDGE_FIELDS, {"relationship": one["role"]})
            yield f"<edge source={id} target={_id(one['node_key'])}>{role}</edge>\n"
    yield "</graph>\n</graphml>\n"


def write_notes(folder: Path, records: Callable[[], GraphRecords], on_record: OnRecord) -> None:
    """Write a note for each node and each hyperedge into an empty folder.

    What a note is stands in its header, one field a line, each value as JSON; the text of a node stands
    below, as it is. Links to other notes follow under `LINKS`, for readers of the folder. The edges of the
    whole graph are held in memory, by their ends.

    Raises:
        OSError: A file cannot be written.
    """
    outgoing: dict[str, list[Record]] = {}
    incoming: dict[str, list[tuple[str, str]]] = {}
    for edge in records().edges():
        on_record("edges")
        kept = {name: edge[name] for name in ("to_key", "relationship", "description", "data") if edge[name]}
        outgoing.setdefault(edge["from_key"], []).append(kept)
        incoming.setdefault(edge["to_key"], []).append((edge["from_key"], edge["relationship"]))
    (folder / NOTES).mkdir()
    for node in records().nodes():
        on_record("nodes")
        key = node["key"]
        header: Record = {
            name: node[name]
            for name in ("key", "node_type", "data", "assets", "search_text", "placeholder")
            if node[name] not in (None, False, {}, [])
        }
        header |= {"created_at": node["created_at"], "updated_at": node["updated_at"]}
        if key in outgoing:
            header["relationships"] = outgoing[key]
        links = [f"- {_line(edge['relationship'])} {_link(edge['to_key'])}" for edge in outgoing.get(key, ())]
        links += [f"- {_link(source)} {_line(label)} this" for source, label in incoming.get(key, ())]
        _write_note(folder / NOTES / f"{note_name(key)}.md", header, node["description"], links)
    (folder / HYPEREDGES).mkdir()
    for hyperedge in records().hyperedges():
        on_record("hyperedges")
        keys = [one["node_key"] for one in hyperedge["participants"]]
        header = {"participant_keys": keys, "relationship": hyperedge["relationship"]}
        if hyperedge["data"]:
            header["data"] = hyperedge["data"]
        if hyperedge["description"] is not None:
            header["description"] = hyperedge["description"]
        header |= {"created_at": hyperedge["created_at"], "updated_at": hyperedge["updated_at"]}
        name = note_name(hyperedge["hyperedge_id"])
        _write_note(folder / HYPEREDGES / f"{name}.md", header, "", [f"- {_link(key)}" for key in keys])


def note_name(key: str) -> str:
    """The file name of a key's note, without its ending: readable, and different for different keys.

    Example:
        >>> note_name("person_mara"), note_name("Fact/é")
        ('person_mara', 'Fact%2F%C3%A9-ae39802f')
    """
    plain = quote(key, safe=" ")
    if plain == key.lower() and len(plain) <= _MAX_NAME_BYTES and not plain.startswith((" ", ".")):
        return plain
    # Where case does not matter, two keys must not be one file; and names have a greatest length.
    cut = re.sub(r"%.?$", "", plain[:_MAX_NAME_BYTES]).lstrip(" .")
    return f"{cut}-{hashlib.sha256(key.encode()).hexdigest()[:8]}"


def _write_note(path: Path, header: Record, text: str, links: list[str]) -> None:
    lines = ["---", *(f"{name}: {json.dumps(value, ensure_ascii=False)}" for name, value in header.items())]
    # The line is there also when no link follows: the text may hold such a line itself.
    lines += ["---", "", text, "", LINKS, "", *links]
    # Bytes, so that no platform changes the ends of lines.
    path.write_bytes(("\n".join(lines) + "\n").encode())


def _link(key: str) -> str:
    name = note_name(key)
    return f"[[{name}]]" if name == key else f"[[{name}|{_line(key)}]]"


def _line(text: str) -> str:
    return " ".join(text.split()).replace("[[", "[ [").replace("|", "/")


def _id(value: object) -> str:
    return quoteattr(_xml_text(str(value)))


def _data(scope: str, fields: tuple[str, ...], values: Record) -> str:
    parts: list[str] = []
    for field in fields:
        value = values.get(field)
        if value not in (None, {}):
            text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            # A bare carriage return would become a line feed.
            safe = escape(_xml_text(text), {"\r": "&#13;"})
            parts.append(f'<data key="{scope}_{field}">{safe}</data>')
    return "".join(parts)


def _xml_text(text: str) -> str:
    return _NOT_IN_XML.sub("\ufffd", text)
