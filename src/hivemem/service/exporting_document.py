"""The JSON document of a graph: one record a line, made piece by piece."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import datetime

from hivemem.domain.exports import EXPORT_CHUNK_BYTES
from hivemem.domain.graph import GraphId
from hivemem.service.exporting_records import GraphRecords, Record

FORMAT_VERSION = 1

_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


def document_pieces(
    records: GraphRecords,
    graph_id: GraphId,
    exported_at: datetime,
    *,
    on_record: Callable[[str], None] = lambda kind: None,
    piece_bytes: int = EXPORT_CHUNK_BYTES,
) -> Iterator[bytes]:
    """The document as UTF-8, in pieces of `piece_bytes` but for the last one.

    `on_record` is told the kind of each record (nodes, edges, hyperedges, timeline) as it is written. Who
    knows the layout can read the document line by line.
    """
    waiting = bytearray()
    for text in _texts(records, graph_id, exported_at, on_record):
        waiting += text.encode()
        while len(waiting) >= piece_bytes:
            yield bytes(waiting[:piece_bytes])
            del waiting[:piece_bytes]
    if waiting:
        yield bytes(waiting)


def _texts(
    records: GraphRecords, graph_id: GraphId, exported_at: datetime, on_record: Callable[[str], None]
) -> Iterator[str]:
    moment = exported_at.isoformat().replace("+00:00", "Z")
    head = _ENCODER.encode({"format_version": FORMAT_VERSION, "graph_id": graph_id, "exported_at": moment})
    yield head.removesuffix("}")
    kinds: dict[str, Callable[[], Iterator[Record]]] = {
        "nodes": records.nodes,
        "edges": records.edges,
        "hyperedges": records.hyperedges,
        "timeline": records.timeline,
    }
    for kind, read in kinds.items():
        yield f',\n"{kind}":['
        separator = "\n"
        for record in read():
            on_record(kind)
            yield separator + _ENCODER.encode(record)
            separator = ",\n"
        yield "\n]"
    yield "\n}\n"
