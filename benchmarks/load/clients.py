"""Concurrent recalls over HTTP: a real `hivemem serve`, one client, then sixteen.

    python benchmarks/load/clients.py [--data DIR] [--nodes 6000] [--clients 16] [--seconds 60]

Each client is a thread with one kept connection; it sends the next question when it has the last answer.
The bar: sixteen clients together get at least as many answers a second as one alone, and no answer is a
5xx but the documented 503, which carries `Retry-After` and `"retryable": true`.

Under load the server ends re-ranking at its time budget, so an answer can rest on fewer pairs; `pairs`
and `cut` say how far. `--budget 60` takes the budget away and compares equal work.
"""

from __future__ import annotations

import argparse
import http.client
import itertools
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from corpus import Corpus, read_corpus
from measuring import add_common_arguments, bar, print_bars, print_table, spread, write_result

RECALL = "/api/v1/memory/recall"
READY = "/api/v1/memory/ready"
WARM_UP_SECONDS = 5
START_SECONDS = 120


@dataclass
class Answers:
    """What one client saw."""

    milliseconds: list[float] = field(default_factory=list)
    statuses: Counter[str] = field(default_factory=Counter)
    pairs: int = 0
    cut: int = 0
    refusals: list[str] = field(default_factory=list)
    """5xx answers that are not the documented one."""


class Server:
    """A `hivemem serve` of its own process over a data directory."""

    def __init__(self, data_dir: Path, settings: list[str]) -> None:
        self._options = ["--data-dir", str(data_dir), *itertools.chain(*(("--set", one) for one in settings))]
        self.environment = {
            name: value for name, value in os.environ.items() if not name.startswith("HIVEMEM_")
        }

    def command(self, *words: str) -> list[str]:
        return [sys.executable, "-m", "hivemem.surfaces.cli.main", *words, *self._options]

    def run(self, *words: str) -> dict[str, Any]:
        """The JSON object that a command prints."""
        done = subprocess.run(
            self.command(*words, "--json"), env=self.environment, stdout=subprocess.PIPE, check=True
        )
        return json.loads(done.stdout)

    @contextmanager
    def serving(self) -> Iterator[str]:
        """Its host and port, once the models are there; ended afterwards."""
        process = subprocess.Popen(
            self.command("serve", "--port", "0", "--json", "--set", "log_level=error"),
            env=self.environment,
            stdout=subprocess.PIPE,
        )
        try:
            assert process.stdout is not None
            place = urlsplit(json.loads(process.stdout.readline())["url"]).netloc
            _wait_until_ready(place)
            yield place
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(30)


def _wait_until_ready(place: str) -> None:
    until = time.monotonic() + START_SECONDS
    while True:
        connection = http.client.HTTPConnection(place, timeout=30)
        connection.request("GET", READY)
        if connection.getresponse().status == 200:
            return
        if time.monotonic() > until:
            raise SystemExit(f"the server was not ready within {START_SECONDS} s")
        time.sleep(0.2)


def load_nodes(server: Server, corpus: Corpus, folder: Path) -> None:
    """Import the corpus as a user would."""
    path = folder / "nodes.jsonl"
    with path.open("w", encoding="utf-8") as lines:
        for request in corpus.requests():
            node = {
                "key": request.key,
                "description": request.description,
                "node_type": request.node_type,
                "data": request.data,
                "relationships": list(request.relationships),
            }
            lines.write(json.dumps(node, ensure_ascii=False) + "\n")
    summary = server.run("import", str(path))
    if summary["failed"]:
        raise SystemExit(f"{summary['failed']} nodes were not stored: {summary['errors'][:3]}")


def ask_until(place: str, key: str, questions: Iterator[str], until: float, seen: Answers) -> None:
    """One client: ask, wait for the answer, ask again."""
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    connection = http.client.HTTPConnection(place, timeout=120)
    while time.perf_counter() < until:
        body = json.dumps({"query": next(questions), "max_results": 10})
        started = time.perf_counter()
        try:
            connection.request("POST", RECALL, body, headers)
            response = connection.getresponse()
            content = response.read()
        except (OSError, http.client.HTTPException) as error:
            seen.statuses[type(error).__name__] += 1
            seen.refusals.append(repr(error))
            connection.close()
            continue
        taken = time.perf_counter() - started
        seen.statuses[str(response.status)] += 1
        answer = json.loads(content)
        if response.status == 200:
            seen.milliseconds.append(1000 * taken)
            meta = answer["_search_meta"]
            seen.pairs += meta["rerank"]["candidates"] + meta["rerank"]["in_context"]
            seen.cut += any("budget" in note for note in meta.get("degraded", ()))
        elif response.status == 503 and response.headers["Retry-After"] and answer.get("retryable") is True:
            time.sleep(min(1.0, float(response.headers["Retry-After"])))
        else:
            seen.refusals.append(f"{response.status}: {content[:200]!r}")
    connection.close()


