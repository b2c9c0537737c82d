"""Writes through the real services on SQLite, against the embedder alone, in alternating rounds.

    python benchmarks/latency/write.py [--data DIR] [--stores 200] [--bulk 1024] [--rounds 5]

A single store call checks, embeds, plans and commits; it is set against embedding that same text. An
import of many memories is set against the embedder's own throughput over the same texts, called as the
import calls it, a batch at a time. Both ratios compare what stands side by side in one run, so a busy machine
disturbs both sides alike. What this disk takes to make one write durable is measured apart.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from corpus import Corpus, read_corpus
from measuring import add_common_arguments, bar, print_bars, print_table, spread, write_result
from opening import Opened, opened

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


async def measured(arguments: argparse.Namespace) -> dict[str, Any]:
    size = max(arguments.stores + WARM_UP, arguments.bulk)
    corpus = read_corpus(arguments.data, size, 1, arguments.seed)
    part = replace(corpus, documents=corpus.documents[: arguments.bulk])
    async with opened({"reranker": "none"}, folder=arguments.folder) as running:
        fsync = fsync_ms(running.folder)
        single = await single_stores(running, corpus, arguments.stores)
        many = await bulk(running, part, arguments.rounds) if arguments.rounds else None
        return {
            "models": running.models(),
            "corpus": corpus.facts(),
            "fsync_ms": spread(fsync),
            "single": single,
            "bulk": many,
        }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_common_arguments(parser)
    parser.add_argument("--stores", type=int, default=200, help="single store calls (default 200)")
    parser.add_argument("--bulk", type=int, default=1024, help="memories of one import (default 1024)")
    parser.add_argument("--rounds", type=int, default=5, help="rounds of imports; 0 leaves them out")
    parser.add_argument(
        "--folder", type=Path, help="where the database is made: the disk to measure (default: temporary)"
    )
    arguments = parser.parse_args()
    figures = asyncio.run(measured(arguments))
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
    print_bars(bars)
    models, corpus = figures.pop("models"), figures.pop("corpus")
    path = write_result(
        "write", arguments.results, models=models, corpus=corpus, figures={"bars": bars, **figures}
    )
    print(f"result: {path}")


if __name__ == "__main__":
    main()
