"""Measures one engine in a process of its own; started by `side_by_side.py` with the engine's interpreter.

    python worker.py ENGINE MEASURE SET STORE

MEASURE is `speed` or `quality`; SET is a folder as `sets.py` writes it; STORE an empty folder for the
engine. Prints one JSON object on the last line. Needs nothing but numpy and the engine.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import importlib.util
import itertools
import json
import os
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from engines import ENGINES, load
from engines.contract import Engine, Plan, Rows, Vector
from exact import K, exact_borders, recall_at_10, vectors_of

BATCH = 10_000
LEAST_RECALL = 0.99
WARM_UP = 20
VISIBLE_SECONDS = 5.0


class Set:
    """The texts, questions and inserts of a run, read from its folder."""

    def __init__(self, folder: Path, measure: str) -> None:
        self.folder = folder
        self.facts: dict[str, Any] = json.loads((folder / "set.json").read_text())
        self.plan = Plan(**self.facts["plan"], measure=measure)
        self.questions: list[dict[str, Any]] = json.loads((folder / "questions.json").read_text())
        self.question_vectors = self._vectors("questions")
        self.inserts: list[dict[str, Any]] = json.loads((folder / "inserts.json").read_text())
        self.insert_vectors = self._vectors("inserts")

    def batches(self, first: int = 0, count: int | None = None) -> Iterator[Rows]:
        """The texts from the one numbered `first`; read piece by piece, so that they take no memory."""
        size = 4 * self.plan.dimension
        with (
            (self.folder / "texts.jsonl").open(encoding="utf-8") as lines,
            (self.folder / "texts.f32").open("rb") as vectors,
        ):
            vectors.seek(first * size)
            rows = itertools.islice(lines, first, None if count is None else first + count)
            while part := [json.loads(line) for line in itertools.islice(rows, BATCH)]:
                flat = np.frombuffer(vectors.read(len(part) * size), np.float32)
                yield Rows(
                    ids=[id for id, _ in part],
                    texts=[text for _, text in part],
                    vectors=flat.reshape(len(part), self.plan.dimension),
                )

    def _vectors(self, name: str) -> Vector:
        return np.fromfile(self.folder / f"{name}.f32", np.float32).reshape(-1, self.plan.dimension)


def speed(engine: Engine, data: Set, store: Path, before: dict[str, float]) -> dict[str, Any]:
    """Load rate, memory, search times, what the vector leg finds, and how soon an insert is found."""
    started = time.perf_counter()
    engine.add(data.batches())
    added = time.perf_counter()
    engine.ready()
    ended = time.perf_counter()
    take_effort(engine, data)
    budget = data.facts["budget_seconds"]
    asked = list(zip((question["text"] for question in data.questions), data.question_vectors, strict=True))
    for text, vector in asked[:WARM_UP]:
        engine.hybrid(text, vector, K)
        engine.settle()
    after = memory()
    hybrid: list[float] = []
    for text, vector in within(asked[WARM_UP:], budget):
        hybrid.append(timed(lambda text=text, vector=vector: engine.hybrid(text, vector, K))[0])
        engine.settle()
    for _, vector in asked[:WARM_UP]:
        engine.dense(vector, K)
    dense: list[float] = []
    found: list[list[str]] = []
    for _, vector in within(asked[WARM_UP:], budget):
        taken, ids = timed(lambda vector=vector: engine.dense(vector, K))
        dense.append(taken)
        found.append(ids)
    return {
        "texts_a_second": round(data.facts["texts"] / (ended - started), 1),
        "add_seconds": round(added - started, 2),
        "index_seconds": round(ended - added, 2),
        "memory_mb": round(after["own"] - before["own"], 1),
        "mapped_mb": round(after["mapped"] - before["mapped"], 1),
        "disk_mb": round(sum(f.stat().st_blocks * 512 for f in store.rglob("*") if f.is_file()) / 2**20, 1),
        "hybrid_ms": hybrid,
        "dense_ms": dense,
        "dense_found": found,
        "effort": engine.effort,
        **inserts(engine, data, budget),
    }


def take_effort(engine: Engine, data: Set) -> None:
    """Let the vector leg look at as little as finds `LEAST_RECALL` of the exact best ten.

    Where nothing does, at the most. A graph of neighbours is as quick as it is let miss: engines compare at
    equal quality only.
    """
    if len(engine.efforts) == 1:
        return
    questions = data.question_vectors
    vectors = vectors_of(data.folder, data.facts["texts"], data.plan.dimension)
    borders = exact_borders(vectors, questions)
    for effort in engine.efforts:
        engine.effort = effort
        found = [engine.dense(vector, K) for vector in questions]
        if recall_at_10(found, questions, vectors, borders) >= LEAST_RECALL:
            return


def inserts(engine: Engine, data: Set, budget: float) -> dict[str, Any]:
    """Milliseconds of an insert, and from its begin to the first search that finds it."""
    stored: list[float] = []
    visible: list[float] = []
    lost = 0
    rows = zip(data.inserts, data.insert_vectors, strict=True)
    for row, vector in within(list(rows), budget):
        started = time.perf_counter()
        engine.insert(row["id"], row["text"], vector)
        stored.append(1000 * (time.perf_counter() - started))
        while row["id"] not in engine.hybrid(row["text"], vector, K):
            if time.perf_counter() - started > VISIBLE_SECONDS:
                lost += 1
                break
        else:
            visible.append(1000 * (time.perf_counter() - started))
        engine.settle()
    return {"insert_ms": stored, "insert_visible_ms": visible, "inserts_not_found": lost}


def quality(open_engine: Callable[[str], Engine], data: Set) -> dict[str, Any]:
    """The best ten of each question, in a store of its graph alone."""
    by_graph: defaultdict[str, list[int]] = defaultdict(list)
    for position, question in enumerate(data.questions):
        by_graph[question["graph"]].append(position)
    found: dict[str, list[str]] = {}
    for graph in data.facts["graphs"]:
        engine = open_engine(graph["name"])
        engine.add(data.batches(graph["first"], graph["count"]))
        engine.ready()
        for position in by_graph[graph["name"]]:
            question = data.questions[position]
            found[question["id"]] = engine.hybrid(question["text"], data.question_vectors[position], K)
            engine.settle()
        engine.close()
    return {"found": found}


def within(items: list[Any], seconds: float) -> Iterator[Any]:
    """The items until the time is up, at least one."""
    end = time.perf_counter() + seconds
    for item in items:
        yield item
        if time.perf_counter() > end:
            return


def timed(call: Callable[[], list[str]]) -> tuple[float, list[str]]:
    """Milliseconds of a call, and what it returned."""
    started = time.perf_counter()
    result = call()
    return 1000 * (time.perf_counter() - started), result


def memory() -> dict[str, float]:
    """MiB of this process and its children: `own` (heap and shared) and `mapped` (files, can be dropped)."""
    gc.collect()
    with contextlib.suppress(OSError, AttributeError):
        # What malloc keeps for later is not what the engine holds.
        ctypes.CDLL(None).malloc_trim(0)
    totals = {"own": 0.0, "mapped": 0.0}
    for process in family(os.getpid()):
        try:
            lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
        except OSError:
            continue
        kib = {name: int(value.split()[0]) for name, _, value in (line.partition(":") for line in lines[1:])}
        totals["own"] += (kib["Pss_Anon"] + kib["Pss_Shmem"]) / 1024
        totals["mapped"] += kib["Pss_File"] / 1024
    return totals


def family(process: int) -> list[int]:
    """A process and all that descend from it, and servers whose working folder is below this one's store."""
    children: defaultdict[int, list[int]] = defaultdict(list)
    found = [process]
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
            children[int(fields[1])].append(int(entry.name))
            if str((entry / "cwd").readlink()).startswith(sys.argv[4]):
                found.append(int(entry.name))
        except OSError:
            continue
    for one in found:
        found.extend(child for child in children[one] if child not in found)
    return found


def main(name: str, measure: str, folder: Path, store: Path) -> dict[str, Any]:
    missing = [one for one in ENGINES[name].imports if importlib.util.find_spec(one) is None]
    if missing:
        return {"absent": f"{', '.join(missing)} not installed"}
    data = Set(folder, measure)
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: data.plan.threads])
    kind = load(name)

    def open_engine(part: str) -> Engine:
        (store / part).mkdir()
        return kind(store / part, data.plan)

    if measure == "quality":
        result = quality(open_engine, data)
        return {"version": kind.version, "what": kind.what, **result}
    before = memory()
    engine = open_engine("store")
    figures = speed(engine, data, store, before)
    facts = {"version": engine.version, "what": kind.what, "durability": kind.durability}
    engine.close()
    return {**facts, **figures}


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1], sys.argv[2], Path(sys.argv[3]), Path(sys.argv[4]))))