def under_load(place: str, key: str, corpus: Corpus, clients: int, seconds: float) -> dict[str, Any]:
    """Throughput and latency of `clients` clients over `seconds`."""
    lock = threading.Lock()
    endless = itertools.cycle(corpus.questions)

    def shared() -> Iterator[str]:
        while True:
            with lock:
                question = next(endless)
            yield question

    seen = [Answers() for _ in range(clients)]
    started = time.perf_counter()
    threads = [
        threading.Thread(target=ask_until, args=(place, key, shared(), started + seconds, one))
        for one in seen
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    # To the last answer: a request that was sent in time is waited for.
    elapsed = time.perf_counter() - started
    milliseconds = [value for one in seen for value in one.milliseconds]
    answered = len(milliseconds)
    statuses: Counter[str] = Counter()
    for one in seen:
        statuses.update(one.statuses)
    return {
        "clients": clients,
        "seconds": round(elapsed, 1),
        "recalls_a_second": round(answered / elapsed, 3),
        "latency_ms": spread(milliseconds),
        "statuses": dict(statuses),
        "undocumented_failures": [refusal for one in seen for refusal in one.refusals][:20],
        "pairs_a_recall": round(sum(one.pairs for one in seen) / max(1, answered), 1),
        "cut_share": round(sum(one.cut for one in seen) / max(1, answered), 4),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_common_arguments(parser)
    parser.add_argument("--nodes", type=int, default=6_000)
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--seconds", type=float, default=60.0, help="for each number of clients")
    parser.add_argument("--budget", type=float, help="re-ranking budget of a recall in seconds")
    parser.add_argument("--embedder", default="bundled")
    parser.add_argument("--reranker", default="bundled")
    arguments = parser.parse_args()
    corpus = read_corpus(arguments.data, arguments.nodes, 500, arguments.seed)
    settings = [f"embedder={arguments.embedder}", f"reranker={arguments.reranker}"]
    if arguments.budget is not None:
        settings.append(f"rerank_budget_seconds={arguments.budget:g}")
    with tempfile.TemporaryDirectory(prefix="hivemem-load-") as folder:
        server = Server(Path(folder) / "data", settings)
        load_nodes(server, corpus, Path(folder))
        key = server.run("key", "create")["key"]
        with server.serving() as place:
            under_load(place, key, corpus, 1, WARM_UP_SECONDS)
            runs = [
                under_load(place, key, corpus, clients, arguments.seconds)
                for clients in (1, arguments.clients)
            ]
    print_table(
        ("clients", "recalls/s", "p50 ms", "p95 ms", "pairs", "cut", "statuses"),
        [
            (
                run["clients"],
                run["recalls_a_second"],
                run["latency_ms"]["p50"],
                run["latency_ms"]["p95"],
                run["pairs_a_recall"],
                f"{run['cut_share']:.0%}",
                " ".join(f"{status}:{count}" for status, count in run["statuses"].items()),
            )
            for run in runs
        ],
    )
    one, many = runs
    ratio = many["recalls_a_second"] / max(1e-9, one["recalls_a_second"])
    failures = sum(len(run["undocumented_failures"]) for run in runs)
    bars = [
        bar(f"recalls a second of {arguments.clients} clients against 1", ratio, ">=", 1.0),
        bar("failures other than the documented 503", failures, "<=", 0),
    ]
    print_bars(bars)
    path = write_result(
        "load",
        arguments.results,
        models={"embedder": arguments.embedder, "reranker": arguments.reranker},
        corpus=corpus.facts(),
        figures={"bars": bars, "settings": settings, "runs": runs},
    )
    print(f"result: {path}")


if __name__ == "__main__":
    main()
