"""hivemem beside other engines: the same texts and vectors, both text legs and their fusion, in one run.

    python benchmarks/peers/side_by_side.py [--data DIR ...] [--sizes 10000] [--quality DIR] [--full]

Each engine runs alone, in a process of its own and on the same cores, one client without a pause after a
warm-up. `make peers` makes the environment of the others; one that is not installed is reported as
absent, and one that does not finish a size within `--limit` is left out of it. README.md says how to read
the table.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np
from engines import ENGINES
from exact import exact_borders, recall_at_10, vectors_of
from lancedb_same_run import ndcg_at_10
from measuring import (
    REPOSITORY,
    add_common_arguments,
    bar,
    machine,
    print_bars,
    print_table,
    spread,
    write_result,
)
from sets import Embedding, read_pool, write_quality_set, write_speed_set

from hivemem.retrieval.fuse import RRF_K
from hivemem.service.first_stage import LEG_DEPTH
from hivemem.surfaces.cli.evaluate import DataSet

WORKER = Path(__file__).with_name("worker.py")
PEER_PYTHON = REPOSITORY / ".venv-peers" / "bin" / "python"
FULL_SIZES = (10_000, 64_000, 500_000)
WARM_UP = 20


def run_engine(name: str, measure: str, folder: Path, arguments: argparse.Namespace) -> dict[str, Any]:
    """What the worker of an engine says; `absent` or `left_out` with a reason when there is nothing."""
    python = Path(sys.executable) if ENGINES[name].own else arguments.peer_python
    if not python.exists():
        return {"absent": f"{python} does not exist; run `make peers`"}
    store = Path(tempfile.mkdtemp(prefix=f"{name}-", dir=folder.parent))
    command = [str(python), str(WORKER), name, measure, str(folder), str(store)]
    # A session of its own, so that all its children can be ended with it.
    worker = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env=_environment(arguments.threads),
    )
    try:
        output, errors = worker.communicate(timeout=arguments.limit)
    except subprocess.TimeoutExpired:
        os.killpg(worker.pid, signal.SIGKILL)
        worker.communicate()
        return {"left_out": f"not done after {arguments.limit:g} s"}
    finally:
        _end_servers(store)
        shutil.rmtree(store, ignore_errors=True)
    if worker.returncode:
        reason = (errors.strip().splitlines() or [f"exit code {worker.returncode}"])[-1]
        if arguments.verbose:
            print(errors, file=sys.stderr)
        return {"left_out": f"failed: {reason[:300]}"}
    return json.loads(output.strip().splitlines()[-1])


def _environment(threads: int) -> dict[str, str]:
    """This process's environment, with the same number of threads for every library that has a variable."""
    names = ("OMP", "OPENBLAS", "MKL", "RAYON", "NUMEXPR")
    counts = {f"{name}_NUM_THREADS": str(threads) for name in names}
    counts |= {"TOKIO_WORKER_THREADS": str(threads), "LANCE_CPU_THREADS": str(threads)}
    kept = {name: value for name, value in os.environ.items() if not name.startswith("HIVEMEM_")}
    return {**kept, **counts, "TOKENIZERS_PARALLELISM": "false", "HF_HUB_OFFLINE": "1"}


def _end_servers(store: Path) -> None:
    """End what a stopped worker left behind: servers that work below its store."""
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if (entry / "cwd").readlink().is_relative_to(store):
                os.kill(int(entry.name), signal.SIGKILL)
        except OSError:
            continue


