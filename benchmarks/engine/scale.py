"""The index alone at growing sizes: how fast it is built, what it holds, what a search in it costs.

    python benchmarks/engine/scale.py [--sizes 1000 10000] [--full]

Each size is an index of its own, filled as a store would fill it, page by page, with generated or given
texts (mixtures beyond 20,000) and vectors of the hashing embedder. Times are CPU milliseconds of the
calling thread for each leg and for the whole first stage, so that a busy machine disturbs them little.
"""

from __future__ import annotations

import argparse
import gc
import itertools
import sys
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

# Before the folder of this file, which has a module `corpus` of its own.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from corpus import read_corpus
from growing import grown
from measuring import add_common_arguments, alone, print_table, spread, write_result
from tqdm import tqdm

from hivemem.domain.graph import ChangedNode, ChangePage, Passage
from hivemem.domain.node import EnrichmentStatus, Node
from hivemem.models.hashing import HashingEmbedder
from hivemem.projection.graph_index import GraphIndex
from hivemem.retrieval.analyse import analyse_query
from hivemem.retrieval.ranking import Calibration
from hivemem.service.first_stage import LEG_DEPTH, first_stage

FULL_SIZES = (10_000, 64_000, 100_000, 500_000, 1_000_000)
PAGE = 1_000
POOL = 20_000
WARM_UP = 20
_NOW = datetime(2026, 1, 1, tzinfo=UTC)


def pages(texts: Sequence[str], size: int, seed: int, embedder: HashingEmbedder) -> Any:
    """Pages of nodes with one vector each."""
    stream = grown(texts, size, seed)
    for revision in itertools.count(1):
        part = list(itertools.islice(stream, PAGE))
        if not part:
            return
        vectors = embedder.embed_passages(part)
        nodes = tuple(
            ChangedNode(
                node=Node(
                    key=f"memory_{(revision - 1) * PAGE + number}",
                    node_type="fact",
                    description=text,
                    enrichment_status=EnrichmentStatus.SKIPPED,
                    created_at=_NOW,
                    updated_at=_NOW,
                ),
                passages=(Passage(source="description", start=0, end=len(text), vector=vector.tobytes()),),
            )
            for number, (text, vector) in enumerate(zip(part, vectors, strict=True))
        )
        yield ChangePage(revision=revision, nodes=nodes)


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def cpu_ms(call: Callable[[], object]) -> float:
    started = time.thread_time()
    call()
    return 1000 * (time.thread_time() - started)


def measure(size: int, arguments: argparse.Namespace) -> dict[str, Any]:
    corpus = read_corpus(arguments.data, min(size, POOL), arguments.queries + WARM_UP, arguments.seed)
    embedder = HashingEmbedder(384)
    gc.collect()
    before, applying = resident_bytes(), 0.0
    index = GraphIndex(embedder.dimension)
    total = -(-size // PAGE)
    for page in tqdm(
        pages(corpus.texts, size, arguments.seed, embedder), total=total, unit="page", disable=None
    ):
        started = time.process_time()
        index.apply(page)
        applying += time.process_time() - started
    gc.collect()
    held = resident_bytes() - before
    asked = [(analyse_query(text), embedder.embed_query(text)) for text in corpus.questions]
    calibration = Calibration()
    times: dict[str, list[float]] = {"words": [], "vectors": [], "first_stage": []}
    for number, (query, vector) in enumerate(asked):
        taken = {
            "words": cpu_ms(lambda query=query: index.search_terms(query, LEG_DEPTH)),
            "vectors": cpu_ms(lambda vector=vector: index.search_vectors(vector, LEG_DEPTH)),
            "first_stage": cpu_ms(
                lambda query=query, vector=vector: first_stage(index, query, vector, calibration, keep=50)
            ),
        }
        if number >= WARM_UP:
            for name, value in taken.items():
                times[name].append(value)
    return {
        "size": size,
        "nodes_a_second": round(size / applying, 1),
        "index_mb": round(index.size_bytes / 2**20, 1),
        "resident_mb": round(held / 2**20, 1),
        "bytes_a_node": round(index.size_bytes / size, 1),
        "cpu_ms": {name: spread(values) for name, values in times.items()},
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_common_arguments(parser)
    parser.add_argument("--sizes", type=int, nargs="+", default=[1_000, 10_000])
    parser.add_argument("--full", action="store_true", help=f"the sizes {', '.join(map(str, FULL_SIZES))}")
    parser.add_argument("--queries", type=int, default=200, help="searches measured (default 200)")
    arguments = parser.parse_args()
    rows = [alone(measure, size, arguments) for size in (FULL_SIZES if arguments.full else arguments.sizes)]
    print_table(
        (
            "nodes",
            "nodes/s",
            "MiB",
            "resident",
            *(f"{n} {p}" for n in rows[0]["cpu_ms"] for p in ("p50", "p95")),
        ),
        [
            (
                row["size"],
                f"{row['nodes_a_second']:.0f}",
                row["index_mb"],
                row["resident_mb"],
                *(f"{values[p]:.2f}" for values in row["cpu_ms"].values() for p in ("p50", "p95")),
            )
            for row in rows
        ],
    )
    path = write_result(
        "engine-scale",
        arguments.results,
        models={"embedder": "hashing:384", "reranker": None},
        corpus={"source": arguments.data.name if arguments.data else "generated", "seed": arguments.seed},
        figures={"sizes": rows},
    )
    print(f"result: {path}")


if __name__ == "__main__":
    main()
