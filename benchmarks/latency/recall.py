"""Recall through the real services on SQLite: how long, and how much of it is not the models.

    python benchmarks/latency/recall.py [--data DIR] [--small 6000] [--large 64000] [--queries 200]

Two graphs. The small one has the real models: of each recall, the time in which neither the embedder nor
the cross-encoder computes is what hivemem itself costs. The large one has the hashing embedder (384
dimensions, like the bundled model) and a re-ranker by shared words, so that it loads in a minute and
still runs all of hivemem's code; only "all but the models" is told of it. `--large-models bundled` takes
the real ones there too (some minutes to load).

One client, warm, one recall after the other; each in a session of its own with a few earlier touches, as
agents do.
"""

from __future__ import annotations

import argparse
import asyncio
import cProfile
import functools
import inspect
import pstats
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from corpus import Corpus, read_corpus
from measuring import add_common_arguments, bar, print_bars, print_table, spread, write_result
from opening import Interval, Opened, WordReranker, opened
from tqdm import tqdm

from hivemem.service import recall as recall_module
from hivemem.service.recall import RecallRequest

WARM_UP = 20
SESSION_QUERIES = 5


class Steps:
    """When each step of recall ran, from wrappers around the functions and methods that do it."""

    NAMES = ("analyse", "model_queue", "first_stage", "node_fetch", "expansion", "revision", "session")

    def __init__(self, opened_services: Opened) -> None:
        self.intervals: dict[str, list[Interval]] = defaultdict(list)
        services = opened_services.services
        self._originals: list[tuple[Any, str, Any]] = []
        for owner, name, step in (
            (recall_module, "analyse_query", "analyse"),
            (services.hot, "fresh", "revision"),
            (recall_module, "first_stage", "first_stage"),
            (services.store, "nodes", "node_fetch"),
            (services.store, "touched", "session"),
            (recall_module, "_expansions", "expansion"),
            (services.executor, "embed_query", "model_queue"),
            (services.executor, "rerank", "model_queue"),
        ):
            self._originals.append((owner, name, getattr(owner, name)))
            setattr(owner, name, self._timed(getattr(owner, name), step))

    def take(self) -> dict[str, list[Interval]]:
        taken, self.intervals = self.intervals, defaultdict(list)
        return taken

    def restore(self) -> None:
        for owner, name, original in self._originals:
            setattr(owner, name, original)

    def _timed(self, function: Callable[..., Any], step: str) -> Callable[..., Any]:
        @functools.wraps(function)
        async def awaited(*args: Any, **kwargs: Any) -> Any:
            started = time.perf_counter()
            try:
                return await function(*args, **kwargs)
            finally:
                self.intervals[step].append((started, time.perf_counter()))

        @functools.wraps(function)
        def called(*args: Any, **kwargs: Any) -> Any:
            started = time.perf_counter()
            try:
                return function(*args, **kwargs)
            finally:
                self.intervals[step].append((started, time.perf_counter()))

        return awaited if inspect.iscoroutinefunction(function) else called


def united(*groups: Sequence[Interval]) -> list[Interval]:
    """The stretches of time that any of the intervals covers, in order and apart."""
    apart: list[Interval] = []
    for start, end in sorted(interval for group in groups for interval in group):
        if apart and start <= apart[-1][1]:
            apart[-1] = (apart[-1][0], max(end, apart[-1][1]))
        else:
            apart.append((start, end))
    return apart


def seconds(intervals: Sequence[Interval]) -> float:
    return sum(end - start for start, end in united(intervals))


async def measure(running: Opened, corpus: Corpus, queries: int, profile: Path | None) -> dict[str, Any]:
    """Times of recall over the corpus, which is stored already."""
    services = running.services
    for question in corpus.questions[:WARM_UP]:
        await services.recall.recall(running.principal, RecallRequest(query=question))
    steps, profiler = Steps(running), cProfile.Profile() if profile else None
    rows: dict[str, list[float]] = defaultdict(list)
    cut = pairs = 0
    for number in tqdm(range(queries), desc="recalls", unit="query", file=sys.stderr, disable=None):
        question = corpus.questions[(WARM_UP + number) % len(corpus.questions)]
        request = RecallRequest(query=question, session_id=f"session_{number // SESSION_QUERIES}")
        running.times.take(), steps.take()
        if profiler:
            profiler.enable()
        started = time.perf_counter()
        result = await services.recall.recall(running.principal, request)
        ended = time.perf_counter()
        if profiler:
            profiler.disable()
        # The touch is written after the answer; it is not part of this recall, nor of the next one.
        await services.recall.close()
        models = running.times.take()
        total = ended - started
        in_models = seconds(models)
        rows["total"].append(1000 * total)
        rows["models"].append(1000 * in_models)
        rows["all_but_models"].append(1000 * (total - in_models))
        taken = steps.take()
        # In this order, so that each step counts only for time that nothing before it covers: reading the
        # revision and the session goes on beside embedding the question, and costs what sticks out.
        covered = united(models)
        for step in Steps.NAMES:
            before = seconds(covered)
            covered = united(covered, taken[step])
            rows[step].append(1000 * (seconds(covered) - before))
        rows["rest"].append(1000 * (total - seconds(covered)))
        cut += any("budget" in str(note) for note in result.meta.get("degraded", ()))  # type: ignore[union-attr]
        rerank: Any = result.meta["rerank"]
        pairs += rerank["candidates"] + rerank["in_context"]
    steps.restore()
    if profiler and profile:
        profiler.dump_stats(profile)
        pstats.Stats(profiler, stream=sys.stderr).sort_stats("cumulative").print_stats(40)
    return {
        "latency_ms": {name: spread(values) for name, values in rows.items()},
        "share_not_models": round(sum(rows["all_but_models"]) / sum(rows["total"]), 4),
        "budget_cuts": cut,
        "pairs_a_recall": round(pairs / queries, 1),
    }


