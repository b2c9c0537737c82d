"""txtai: Faiss and its BM25, joined by a weighted sum, its own form of a hybrid search."""

from __future__ import annotations

import importlib.metadata
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np

# A saved index names its transform by import path; txtai resolves it only where this says so.
os.environ["ALLOW_RESOLVE_TRANSFORM"] = "True"

from txtai import Embeddings

from engines.contract import Engine, Plan, Rows, Vector

_known: dict[str, Vector] = {}


def known(texts: Sequence[str]) -> Vector:
    """The vectors of texts, which txtai would otherwise make with a model of its own."""
    return np.array([_known[text] for text in texts], np.float32)


class Txtai(Engine):
    what = "Faiss, its BM25, weighted sum of both (0.5 each); ten times k of each leg"
    durability = "the whole index is saved before the insert returns"
    version = importlib.metadata.version("txtai")

    def __init__(self, folder: Path, plan: Plan) -> None:
        self._path = str(folder / "index")
        self._index = Embeddings(
            {"method": "external", "transform": f"{__name__}.known", "hybrid": True, "backend": "faiss"}
        )

    def add(self, batches: Iterable[Rows]) -> None:
        self._index.index(_documents(batches))
        _known.clear()

    def ready(self) -> None:
        self._index.save(self._path)

    def hybrid(self, text: str, vector: Vector, k: int) -> list[str]:
        _known[text] = vector
        return [id for id, _ in self._index.search(text, k)]

    def dense(self, vector: Vector, k: int) -> list[str]:
        _known["dense"] = vector
        return [id for id, _ in self._index.search("dense", k, weights=1.0)]

    def insert(self, id: str, text: str, vector: Vector) -> None:
        self._index.upsert(_documents([Rows(ids=[id], texts=[text], vectors=vector[None])]))
        self._index.save(self._path)

    def close(self) -> None:
        self._index.close()


def _documents(batches: Iterable[Rows]) -> Iterator[tuple[str, str, None]]:
    for rows in batches:
        _known.update(zip(rows.texts, rows.vectors, strict=True))
        yield from ((id, text, None) for id, text in zip(rows.ids, rows.texts, strict=True))


ENGINE = Txtai
