"""Chroma inside the process: vectors only, since its local form has no hybrid search."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import chromadb
from chromadb.config import Settings

from engines.contract import Engine, Plan, Rows, Vector

_ADDED = 2_000


class Chroma(Engine):
    what = "HNSW (cosine) alone: the local form has no hybrid search"
    durability = "a row in SQLite; the vector index follows and is replayed from it"
    version = chromadb.__version__

    def __init__(self, folder: Path, plan: Plan) -> None:
        client = chromadb.PersistentClient(str(folder), Settings(anonymized_telemetry=False))
        self._memories = client.create_collection(
            "memories", embedding_function=None, configuration={"hnsw": {"space": "cosine"}}
        )

    def add(self, batches: Iterable[Rows]) -> None:
        for rows in batches:
            for start in range(0, len(rows.ids), _ADDED):
                part = slice(start, start + _ADDED)
                self._memories.add(
                    ids=list(rows.ids[part]),
                    documents=list(rows.texts[part]),
                    embeddings=rows.vectors[part],
                )

    def hybrid(self, text: str, vector: Vector, k: int) -> list[str]:
        return self.dense(vector, k)

    def dense(self, vector: Vector, k: int) -> list[str]:
        return self._memories.query(query_embeddings=[vector], n_results=k, include=[])["ids"][0]


ENGINE = Chroma
