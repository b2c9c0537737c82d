"""nDCG@10 of the keyword leg alone: the analyser and BM25, no model.

    python benchmarks/quality/keyword_leg.py FOLDER [--sets xquad,locomo] [--every 6] [--plain-queries]

FOLDER holds one folder a set: corpus.jsonl.gz {"id", "text", "graph"}, queries.jsonl.gz {"id", "text",
"graph", "category"} and qrels.tsv.gz (query, document, relevance). A query searches its own graph.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import math
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np

from hivemem.projection.postings import Postings
from hivemem.retrieval.analyse import analyse_query, document_terms
from hivemem.retrieval.scripts import without_accents

SETS = ("xquad", "locomo", "realtalk", "scifact")
LMEB = ("locomo", "realtalk")  # scored on their `lmeb` questions, macro average over categories


def index_of(documents: list[dict[str, Any]]) -> Postings:
    """The keyword index of one graph, with the settings that recall uses."""
    postings = Postings()
    for document in documents:
        postings.put(document["id"], document_terms(document["text"]))
    return postings


def rows(path: Path) -> list[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def ndcg(ranked: list[str], relevant: dict[str, int], k: int = 10) -> float:
    """Linear gain, log2 discount (Järvelin and Kekäläinen, TOIS 2002), as pytrec_eval computes it."""
    gains = [relevant.get(key, 0) / math.log2(rank + 1) for rank, key in enumerate(ranked[:k], start=1)]
    ideal = sorted(relevant.values(), reverse=True)[:k]
    return sum(gains) / sum(gain / math.log2(rank + 1) for rank, gain in enumerate(ideal, start=1))


def measure(folder: Path, every: int, plain_queries: bool) -> dict[str, float]:
    """Mean nDCG@10 of every category of a set."""
    corpus: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for document in rows(folder / "corpus.jsonl.gz"):
        corpus[document["graph"]].append(document)
    indexes = {graph: index_of(documents) for graph, documents in corpus.items()}
    qrels: dict[str, dict[str, int]] = defaultdict(dict)
    with gzip.open(folder / "qrels.tsv.gz", "rt", encoding="utf-8") as lines:
        for query, document, relevance in csv.reader(lines, delimiter="\t"):
            qrels[query][document] = int(relevance)
    found: dict[str, list[float]] = defaultdict(list)
    seen: dict[str, int] = defaultdict(int)
    for query in rows(folder / "queries.jsonl.gz"):
        graph, category = query["graph"], query["category"]
        if query["id"] not in qrels or (folder.name in LMEB and not query["lmeb"]):
            continue
        seen[category] += 1
        if (seen[category] - 1) % every:
            continue
        text = without_accents(query["text"].lower()) if plain_queries else query["text"]
        ranked = [hit.key for hit in indexes[graph].search(analyse_query(text), 10)]
        found[category].append(ndcg(ranked, qrels[query["id"]]))
    return {category: float(np.mean(values)) for category, values in sorted(found.items())}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--sets", default=",".join(SETS), help="names, separated by commas")
    parser.add_argument("--every", type=int, help="take every n-th question (default: 6 for xquad, else 1)")
    parser.add_argument("--plain-queries", action="store_true", help="type the questions without accents")
    arguments = parser.parse_args()
    for name in arguments.sets.split(","):
        start = time.perf_counter()
        every = arguments.every or (6 if name == "xquad" else 1)
        means = measure(arguments.folder / name, every, arguments.plain_queries)
        macro = float(np.mean(list(means.values())))
        cells = " ".join(f"{category} {100 * value:.1f}" for category, value in means.items())
        print(f"{name}: macro {100 * macro:.2f}; {cells} ({time.perf_counter() - start:.0f} s)", flush=True)


if __name__ == "__main__":
    main()
