"""qdrant's engine inside the process: HNSW, its sparse BM25, and its own fusion."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import qdrant_edge as qdrant

from engines.contract import Engine, Plan, Rows, Vector

_UPSERT = 1000


class QdrantEdge(Engine):
    what = "HNSW (cosine), sparse BM25 with IDF, RRF in the engine"
    durability = "write-ahead log, flushed before the insert returns"
    version = importlib.metadata.version("qdrant-edge-py")
    efforts = (100, 200, 400, 800, 1600)
    effort = efforts[0]

    def __init__(self, folder: Path, plan: Plan) -> None:
        self._plan = plan
        self._words = qdrant.Bm25(qdrant.Bm25Config(avg_len=plan.mean_words, language="english"))
        self._shard = qdrant.EdgeShard.create(
            str(folder),
            qdrant.EdgeConfig(
                vectors={
                    "meaning": qdrant.EdgeVectorParams(size=plan.dimension, distance=qdrant.Distance.Cosine)
                },
                sparse_vectors={"words": qdrant.EdgeSparseVectorParams(modifier=qdrant.Modifier.Idf)},
            ),
        )
        self._count = 0

    def add(self, batches: Iterable[Rows]) -> None:
        for rows in batches:
            for start in range(0, len(rows.ids), _UPSERT):
                points = list(self._points(rows, start))
                self._shard.update(qdrant.UpdateOperation.upsert_points(points))

    def ready(self) -> None:
        self._shard.optimize()
        self._shard.flush()

    def hybrid(self, text: str, vector: Vector, k: int) -> list[str]:
        legs = [
            qdrant.Prefetch(
                query=qdrant.Query.Nearest(vector.tolist(), using="meaning"),
                limit=self._plan.leg,
                params=qdrant.SearchParams(hnsw_ef=self.effort),
            ),
            qdrant.Prefetch(
                query=qdrant.Query.Nearest(self._words.embed_query(text), using="words"), limit=self._plan.leg
            ),
        ]
        fusion = qdrant.Fusion.Rrf(k=self._plan.rrf_k)
        return self._ids(qdrant.QueryRequest(limit=k, prefetches=legs, query=fusion, with_payload=True))

    def dense(self, vector: Vector, k: int) -> list[str]:
        nearest = qdrant.Query.Nearest(vector.tolist(), using="meaning")
        params = qdrant.SearchParams(hnsw_ef=self.effort)
        return self._ids(qdrant.QueryRequest(limit=k, query=nearest, with_payload=True, params=params))

    def insert(self, id: str, text: str, vector: Vector) -> None:
        super().insert(id, text, vector)
        self._shard.flush()

    def close(self) -> None:
        self._shard.close()

    def _points(self, rows: Rows, start: int) -> Iterator[Any]:
        for at in range(start, min(start + _UPSERT, len(rows.ids))):
            vectors = {
                "meaning": rows.vectors[at].tolist(),
                "words": self._words.embed_document(rows.texts[at]),
            }
            yield qdrant.Point(self._count, vectors, {"id": rows.ids[at]})
            self._count += 1

    def _ids(self, request: Any) -> list[str]:
        return [hit.payload["id"] for hit in self._shard.query(request)]


ENGINE = QdrantEdge
