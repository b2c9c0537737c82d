"""Quality of recall on labelled sets: `hivemem eval` on each, kept with commit, machine and models.

    python benchmarks/quality/run.py SET_FOLDER... [--queries N] [--only GRAPH]

One result file a set. The bars are for whole sets at default settings; a sample prints them too, but
says nothing about them.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from measuring import RESULTS, bar, print_bars, write_result

BARS = {
    "locomo": [("macro nDCG@10", ("macro", "ndcg@10"), ">=", 0.585)],
    "realtalk": [("macro nDCG@10", ("macro", "ndcg@10"), ">=", 0.525)],
    "scifact": [("nDCG@10", ("micro", "ndcg@10"), ">=", 0.71)],
    "longmemeval_pool": [("nDCG@10, BM25 has 0.701", ("micro", "ndcg@10"), ">=", 0.751)],
}
LOCOMO_BARS = [
    ("unanswerable questions answered", ("abstention", "answered_share"), "<=", 0.05),
    ("answerable questions that lose all gold", ("abstention", "gold_lost_share"), "<=", 0.03),
    ("p95 of a recall in ms", ("latency_ms", "total", "p95"), "<=", 250.0),
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("sets", nargs="+", type=Path)
    parser.add_argument("--queries", type=int)
    parser.add_argument("--only", metavar="GRAPH")
    parser.add_argument("--no-relationships", action="store_true")
    parser.add_argument("--results", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    options = []
    if arguments.queries is not None:
        options += ["--queries", str(arguments.queries)]
    if arguments.only is not None:
        options += ["--only", arguments.only]
    if arguments.no_relationships:
        options.append("--no-relationships")
    for folder in arguments.sets:
        evaluate(folder, options, arguments.results)


def evaluate(folder: Path, options: list[str], results: Path) -> None:
    command = [str(Path(sys.executable).with_name("hivemem")), "eval", str(folder), "--json", *options]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    *table, last = done.stdout.splitlines()
    print("\n".join(table))
    report = json.loads(last)
    wanted = [*BARS.get(folder.name, []), *(LOCOMO_BARS if folder.name == "locomo" else [])]
    bars = [bar(name, _value(report, path), relation, limit) for name, path, relation, limit in wanted]
    print_bars(bars)
    path = write_result(
        f"quality-{folder.name}",
        results,
        models={"embedder": report["embedder"], "reranker": report["reranker"]},
        corpus={
            "set": folder.name,
            "documents": report["documents"],
            "sha256": {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in _files(folder)},
        },
        figures={"options": options, "report": report, "bars": bars},
    )
    print(path.name)


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if ".jsonl" in path.name or ".tsv" in path.name)


def _value(report: dict[str, Any], path: tuple[str, ...]) -> float:
    value: Any = report
    for name in path:
        value = value[name]
    return float(value or 0.0)


if __name__ == "__main__":
    main()
