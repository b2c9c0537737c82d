"""The benchmark programs run at a tiny size and write what their readers expect; no time is judged."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
TEXTS = ("Alice leads the billing team", "Bob moved to Lisbon in May", "The printer is on the third floor")


def run(script: str, results: Path, *options: object) -> Any:
    """The one result that a program writes."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("HIVEMEM_")}
    done = subprocess.run(
        [sys.executable, str(BENCHMARKS / script), "--results", str(results), *map(str, options)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    written = Path(done.stdout.strip().splitlines()[-1].removeprefix("result: "))
    assert written.parent == results
    return json.loads(written.read_text("utf-8"))


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One folder for all, so that the plots find the others' files."""
    return tmp_path_factory.mktemp("results")


def labelled_set(folder: Path, texts: Sequence[str]) -> Path:
    """A set in which each text is the answer to a question with its own words."""
    folder.mkdir()
    (folder / "corpus.jsonl").write_text(
        "".join(
            json.dumps({"id": f"d{n}", "text": text, "graph": "one"}) + "\n" for n, text in enumerate(texts)
        )
    )
    (folder / "queries.jsonl").write_text(
        "".join(
            json.dumps({"id": f"q{n}", "text": text, "graph": "one"}) + "\n" for n, text in enumerate(texts)
        )
    )
    (folder / "qrels.tsv").write_text("".join(f"q{n}\td{n}\t1\n" for n in range(len(texts))))
    return folder


@pytest.fixture(scope="module")
def peers(results: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Two depths of hivemem, and an engine whose interpreter is not there."""
    folder = tmp_path_factory.mktemp("sets")
    quality = labelled_set(folder / "tiny", TEXTS)
    sizes = ("--sizes", 200, "--pool", 150, "--queries", 5, "--inserts", 2)
    engines = ("--engines", "hivemem_legs", "hivemem_recall", "chroma", "--peer-python", folder / "none")
    return run("peers/side_by_side.py", results, *sizes, *engines, "--quality", quality)


@pytest.fixture(scope="module")
def recall(results: Path) -> Any:
    """Two sizes on SQLite."""
    return run("scale/recall.py", results, "--sizes", 60, 600, "--queries", 5, "--stores", "sqlite")


@pytest.fixture(scope="module")
def writes(results: Path) -> Any:
    """One client and two on SQLite."""
    options = ("--clients", 1, 2, "--seconds", 0.2, "--nodes", 40, "--writes", 2, "--stores", "sqlite")
    return run("scale/writes.py", results, *options)


@pytest.fixture(scope="module")
def pressure(results: Path) -> Any:
    """Four graphs in the memory of one."""
    options = ("--graphs", 4, "--nodes", 400, "--recalls", 16, "--clients", 2, "--stores", "sqlite")
    return run("scale/pressure.py", results, *options)


def test_engines_side_by_side(peers: Any) -> None:
    [one] = peers["sizes"]
    assert peers["corpus"][0]["mixtures"] == 50
    for name in ("hivemem_legs", "hivemem_recall"):
        measured = one["engines"][name]
        assert measured["recall_at_10"] == 1.0, name
        assert measured["hybrid_ms"]["n"] == 5 and measured["insert_visible_ms"]["n"] == 2
        assert measured["inserts_not_found"] == 0
        assert peers["quality"]["engines"][name]["ndcg_at_10"] == 1.0, name
    assert "does not exist" in one["engines"]["chroma"]["absent"]


def test_recall_at_sizes(recall: Any) -> None:
    small, large = recall["stores"]["sqlite"]["sizes"]
    assert (small["size"], large["size"]) == (60, 600)
    assert large["recall_ms"]["n"] == large["answered"] == 5
    assert large["index_mb"] > small["index_mb"] > 0
    assert recall["stores"]["sqlite"]["growth"].keys() >= {"p50_times", "p95_times"}


def test_writes_and_catching_up(writes: Any) -> None:
    rows = writes["stores"]["sqlite"]["clients"]
    assert [row["clients"] for row in rows] == [1, 2]
    assert all(row["writes_a_second"] > 0 and not row["refused"] for row in rows)
    # The first recall after a write has it, whoever wrote.
    assert writes["stores"]["sqlite"]["catch_up"]["tries"] == 1


def test_more_graphs_than_memory(pressure: Any) -> None:
    row = pressure["stores"]["sqlite"]
    assert row["wrong"] == 0 and row["hot_ms"]["n"] + row["cold_ms"]["n"] == 16
    assert row["evictions"] > 0 and row["allowed_mb"] < row["whole_mb"]


def test_the_index_alone(results: Path) -> None:
    found = run("engine/scale.py", results, "--sizes", 100, 1500, "--queries", 3)

    assert [row["size"] for row in found["sizes"]] == [100, 1500]
    assert found["sizes"][1]["cpu_ms"].keys() == {"words", "vectors", "first_stage"}


@pytest.mark.usefixtures("peers", "recall", "writes", "pressure")
def test_plots_show_the_newest_results(results: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="plots need the dependency group bench")
    script = [
        sys.executable,
        str(BENCHMARKS / "plots.py"),
        "--results",
        str(results),
        "--into",
        str(tmp_path),
    ]
    subprocess.run(script, check=True, capture_output=True)

    pictures = {path.name for path in tmp_path.glob("*.png")}
    assert pictures == {"peers-latency.png", "peers-load.png", "scale-recall.png", "writes.png"}
    page = (tmp_path / "README.md").read_text("utf-8")
    assert all(f"({name})" in page for name in pictures)
    assert "| 200 | hivemem, legs and fusion |" in page and "does not exist" in page