async def small(arguments: argparse.Namespace) -> dict[str, Any]:
    corpus = read_corpus(arguments.data, arguments.small, arguments.queries + WARM_UP, arguments.seed)
    # No budget: a recall that is cut short would make the models look cheaper than they are.
    async with opened({"rerank_budget_seconds": 60}) as running:
        loading = await running.store(corpus.requests())
        figures = await measure(running, corpus, arguments.queries, arguments.profile)
        return {
            "models": running.models(),
            "corpus": corpus.facts(),
            "nodes_a_second": round(arguments.small / loading, 1),
            **figures,
        }


async def large(arguments: argparse.Namespace) -> dict[str, Any]:
    corpus = read_corpus(arguments.data, arguments.large, arguments.queries + WARM_UP, arguments.seed)
    bundled = arguments.large_models == "bundled"
    settings: dict[str, Any] = {"rerank_budget_seconds": 60}
    if not bundled:
        settings |= {"embedder": "hashing", "reranker": "none"}
    async with opened(settings, stand_in=None if bundled else WordReranker()) as running:
        loading = await running.store(corpus.requests())
        started = time.perf_counter()
        await running.services.hot.fresh(running.principal.graph_id)
        index_seconds = time.perf_counter() - started
        figures = await measure(running, corpus, arguments.queries, arguments.profile_large)
        return {
            "models": running.models(),
            "corpus": corpus.facts(),
            "nodes_a_second": round(arguments.large / loading, 1),
            "index_seconds": round(index_seconds, 2),
            "index_mb": round(running.services.hot.size_bytes / 2**20, 1),
            **figures,
        }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_common_arguments(parser)
    parser.add_argument(
        "--small", type=int, default=6_000, help="nodes with the real models; 0 leaves it out"
    )
    parser.add_argument("--large", type=int, default=64_000, help="nodes of the large graph; 0 leaves it out")
    parser.add_argument("--queries", type=int, default=200, help="recalls measured in each graph")
    parser.add_argument("--large-models", choices=("hashing", "bundled"), default="hashing")
    parser.add_argument(
        "--profile", type=Path, metavar="FILE", help="cProfile of the event loop, small graph"
    )
    parser.add_argument("--profile-large", type=Path, metavar="FILE", help="the same for the large graph")
    arguments = parser.parse_args()
    graphs: dict[str, Any] = {}
    bars: list[dict[str, Any]] = []
    if arguments.small:
        graphs["small"] = asyncio.run(small(arguments))
        share = graphs["small"]["share_not_models"]
        bars.append(
            bar(f"share of a recall that is not the models, {arguments.small} nodes", share, "<=", 0.05)
        )
    if arguments.large:
        graphs["large"] = asyncio.run(large(arguments))
        p95 = graphs["large"]["latency_ms"]["all_but_models"]["p95"]
        bars.append(bar(f"ms of all but the models, p95, {arguments.large} nodes", p95, "<=", 4.0))
    for name, figures in graphs.items():
        print(
            f"\n{name}: {figures['corpus']['documents']} nodes, {figures['models']['embedder']}, "
            f"{figures['models']['reranker']}, {figures['pairs_a_recall']} pairs a recall, "
            f"{figures['budget_cuts']} budget cuts, stored {figures['nodes_a_second']:g} nodes/s"
        )
        print_table(
            ("ms", "p50", "p95", "mean"),
            [
                (step, *(f"{values[k]:.2f}" for k in ("p50", "p95", "mean")))
                for step, values in figures["latency_ms"].items()
            ],
        )
        print(f"share that is not the models: {figures['share_not_models']:.2%}")
    print_bars(bars)
    path = write_result(
        "recall",
        arguments.results,
        models={name: figures.pop("models") for name, figures in graphs.items()},
        corpus={name: figures.pop("corpus") for name, figures in graphs.items()},
        figures={"bars": bars, **graphs},
    )
    print(f"result: {path}")


if __name__ == "__main__":
    main()
