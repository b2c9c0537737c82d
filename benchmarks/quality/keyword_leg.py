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

from hivemem.retrieval.analyse import analyse_query, document_terms
from hivemem.retrieval.scripts import without_accents

K1, B = 0.9, 0.4
SETS = ("xquad", "locomo", "realtalk", "scifact")
LMEB = ("locomo", "realtalk")  # scored on their `lmeb` questions, macro average over categories


class Bm25:
    """Postings of one graph; scores as the projection computes them, ties in order of the corpus."""

    def __init__(self, texts: list[str]) -> None:
        postings: dict[str, list[tuple[int, int]]] = defaultdict(list)
        lengths = np.zeros(len(texts))
        for row, text in enumerate(texts):
            document = document_terms(text)
            lengths[row] = document.length
            for term, frequency in document.frequencies.items():
                postings[term].append((row, frequency))
        norm = K1 * (1 - B + B * lengths / max(1.0, lengths.mean()))
        self.count = len(texts)
        self.postings: dict[str, tuple[np.ndarray, np.ndarray]] = {}
        for term, entries in postings.items():
            rows, frequencies = np.array(entries).T
            idf = math.log(1 + (len(texts) - len(rows) + 0.5) / (len(rows) + 0.5))
            self.postings[term] = (rows, idf * (K1 + 1) * frequencies / (frequencies + norm[rows]))

    def best(self, query: str, k: int = 10) -> list[int]:
        weights: dict[str, float] = {}
        for word in analyse_query(query).words:
            if word.informative:
                for term in word.terms:
                    weights[term.text] = max(term.weight, weights.get(term.text, 0.0))
        scores = np.zeros(self.count)
        for text, weight in weights.items():
            if text in self.postings:
                rows, parts = self.postings[text]
                scores[rows] += weight * parts
        order = np.argsort(-scores, kind="stable")[:k]
        return [int(row) for row in order if scores[row] > 0]


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
    indexes = {graph: Bm25([one["text"] for one in documents]) for graph, documents in corpus.items()}
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
        ranked = [corpus[graph][row]["id"] for row in indexes[graph].best(text)]
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
