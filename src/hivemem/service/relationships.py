"""The relationships of one node, in full."""

from __future__ import annotations

from dataclasses import dataclass

from hivemem.domain.access import Principal
from hivemem.domain.edge import Edge, Hyperedge
from hivemem.domain.keys import normalise_key
from hivemem.errors import NotFound
from hivemem.ports.store import GraphStore
from hivemem.service.label_pattern import label_test

MAX_EDGES = 500
MAX_HYPEREDGES = 200
_FILTERED = 10_000
"""Relationships that a pattern is held against; more are not looked at, and `truncated` says so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RelationshipsResult:
    """Edges and hyperedges, newest first, session hyperedges left out.

    `truncated` says that the node has more than were looked at or are returned.
    """

    key: str
    edges: tuple[Edge, ...]
    hyperedges: tuple[Hyperedge, ...]
    truncated: bool


class RelationshipLists:
    """Reads what joins a node to others."""

    def __init__(self, *, store: GraphStore) -> None:
        self._store = store

    async def of(self, principal: Principal, key: str, pattern: str | None = None) -> RelationshipsResult:
        """The newest 500 edges and 200 hyperedges of a node, or of those whose label matches `pattern`.

        Raises:
            NotFound: There is no such node.
            InvalidInput: The key cannot exist, or the pattern is too long.
            Unavailable: The store is busy or down.
        """
        graph_id, normal = principal.graph_id, normalise_key(key, "/key")
        matches = label_test(pattern, "/pattern")
        if normal not in await self._store.nodes(graph_id, [normal]):
            raise NotFound(f"node {normal!r} does not exist; hm_recall finds keys.")
        read = (MAX_EDGES, 2 * MAX_HYPEREDGES) if matches is None else (_FILTERED, _FILTERED)
        related = (
            await self._store.relationships(graph_id, [normal], edge_limit=read[0], hyperedge_limit=read[1])
        )[normal]
        edges = [edge for edge in related.edges if matches is None or matches(edge.relationship)]
        hyperedges = [
            hyperedge
            for hyperedge in related.hyperedges
            if not hyperedge.is_session and (matches is None or matches(hyperedge.relationship))
        ]
        return RelationshipsResult(
            key=normal,
            edges=tuple(edges[:MAX_EDGES]),
            hyperedges=tuple(hyperedges[:MAX_HYPEREDGES]),
            truncated=(
                related.edge_total > len(related.edges)
                or related.hyperedge_total > len(related.hyperedges)
                or len(edges) > MAX_EDGES
                or len(hyperedges) > MAX_HYPEREDGES
            ),
        )