def measure_size(size: int, pool: Any, folder: Path, arguments: argparse.Namespace) -> dict[str, Any]:
    """All engines at one size."""
    data = folder / f"speed-{size}"
    facts = write_speed_set(
        data,
        pool,
        size=size,
        inserts=arguments.inserts,
        seed=arguments.seed,
        plan={"leg": LEG_DEPTH, "rrf_k": RRF_K, "threads": arguments.threads},
        budget=arguments.budget,
    )
    questions = pool.question_vectors[WARM_UP:]
    vectors = vectors_of(data, size, questions.shape[1])
    borders = exact_borders(vectors, questions)
    engines: dict[str, Any] = {}
    for name in arguments.engines:
        answer = run_engine(name, "speed", data, arguments)
        if "hybrid_ms" in answer:
            answer["recall_at_10"] = round(
                recall_at_10(answer.pop("dense_found"), questions, vectors, borders), 4
            )
            for times in ("hybrid_ms", "dense_ms", "insert_ms", "insert_visible_ms"):
                answer[times] = spread(answer[times])
            answer["load1"] = machine()["load1"]
        engines[name] = answer
        print(f"{size} {name}: {_told(answer)}", file=sys.stderr)
    shutil.rmtree(data)
    return {"size": size, "corpus": facts, "engines": engines}


def measure_quality(embedding: Embedding, folder: Path, arguments: argparse.Namespace) -> dict[str, Any]:
    """nDCG@10 of each engine on a labelled set, one store for each of its graphs."""
    read = DataSet.read(arguments.quality)
    data = read.sample(arguments.quality_queries, arguments.seed)
    written = folder / "quality"
    plan = {"leg": LEG_DEPTH, "rrf_k": RRF_K, "threads": arguments.threads}
    write_quality_set(written, data, data.queries, embedding, plan=plan)
    engines: dict[str, Any] = {}
    for name in arguments.engines:
        answer = run_engine(name, "quality", written, arguments)
        found = answer.pop("found", None)
        if found is not None:
            scores = [ndcg_at_10(found[query.id], query.gold) for query in data.queries]
            answer["ndcg_at_10"] = round(float(np.mean(scores)), 4)
        engines[name] = answer
        print(f"quality {name}: {_told(answer)}", file=sys.stderr)
    return {"set": read.name, "queries": len(data.queries), "engines": engines}


def _told(answer: dict[str, Any]) -> str:
    for reason in ("absent", "left_out"):
        if reason in answer:
            return f"{reason.replace('_', ' ')}: {answer[reason]}"
    if "ndcg_at_10" in answer:
        return f"nDCG@10 {answer['ndcg_at_10']:.4f}"
    times = answer["hybrid_ms"]
    told = f"p50 {times['p50']:.2f}, p95 {times['p95']:.2f} ms, recall@10 {answer['recall_at_10']:.3f}"
    return f"{told}, effort {answer['effort']}" if answer["effort"] else told


