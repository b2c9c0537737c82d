"""Recall at growing sizes through the real services, and loading a graph into memory.

    python benchmarks/scale/recall.py [--sizes 1000 10000] [--stores sqlite postgres] [--full]

Each size is a new database. Its graph is put in by the store's own batches, then opened by services that
have not seen it: `cold` is the first use, which streams the whole graph from the store into the index, and
the recalls after it are warm. The embedder is the hashing one and the cross-encoder a stand-in, so all of
hivemem's own code runs and nearly no model. Beyond 20,000 texts, texts are mixtures.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from measuring import add_common_arguments, alone, machine, print_table, spread, write_result
from stores import STORES, Place, each_store, fill, new_graph, new_place, questions, resident_mb, services_at
from tqdm import tqdm

from hivemem.domain.access import Principal
from hivemem.service.recall import RecallRequest

FULL_SIZES = (1_000, 10_000, 100_000, 1_000_000)
WARM_UP = 20


async def stored(place: Place, size: int, arguments: argparse.Namespace) -> tuple[Principal, float]:
    """A new graph of `size` nodes and its owner, and the seconds of storing it."""
    async with services_at(place) as services:
        principal = await new_graph(services, "large")
        seconds = await fill(services, principal, size, data=arguments.data, seed=arguments.seed)
        return principal, seconds


async def asked(
    place: Place, principal: Principal, size: int, arguments: argparse.Namespace
) -> dict[str, Any]:
    """Loading the graph for the first time, then recalls."""
    texts = questions(arguments.data, size, arguments.queries + WARM_UP, arguments.seed)
    async with services_at(place) as services:
        before = resident_mb()
        started = time.perf_counter()
        index = await services.hot.fresh(principal.graph_id)
        cold = time.perf_counter() - started
        assert index.node_count == size, f"{index.node_count} of {size} nodes were loaded"
        held, reckoned = resident_mb() - before, services.hot.size_bytes
        times: list[float] = []
        hits = 0
        for number, text in enumerate(tqdm(texts, desc=f"{size} nodes", unit="recall", disable=None)):
            started = time.perf_counter()
            result = await services.recall.recall(principal, RecallRequest(query=text))
            taken = time.perf_counter() - started
            # The touch is written after the answer; it is not part of this recall, nor of the next one.
            await services.recall.close()
            if number >= WARM_UP:
                times.append(1000 * taken)
                hits += bool(result.hits)
        return {
            "size": size,
            "recall_ms": spread(times),
            "answered": hits,
            "cold_seconds": round(cold, 3),
            "cold_nodes_a_second": round(size / cold, 1),
            "index_mb": round(reckoned / 2**20, 2),
            "index_bytes_a_node": round(reckoned / size, 1),
            "resident_mb": round(held, 1),
            "load1": machine()["load1"],
        }


def run_stored(place: Place, size: int, arguments: argparse.Namespace) -> tuple[Principal, float]:
    return asyncio.run(stored(place, size, arguments))


def run_asked(place: Place, principal: Principal, size: int, arguments: argparse.Namespace) -> dict[str, Any]:
    return asyncio.run(asked(place, principal, size, arguments))


def measure(store: str, size: int, arguments: argparse.Namespace) -> dict[str, Any]:
    """One size in one store; storing and asking in a process of its own each."""
    with new_place(store, arguments.folder) as place:
        principal, seconds = alone(run_stored, place, size, arguments)
        return {
            **alone(run_asked, place, principal, size, arguments),
            "storing_seconds": round(seconds, 2),
        }


def growth(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """How many times slower recall is at the largest size than at 10,000, or at the smallest."""
    small = next((row for row in rows[:-1] if row["size"] == 10_000), rows[0])
    large = rows[-1]
    return {
        "from": small["size"],
        "to": large["size"],
        **{f"{p}_times": round(large["recall_ms"][p] / small["recall_ms"][p], 2) for p in ("p50", "p95")},
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_common_arguments(parser)
    parser.add_argument("--sizes", type=int, nargs="+", default=[1_000, 10_000])
    parser.add_argument("--full", action="store_true", help=f"the sizes {', '.join(map(str, FULL_SIZES))}")
    parser.add_argument("--stores", nargs="+", choices=STORES, default=list(STORES))
    parser.add_argument("--queries", type=int, default=200, help="recalls measured (default 200)")
    parser.add_argument("--folder", type=Path, help="where the databases are made: the disk to measure")
    arguments = parser.parse_args()
    sizes = sorted(FULL_SIZES if arguments.full else arguments.sizes)

    def of_store(store: str) -> dict[str, Any]:
        rows = [measure(store, size, arguments) for size in sizes]
        return {"sizes": rows, "growth": growth(rows)}

    found = each_store(arguments.stores, of_store)
    rows = [
        (
            store,
            row["size"],
            f"{row['recall_ms']['p50']:.2f}",
            f"{row['recall_ms']['p95']:.2f}",
            f"{row['cold_seconds']:.2f}",
            f"{row['cold_nodes_a_second']:.0f}",
            f"{row['index_mb']:.1f}",
            f"{row['resident_mb']:.1f}",
            f"{row['storing_seconds']:.1f}",
        )
        for store, figures in found.items()
        for row in figures.get("sizes", ())
    ]
    header = (
        "store",
        "nodes",
        "p50 ms",
        "p95 ms",
        "cold s",
        "nodes/s",
        "index MiB",
        "resident MiB",
        "stored in s",
    )
    print_table(header, rows)
    for store, figures in found.items():
        if "growth" in figures:
            one = figures["growth"]
            said = f"{one['p50_times']} times (p50), {one['p95_times']} times (p95)"
            print(f"{store}: from {one['from']} to {one['to']} nodes a recall takes {said}")
    path = write_result(
        "scale-recall",
        arguments.results,
        models={"embedder": "hashing:384", "reranker": "words"},
        corpus={"source": arguments.data.name if arguments.data else "generated", "seed": arguments.seed},
        figures={"stores": found},
    )
    print(f"result: {path}")


if __name__ == "__main__":
    main()
