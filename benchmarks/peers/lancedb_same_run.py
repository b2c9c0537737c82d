"""Quality and time of LanceDB's hybrid search with a cross-encoder, and of hivemem's recall, in one run.

    pip install lancedb            # in an environment of its own
    python benchmarks/peers/lancedb_same_run.py DATA --peer-python ENV/bin/python [--queries 200 --seed 7]

Both get the same documents, the same vectors of the bundled embedder and the same questions. LanceDB
searches vectors and words, 50 of each, and joins them by its own reciprocal rank fusion; the same
cross-encoder as hivemem's then orders its best 30. hivemem is asked through the real recall with its
default settings, its relevance floor included, so its list may be shorter. nDCG@10, micro over queries
and macro over categories, of the queries that the set counts (`lmeb`).

By default hivemem also has what the set's order tells: each turn is related to the one before it.
LanceDB has nothing to put that in. `--no-relationships` leaves it out.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from measuring import RESULTS, bar, print_bars, print_table, spread, texts_hash, write_result
from opening import opened

from hivemem.app import OpenServices
from hivemem.service.recall import RecallRequest
from hivemem.surfaces.cli.evaluate import DataSet, Query, store_graphs

WORKER = Path(__file__).resolve().parent / "lancedb_worker.py"
PAGE = 500


def ndcg_at_10(keys: Sequence[str], gold: Mapping[str, float]) -> float:
    """Discounted cumulative gain of the first ten, with linear gain, as a share of the best possible."""

    def gain(grades: Sequence[float]) -> float:
        return math.fsum(grade / math.log2(rank + 1) for rank, grade in enumerate(grades, start=1))

    ideal = sorted(gold.values(), reverse=True)[:10]
    return gain([gold.get(key, 0.0) for key in keys[:10]]) / gain(ideal)


async def stored_vectors(
    services: OpenServices, graph_id: str, texts: Mapping[str, str]
) -> NDArray[np.float32]:
    """The vectors that hivemem stored, in the order of `texts`; a text of several passages as a whole."""
    embedder = services.executor.embedder
    assert embedder is not None
    vectors: dict[str, NDArray[np.float32]] = {}
    revision, more = 0, True
    while more:
        page = await services.store.changes(graph_id, revision, model_id=embedder.model_id, limit=PAGE)
        for changed in page.nodes:
            if len(changed.passages) == 1:
                vectors[changed.node.key] = np.frombuffer(changed.passages[0].vector, "<f4")
        revision, more = page.revision, page.more
    rest = [key for key in texts if key not in vectors]
    if rest:
        whole = await services.executor.embed_passages([texts[key] for key in rest])
        vectors.update(zip(rest, whole, strict=True))
    return np.array([vectors[key] for key in texts], np.float32)


async def lancedb_side(
    services: OpenServices, data: DataSet, queries: Sequence[Query], graph_ids: Mapping[str, str], python: str
) -> dict[str, Any]:
    """LanceDB's best 30 of each query with the milliseconds of its search, and of embedding the query."""
    executor = services.executor
    texts = {
        name: {str(row["id"]): row["text"] for row in rows}
        for name, rows in data.documents.items()
        if any(query.graph == name for query in queries)
    }
    embed: dict[str, float] = {}
    asked: list[NDArray[np.float32]] = []
    for query in queries:
        started = time.perf_counter()
        asked.append(await executor.embed_query(query.text))
        embed[query.id] = 1000 * (time.perf_counter() - started)
    with tempfile.TemporaryDirectory(prefix="hivemem-peer-") as name:
        folder = Path(name)
        for number, graph in enumerate(dict.fromkeys(query.graph for query in queries)):
            vectors = await stored_vectors(services, graph_ids[graph], texts[graph])
            vectors.tofile(folder / f"{number}.f32")
        np.array(asked, np.float32).tofile(folder / "queries.f32")
        (folder / "graphs.json").write_text(
            json.dumps(
                {graph: {"ids": list(one), "texts": list(one.values())} for graph, one in texts.items()}
            )
        )
        (folder / "queries.json").write_text(
            json.dumps([{"id": query.id, "graph": query.graph, "text": query.text} for query in queries])
        )
        # Captured: it prints several notices about coming versions for each query.
        done = await asyncio.to_thread(
            subprocess.run, [python, str(WORKER), name], stderr=subprocess.PIPE, text=True
        )
        if done.returncode:
            raise SystemExit(f"{WORKER.name} failed:\n{done.stderr[-3000:]}")
        answer = json.loads((folder / "found.json").read_text())
    return {**answer, "embed_ms": embed}


