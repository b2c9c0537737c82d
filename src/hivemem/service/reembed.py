"""Give vectors of the present model to nodes that lack them, while everything else goes on."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence

from hivemem.domain.graph import GraphId, NodeVectors
from hivemem.domain.node import EnrichmentStatus, Node
from hivemem.domain.writing import NodeText
from hivemem.errors import HivememError, Unavailable
from hivemem.models.executor import ModelExecutor
from hivemem.ports.store import GraphStore
from hivemem.service.passages import PassageEmbedding

_PAGE_NODES = 64
_MAX_TRIES = 3
"""A node that others keep changing, or that the model fails on, is left alone after so many rounds."""


class Reembed:
    """The background work behind `enrichment_status: pending`, and the step after a model change.

    Nodes are found by what they lack, so that the work may stop anywhere and begin again.
    """

    def __init__(self, *, store: GraphStore, executor: ModelExecutor) -> None:
        self._store = store
        self._embedding = PassageEmbedding(executor)

    async def run(self, graph_id: GraphId, *, on_progress: Callable[[int, int], None] | None = None) -> int:
        """Embed every described node of the graph that has no vectors of the present model.

        Args:
            graph_id: The graph.
            on_progress: Called after every page with (done, total); the total is an estimate, since
                others write meanwhile.

        Returns:
            How many nodes got vectors.

        Raises:
            Unavailable: There is no embedder, it does not answer, or its queue stayed full. What was done
                stays done; run it again.
        """
        model_id = self._embedding.model_id
        done = 0
        tries: Counter[str] = Counter()
        total = await self._estimate(graph_id, model_id) if on_progress is not None else 0
        while True:
            given_up = sum(1 for count in tries.values() if count >= _MAX_TRIES)
            page = await self._store.without_vectors(graph_id, model_id, limit=_PAGE_NODES + given_up)
            work = [node for node in page if tries[node.key] < _MAX_TRIES]
            if not work:
                return done
            tries.update(node.key for node in work)
            done += await self._embed_page(graph_id, work)
            if on_progress is not None:
                on_progress(done, max(done, total))
            # Between pages callers get their turn on the model even when this work never waits.
            await asyncio.sleep(0)

    async def _embed_page(self, graph_id: GraphId, nodes: Sequence[Node]) -> int:
        texts = {node.key: NodeText.of(node) for node in nodes}
        try:
            cut = await self._embedding.cut(list(dict.fromkeys(texts.values())))
            vectors = await self._embedding.embed(cut, patient=True)
        except Unavailable:
            raise
        except HivememError:
            # The model fails on one of the texts: it stays pending, the others get their vectors.
            if len(nodes) == 1:
                return 0
            return sum([await self._embed_page(graph_id, [node]) for node in nodes])
        done = 0
        for node in nodes:
            found = vectors[texts[node.key]]
            if found.passages:
                done += await self._put(graph_id, node, found)
        return done

    async def _put(self, graph_id: GraphId, node: Node, vectors: NodeVectors) -> bool:
        waited = node.enrichment_status is EnrichmentStatus.PENDING
        status = EnrichmentStatus.SKIPPED if waited else node.enrichment_status
        return await self._store.put_vectors(graph_id, node.key, node.write_version, vectors, status)

    async def _estimate(self, graph_id: GraphId, model_id: str) -> int:
        counts = await self._store.counts(graph_id)
        models = await self._store.vector_models(graph_id)
        return max(0, counts.nodes - models.get(model_id, 0))
