"""Fit the numbers of `hivemem.retrieval.ranking.Calibration` on collected features.

    python benchmarks/quality/fit.py FEATURES.jsonl... [--held-in SHARE]

The weights maximise mean nDCG@10 over the sets by coordinate descent on a fixed grid; the expected
logit comes from least squares, the relevance scale from logistic regression (Platt scaling) on best hits.
Half of
the queries of each set, chosen by the hash of their graph or id, are held in; the figures of the other
half are printed beside them, so that overfitting would show.
"""

from __future__ import annotations

import argparse
import json
import zlib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hivemem.retrieval.ranking import Calibration, tail_points

GRIDS: Mapping[str, Sequence[float]] = {
    "bm25": (0.0, 2.0, 4.0, 6.0, 8.0, 10.0, 12.0),
    "cosine": (0.0, 3.0, 6.0, 9.0, 12.0, 16.0),
    "support": (0.0, 0.15, 0.3, 0.45, 0.6),
    "context": (0.0, 0.3, 0.4, 0.5, 0.6, 0.7, 1.0),
}


@dataclass(frozen=True, slots=True)
class Row:
    """One query: arrays over its candidates, in first-stage order."""

    set_name: str
    category: str
    answerable: bool
    counted: bool
    held_in: bool
    gold_total: int
    gold: NDArray[np.bool_]
    bm25_share: NDArray[np.float64]
    cosine: NDArray[np.float64]
    support: NDArray[np.float64]  # evidence inherited at support weight 1
    own: NDArray[np.float64]  # NaN where not read
    context: NDArray[np.float64]
    trust: NDArray[np.float64]
    every_word: NDArray[np.bool_]


def read_rows(paths: Sequence[Path]) -> list[Row]:
    rows: list[Row] = []
    for path in paths:
        for line in path.read_text().splitlines():
            query = json.loads(line)
            candidates = query["candidates"]
            graphs = query["graph"] if path.stem in ("locomo", "realtalk") else query["query"]
            column = {name: [c[name] for c in candidates] for name in candidates[0]} if candidates else {}
            if not column:
                continue
            ideal = np.maximum(np.array(column["ideal"], float), 1e-9)
            rows.append(
                Row(
                    set_name=path.stem,
                    category=query["category"],
                    answerable=query["answerable"],
                    counted=query["counted"],
                    held_in=zlib.crc32(str(graphs).encode()) % 2 == 0,
                    gold_total=query["gold"],
                    gold=np.array(column["gold"], bool),
                    bm25_share=np.array(column["bm25"], float) / ideal,
                    cosine=np.array([0.0 if c is None else c for c in column["cosine"]]),
                    support=np.array(column["support"], float) / Calibration().support,
                    own=np.array(column["own"], float),
                    context=np.array(column["context"], float),
                    trust=np.array(column["trust"], float),
                    every_word=np.array(column["held"]) == np.array(column["words"]),
                )
            )
    return rows


def points(row: Row, c: Calibration, *, depth: int = 20, context_depth: int = 16) -> NDArray[np.float64]:
    """`ranking_points` of every candidate, reading only as many as the limits allow."""
    evidence = c.bm25 * row.bm25_share + c.cosine * np.maximum(0.0, row.cosine - c.cosine_zero)
    first = evidence + c.support * row.support
    own = np.full(len(first), np.nan)
    best = np.argsort(-first, kind="stable")[:depth]
    own[best] = row.own[best]
    combined = own.copy()
    alone = _join(own, row.trust, first, c)
    again = [i for i in np.argsort(-alone, kind="stable")[:context_depth] if not np.isnan(row.context[i])]
    combined[again] = (1 - c.context) * own[again] + c.context * row.context[again]
    return _join(combined, row.trust, first, c)


def _join(
    logit: NDArray[np.float64], trust: NDArray[np.float64], first: NDArray[np.float64], c: Calibration
) -> NDArray[np.float64]:
    expected = c.read_slope * first + c.read_offset
    weight = np.where(np.isnan(logit), 0.0, trust)
    return weight * np.nan_to_num(logit) + (1 - weight) * expected + first


def ndcg(order: NDArray[np.intp], row: Row) -> float:
    gains = row.gold[order[:10]] / np.log2(np.arange(2, 2 + len(order[:10])))
    ideal = np.sum(1 / np.log2(np.arange(2, 2 + min(10, row.gold_total))))
    return float(gains.sum() / ideal)


