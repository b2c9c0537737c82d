"""What changed since a revision: the feed that keeps every projection current."""

from __future__ import annotations

import sqlite3
from collections import defaultdict

from hivemem.domain.graph import ChangedNode, ChangePage, GraphId, Kind, Passage, Removal
from hivemem.storage.graph_rows import edge_from_row, node_from_row
from hivemem.storage.sqlite import history
from hivemem.storage.sqlite.hyperedges import hyperedges_from_rows
from hivemem.storage.sqlite.statements import named_statements

_SQL = named_statements("changes.sql")


def changes(
    connection: sqlite3.Connection, graph_id: GraphId, since: int, model_id: str, limit: int
) -> ChangePage:
    """The next page of changes after `since`: whole revisions, oldest first."""
    present = history.revision(connection, graph_id)
    until = _last_revision_of_page(connection, graph_id, since, limit, present)
    window = {"graph_id": graph_id, "since": since, "until": until, "model_id": model_id}
    passages: defaultdict[str, list[Passage]] = defaultdict(list)
    for key, source, start, end, vector in connection.execute(_SQL["changed_vectors"], window):
        passages[key].append(Passage(source=source, start=start, end=end, vector=vector))
    nodes = [node_from_row(row) for row in connection.execute(_SQL["changed_nodes"], window)]
    hyperedge_rows = connection.execute(_SQL["changed_hyperedges"], window).fetchall()
    return ChangePage(
        revision=until,
        nodes=tuple(ChangedNode(node=node, passages=tuple(passages.get(node.key, ()))) for node in nodes),
        edges=tuple(edge_from_row(row) for row in connection.execute(_SQL["changed_edges"], window)),
        hyperedges=tuple(hyperedges_from_rows(connection, graph_id, hyperedge_rows)),
        removals=tuple(
            Removal(kind=Kind(kind), id=id, revision=revision)
            for kind, id, revision in connection.execute(_SQL["removals"], window)
        ),
        more=until < present,
    )


def _last_revision_of_page(
    connection: sqlite3.Connection, graph_id: GraphId, since: int, limit: int, present: int
) -> int:
    """The last revision on a page: whole revisions, at least one, and no more than `limit` rows."""
    limit = max(1, limit)
    arguments = {"graph_id": graph_id, "since": since, "limit": limit + 1}
    revisions = [r for (r,) in connection.execute(_SQL["revisions_of_changes"], arguments)]
    if len(revisions) <= limit:
        return present
    # The revision of the row too many is not whole on this page, unless it is the only one.
    beyond = revisions[-1]
    return max((revision for revision in revisions if revision < beyond), default=beyond)
