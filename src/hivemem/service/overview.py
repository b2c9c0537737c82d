"""What a memory graph holds, at a glance."""

from __future__ import annotations

from dataclasses import dataclass

from hivemem.domain.access import Principal
from hivemem.domain.graph import GraphCounts
from hivemem.ports.store import GraphStore
from hivemem.projection.hot_graphs import HotGraphs

_TOP_NODES = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class TopNode:
    """A well connected node. `connections` is its degree; the description is not shortened."""

    key: str
    description: str
    node_type: str
    connections: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OverviewResult:
    """Sizes of the graph, and up to ten nodes with the most connections, most connected first."""

    counts: GraphCounts
    top_nodes: tuple[TopNode, ...]


class Overview:
    """Reads sizes from the store and degrees from the projection."""

    def __init__(self, *, store: GraphStore, hot: HotGraphs) -> None:
        self._store = store
        self._hot = hot

    async def overview(self, principal: Principal) -> OverviewResult:
        """Sizes and best connected nodes of the caller's graph.

        Raises:
            Unavailable: The store is busy or down.
        """
        graph_id = principal.graph_id
        counts = await self._store.counts(graph_id)
        index = await self._hot.fresh(graph_id)
        degrees = [(key, degree) for key, degree in index.top_degree(_TOP_NODES) if degree > 0]
        nodes = await self._store.nodes(graph_id, [key for key, _ in degrees])
        top = tuple(
            TopNode(
                key=key,
                description=nodes[key].description,
                node_type=nodes[key].node_type,
                connections=degree,
            )
            for key, degree in degrees
            if key in nodes  # one may be forgotten between the two reads
        )
        return OverviewResult(counts=counts, top_nodes=top)