def quality(queries: Sequence[Query], ranked: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """nDCG@10 over the queries: micro, macro, and of each category."""
    categories: dict[str, list[float]] = defaultdict(list)
    for query in queries:
        categories[query.category].append(ndcg_at_10(ranked[query.id], query.gold))
    means = {name: float(np.mean(values)) for name, values in sorted(categories.items())}
    return {
        "micro": round(float(np.mean([value for values in categories.values() for value in values])), 4),
        "macro": round(float(np.mean(list(means.values()))), 4),
        "categories": {name: round(value, 4) for name, value in means.items()},
    }


async def measured(arguments: argparse.Namespace) -> dict[str, Any]:
    data = DataSet.read(arguments.data)
    counted = replace(data, queries=[query for query in data.queries if query.counted], unanswerable=[])
    queries = counted.sample(arguments.queries, arguments.seed).queries
    needed = {query.graph for query in queries}
    part = replace(data, documents={name: rows for name, rows in data.documents.items() if name in needed})
    # No time budget: on a busy machine it would cut hivemem's re-ranking and not the other side's.
    async with opened({"rerank_budget_seconds": 60}) as running:
        services = running.services
        principals = await store_graphs(services, part, relationships=not arguments.no_relationships)
        graph_ids = {name: principal.graph_id for name, principal in principals.items()}
        peer = await lancedb_side(services, part, queries, graph_ids, arguments.peer_python)
        for name in needed:
            await services.hot.fresh(graph_ids[name])
        fused: dict[str, list[str]] = {}
        crossed: dict[str, list[str]] = {}
        ours: dict[str, list[str]] = {}
        milliseconds: dict[str, list[float]] = defaultdict(list)
        pairs = 0
        by_key = {str(row["id"]): row["text"] for rows in part.documents.values() for row in rows}
        # One query after the other by both, so that a busy machine disturbs both alike.
        for query in tqdm(queries, desc="queries", unit="query", file=sys.stderr, disable=None):
            found = peer["found"][query.id]
            started = time.perf_counter()
            scored = await services.executor.rerank(
                query.text, [by_key[key] for key in found["ids"]], budget_seconds=None
            )
            reading = 1000 * (time.perf_counter() - started)
            order = np.argsort(-scored.logits, kind="stable").tolist()
            fused[query.id] = found["ids"]
            crossed[query.id] = [found["ids"][at] for at in order]
            milliseconds["peer_search"].append(found["ms"])
            milliseconds["peer_total"].append(peer["embed_ms"][query.id] + found["ms"] + reading)
            running.times.take()
            started = time.perf_counter()
            result = await services.recall.recall(principals[query.graph], RecallRequest(query=query.text))
            taken = time.perf_counter() - started
            ours[query.id] = [hit.node.key for hit in result.hits]
            in_models = sum(end - start for start, end in running.times.take())
            milliseconds["total"].append(1000 * taken)
            milliseconds["all_but_models"].append(1000 * (taken - in_models))
            rerank: Any = result.meta["rerank"]
            pairs += rerank["candidates"] + rerank["in_context"]
        texts = [row["text"] for rows in part.documents.values() for row in rows]
        return {
            "models": running.models(),
            "corpus": {
                "source": data.name,
                "documents": len(texts),
                "graphs": len(needed),
                "sha256": texts_hash(texts),
                "queries": len(queries),
                "queries_sha256": texts_hash([query.text for query in queries]),
            },
            "lancedb": {
                "version": peer["version"],
                "fusion": quality(queries, fused),
                "fusion_and_cross_encoder": quality(queries, crossed),
                "search_ms": spread(milliseconds["peer_search"]),
                "total_ms": spread(milliseconds["peer_total"]),
                "pairs_a_query": 30,
            },
            "hivemem": {
                "relationships": not arguments.no_relationships,
                "recall": quality(queries, ours),
                "all_but_models_ms": spread(milliseconds["all_but_models"]),
                "total_ms": spread(milliseconds["total"]),
                "pairs_a_query": round(pairs / len(queries), 1),
            },
        }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path, metavar="DATA", help="data set in the format of `hivemem eval`")
    parser.add_argument("--peer-python", required=True, help="a Python with lancedb and pyarrow installed")
    parser.add_argument("--queries", type=int, default=None, help="a random sample; all by default")
    parser.add_argument("--seed", type=int, default=7, help="of the sample (default 7)")
    parser.add_argument("--no-relationships", action="store_true")
    parser.add_argument("--results", type=Path, default=RESULTS, metavar="DIR")
    arguments = parser.parse_args()
    probe = subprocess.run([arguments.peer_python, "-c", "import lancedb, pyarrow"], check=False)
    if probe.returncode:
        raise SystemExit(
            f"{arguments.peer_python} cannot import lancedb. Make an environment of its own:\n"
            "  python -m venv peer && peer/bin/pip install lancedb pyarrow"
        )
    figures = asyncio.run(measured(arguments))
    peer, ours = figures["lancedb"], figures["hivemem"]
    cross, recall = peer["fusion_and_cross_encoder"], ours["recall"]
    print_table(
        ("nDCG@10", "micro", "macro", *cross["categories"]),
        [
            (name, *(f"{value:.4f}" for value in (one["micro"], one["macro"], *one["categories"].values())))
            for name, one in (
                (f"LanceDB {peer['version']}, RRF", peer["fusion"]),
                ("LanceDB, RRF, cross-encoder over 30", cross),
                ("hivemem recall", recall),
            )
        ],
    )
    print_table(
        ("ms", "p50", "p95"),
        [
            (name, values["p50"], values["p95"])
            for name, values in (
                ("LanceDB, search alone", peer["search_ms"]),
                ("hivemem, all but the models", ours["all_but_models_ms"]),
                ("LanceDB with both models", peer["total_ms"]),
                ("hivemem with both models", ours["total_ms"]),
            )
        ],
    )
    bars = [
        bar("hivemem's nDCG@10 against LanceDB's, macro", recall["macro"] / cross["macro"], ">=", 1.0),
        bar("hivemem's nDCG@10 against LanceDB's, micro", recall["micro"] / cross["micro"], ">=", 1.0),
    ]
    print_bars(bars)
    models, corpus = figures.pop("models"), figures.pop("corpus")
    path = write_result(
        "lancedb", arguments.results, models=models, corpus=corpus, figures={"bars": bars, **figures}
    )
    print(f"result: {path}")


if __name__ == "__main__":
    main()
