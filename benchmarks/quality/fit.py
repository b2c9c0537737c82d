"""Fit the numbers of `hivemem.retrieval.ranking.Calibration` on collected features, and compare.

    python benchmarks/quality/features.py SET_FOLDER... --out FOLDER
    python benchmarks/quality/fit.py FOLDER/*.jsonl [--unseen xquad] [--half] [--draws 600]

Prints the calibration and, for every file, what it gives beside fusion by rank. Sets that are named
with `--unseen` are compared and not fitted on. With `--half` it is fitted on one half of every set (of
the conversations, or of the queries where a set is one graph) and compared on the other.

The weights: random draws with a fixed seed, then one weight at a time. Relevance: Platt scaling. The
floor: quantiles of the best hits of questions that belong to another graph. Not fitted but set, with
the reasons in docs/decisions/ranking.md: `respelled`, `held_words`, `least_floor`, `tail`.
"""

from __future__ import annotations

import argparse
import random
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from candidates import CONVERSATIONS, Candidates, Flags, Floats, check, eased, floored, ndcg, points, score

from hivemem.retrieval.ranking import REFERENCE_NODES, Calibration

SEED = 11
GRIDS: Mapping[str, Sequence[float]] = {
    "bm25": (3.0, 3.5, 4.0, 4.5, 5.0, 5.5, 6.0, 7.0),
    "cosine": (2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0),
    "cosine_zero": (0.4, 0.45, 0.5, 0.55),
    "support": (0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4),
    "context": (0.35, 0.4, 0.45, 0.5, 0.55, 0.6),
    "read_slope": (2.0, 3.0, 4.0, 5.0, 6.0, 8.0),
    "read_offset": (-12.0, -14.0, -16.0, -18.0, -20.0, -24.0),
    "asks": (0.0, 0.5, 1.0, 1.5, 2.0),
    "answers": (0.0, 0.4, 0.8, 1.2, 1.6),
}
CONVERSATION_WEIGHT = 3.0
"""Of a conversation, what memories are mostly made of, against 1 for another set."""

LOSS_TO_FUSION = 2.0
"""How many times a loss against fusion by rank counts more than a gain."""

FOREIGN_PASS = {"strange": 0.03, "none": 0.2, "known": 0.5}
"""Of questions to a foreign graph, how many may pass the floor, by what is known of their names. Those
without a name, or with known names alone, hardly ever are foreign, so the floor for them may be low."""

