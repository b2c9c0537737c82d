"""LanceDB: a vector index, its full-text index, and its own fusion."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import lancedb
import numpy as np
import pyarrow as pa
from lancedb.index import FTS, HnswSq
from lancedb.rerankers import RRFReranker

from engines.contract import Engine, Plan, Rows, Vector

_INDEXED_FROM = 5_000
"""Smaller tables are searched exactly: an index would gain nothing."""


class LanceDB(Engine):
    what = "IVF-HNSW-SQ (cosine, refined twice), its full-text index, its RRF"
    durability = "a new fragment and manifest for each insert, which nothing forces to the disk"
    version = lancedb.__version__

    def __init__(self, folder: Path, plan: Plan) -> None:
        self._plan = plan
        self._fusion = RRFReranker(K=plan.rrf_k)
        self._schema = pa.schema(
            [
                pa.field("id", pa.string()),
                pa.field("text", pa.string()),
                pa.field("vector", pa.list_(pa.float32(), plan.dimension)),
            ]
        )
        self._table = lancedb.connect(str(folder)).create_table("memories", schema=self._schema)

    def add(self, batches: Iterable[Rows]) -> None:
        for rows in batches:
            flat = pa.array(np.ascontiguousarray(rows.vectors, dtype=np.float32).reshape(-1))
            vectors = pa.FixedSizeListArray.from_arrays(flat, self._plan.dimension)
            columns = [pa.array(rows.ids), pa.array(rows.texts), vectors]
            self._table.add(pa.table(columns, schema=self._schema))

    def ready(self) -> None:
        if self._table.count_rows() >= _INDEXED_FROM:
            self._table.create_index("vector", config=HnswSq(distance_type="cosine", num_partitions=1))
        self._table.create_index("text", config=FTS())

    def hybrid(self, text: str, vector: Vector, k: int) -> list[str]:
        query = (
            self._table.search(query_type="hybrid", vector_column_name="vector", fts_columns="text")
            .vector(vector.tolist())
            .text(text)
            .distance_type("cosine")
            .refine_factor(2)
            .limit(self._plan.leg)
            .select(["id"])
            .rerank(self._fusion)
        )
        return query.to_arrow()["id"].to_pylist()[:k]

    def dense(self, vector: Vector, k: int) -> list[str]:
        # As deep as in the hybrid search, so that it is the same leg whose recall is told.
        query = self._table.search(vector, vector_column_name="vector").distance_type("cosine")
        found = query.refine_factor(2).limit(self._plan.leg).select(["id", "_distance"]).to_arrow()
        return found["id"].to_pylist()[:k]


ENGINE = LanceDB
