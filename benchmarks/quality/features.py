"""Collect what the ranking formula is fitted on: the candidates of labelled queries, read by the models.

    python benchmarks/quality/features.py SET_FOLDER... --out FOLDER [--queries N] [--depth N]

One JSON-lines file a set: a line for each query, with its candidates' evidence and the cross-encoder's
logits, each candidate marked by whether it is labelled as an answer. `fit.py` reads these files.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

from tqdm import tqdm

from hivemem.app import OpenServices, open_services
from hivemem.domain.access import Principal
from hivemem.service.recall import ReadCandidate
from hivemem.settings import load_settings
from hivemem.surfaces.cli.evaluate import DataSet, Query, store_graphs
from hivemem.surfaces.readiness import wait_for_models


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("sets", nargs="+", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--queries", type=int, help="of either kind in a set, drawn with --seed")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--depth", type=int, default=30)
    parser.add_argument("--context-depth", type=int, default=24)
    parser.add_argument("--only", help="one graph of each set")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    for folder in arguments.sets:
        asyncio.run(collect(folder, arguments))


async def collect(folder: Path, arguments: argparse.Namespace) -> None:
    data = DataSet.read(folder, only=arguments.only)
    chosen = data.sample(arguments.queries, arguments.seed)
    with tempfile.TemporaryDirectory() as data_dir:
        settings = replace(
            load_settings({}).settings,
            data_dir=Path(data_dir),
            rerank_depth=arguments.depth,
            rerank_context_depth=arguments.context_depth,
            rerank_tokens=1_000_000,
            rerank_budget_seconds=60.0,
        )
        services = await open_services(settings)
        try:
            await wait_for_models(services)
            principals = await store_graphs(services, data)
            name = f"{folder.name}{'-' + arguments.only if arguments.only else ''}.jsonl"
            with (arguments.out / name).open("w") as out:
                for answerable, queries in ((True, chosen.queries), (False, chosen.unanswerable)):
                    for query in tqdm(queries, desc=folder.name, file=sys.stderr, mininterval=10):
                        row = await _row(services, principals[query.graph], query)
                        out.write(json.dumps({**row, "answerable": answerable}) + "\n")
        finally:
            await services.close()


async def _row(services: OpenServices, principal: Principal, query: Query) -> dict[str, Any]:
    reads = await services.recall.read_candidates(principal, query.text)
    return {
        "query": query.id,
        "graph": query.graph,
        "category": query.category,
        "counted": query.counted,
        "gold": len(query.gold),
        "candidates": [_candidate(read, query) for read in reads],
    }


def _candidate(read: ReadCandidate, query: Query) -> dict[str, Any]:
    candidate = read.candidate
    return {
        "gold": candidate.key in query.gold,
        "bm25": candidate.terms.bm25,
        "ideal": candidate.terms.ideal,
        "cosine": None if candidate.passage is None else candidate.passage.score,
        "points": candidate.points,
        "support": candidate.support,
        "rrf": candidate.rrf,
        "own": read.own,
        "context": read.context,
        "trust": read.trust,
        "held": sum(candidate.terms.held),
        "words": len(candidate.terms.held),
        "read_characters": len(read.text),
        "all_characters": len(read.node.description),
    }


if __name__ == "__main__":
    main()