def quality(rows: Sequence[Row], c: Calibration, **limits: int) -> dict[str, tuple[float, float]]:
    """Set name -> (micro, macro over categories) nDCG@10."""
    found: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        if row.answerable and row.counted:
            order = np.argsort(-points(row, c, **limits), kind="stable")
            found[row.set_name][row.category].append(ndcg(order, row))
    return {
        name: (
            float(np.mean([value for values in by.values() for value in values])),
            float(np.mean([np.mean(values) for values in by.values()])),
        )
        for name, by in found.items()
    }


def objective(rows: Sequence[Row], c: Calibration, **limits: int) -> float:
    return float(np.mean([macro for _, macro in quality(rows, c, **limits).values()]))


def expected_logit(rows: Sequence[Row], c: Calibration) -> Calibration:
    """Least squares of the logit on the first-stage evidence."""
    first, logit = [], []
    for row in rows:
        evidence = c.bm25 * row.bm25_share + c.cosine * np.maximum(0.0, row.cosine - c.cosine_zero)
        read = ~np.isnan(row.own) & (row.trust > 0.7)
        first.append((evidence + c.support * row.support)[read])
        logit.append(row.own[read])
    slope, offset = np.polyfit(np.concatenate(first), np.concatenate(logit), 1)
    return replace(c, read_slope=round(float(slope), 3), read_offset=round(float(offset), 3))


def platt(rows: Sequence[Row], c: Calibration) -> Calibration:
    """Logistic regression on the points of best hits: has the question an answer in its graph or not?

    Both kinds weigh the same. Sets without unanswerable questions tell nothing and are left out.
    """
    told = {row.set_name for row in rows if not row.answerable} - {"longmemeval_pool"}
    chosen = [row for row in rows if row.set_name in told]
    x = np.array([points(row, c).max() for row in chosen])
    y = np.array([row.answerable for row in chosen], float)
    w = np.where(y == 1, 1 / y.sum(), 1 / (1 - y).sum())
    a, b = 0.5, 1.0
    for _ in range(100):  # Newton's method on the weighted log loss
        p = 1 / (1 + np.exp(-(a * x + b)))
        s = w * p * (1 - p)
        gradient = np.array([np.sum(w * (p - y) * x), np.sum(w * (p - y))])
        hessian = np.array([[np.sum(s * x * x), np.sum(s * x)], [np.sum(s * x), np.sum(s)]])
        a, b = np.array([a, b]) - np.linalg.solve(hessian, gradient)
    return replace(c, scale=round(float(a), 3), offset=round(float(b), 3))


def fit(rows: Sequence[Row], **limits: int) -> Calibration:
    c = expected_logit(rows, Calibration())
    best = objective(rows, c, **limits)
    for _ in range(3):
        before = best
        for name, grid in GRIDS.items():
            for value in grid:
                trial = expected_logit(rows, replace(c, **{name: value}))
                score = objective(rows, trial, **limits)
                if score > best + 1e-5:
                    c, best = trial, score
        if best - before < 1e-4:
            break
    return platt(rows, c)


def floors(rows: Sequence[Row], c: Calibration) -> None:
    """For each set with unanswerable questions: what a floor on the best hit lets through and costs."""
    for name in sorted({row.set_name for row in rows if not row.answerable}):
        best = np.array([points(r, c).max() for r in rows if r.set_name == name and not r.answerable])
        answerable = [(points(r, c), r) for r in rows if r.set_name == name and r.answerable]
        print(f"{name}: floor in points, unanswerable answered, answerable with all gold lost")
        for floor in np.quantile(best, (0.9, 0.93, 0.95, 0.97, 0.99)):
            lost = sum(_all_lost(p, row, floor, tail_points(c, floor)) for p, row in answerable)
            print(f"  {floor:6.2f}  {np.mean(best >= floor):.3f}  {lost / len(answerable):.3f}")


def _all_lost(p: NDArray[np.float64], row: Row, floor: float, tail: float) -> bool:
    top = np.argsort(-p, kind="stable")[:10]
    if not row.gold[top].any():
        return False
    return p.max() < floor or not (row.gold[top] & (p[top] >= floor - tail)).any()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("features", nargs="+", type=Path)
    arguments = parser.parse_args()
    rows = read_rows(arguments.features)
    held_in = [row for row in rows if row.held_in]
    fitted = fit(held_in)
    print(fitted)
    for name, c in (("before", Calibration()), ("fitted", fitted)):
        inside, outside = quality(held_in, c), quality([r for r in rows if not r.held_in], c)
        for key in inside:
            print(
                f"{name:7} {key:20} held in {inside[key][0]:.4f} / {inside[key][1]:.4f}   "
                f"held out {outside[key][0]:.4f} / {outside[key][1]:.4f}  (micro / macro)"
            )
    floors(rows, fitted)


if __name__ == "__main__":
    main()
