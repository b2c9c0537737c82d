"""Writes through the real services on SQLite, against the embedder alone, in alternating rounds.

    python benchmarks/latency/write.py [--data DIR] [--stores 200] [--bulk 1024] [--rounds 5] [--graph 64000]

A single store call checks, embeds, plans and commits; it is set against embedding that same text. An
import of many memories is set against the embedder's own throughput over the same texts, called as the
import calls it, a batch at a time. Both ratios compare what stands side by side in one run, so a busy machine
disturbs both sides alike. What this disk takes to make one write durable is measured apart.

Without a model, store calls go into a large graph, with the hashing embedder; after each, a recall asks for
the new memory and has to find it. Each stands beside the same text put into a bare SQLite table with an FTS5
index, as durably and on the same disk. All runs in the event loop that the server uses.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sqlite3
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from corpus import Corpus, read_corpus
from measuring import add_common_arguments, bar, print_bars, print_table, spread, write_result
from opening import Opened, opened

from hivemem.service.recall import RecallRequest
from hivemem.service.remember import StoreRequest

WARM_UP = 20
FSYNCS = 200
PAGE = 4096


def fsync_ms(folder: Path) -> list[float]:
    """Milliseconds to append one database page to a file and to make it durable."""
    taken: list[float] = []
    path = folder / "fsync"
    file = os.open(path, os.O_CREAT | os.O_RDWR, 0o600)
    try:
        for _ in range(FSYNCS):
            started = time.perf_counter()
            os.write(file, b"\1" * PAGE)
            os.fsync(file)
            taken.append(1000 * (time.perf_counter() - started))
    finally:
        os.close(file)
        path.unlink()
    return taken


async def single_stores(running: Opened, corpus: Corpus, count: int) -> dict[str, Any]:
    """Each text embedded alone and then stored, or the other way round."""
    services, embedder = running.services, running.services.executor.embedder
    assert embedder is not None
    requests = [
        replace(request, key=f"single_{request.key}", relationships=())
        for request in corpus.requests()[: count + WARM_UP]
    ]
    embeds: list[float] = []
    stores: list[float] = []
    inside: list[float] = []
    for number, request in enumerate(requests):
        times: dict[str, float] = {}
        for what in ("embed", "store") if number % 2 else ("store", "embed"):
            running.times.take()
            started = time.perf_counter()
            if what == "embed":
                embedder.embed_passages([request.description])
            else:
                await services.remember.store(running.principal, request)
                times["inside"] = sum(end - begin for begin, end in running.times.take())
            times[what] = time.perf_counter() - started
        if number >= WARM_UP:
            embeds.append(1000 * times["embed"])
            stores.append(1000 * times["store"])
            inside.append(1000 * (times["store"] - times["inside"]))
    return {
        "embed_alone_ms": spread(embeds),
        "store_ms": spread(stores),
        "store_all_but_embedding_ms": spread(inside),
        "ratio": round(statistics.median(stores) / statistics.median(embeds), 3),
    }


async def bulk(running: Opened, corpus: Corpus, rounds: int) -> dict[str, Any]:
    """The same texts by the embedder alone and by an import under new keys, in alternating rounds."""
    embedder = running.services.executor.embedder
    assert embedder is not None
    batch = running.services.settings.max_import_batch
    texts = corpus.texts
    rows: list[dict[str, float]] = []
    for number in range(rounds):
        requests = [
            replace(request, key=f"bulk_{number}_{request.key}", relationships=())
            for request in corpus.requests()
        ]
        rate: dict[str, float] = {}
        for what in ("embedder", "import") if number % 2 else ("import", "embedder"):
            started = time.perf_counter()
            if what == "embedder":
                for at in range(0, len(texts), batch):
                    await asyncio.to_thread(embedder.embed_passages, texts[at : at + batch])
            else:
                await running.store(requests)
            rate[what] = round(len(texts) / (time.perf_counter() - started), 1)
        rows.append({**rate, "share": round(rate["import"] / rate["embedder"], 4)})
    return {
        "rounds": rows,
        "share": round(statistics.median(row["share"] for row in rows), 4),
        "batch": batch,
    }


class BareSqlite:
    """What one would write oneself: one table, an index of its words, and a commit for each memory."""

    def __init__(self, folder: Path, requests: Sequence[StoreRequest]) -> None:
        self.connection = sqlite3.connect(folder / "bare.sqlite3", isolation_level=None)
        for statement in (
            "PRAGMA journal_mode = WAL",
            "PRAGMA synchronous = FULL",
            "CREATE TABLE memories (id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, text TEXT NOT NULL)",
            "CREATE VIRTUAL TABLE words USING fts5(text, content = '', tokenize = 'porter')",
            "BEGIN",
        ):
            self.connection.execute(statement)
        for request in requests:
            self._put(request)
        self.connection.execute("COMMIT")

    def store(self, request: StoreRequest) -> None:
        self.connection.execute("BEGIN IMMEDIATE")
        self._put(request)
        self.connection.execute("COMMIT")

    def _put(self, request: StoreRequest) -> None:
        put = "INSERT INTO memories (key, text) VALUES (?, ?)"
        row = self.connection.execute(put, (request.key, request.description)).lastrowid
        self.connection.execute("INSERT INTO words (rowid, text) VALUES (?, ?)", (row, request.description))


async def without_model(arguments: argparse.Namespace) -> dict[str, Any]:
    """Durable store calls into a graph of `--graph` memories, and the recall after each."""
    count = arguments.stores + WARM_UP
    corpus = read_corpus(arguments.data, arguments.graph + count, 1, arguments.seed)
    requests = corpus.requests()
    stores: list[float] = []
    recalls: list[float] = []
    bares: list[float] = []
    async with opened({"embedder": "hashing", "reranker": "none"}, folder=arguments.folder) as running:
        services, principal = running.services, running.principal
        await running.store(requests[: arguments.graph])
        bare = BareSqlite(running.folder, requests[: arguments.graph])
        fsync = fsync_ms(running.folder)
        for number, request in enumerate(requests[arguments.graph :]):
            started = time.perf_counter()
            bare.store(request)
            bares.append(1000 * (time.perf_counter() - started))
            started = time.perf_counter()
            stored = await services.remember.store(principal, replace(request, relationships=()))
            middle = time.perf_counter()
            found = await services.recall.recall(principal, RecallRequest(query=stored.node.key))
            ended = time.perf_counter()
            if stored.node.key not in [hit.node.key for hit in found.hits]:
                raise SystemExit(f"{stored.node.key!r} was stored, and the next recall does not find it")
            if number >= WARM_UP:
                stores.append(1000 * (middle - started))
                recalls.append(1000 * (ended - middle))
    return {
        "nodes": arguments.graph,
        "store_ms": spread(stores),
        "recall_ms": spread(recalls),
        "bare_sqlite_ms": spread(bares[WARM_UP:]),
        "fsync_ms": spread(fsync),
    }


async def measured(arguments: argparse.Namespace) -> dict[str, Any]:
    size = max(arguments.stores + WARM_UP, arguments.bulk)
    corpus = read_corpus(arguments.data, size, 1, arguments.seed)
    part = replace(corpus, documents=corpus.documents[: arguments.bulk])
    async with opened({"reranker": "none"}, folder=arguments.folder) as running:
        fsync = fsync_ms(running.folder)
        single = await single_stores(running, corpus, arguments.stores)
        many = await bulk(running, part, arguments.rounds) if arguments.rounds else None
        figures = {
            "models": running.models(),
            "corpus": corpus.facts(),
            "fsync_ms": spread(fsync),
            "single": single,
            "bulk": many,
        }
    return {**figures, "without_model": await without_model(arguments) if arguments.graph else None}


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """The event loop of `hivemem serve`."""
    if sys.platform == "win32":
        return None
    import uvloop

    return uvloop.new_event_loop


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_common_arguments(parser)
    parser.add_argument("--stores", type=int, default=200, help="single store calls (default 200)")
    parser.add_argument("--bulk", type=int, default=1024, help="memories of one import (default 1024)")
    parser.add_argument("--rounds", type=int, default=5, help="rounds of imports; 0 leaves them out")
    parser.add_argument(
        "--graph",
        type=int,
        default=64_000,
        help="memories in the graph of the stores without a model; 0 leaves them out (default 64000)",
    )
    parser.add_argument(
        "--folder", type=Path, help="where the database is made: the disk to measure (default: temporary)"
    )
    arguments = parser.parse_args()
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        figures = runner.run(measured(arguments))
    single, many = figures["single"], figures["bulk"]
    print_table(
        ("ms", "p50", "p95", "mean"),
        [
            (name, *(f"{values[k]:.2f}" for k in ("p50", "p95", "mean")))
            for name, values in (
                ("embedding a text alone", single["embed_alone_ms"]),
                ("storing it, embedding included", single["store_ms"]),
                ("  of that, all but embedding", single["store_all_but_embedding_ms"]),
                ("one fsync of this disk", figures["fsync_ms"]),
            )
        ],
    )
    bars = [bar("a store against embedding its text, medians", single["ratio"], "<=", 1.3)]
    if many:
        print_table(
            ("texts a second", "embedder", "import", "share"),
            [
                (f"round {number}", row["embedder"], row["import"], f"{row['share']:.1%}")
                for number, row in enumerate(many["rounds"], start=1)
            ],
        )
        bars.append(bar("import rate against the embedder's, median", many["share"], ">=", 0.9))
    if figures["without_model"]:
        large = figures["without_model"]
        print_table(
            (f"ms, {large['nodes']} memories, no model", "p50", "p95", "mean"),
            [
                (name, *(f"{values[k]:.2f}" for k in ("p50", "p95", "mean")))
                for name, values in (
                    ("one durable store", large["store_ms"]),
                    ("the recall that finds it", large["recall_ms"]),
                    ("the same text in bare SQLite", large["bare_sqlite_ms"]),
                    ("one fsync of this disk", large["fsync_ms"]),
                )
            ],
        )
        for name, limit in (("p50", 1.0), ("p95", 2.2)):
            bars.append(bar(f"a store without a model, {name} in ms", large["store_ms"][name], "<=", limit))
    print_bars(bars)
    models, corpus = figures.pop("models"), figures.pop("corpus")
    path = write_result(
        "write", arguments.results, models=models, corpus=corpus, figures={"bars": bars, **figures}
    )
    print(f"result: {path}")


if __name__ == "__main__":
    main()
