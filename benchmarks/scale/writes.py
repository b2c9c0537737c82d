"""Writes a second by one client and by many, and how soon another process's recall shows a write.

    python benchmarks/scale/writes.py [--clients 1 4 16] [--seconds 5] [--nodes 2000] [--stores ...] [--full]

A client is a task that stores the next memory, with a relationship to an existing one, when the last store
has returned; all of them belong to one process, as behind one server. The hashing embedder takes a tenth
of a millisecond, so the rate is that of planning and committing. Beside it stands what this disk takes to
make a page durable: on a slow disk the rate of one client is the disk's.

Catch-up: two sets of services over one database, each with its own index, as two servers have. One stores,
then the other is asked for the new node by a word of its own until it has it: after a single write, many
times, and after a burst. A recall checks the revision first, so the first answer should have it: `tries`
says so.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "latency"))

from measuring import add_common_arguments, machine, print_table, spread, write_result
from stores import STORES, each_store, fill, new_graph, new_place, services_at
from write import fsync_ms

from hivemem.app import OpenServices
from hivemem.domain.access import Principal
from hivemem.errors import HivememError
from hivemem.service.recall import RecallRequest
from hivemem.service.remember import StoreRequest

CATCH_UP_SECONDS = 30.0
FULL = {"seconds": 20.0, "nodes": 100_000, "writes": 100}


def memory(number: int, nodes: int) -> StoreRequest:
    """A memory with a word of its own, related to one of the graph's first `nodes`."""
    return StoreRequest(
        key=f"note_{number}",
        description=f"zq{number}xw was decided in the meeting about release {number % 97}, see the notes",
        node_type="decision",
        relationships=(
            {"to_key": f"memory_{number * 7919 % nodes}", "relationship": "was decided because of"},
        ),
    )


async def load(
    services: OpenServices,
    principal: Principal,
    clients: int,
    seconds: float,
    numbers: Iterator[int],
    nodes: int,
) -> dict[str, Any]:
    """What `clients` get done in a time."""
    times: list[float] = []
    refused: list[str] = []
    end = time.perf_counter() + seconds

    async def client() -> None:
        while time.perf_counter() < end:
            started = time.perf_counter()
            try:
                await services.remember.store(principal, memory(next(numbers), nodes))
            except HivememError as error:
                refused.append(error.message)
            else:
                times.append(1000 * (time.perf_counter() - started))

    started = time.perf_counter()
    await asyncio.gather(*(client() for _ in range(clients)))
    taken = time.perf_counter() - started
    return {
        "clients": clients,
        "writes_a_second": round(len(times) / taken, 1),
        "write_ms": spread(times),
        "refused": len(refused),
        "refusals": refused[:3],
    }


async def catch_up(
    writer: OpenServices,
    reader: OpenServices,
    principal: Principal,
    numbers: Iterator[int],
    writes: int,
    nodes: int,
) -> dict[str, Any]:
    """Milliseconds from the return of a store to the other's answer that has it."""
    single: list[float] = []
    tries: list[int] = []
    for _ in range(writes):
        number = next(numbers)
        await writer.remember.store(principal, memory(number, nodes))
        taken, asked = await _until_found(reader, principal, number)
        single.append(taken)
        tries.append(asked)
    burst = [memory(next(numbers), nodes) for _ in range(1_000)]
    for outcome in await writer.remember.store_many(principal, burst):
        if isinstance(outcome, HivememError):
            raise outcome
    last = int(burst[-1].key.removeprefix("note_"))
    after_burst, _ = await _until_found(reader, principal, last)
    return {
        "graph_nodes": nodes,
        "single_ms": spread(single),
        "tries": max(tries),
        "after_1000_writes_ms": round(after_burst, 2),
    }


async def _until_found(services: OpenServices, principal: Principal, number: int) -> tuple[float, int]:
    started, tries = time.perf_counter(), 0
    while time.perf_counter() - started < CATCH_UP_SECONDS:
        tries += 1
        result = await services.recall.recall(principal, RecallRequest(query=f"zq{number}xw"))
        taken = 1000 * (time.perf_counter() - started)
        await services.recall.close()
        if any(hit.node.key == f"note_{number}" for hit in result.hits):
            return taken, tries
    raise SystemExit(f"note_{number} was not found within {CATCH_UP_SECONDS:g} s of its write")


async def measure(store: str, arguments: argparse.Namespace) -> dict[str, Any]:
    with new_place(store, arguments.folder) as place:
        async with services_at(place) as writer, services_at(place) as reader:
            principal = await new_graph(writer, "written")
            await fill(writer, principal, arguments.nodes, data=arguments.data, seed=arguments.seed)
            numbers = itertools.count()
            await load(writer, principal, 1, 0.5, numbers, arguments.nodes)
            rows = [
                await load(writer, principal, clients, arguments.seconds, numbers, arguments.nodes)
                for clients in arguments.clients
            ]
            # The reader's index is warm, as a replica's is, and in step with the rates' writes.
            await reader.hot.fresh(principal.graph_id)
            caught = await catch_up(writer, reader, principal, numbers, arguments.writes, arguments.nodes)
            return {"clients": rows, "catch_up": caught, "load1": machine()["load1"]}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_common_arguments(parser)
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 4, 16])
    parser.add_argument("--seconds", type=float, default=5, help="for each number of clients (default 5)")
    parser.add_argument("--nodes", type=int, default=2_000, help="in the graph beforehand (default 2000)")
    parser.add_argument("--writes", type=int, default=50, help="single writes caught up with (default 50)")
    parser.add_argument("--stores", nargs="+", choices=STORES, default=list(STORES))
    parser.add_argument("--folder", type=Path, help="where the databases are made: the disk to measure")
    parser.add_argument("--full", action="store_true", help=", ".join(f"{k} {v:g}" for k, v in FULL.items()))
    arguments = parser.parse_args()
    if arguments.full:
        vars(arguments).update(FULL)
    with tempfile.TemporaryDirectory(dir=arguments.folder) as name:
        fsync = spread(fsync_ms(Path(name)))
    found = each_store(arguments.stores, lambda store: asyncio.run(measure(store, arguments)))
    rows = [
        (
            store,
            row["clients"],
            f"{row['writes_a_second']:.0f}",
            f"{row['write_ms']['p50']:.2f}",
            f"{row['write_ms']['p95']:.2f}",
            row["refused"],
        )
        for store, figures in found.items()
        for row in figures.get("clients", ())
    ]
    print_table(("store", "clients", "writes/s", "p50 ms", "p95 ms", "refused"), rows)
    print(f"one fsync of this disk: {fsync['p50']:.2f} ms")
    for store, figures in found.items():
        if "catch_up" in figures:
            one = figures["catch_up"]
            print(
                f"{store}: the other's recall has a write after {one['single_ms']['p50']:.2f} ms (p50), "
                f"{one['single_ms']['p95']:.2f} ms (p95), in {one['tries']} recall(s); after 1,000 writes "
                f"{one['after_1000_writes_ms']:.0f} ms; {one['graph_nodes']} nodes"
            )
    path = write_result(
        "scale-writes",
        arguments.results,
        models={"embedder": "hashing:384", "reranker": "words"},
        corpus={"source": arguments.data.name if arguments.data else "generated", "nodes": arguments.nodes},
        figures={"fsync_ms": fsync, "seconds": arguments.seconds, "stores": found},
    )
    print(f"result: {path}")


if __name__ == "__main__":
    main()
