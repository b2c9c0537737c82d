"""hivemem's index alone: what the first stage of a recall does in its two legs, and their fusion."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

import hivemem
from engines.contract import Engine, Plan, Rows, Vector
from hivemem.domain.graph import ChangedNode, ChangePage, Passage
from hivemem.domain.node import EnrichmentStatus, Node
from hivemem.projection.graph_index import GraphIndex
from hivemem.retrieval.analyse import analyse_query
from hivemem.service.first_stage import text_legs

_PAGE = 1000
_NOW = datetime(2026, 1, 1, tzinfo=UTC)


class HivememLegs(Engine):
    what = "BM25 and vectors of the index in memory, RRF; analysing the question counts"
    durability = "none: the index follows the store; `hivemem, recall without models` has both"
    version = hivemem.__version__

    def __init__(self, folder: Path, plan: Plan) -> None:
        self._plan = plan
        self._index = GraphIndex(plan.dimension)

    def add(self, batches: Iterable[Rows]) -> None:
        for rows in batches:
            for start in range(0, len(rows.ids), _PAGE):
                part = slice(start, start + _PAGE)
                nodes = map(_changed, rows.ids[part], rows.texts[part], rows.vectors[part])
                page = ChangePage(revision=self._index.revision + 1, nodes=tuple(nodes))
                self._index.apply(page)

    def hybrid(self, text: str, vector: Vector, k: int) -> list[str]:
        query = analyse_query(text)
        with self._index.reading() as graph:
            legs = text_legs(graph, graph.postings.plan(query), vector)
            best = np.argsort(-legs.rrf, kind="stable")[:k]
            return graph.numbers.keys(legs.nodes[best].tolist())

    def dense(self, vector: Vector, k: int) -> list[str]:
        # As deep as in the hybrid search: the recall of the first ten depends on it.
        return [hit.key for hit in self._index.search_vectors(vector, self._plan.leg)[:k]]


def _changed(id: str, text: str, vector: Vector) -> ChangedNode:
    node = Node(
        key=id,
        node_type="fact",
        description=text,
        enrichment_status=EnrichmentStatus.SKIPPED,
        created_at=_NOW,
        updated_at=_NOW,
    )
    passage = Passage(
        source="description", start=0, end=len(text), vector=vector.astype("<f4", copy=False).tobytes()
    )
    return ChangedNode(node=node, passages=(passage,))


ENGINE = HivememLegs