PARTS = (1.0, 0.3, 0.1, 0.03, 0.01)
"""Random parts of the graphs by which the growth of the floor is measured."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("features", nargs="+", type=Path)
    parser.add_argument("--unseen", default="", help="names of sets, separated by commas")
    parser.add_argument("--half", action="store_true", help="fit on one half, compare on the other")
    parser.add_argument("--draws", type=int, default=600)
    arguments = parser.parse_args()
    sets = [Candidates.read(path) for path in arguments.features]
    for one in sets:
        check(one, Calibration())
    unseen = set(filter(None, arguments.unseen.split(",")))
    held_in = [one for one in sets if one.name not in unseen]
    compared = sets
    if arguments.half:
        compared = [one.part(~first_half(one)) for one in sets]
        held_in = [one.part(first_half(one)) for one in held_in]
    fitted = fit(held_in, arguments.draws)
    print("fitted on", ", ".join(one.name for one in held_in), "(half of each)" if arguments.half else "")
    print(fitted)
    for name, calibration in (("shipped", Calibration()), ("fitted", fitted)):
        print(f"\n{name}; nDCG@10, {' and '.join(CONVERSATIONS)} macro")
        compare(compared, calibration)


def first_half(s: Candidates) -> Flags:
    """Which queries are held in: by conversation, or by query where a set is one graph."""
    by = s.graph if len({*s.graph}) > 5 else s.query
    return np.array([zlib.crc32(name.encode()) % 2 == 0 for name in by])


def fit(sets: Sequence[Candidates], draws: int) -> Calibration:
    """The calibration for these sets; the same for the same features."""
    asked = [one.part(one.answerable & one.counted) for one in sets]
    fusion = {one.name: score(one, ndcg(one, one.rrf)) for one in asked}

    def worth(c: Calibration) -> float:
        found = {one.name: score(one, ndcg(one, points(one, c))) for one in asked}
        total = 0.0
        for name, value in found.items():
            lost = max(0.0, fusion[name] - value)
            total += (CONVERSATION_WEIGHT if name in CONVERSATIONS else 1.0) * value - LOSS_TO_FUSION * lost
        return total / len(found)

    generator = random.Random(SEED)
    best, top = Calibration(), -np.inf
    for _ in range(draws):
        trial = replace(best, **{name: generator.choice(grid) for name, grid in GRIDS.items()})
        value = worth(trial)
        if value > top:
            best, top = trial, value
    for _ in range(2):
        for name, grid in GRIDS.items():
            for number in grid:
                trial = replace(best, **{name: number})
                value = worth(trial)
                if value > top + 1e-5:
                    best, top = trial, value
    return with_floor(sets, with_relevance(sets, best))


def _with_foreign(sets: Sequence[Candidates]) -> list[Candidates]:
    """The sets whose unanswerable questions come from other graphs, not near misses of their own."""
    return [one for one in sets if one.name in CONVERSATIONS]


def with_relevance(sets: Sequence[Candidates], c: Calibration) -> Calibration:
    """Platt scaling: has the question an answer in its graph, by the points of its best hit?

    Both kinds weigh the same. Newton's method on the weighted log loss.
    """
    told = _with_foreign(sets)
    x = np.concatenate([points(one, c).max(axis=1) for one in told])
    y = np.concatenate([one.answerable for one in told]).astype(float)
    w = np.where(y == 1, 1 / y.sum(), 1 / (1 - y).sum())
    a, b = 0.5, 1.0
    for _ in range(100):
        p = 1 / (1 + np.exp(-(a * x + b)))
        s = w * p * (1 - p)
        gradient = np.array([np.sum(w * (p - y) * x), np.sum(w * (p - y))])
        hessian = np.array([[np.sum(s * x * x), np.sum(s * x)], [np.sum(s * x), np.sum(s)]])
        a, b = np.array([a, b]) - np.linalg.solve(hessian, gradient)
    return replace(c, scale=round(float(a), 3), offset=round(float(b), 3))


def with_floor(sets: Sequence[Candidates], c: Calibration) -> Calibration:
    """Growth and height of the floor, from the best hits of questions that belong to another graph."""
    told = [one.part(~one.answerable & _without_known_names(one)) for one in _with_foreign(sets)]
    c = replace(c, floor_growth=round(_growth(told, c), 1))
    best = np.concatenate(
        [
            eased(one, points(one, c), c).max(axis=1)
            - c.floor_growth * np.log(np.maximum(1, one.nodes) / REFERENCE_NODES)
            for one in told
        ]
    )
    strange, none, known = (float(np.quantile(best, 1 - share)) for share in FOREIGN_PASS.values())
    floor = 1 / (1 + np.exp(-(c.scale * none + c.offset)))
    return replace(
        c,
        floor=round(float(floor), 3),
        strange_names=round(strange - none, 1),
        known_names=round(none - known, 1),
    )


def _without_known_names(s: Candidates) -> Flags:
    return np.array([share == 0.0 for share in s.names_known])


def _growth(told: Sequence[Candidates], c: Calibration) -> float:
    """Points by which the 95th percentile of the best foreign hit rises with each factor of e in size."""
    generator = np.random.default_rng(SEED)
    sizes, highest = [], []
    for part in PARTS:
        best: list[Floats] = []
        for one in told:
            value = points(one, c)
            for _ in range(1 if part == 1.0 else 5):
                here = one.here & (generator.random(value.shape) < part)
                best.append(np.where(here, value, c.least_floor).max(axis=1))
        sizes.append(np.log(part))
        highest.append(np.quantile(np.concatenate(best), 0.95))
    # Below the least floor nothing rises or falls.
    counted = np.array(highest) > c.least_floor
    return float(np.polyfit(np.array(sizes)[counted], np.array(highest)[counted], 1)[0])


def compare(sets: Sequence[Candidates], c: Calibration) -> None:
    """Print each set's score by fusion, without and with the floor, and what the floor lets through."""
    print(f"{'set':<22}{'fusion':>9}{'no floor':>9}{'floor':>9}{'answered':>10}{'all gold lost':>15}")
    for one in sets:
        groups = {one.name: one}
        if one.name == "xquad":
            groups |= {f"xquad {g}": one.part(np.array(one.graph) == g) for g in sorted({*one.graph})}
        for name, group in groups.items():
            left = floored(group, c)
            answered = "" if left.answered is None else f"{left.answered:.1%}"
            print(
                f"{name:<22}{score(group, ndcg(group, group.rrf)):>9.4f}"
                f"{score(group, ndcg(group, points(group, c))):>9.4f}{left.score:>9.4f}"
                f"{answered:>10}{left.lost:>15.1%}"
            )


if __name__ == "__main__":
    main()
