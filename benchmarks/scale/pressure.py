"""Many graphs with less memory for their indexes than they need: does every recall answer, and how fast?

    python benchmarks/scale/pressure.py [--graphs 20] [--nodes 500] [--share 0.25] [--recalls 400] [--full]

All graphs are loaded once to learn how much memory they take together. Then new services get `--share` of
it, and recalls go to graphs drawn with Zipf weights, as users differ in how much they ask. Each graph has a
node with a word of its own; a recall that does not find it first is wrong. A recall is `hot` when its graph
was in memory, `cold` when it had to be loaded first; several clients ask at a time.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from measuring import add_common_arguments, bar, machine, print_bars, print_table, spread, write_result
from stores import STORES, each_store, fill, new_graph, new_place, resident_mb, services_at

from hivemem.app import OpenServices
from hivemem.domain.access import Principal
from hivemem.service.recall import RecallRequest
from hivemem.service.remember import StoreRequest

FULL = {"graphs": 100, "nodes": 2_000, "recalls": 2_000}
MIB = 1024 * 1024


class Asking:
    """Recalls over many graphs, and what became of them."""

    def __init__(self, services: OpenServices, principals: list[Principal]) -> None:
        self._services = services
        self._principals = principals
        self.hot: list[float] = []
        self.cold: list[float] = []
        self.evictions = 0
        self.wrong = 0
        self.most_bytes = 0
        self._seen: set[str] = set()

    async def ask(self, number: int) -> None:
        """One recall for the node of its own of graph `number`."""
        services, principal = self._services, self._principals[number]
        was_hot = principal.graph_id in services.hot.graph_ids
        started = time.perf_counter()
        result = await services.recall.recall(principal, RecallRequest(query=f"zq{number}xw"))
        taken = 1000 * (time.perf_counter() - started)
        (self.hot if was_hot else self.cold).append(taken)
        self.wrong += not result.hits or result.hits[0].node.key != f"marker_{number}"
        self._look()

    def _look(self) -> None:
        """Count the graphs that left memory since the last look."""
        present = set(self._services.hot.graph_ids)
        self.evictions += len(self._seen - present)
        self._seen = present
        self.most_bytes = max(self.most_bytes, self._services.hot.size_bytes)


async def measure(store: str, arguments: argparse.Namespace) -> dict[str, Any]:
    with new_place(store, arguments.folder) as place:
        async with services_at(place) as services:
            principals: list[Principal] = []
            for number in range(arguments.graphs):
                principal = await new_graph(services, f"{number}")
                await fill(
                    services, principal, arguments.nodes, data=arguments.data, seed=arguments.seed + number
                )
                marker = StoreRequest(
                    key=f"marker_{number}",
                    description=f"zq{number}xw is the word of graph {number}",
                    node_type="fact",
                )
                await services.remember.store(principal, marker)
                await services.hot.fresh(principal.graph_id)
                principals.append(principal)
            whole = services.hot.size_bytes
        allowed = max(MIB, int(arguments.share * whole))
        async with services_at(place, projection_max_bytes=allowed) as services:
            asking = Asking(services, principals)
            drawn = random.Random(arguments.seed)
            weights = [1 / rank for rank in range(1, arguments.graphs + 1)]
            waiting = drawn.choices(range(arguments.graphs), weights, k=arguments.recalls)

            async def client() -> None:
                while waiting:
                    await asking.ask(waiting.pop())

            before = resident_mb()
            await asyncio.gather(*(client() for _ in range(arguments.clients)))
            await services.recall.close()
            return {
                "graphs": arguments.graphs,
                "nodes_a_graph": arguments.nodes,
                "whole_mb": round(whole / MIB, 1),
                "allowed_mb": round(allowed / MIB, 1),
                "most_mb": round(asking.most_bytes / MIB, 1),
                "resident_mb": round(resident_mb() - before, 1),
                "recalls": arguments.recalls,
                "wrong": asking.wrong,
                "evictions": asking.evictions,
                "hot_ms": spread(asking.hot),
                "cold_ms": spread(asking.cold),
                "load1": machine()["load1"],
            }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_common_arguments(parser)
    parser.add_argument("--graphs", type=int, default=20)
    parser.add_argument("--nodes", type=int, default=500, help="in each graph (default 500)")
    parser.add_argument("--share", type=float, default=0.25, help="of the memory they need (default 0.25)")
    parser.add_argument("--recalls", type=int, default=400)
    parser.add_argument("--clients", type=int, default=4, help="that ask at a time (default 4)")
    parser.add_argument("--stores", nargs="+", choices=STORES, default=["sqlite"])
    parser.add_argument("--folder", type=Path, help="where the databases are made: the disk to measure")
    parser.add_argument("--full", action="store_true", help=", ".join(f"{k} {v}" for k, v in FULL.items()))
    arguments = parser.parse_args()
    if arguments.full:
        vars(arguments).update(FULL)
    found = each_store(arguments.stores, lambda store: asyncio.run(measure(store, arguments)))
    measured = {store: row for store, row in found.items() if "absent" not in row}
    print_table(
        (
            "store",
            "allowed MiB",
            "of",
            "recalls",
            "evictions",
            "cold",
            "hot p50",
            "hot p95",
            "cold p50",
            "cold p95",
        ),
        [
            (
                store,
                row["allowed_mb"],
                row["whole_mb"],
                row["recalls"],
                row["evictions"],
                row["cold_ms"]["n"],
                *(f"{row[kind][p]:.1f}" for kind in ("hot_ms", "cold_ms") for p in ("p50", "p95")),
            )
            for store, row in measured.items()
        ],
    )
    bars = [
        bar(f"wrong answers under pressure, {store}", row["wrong"], "<=", 0)
        for store, row in measured.items()
    ]
    print_bars(bars)
    path = write_result(
        "scale-pressure",
        arguments.results,
        models={"embedder": "hashing:384", "reranker": "words"},
        corpus={"source": arguments.data.name if arguments.data else "generated", "seed": arguments.seed},
        figures={"bars": bars, "stores": found},
    )
    print(f"result: {path}")


if __name__ == "__main__":
    main()
