"""Reading all of a graph through the port, so that two stores, or two moments, can be compared."""

from __future__ import annotations

from dataclasses import dataclass, field

from hivemem.domain.edge import Edge, Hyperedge
from hivemem.domain.graph import ChangedNode, ChangePage, Kind
from hivemem.ports.store import Store
from tests.support.builders import MODEL

GRAPH = "graph_one"
OTHER_GRAPH = "graph_two"


@dataclass(slots=True)
class Replica:
    """What a consumer of change pages knows; it must equal the graph whenever it has caught up."""

    revision: int = 0
    nodes: dict[str, ChangedNode] = field(default_factory=dict)
    edges: dict[str, Edge] = field(default_factory=dict)
    hyperedges: dict[str, Hyperedge] = field(default_factory=dict)

    def play(self, page: ChangePage) -> None:
        things = {Kind.NODE: self.nodes, Kind.EDGE: self.edges, Kind.HYPEREDGE: self.hyperedges}
        for removal in page.removals:
            things[removal.kind].pop(removal.id, None)
        self.nodes |= {changed.node.key: changed for changed in page.nodes}
        self.edges |= {edge.edge_id: edge for edge in page.edges}
        self.hyperedges |= {hyperedge.hyperedge_id: hyperedge for hyperedge in page.hyperedges}
        self.revision = page.revision

    async def catch_up(self, store: Store, *, limit: int = 1000, graph_id: str = GRAPH) -> list[ChangePage]:
        """Play pages until none follows; returns them."""
        pages: list[ChangePage] = []
        while not pages or pages[-1].more:
            page = await store.changes(graph_id, self.revision, model_id=MODEL, limit=limit)
            assert page.revision > self.revision or not page.more, "a page without progress"
            self.play(page)
            pages.append(page)
        return pages


async def replica(store: Store, graph_id: str = GRAPH) -> Replica:
    """The whole graph as its change feed tells it from the beginning."""
    fresh = Replica()
    await fresh.catch_up(store, graph_id=graph_id)
    return fresh


async def everything(store: Store, graph_id: str = GRAPH) -> dict[str, object]:
    """All that the port tells about a graph, session `s` included."""
    graph = await replica(store, graph_id)
    ids = {Kind.NODE: graph.nodes, Kind.EDGE: graph.edges, Kind.HYPEREDGE: graph.hyperedges}
    return {
        "replica": graph,
        "revision": await store.revision(graph_id),
        "counts": await store.counts(graph_id),
        "timeline": await store.timeline(graph_id, limit=1000),
        "touched": await store.touched(graph_id, "s", limit=1000),
        "vector_models": await store.vector_models(graph_id),
        "versions": {
            (kind, id): await store.versions(graph_id, kind, id) for kind, some in ids.items() for id in some
        },
    }