def bars(sizes: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """hivemem's legs against the fastest of the other hybrid engines at each size."""
    found: list[dict[str, Any]] = []
    for one in sizes:
        p95 = {
            name: answer["hybrid_ms"]["p95"]
            for name, answer in one["engines"].items()
            if "hybrid_ms" in answer and ENGINES[name].hybrid
        }
        ours, others = p95.pop("hivemem_legs", None), {k: v for k, v in p95.items() if not ENGINES[k].own}
        if ours is not None and others:
            fastest = min(others, key=lambda name: others[name])
            said = f"p95 of legs and fusion against {ENGINES[fastest].label}, {one['size']} texts"
            found.append(bar(said, ours / others[fastest], "<=", 1.0))
    return found


def print_sizes(sizes: Sequence[dict[str, Any]]) -> None:
    for one in sizes:
        print(f"\n{one['size']} texts ({one['corpus']['source']}, {one['corpus']['mixtures']} mixtures)")
        rows: list[tuple[object, ...]] = []
        for name, answer in one["engines"].items():
            if "hybrid_ms" not in answer:
                rows.append((ENGINES[name].label, *[""] * 10, _told(answer)))
                continue
            hybrid, visible = answer["hybrid_ms"], answer["insert_visible_ms"]
            rows.append(
                (
                    ENGINES[name].label,
                    f"{hybrid['p50']:.2f}",
                    f"{hybrid['p95']:.2f}",
                    hybrid["n"],
                    f"{answer['dense_ms']['p50']:.2f}",
                    f"{answer['recall_at_10']:.3f}",
                    f"{answer['texts_a_second']:.0f}",
                    f"{visible['p50']:.2f}",
                    f"{answer['memory_mb']:.0f}",
                    f"{answer['mapped_mb']:.0f}",
                    f"{answer['disk_mb']:.0f}",
                    "",
                )
            )
        header = ("", "p50 ms", "p95 ms", "n", "dense p50", "recall@10")
        print_table((*header, "texts/s", "visible ms", "MiB", "mapped", "disk", ""), rows)


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_common_arguments(parser)
    for action in parser._actions:
        if action.dest == "data":
            action.nargs, action.default = "+", []
            action.help = "data sets in the format of `hivemem eval`; without them texts are generated"
    parser.add_argument("--sizes", type=int, nargs="+", default=[10_000], help="texts (default 10000)")
    parser.add_argument("--full", action="store_true", help=f"the sizes {', '.join(map(str, FULL_SIZES))}")
    parser.add_argument("--engines", nargs="+", default=list(ENGINES), choices=list(ENGINES))
    parser.add_argument("--quality", type=Path, metavar="DIR", help="labelled set for nDCG@10")
    parser.add_argument("--quality-queries", type=int, default=200, help="of it, at random (default 200)")
    parser.add_argument("--queries", type=int, default=200, help="searches measured (default 200)")
    parser.add_argument("--inserts", type=int, default=50, help="inserts measured (default 50)")
    parser.add_argument(
        "--pool", type=int, default=20_000, help="real texts embedded at most (default 20000)"
    )
    parser.add_argument("--embedder", help="default: bundled for data sets, hashing for generated texts")
    parser.add_argument("--cache", type=Path, metavar="DIR", help="keeps embeddings from run to run")
    parser.add_argument("--threads", type=int, default=2, help="cores and threads of an engine (default 2)")
    parser.add_argument("--budget", type=float, default=30, help="seconds of each timed loop (default 30)")
    parser.add_argument("--limit", type=float, default=1800, help="seconds for one engine at one size")
    parser.add_argument("--peer-python", type=Path, default=PEER_PYTHON, help="Python that has the others")
    parser.add_argument("--folder", type=Path, help="where the stores are made: the disk to measure")
    parser.add_argument("--verbose", action="store_true", help="print what a failing engine said")
    arguments = parser.parse_args()
    if arguments.full:
        arguments.sizes = list(FULL_SIZES)
    return arguments


def main() -> None:
    arguments = parsed()
    # The same cores for the parent: it runs while no engine does.
    embedding = Embedding(arguments.embedder or ("bundled" if arguments.data else "hashing"), arguments.cache)
    pool = read_pool(
        arguments.data,
        embedding,
        texts=min(arguments.pool, max(arguments.sizes)),
        questions=arguments.queries + WARM_UP,
        seed=arguments.seed,
    )
    with tempfile.TemporaryDirectory(prefix="hivemem-peers-", dir=arguments.folder) as name:
        folder = Path(name).resolve()
        quality = measure_quality(embedding, folder, arguments) if arguments.quality else None
        sizes = [measure_size(size, pool, folder, arguments) for size in arguments.sizes]
    print_sizes(sizes)
    if quality:
        print(f"\nnDCG@10 of {quality['queries']} queries of {quality['set']}, no cross-encoder")
        print_table(
            ("", "nDCG@10"),
            [
                (ENGINES[name].label, answer.get("ndcg_at_10") or _told(answer))
                for name, answer in quality["engines"].items()
            ],
        )
    reached = bars(sizes)
    print_bars(reached)
    path = write_result(
        "peers",
        arguments.results,
        models={"embedder": pool.model_id, "reranker": None},
        corpus=[one.pop("corpus") | {"size": one["size"]} for one in sizes],
        figures={
            "bars": reached,
            "leg": LEG_DEPTH,
            "threads": arguments.threads,
            "sizes": sizes,
            "quality": quality,
        },
    )
    print(f"result: {path}")


if __name__ == "__main__":
    main()
