"""Pictures and tables from the newest result files.

    python benchmarks/plots.py [--results benchmarks/results] [--into benchmarks/results/plots]

For each benchmark the newest file counts; a benchmark without a file is left out. Writes PNG files and a
README.md with the same figures as tables. Needs matplotlib.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent / "peers"))

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
from engines import ENGINES
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator
from measuring import RESULTS

Result = dict[str, Any]
Table = tuple[Sequence[str], list[Sequence[object]]]

_COLOURS = {name: f"C{number}" for number, name in enumerate(ENGINES)}
_STORES = {"sqlite": ("SQLite", "C0"), "postgres": ("PostgreSQL", "C1")}


def newest(folder: Path, benchmark: str) -> Result | None:
    """The newest result of a benchmark; times in file names sort."""
    files = sorted(folder.glob(f"{benchmark}-[0-9]*.json"))
    return json.loads(files[-1].read_text(encoding="utf-8")) if files else None


def peers(result: Result, into: Path) -> list[tuple[str, str, Table]]:
    """Search times over size, load and memory at the largest size, quality."""
    sizes = result["sizes"]
    lines: dict[str, list[tuple[int, dict[str, Any]]]] = {}
    for one in sizes:
        for name, answer in one["engines"].items():
            if "hybrid_ms" in answer:
                lines.setdefault(name, []).append((one["size"], answer))
    figure, axes = plt.subplots(1, 2, figsize=(11, 4.5), sharey=True)
    for axis, share in zip(axes, ("p50", "p95"), strict=True):
        for name, rows in lines.items():
            axis.plot(
                [size for size, _ in rows],
                [answer["hybrid_ms"][share] for _, answer in rows],
                marker="o",
                color=_COLOURS[name],
                linewidth=2.5 if ENGINES[name].own else 1.2,
                label=ENGINES[name].label,
            )
        _labelled(axis, [one["size"] for one in sizes], f"{share} of a search", "texts", "milliseconds")
    axes[1].legend(fontsize="small", loc="upper left", bbox_to_anchor=(1.0, 1.0))
    _save(figure, into / "peers-latency.png")
    rows = [
        (
            one["size"],
            ENGINES[name].label,
            *(_number(answer["hybrid_ms"][p]) for p in ("p50", "p95")),
            f"{answer['recall_at_10']:.3f}",
            f"{answer['texts_a_second']:.0f}",
            _number(answer["insert_visible_ms"]["p50"]),
            f"{answer['memory_mb']:.0f}",
            f"{answer['mapped_mb']:.0f}",
            f"{answer['disk_mb']:.0f}",
        )
        for one in sizes
        for name, answer in one["engines"].items()
        if "hybrid_ms" in answer
    ]
    header = ("texts", "engine", "p50 ms", "p95 ms", "recall@10", "texts/s", "visible ms")
    made = [
        (
            "Both text legs and their fusion",
            "peers-latency.png",
            ((*header, "MiB", "mapped MiB", "disk MiB"), rows),
        ),
        _bars_of_largest(sizes[-1], into),
    ]
    missing = [
        (one["size"], ENGINES[name].label, answer.get("absent") or answer["left_out"])
        for one in sizes
        for name, answer in one["engines"].items()
        if "hybrid_ms" not in answer
    ]
    if missing:
        made.append(("Not measured", "", (("texts", "engine", "reason"), missing)))
    if result.get("quality"):
        quality = result["quality"]
        ranked = [
            (ENGINES[name].label, f"{answer['ndcg_at_10']:.4f}")
            for name, answer in quality["engines"].items()
            if "ndcg_at_10" in answer
        ]
        title = f"Ranking of {quality['queries']} questions of {quality['set']}, no cross-encoder"
        made.append((title, "", (("engine", "nDCG@10"), ranked)))
    return made


def _bars_of_largest(one: dict[str, Any], into: Path) -> tuple[str, str, Table]:
    measured = {name: answer for name, answer in one["engines"].items() if "hybrid_ms" in answer}
    figure, axes = plt.subplots(1, 2, figsize=(11, 4))
    labels = [ENGINES[name].label for name in measured]
    colours = [_COLOURS[name] for name in measured]
    axes[0].barh(labels, [answer["texts_a_second"] for answer in measured.values()], color=colours)
    axes[0].set(title=f"loading {one['size']:,} texts", xlabel="texts a second, indexes built")
    own = [answer["memory_mb"] for answer in measured.values()]
    axes[1].barh(labels, own, color=colours)
    axes[1].barh(labels, [answer["mapped_mb"] for answer in measured.values()], left=own, color="0.8")
    axes[1].set(title=f"memory with {one['size']:,} texts", xlabel="MiB; grey: mapped files", yticklabels=[])
    for axis in axes:
        axis.invert_yaxis()
    _save(figure, into / "peers-load.png")
    rows = [
        (label, f"{answer['texts_a_second']:.0f}", f"{answer['memory_mb']:.0f}", f"{answer['mapped_mb']:.0f}")
        for label, answer in zip(labels, measured.values(), strict=True)
    ]
    title = f"Loading and memory at {one['size']:,} texts"
    return title, "peers-load.png", (("engine", "texts/s", "MiB", "mapped MiB"), rows)


def recall(result: Result, into: Path) -> list[tuple[str, str, Table]]:
    """Recall, loading and memory over the size of the graph."""
    figure, axes = plt.subplots(1, 3, figsize=(14, 4))
    rows: list[Sequence[object]] = []
    sizes: list[int] = []
    for store, figures in result["stores"].items():
        if "sizes" not in figures:
            continue
        label, colour = _STORES[store]
        sizes = [row["size"] for row in figures["sizes"]]
        for share, style in (("p50", "-"), ("p95", "--")):
            values = [row["recall_ms"][share] for row in figures["sizes"]]
            axes[0].plot(sizes, values, style, marker="o", color=colour, label=f"{label}, {share}")
        axes[1].plot(
            sizes, [row["cold_seconds"] for row in figures["sizes"]], "-o", color=colour, label=label
        )
        axes[2].plot(sizes, [row["index_mb"] for row in figures["sizes"]], "-o", color=colour, label=label)
        rows += [
            (
                label,
                row["size"],
                *(_number(row["recall_ms"][p]) for p in ("p50", "p95")),
                _number(row["cold_seconds"]),
                f"{row['index_mb']:.0f}",
                f"{row['index_bytes_a_node']:.0f}",
                f"{row['resident_mb']:.0f}",
            )
            for row in figures["sizes"]
        ]
    _labelled(axes[0], sizes, "recall, all but the models", "nodes", "milliseconds")
    _labelled(axes[1], sizes, "loading the graph into memory", "nodes", "seconds")
    _labelled(axes[2], sizes, "index in memory", "nodes", "MiB")
    for axis in axes:
        axis.legend(fontsize="small")
    _save(figure, into / "scale-recall.png")
    header = ("store", "nodes", "p50 ms", "p95 ms", "cold s", "index MiB", "bytes a node", "resident MiB")
    return [("Recall and loading by size of the graph", "scale-recall.png", (header, rows))]


def writes(result: Result, into: Path) -> list[tuple[str, str, Table]]:
    """Writes a second by number of clients, and catching up."""
    figure, axis = plt.subplots(figsize=(6, 4))
    rows: list[Sequence[object]] = []
    caught: list[Sequence[object]] = []
    clients: list[int] = []
    for store, figures in result["stores"].items():
        if "clients" not in figures:
            continue
        label, colour = _STORES[store]
        clients = [row["clients"] for row in figures["clients"]]
        axis.plot(
            clients, [row["writes_a_second"] for row in figures["clients"]], "-o", color=colour, label=label
        )
        rows += [
            (
                label,
                row["clients"],
                f"{row['writes_a_second']:.0f}",
                *(_number(row["write_ms"][p]) for p in ("p50", "p95")),
                row["refused"],
            )
            for row in figures["clients"]
        ]
        one = figures["catch_up"]
        caught.append(
            (
                label,
                one["graph_nodes"],
                *(_number(one["single_ms"][p]) for p in ("p50", "p95")),
                one["tries"],
                _number(one["after_1000_writes_ms"]),
            )
        )
    axis.set(title="writes", xlabel="clients", ylabel="writes a second", xticks=clients, ylim=(0, None))
    axis.grid(alpha=0.3)
    axis.legend()
    _save(figure, into / "writes.png")
    header = ("store", "nodes", "p50 ms", "p95 ms", "recalls needed", "ms after 1,000 writes")
    return [
        (
            f"Writes; one fsync of this disk takes {result['fsync_ms']['p50']:.2f} ms",
            "writes.png",
            (("store", "clients", "writes/s", "p50 ms", "p95 ms", "refused"), rows),
        ),
        ("From a write to another server's recall", "", (header, caught)),
    ]


def pressure(result: Result, into: Path) -> list[tuple[str, str, Table]]:
    """Recall with too little memory for the indexes; a table says it all."""
    rows = [
        (
            _STORES[store][0],
            f"{row['graphs']} of {row['nodes_a_graph']}",
            f"{row['allowed_mb']:.0f} of {row['whole_mb']:.0f}",
            row["recalls"],
            row["wrong"],
            row["evictions"],
            *(_number(row[kind][p]) for kind in ("hot_ms", "cold_ms") for p in ("p50", "p95")),
        )
        for store, row in result["stores"].items()
        if "recalls" in row
    ]
    header = ("store", "graphs of nodes", "MiB", "recalls", "wrong", "evictions")
    times = ("hot p50 ms", "hot p95", "cold p50", "cold p95")
    return [("Many graphs in little memory", "", ((*header, *times), rows))]


PARTS: dict[str, Callable[[Result, Path], list[tuple[str, str, Table]]]] = {
    "peers": peers,
    "scale-recall": recall,
    "scale-writes": writes,
    "scale-pressure": pressure,
}


def draw(results: Path, into: Path) -> Path:
    """Draw what there is, and return the page that shows it."""
    into.mkdir(parents=True, exist_ok=True)
    lines = [
        "# Measured",
        "",
        "Written by `benchmarks/plots.py` from the newest result of each benchmark.",
        "",
    ]
    for benchmark, part in PARTS.items():
        result = newest(results, benchmark)
        if result is None:
            continue
        machine = result["machine"]
        where = (
            f"{machine['cores']} cores, load {machine['load1']} at the end, commit `{result['commit'][:12]}`"
        )
        said = f"`{result['command']}`"
        for number, (title, picture, table) in enumerate(part(result, into)):
            lines += [f"## {title}", ""]
            if not number:
                lines += [f"{result['at'][:10]}, {where}: {said}", ""]
            if picture:
                lines += [f"![{title}]({picture})", ""]
            lines += [*_markdown(table), ""]
    page = into / "README.md"
    page.write_text("\n".join(lines).rstrip() + "\n", encoding="utf-8")
    return page


def _labelled(axis: Any, sizes: Sequence[int], title: str, x: str, y: str) -> None:
    """Logarithmic axes with plain numbers; below, exactly the sizes that were measured."""
    axis.set(title=title, xlabel=x, ylabel=f"{y}, logarithmic", xscale="log", yscale="log")
    axis.set_xticks(sorted(sizes), labels=[f"{size:,}" for size in sorted(sizes)])
    axis.xaxis.set_minor_locator(NullLocator())
    axis.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.yaxis.set_minor_locator(NullLocator())
    axis.grid(alpha=0.3)


def _save(figure: Any, path: Path) -> None:
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    plt.close(figure)


def _number(value: float) -> str:
    """Three significant digits or so, without an exponent."""
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def _markdown(table: Table) -> list[str]:
    header, rows = table
    lines = [header, ["---"] * len(header), *rows]
    return ["| " + " | ".join(map(str, line)) + " |" for line in lines]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--results", type=Path, default=RESULTS, metavar="DIR")
    parser.add_argument("--into", type=Path, metavar="DIR", help="default: plots in the results folder")
    arguments = parser.parse_args()
    print(draw(arguments.results, arguments.into or arguments.results / "plots"))


if __name__ == "__main__":
    main()
