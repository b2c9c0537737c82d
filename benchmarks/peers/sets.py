"""The texts, vectors and questions that every engine gets, as a folder that needs only numpy to be read.

`set.json` has the facts; `texts.jsonl` a line `[id, text]` each; `questions.json` and `inserts.json` lists
of objects; the `.f32` file beside each of the three has its unit vectors, float32, in the same order.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from corpus import read_corpus
from growing import mixture, pairs
from numpy.typing import NDArray
from tqdm import tqdm

from hivemem.app import load_embedder
from hivemem.models.hashing import HashingEmbedder
from hivemem.ports.models import Embedder
from hivemem.settings import load_settings
from hivemem.surfaces.cli.evaluate import DataSet, Query

Vectors = NDArray[np.float32]
NOISE = 0.3
"""Length of the noise in the vector of a mixture, whose own length is 1: mixtures of the same halves differ
in meaning by about as much as neighbours among real texts do."""
_EMBEDDED = 64
_WRITTEN = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """Texts with vectors, from which sets of any size are grown, and questions to them."""

    source: str
    model_id: str
    texts: Sequence[str]
    vectors: Vectors
    questions: Sequence[str]
    question_vectors: Vectors


class Embedding:
    """Embeds texts as a whole, keeping what it made in a folder, if there is one."""

    def __init__(self, name: str, cache: Path | None) -> None:
        self._cache = cache
        self._embedder: Embedder = (
            HashingEmbedder(384)
            if name == "hashing"
            else load_embedder(load_settings({"embedder": name}, {}).settings)
        )
        self.model_id = self._embedder.model_id

    def passages(self, texts: Sequence[str]) -> Vectors:
        """Shape (texts, dimension)."""
        return self._made("passages", texts, self._embedder.embed_passages)

    def questions(self, texts: Sequence[str]) -> Vectors:
        """Shape (texts, dimension)."""

        def embed(part: Sequence[str]) -> Vectors:
            return np.array([self._embedder.embed_query(text) for text in part], np.float32)

        return self._made("questions", texts, embed)

    def _made(self, kind: str, texts: Sequence[str], embed: Any) -> Vectors:
        digest = hashlib.sha256("\0".join((self.model_id, kind, *texts)).encode()).hexdigest()[:24]
        kept = None if self._cache is None else self._cache / f"{kind}-{digest}.npy"
        if kept is not None and kept.is_file():
            return np.load(kept)
        # Equal lengths together: a batch takes as long as its longest text.
        order = sorted(range(len(texts)), key=lambda position: len(texts[position]))
        vectors = np.zeros((len(texts), self._embedder.dimension), np.float32)
        with tqdm(total=len(texts), desc=f"embedding {kind}", unit="text", disable=None) as progress:
            for start in range(0, len(order), _EMBEDDED):
                part = order[start : start + _EMBEDDED]
                vectors[part] = embed([texts[position] for position in part])
                progress.update(len(part))
        if kept is not None:
            kept.parent.mkdir(parents=True, exist_ok=True)
            np.save(kept, vectors)
        return vectors


def read_pool(
    folders: Sequence[Path], embedding: Embedding, *, texts: int, questions: int, seed: int
) -> Pool:
    """At most `texts` different texts of the data sets, drawn at random, and `questions` questions."""
    if folders:
        sets = [DataSet.read(folder) for folder in folders]
        rows = [row["text"] for data in sets for documents in data.documents.values() for row in documents]
        asked = [query.text for data in sets for query in data.queries]
        source = " + ".join(data.name for data in sets)
    else:
        corpus = read_corpus(None, texts, questions, seed)
        rows, asked, source = corpus.texts, list(corpus.questions), corpus.source
    drawn = random.Random(seed)
    rows, asked = list(dict.fromkeys(rows)), list(dict.fromkeys(asked))
    drawn.shuffle(rows)
    drawn.shuffle(asked)
    rows, asked = rows[:texts], asked[:questions]
    return Pool(
        source=source,
        model_id=embedding.model_id,
        texts=rows,
        vectors=embedding.passages(rows),
        questions=asked,
        question_vectors=embedding.questions(asked),
    )


def write_speed_set(
    folder: Path, pool: Pool, *, size: int, inserts: int, seed: int, plan: Mapping[str, Any], budget: float
) -> dict[str, Any]:
    """A set of `size` texts and of further ones to be inserted; returns its facts."""
    folder.mkdir(parents=True)
    digest, words = hashlib.sha256(), 0
    with (
        (folder / "texts.jsonl").open("w", encoding="utf-8") as lines,
        (folder / "texts.f32").open("wb") as f32,
    ):
        number = 0
        for texts, vectors in _grown(pool, size, seed):
            for text in texts:
                digest.update(text.encode() + b"\0")
                words += len(text.split())
                lines.write(json.dumps([f"memory_{number}", text]) + "\n")
                number += 1
            vectors.tofile(f32)
    _write_questions(folder, [{"text": text} for text in pool.questions], pool.question_vectors)
    further = next(_grown(pool, len(pool.texts) + inserts, seed + 1, first=len(pool.texts)))
    # A word of its own each: the search for an inserted text has one right answer.
    rows = [{"id": f"new_{n}", "text": f"zq{n}xw {text}"} for n, text in enumerate(further[0])]
    (folder / "inserts.json").write_text(json.dumps(rows))
    further[1].tofile(folder / "inserts.f32")
    facts = {
        "source": pool.source,
        "texts": size,
        "mixtures": max(0, size - len(pool.texts)),
        "sha256": digest.hexdigest(),
        "questions": len(pool.questions),
    }
    whole = {**plan, "mean_words": round(words / size, 1), "dimension": pool.vectors.shape[1]}
    (folder / "set.json").write_text(json.dumps({**facts, "plan": whole, "budget_seconds": budget}))
    return facts


def write_quality_set(
    folder: Path, data: DataSet, queries: Sequence[Query], embedding: Embedding, *, plan: Mapping[str, Any]
) -> None:
    """The graphs that the queries belong to, one after the other, and the queries."""
    folder.mkdir(parents=True)
    graphs: list[dict[str, Any]] = []
    texts: list[str] = []
    with (folder / "texts.jsonl").open("w", encoding="utf-8") as lines:
        for name in dict.fromkeys(query.graph for query in queries):
            rows = data.documents[name]
            graphs.append(
                {"name": f"graph_{len(graphs)}", "of": name, "first": len(texts), "count": len(rows)}
            )
            for row in rows:
                lines.write(json.dumps([str(row["id"]), row["text"]]) + "\n")
                texts.append(row["text"])
    vectors = embedding.passages(texts)
    vectors.tofile(folder / "texts.f32")
    names = {graph["of"]: graph["name"] for graph in graphs}
    asked = [{"id": query.id, "text": query.text, "graph": names[query.graph]} for query in queries]
    _write_questions(folder, asked, embedding.questions([query.text for query in queries]))
    (folder / "inserts.json").write_text("[]")
    (folder / "inserts.f32").write_bytes(b"")
    words = sum(len(text.split()) for text in texts) / len(texts)
    whole = {**plan, "mean_words": round(words, 1), "dimension": vectors.shape[1]}
    (folder / "set.json").write_text(json.dumps({"texts": len(texts), "graphs": graphs, "plan": whole}))


def _write_questions(folder: Path, questions: Sequence[Mapping[str, Any]], vectors: Vectors) -> None:
    (folder / "questions.json").write_text(json.dumps(list(questions)))
    vectors.tofile(folder / "questions.f32")


def _grown(pool: Pool, size: int, seed: int, first: int = 0) -> Iterator[tuple[list[str], Vectors]]:
    """The texts from `first` to `size` with their vectors, in parts: the pool's own, then mixtures."""
    real = min(size, len(pool.texts))
    if first < real:
        yield list(pool.texts[first:real]), pool.vectors[first:real]
    noise = np.random.default_rng(seed)
    drawn = itertools.islice(pairs(len(pool.texts), seed), size - real)
    while part := list(itertools.islice(drawn, _WRITTEN)):
        heads, tails = (list(column) for column in zip(*part, strict=True))
        vectors = _unit(pool.vectors[heads] + pool.vectors[tails])
        vectors += NOISE * _unit(noise.standard_normal(vectors.shape, np.float32))
        yield [mixture(pool.texts[one], pool.texts[two]) for one, two in part], _unit(vectors)


def _unit(vectors: Vectors) -> Vectors:
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
