"""What changed since a revision: the feed that keeps every projection current."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from hivemem.domain.edge import Edge, Hyperedge
from hivemem.domain.graph import ChangedNode, ChangePage, GraphId, Kind, Passage, Removal
from hivemem.domain.node import Node
from hivemem.storage.graph_rows import edge_from_row, node_from_row
from hivemem.storage.postgres.hyperedges import hyperedge_of
from hivemem.storage.postgres.pool import Pool
from hivemem.storage.postgres.statements import named_statements
from hivemem.storage.postgres.transaction import Query, Row

_SQL = named_statements("changes.sql")


async def changes(pool: Pool, graph_id: GraphId, since: int, model_id: str, limit: int) -> ChangePage:
    """The next page of changes after `since`: whole revisions, oldest first."""
    own = {"graph_id": graph_id, "since": since}
    (until, present), nodes, passages, edges, hyperedges, removals = await pool.ask_six(
        Query(sql=_SQL["find_page"], arguments={**own, "limit": max(1, limit)}, decode=_end_of_page),
        Query(sql=_SQL["changed_nodes"], arguments=own, decode=_nodes),
        Query(sql=_SQL["changed_vectors"], arguments={**own, "model_id": model_id}, decode=_passages),
        Query(sql=_SQL["changed_edges"], arguments=own, decode=_edges),
        Query(sql=_SQL["changed_hyperedges"], arguments=own, decode=_hyperedges),
        Query(sql=_SQL["removals"], arguments=own, decode=_removals),
    )
    return ChangePage(
        revision=until,
        nodes=tuple(ChangedNode(node=node, passages=tuple(passages.get(node.key, ()))) for node in nodes),
        edges=edges,
        hyperedges=hyperedges,
        removals=removals,
        more=until < present,
    )


def _end_of_page(rows: list[Row]) -> tuple[int, int]:
    ((until, present, _),) = rows
    return until, present


def _nodes(rows: list[Row]) -> tuple[Node, ...]:
    return tuple(map(node_from_row, rows))


def _passages(rows: list[Row]) -> Mapping[str, list[Passage]]:
    passages: defaultdict[str, list[Passage]] = defaultdict(list)
    for key, source, start, end, vector in rows:
        passages[key].append(Passage(source=source, start=start, end=end, vector=vector))
    return passages


def _edges(rows: list[Row]) -> tuple[Edge, ...]:
    return tuple(map(edge_from_row, rows))


def _hyperedges(rows: list[Row]) -> tuple[Hyperedge, ...]:
    return tuple(map(hyperedge_of, rows))


def _removals(rows: list[Row]) -> tuple[Removal, ...]:
    return tuple(Removal(kind=Kind(kind), id=id, revision=revision) for kind, id, revision in rows)
