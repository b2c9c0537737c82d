"""Dense search compared: every row exactly, signs and exact re-scoring, and a usearch HNSW graph.

    python benchmarks/engine/vectors.py 20000 64000 --embeddings a.npz b.npz

Each file holds the array `D`, unit vectors of passages, and `Q`, unit vectors of questions, float32, as
numpy writes them. Sizes beyond what they hold are filled with mixtures of two passages and a little
noise. Without files, clusters of random vectors stand in. Times are CPU milliseconds of one thread;
recall is the share of the exact best 10 and 100 among the 100 returned.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

# One thread, as beside a cross-encoder; must be set before numpy is imported.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent / "src"))

import numpy as np
from numpy.typing import NDArray
from usearch.index import Index

from hivemem.domain.graph import Passage
from hivemem.projection.vectors import Vectors

TOP = 100


def load(files: list[Path], count: int) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    rng = np.random.default_rng(1)
    if files:
        arrays = [np.load(file) for file in files]
        passages = np.concatenate([a["D"] for a in arrays]).astype(np.float32)
        queries = np.concatenate([a["Q"] for a in arrays]).astype(np.float32)
    else:
        centres = rng.standard_normal((400, 384))
        points = centres[rng.integers(400, size=15_200)] + 0.7 * rng.standard_normal((15_200, 384))
        points = (points / np.linalg.norm(points, axis=1, keepdims=True)).astype(np.float32)
        passages, queries = points[:15_000], points[15_000:]
    queries = queries[rng.permutation(len(queries))[:200]]
    missing = count - len(passages)
    if missing <= 0:
        return passages[:count], queries
    left, right = rng.integers(len(passages), size=(2, missing))
    share = rng.uniform(0.5, 0.9, size=(missing, 1)).astype(np.float32)
    mixed = share * passages[left] + (1 - share) * passages[right]
    mixed += 0.02 * rng.standard_normal(mixed.shape).astype(np.float32)
    mixed /= np.linalg.norm(mixed, axis=1, keepdims=True)
    return np.concatenate((passages, mixed)), queries


def filled(passages: NDArray[np.float32], exact_rows: int) -> Vectors:
    index = Vectors(passages.shape[1], exact_rows=exact_rows)
    for number, row in enumerate(passages):
        vector = row.astype("<f4").tobytes()
        index.put(f"key_{number}", [Passage(source="description", start=0, end=1, vector=vector)])
    return index


def report(
    name: str,
    search: Callable[[NDArray[np.float32]], list[str]],
    queries: NDArray[np.float32],
    exact: list[list[str]] | None,
    build_seconds: float,
) -> list[list[str]]:
    search(queries[0])
    times: list[float] = []
    answers: list[list[str]] = []
    for query in queries:
        start = time.thread_time()
        answers.append(search(query))
        times.append((time.thread_time() - start) * 1000)
    pairs = list(zip(answers, exact or answers, strict=True))
    at_10 = statistics.mean(len(set(a) & set(e[:10])) / 10 for a, e in pairs)
    at_100 = statistics.mean(len(set(a) & set(e)) / len(e) for a, e in pairs)
    print(
        f"{name:28} p50 {statistics.median(times):6.2f}  p95 {statistics.quantiles(times, n=20)[-1]:6.2f}"
        f"   recall@10 {at_10:.4f}  recall@100 {at_100:.4f}   build {build_seconds:6.1f} s"
    )
    return answers


def measure(files: list[Path], count: int) -> None:
    passages, queries = load(files, count)
    print(f"\n{count} passages, {len(queries)} questions, best {TOP}")
    start = time.process_time()
    index = filled(passages, exact_rows=10**9)
    exact = report(
        "every row",
        lambda q: [h.key for h in index.search(q, TOP)],
        queries,
        None,
        time.process_time() - start,
    )
    start = time.process_time()
    sifting = filled(passages, exact_rows=0)
    report(
        "signs, then exact",
        lambda q: [h.key for h in sifting.search(q, TOP)],
        queries,
        exact,
        time.process_time() - start,
    )
    if count > 100_000:
        return
    graph = Index(ndim=passages.shape[1], metric="ip", dtype="i8", connectivity=16, expansion_add=128)
    start = time.process_time()
    graph.add(np.arange(len(passages)), passages, threads=1)
    build = time.process_time() - start
    for expansion in (128, 256, 512):
        graph.expansion_search = expansion

        def search(query: NDArray[np.float32]) -> list[str]:
            rows = np.asarray(graph.search(query, TOP + TOP // 2, threads=1).keys).astype(np.int64)
            best = rows[np.argsort(-(passages[rows] @ query))][:TOP]
            return [f"key_{row}" for row in best.tolist()]

        report(f"HNSW int8, expansion {expansion}", search, queries, exact, build)


def main(arguments: Any = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sizes", type=int, nargs="*", default=[20_000, 64_000])
    parser.add_argument("--embeddings", type=Path, nargs="*", default=[])
    options = parser.parse_args(arguments)
    for size in options.sizes:
        measure(options.embeddings, size)


if __name__ == "__main__":
    main()
