"""What every benchmark here shares: the facts of a run, its result file, and how spreads are told."""

from __future__ import annotations

import argparse
import hashlib
import json
import multiprocessing
import os
import platform
import re
import shlex
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

REPOSITORY = Path(__file__).resolve().parent.parent
T = TypeVar("T")
RESULTS = REPOSITORY / "benchmarks" / "results"


def add_common_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options that all benchmarks have."""
    parser.add_argument(
        "--data",
        type=Path,
        metavar="DIR",
        help="data set in the format of `hivemem eval`; without it texts are generated",
    )
    parser.add_argument("--seed", type=int, default=7, help="of all that is drawn at random (default 7)")
    parser.add_argument(
        "--results",
        type=Path,
        default=RESULTS,
        metavar="DIR",
        help="folder of the result files (default benchmarks/results)",
    )


def alone(function: Callable[..., T], *arguments: Any) -> T:
    """What `function` returns in a process of its own: memory that an earlier part left does not count.

    The function must be at the top of its module, and its arguments and result picklable.
    """
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as process:
        return process.submit(function, *arguments).result()


def spread(milliseconds: Iterable[float]) -> dict[str, float]:
    """Median, 95th percentile, mean and number of some times in milliseconds."""
    ordered = sorted(milliseconds)
    if not ordered:
        return {"p50": 0.0, "p95": 0.0, "mean": 0.0, "n": 0}
    return {
        "p50": round(statistics.median(ordered), 3),
        "p95": round(ordered[min(len(ordered) - 1, int(0.95 * len(ordered)))], 3),
        "mean": round(statistics.fmean(ordered), 3),
        "n": len(ordered),
    }


def bar(name: str, value: float, relation: str, limit: float) -> dict[str, Any]:
    """A bar and whether this run is over it: `relation` is `<=` or `>=`."""
    met = value <= limit if relation == "<=" else value >= limit
    return {"bar": name, "value": round(value, 4), "relation": relation, "limit": limit, "met": met}


def machine() -> dict[str, Any]:
    """Where a run took place. `load1` is the load average, to tell a quiet run from a busy one."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    load = round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None
    return {
        "cores": cores,
        "cpu": _cpu_model(),
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "load1": load,
    }


def _cpu_model() -> str:
    info = Path("/proc/cpuinfo")
    if info.is_file():
        fields = dict(
            re.findall(r"^(model name|cpu family|model)\s*:\s*(.+)$", info.read_text(), re.MULTILINE)
        )
        numbers = f"family {fields.get('cpu family')}, model {fields.get('model')}"
        return f"{fields.get('model name', 'unknown')} ({numbers})"
    return platform.processor() or "unknown"


def commit() -> str:
    """The commit that was measured; `+changes` when the sources differ from it."""

    def git(*words: str) -> str:
        done = subprocess.run(["git", *words], cwd=REPOSITORY, capture_output=True, text=True, check=False)
        return done.stdout.strip()

    head = git("rev-parse", "HEAD")
    if not head:
        return "unknown"
    return head + ("+changes" if git("status", "--porcelain", "--", "src") else "")


def texts_hash(texts: Sequence[str]) -> str:
    """SHA-256 over texts in order: two runs with one hash measured the same corpus."""
    digest = hashlib.sha256()
    for text in texts:
        digest.update(text.encode())
        digest.update(b"\0")
    return digest.hexdigest()


def write_result(
    name: str, folder: Path, *, models: dict[str, Any], corpus: Any, figures: dict[str, Any]
) -> Path:
    """Write `<folder>/<name>-<time>.json`, see benchmarks/results/README.md, and return its path."""
    now = datetime.now(UTC)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}-{now:%Y%m%dT%H%M%SZ}.json"
    command = [Path(sys.argv[0]).resolve(), *sys.argv[1:]]
    words = [_relative(str(word)) for word in command]
    content = {
        "benchmark": name,
        "at": now.isoformat(timespec="seconds"),
        "commit": commit(),
        "command": f"python {shlex.join(words)}",
        "machine": machine(),
        "models": models,
        "corpus": corpus,
        **figures,
    }
    path.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    return path


def _relative(word: str) -> str:
    """A path in the repository from its root; of any other the name alone, since it is this machine's."""
    path = Path(word)
    if not path.is_absolute():
        return word
    return str(path.relative_to(REPOSITORY)) if path.is_relative_to(REPOSITORY) else path.name


def print_table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """A table with right-aligned numbers on standard output."""
    cells = [[str(cell) for cell in row] for row in (header, *rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(header))]
    for row in cells:
        first, *others = (
            cell.ljust(width) if at == 0 else cell.rjust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        print("  ".join([first, *others]).rstrip())


def print_bars(bars: Sequence[dict[str, Any]]) -> None:
    """Each bar with its value in this run."""
    for one in bars:
        said = "met" if one["met"] else "NOT MET"
        print(f"bar: {one['bar']}: {one['value']:g} (wanted {one['relation']} {one['limit']:g}): {said}")
