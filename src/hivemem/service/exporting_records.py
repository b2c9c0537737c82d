"""A whole graph as records, read from one state of the database however much is written meanwhile."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from typing import Any, TypeAlias, cast

from hivemem.domain.edge import SESSION_LABEL_PREFIX
from hivemem.domain.graph import GraphId
from hivemem.domain.node import EnrichmentStatus
from hivemem.storage.rows import GraphRows
from hivemem.storage.tables import GRAPH_TABLES
from hivemem.storage.times import from_microseconds

Record: TypeAlias = "dict[str, Any]"
"""A JSON object with the fields that its kind always has."""

_TABLES = {table.name: table for table in GRAPH_TABLES}


class GraphRecords:
    """The nodes, edges, hyperedges and diary lines of one graph as JSON objects, each kind in one order.

    Memory holds a few rows at a time. What the server made for conversations (hyperedges that group what one
    touched) is left out.
    """

    def __init__(self, source: GraphRows, graph_id: GraphId) -> None:
        self._source = source
        self._graph_id = graph_id

    def nodes(self) -> Iterator[Record]:
        """All nodes by key, with the fields of a node record."""
        for row in self._rows("nodes"):
            status = row["enrichment_status"]
            yield {
                "key": row["key"],
                "node_type": row["node_type"],
                "description": row["description"],
                "data": json.loads(row["data"]),
                "assets": json.loads(row["assets"]),
                "search_text": row["search_text"],
                "enrichment_status": status,
                "write_version": row["write_version"],
                "placeholder": status == EnrichmentStatus.PLACEHOLDER,
                **_times(row),
            }

    def edges(self) -> Iterator[Record]:
        """All edges by id."""
        for row in self._rows("edges"):
            yield {
                "edge_id": row["edge_id"],
                "from_key": row["from_key"],
                "to_key": row["to_key"],
                "relationship": row["relationship"],
                "description": row["description"],
                "data": json.loads(row["data"]),
                "write_version": row["write_version"],
                **_times(row),
            }

    def hyperedges(self) -> Iterator[Record]:
        """All hyperedges by id, participants in their order."""
        # Both tables come in the order of the id, so that one pass over each is enough.
        grouped = itertools.groupby(self._rows("hyperedge_participants"), lambda row: row["hyperedge_id"])
        for row in self._rows("hyperedges"):
            id, members = next(grouped, (None, iter(())))
            participants = sorted(members, key=lambda member: member["ordinal"])
            assert id == row["hyperedge_id"], "every hyperedge has participants"
            if row["relationship"].startswith(SESSION_LABEL_PREFIX):
                continue
            yield {
                "hyperedge_id": id,
                "relationship": row["relationship"],
                "description": row["description"],
                "data": json.loads(row["data"]),
                "participants": [
                    {"node_key": one["node_key"], "role": one["role"], "ordinal": one["ordinal"]}
                    for one in participants
                ],
                "write_version": row["write_version"],
                **_times(row),
            }

    def timeline(self) -> Iterator[Record]:
        """All lines of the diary, by number."""
        for row in self._rows("timeline"):
            yield {
                "event_id": row["event_id"],
                "at": _moment(row["at"]),
                "summary": row["summary"],
                "source": row["source"],
                "tool": row["tool"],
                "node_key": row["node_key"],
                "meta": json.loads(row["meta"]),
            }

    def _rows(self, table: str) -> Iterator[dict[str, Any]]:
        names = _TABLES[table].names
        for row in self._source.rows_of(_TABLES[table], self._graph_id):
            yield dict(zip(names, row, strict=True))


def _times(row: dict[str, Any]) -> Record:
    return {"created_at": _moment(row["created_at"]), "updated_at": _moment(row["updated_at"])}


def _moment(microseconds: object) -> str:
    return from_microseconds(cast("int", microseconds)).isoformat().replace("+00:00", "Z")
