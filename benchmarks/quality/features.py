"""Collect what the ranking formula is fitted on: the candidates of labelled queries, read by the models.

    python benchmarks/quality/features.py SET_FOLDER... --out FOLDER [--queries N] [--depth N]

One JSON-lines file a set: a line for each query, with its candidates' evidence and the cross-encoder's
logits, each candidate with the grade of its label. More is read than a server would read, so that
`fit.py`, which reads these files, can try other limits.
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
from hivemem.retrieval.explain import holds_every_word, holds_identifier
from hivemem.retrieval.ranking import held_words, pair_share, understood_share
from hivemem.service.recall import Found, ReadCandidate
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
    parser.add_argument("--context-depth", type=int, default=30)
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
    found = await services.recall.read_candidates(principal, query.text)
    return {
        "query": query.id,
        "graph": query.graph,
        "category": query.category,
        "counted": query.counted,
        "gold": sorted(query.gold.values(), reverse=True),
        "nodes": found.index.node_count,
        "names_known": found.stage.names_known,
        "understood": understood_share(query.text),
        "pairs": pair_share(found.analysed),
        "query_characters": len(query.text),
        "candidates": [_candidate(read, found, query) for read in found.reads],
    }


def _candidate(read: ReadCandidate, found: Found, query: Query) -> dict[str, Any]:
    candidate = read.candidate
    held = candidate.terms.held
    return {
        "key": candidate.key,
        "grade": query.gold.get(candidate.key, 0.0),
        "bm25": _share(candidate.terms.bm25, candidate.terms.ideal),
        "cosine": None if candidate.passage is None else _short(candidate.passage.score),
        "beside": _beside(read, found),
        "rrf": candidate.rrf,
        "respelled": candidate.respelled,
        "own": None if read.own is None else _short(read.own),
        "context": None if read.context is None else _short(read.context),
        "trust": _short(read.trust),
        "held": held_words(found.analysed, held),
        "asks": read.asks,
        "follows_question": read.follows_question,
        "exact": holds_every_word(found.analysed, held) or holds_identifier(found.analysed, held),
        "text_characters": len(read.text),
        "among_characters": len(read.among),
    }


def _beside(read: ReadCandidate, found: Found) -> list[list[Any]]:
    """Key, BM25 share, cosine and direction of each neighbour that support may come from."""
    keys = [neighbour.key for neighbour in read.candidate.neighbours]
    terms = found.index.score_terms(found.analysed, keys)
    passages = {} if found.vector is None else found.index.cosine(found.vector, keys)
    return [
        [
            neighbour.key,
            _share(terms[neighbour.key].bm25, terms[neighbour.key].ideal),
            _short(passages[neighbour.key].score) if neighbour.key in passages else None,
            neighbour.direction,
        ]
        for neighbour in read.candidate.neighbours
    ]


def _share(bm25: float, ideal: float) -> float:
    return _short(bm25 / ideal) if ideal > 0 else 0.0


def _short(value: float) -> float:
    return round(float(value), 4)


if __name__ == "__main__":
    main()
