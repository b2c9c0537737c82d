"""`hivemem eval`: the quality and speed of recall on a labelled data set.

Each graph of the set is stored through the real service into a temporary SQLite database, and each
query is asked through the real recall. docs/retrieval.md says what the numbers mean.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import json
import math
import random
import resource
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import numpy as np
from tqdm import tqdm

from hivemem.app import OpenServices, open_services
from hivemem.domain.access import Principal, Scope
from hivemem.domain.accounts import Graph, User
from hivemem.errors import HivememError, InvalidInput
from hivemem.service.recall import RecallRequest, RecallResult
from hivemem.service.remember import StoreRequest
from hivemem.settings import Settings
from hivemem.surfaces.cli.local import loaded_settings
from hivemem.surfaces.readiness import wait_for_models

FOLLOWS = "is followed in the same conversation by"
LINKS = "links to"
_METRICS = ("ndcg@10", "recall@2", "recall@5", "recall@10", "mrr@10")
_RESULTS = 10
_OWNER = "eval"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `hivemem eval`."""
    parser.add_argument("folder", type=Path, metavar="DIR", help="data set: corpus, queries and qrels")
    parser.add_argument("--queries", type=int, metavar="N", help="ask a random sample of N queries")
    parser.add_argument("--seed", type=int, default=7, help="of the sample (default 7)")
    parser.add_argument("--floor", type=float, metavar="F", help="relevance floor instead of the setting")
    parser.add_argument("--rerank-depth", type=int, metavar="N", help="rerank depth instead of the setting")
    parser.add_argument("--only", metavar="GRAPH", help="one graph of the set")
    parser.add_argument(
        "--no-relationships",
        action="store_true",
        help="store the documents alone, without the edges that the set's order and links give",
    )


def run(arguments: argparse.Namespace) -> int:
    """Evaluate and print; the last line of standard output is one JSON object with `--json`."""
    settings = loaded_settings(arguments).settings
    if arguments.floor is not None:
        settings = replace(settings, relevance_floor=arguments.floor)
    if arguments.rerank_depth is not None:
        settings = replace(settings, rerank_depth=arguments.rerank_depth)
    data = DataSet.read(arguments.folder, only=arguments.only)
    chosen = data.sample(arguments.queries, arguments.seed)
    with tempfile.TemporaryDirectory(prefix="hivemem-eval-") as folder:
        report = asyncio.run(_evaluate(replace(settings, data_dir=Path(folder)), data, chosen, arguments))
    _print(report, data.name)
    if getattr(arguments, "json", False):
        print(json.dumps(report))
    return 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """A question to one graph; `gold` maps each relevant document to its grade, empty for none."""

    id: str
    text: str
    graph: str
    category: str
    gold: Mapping[str, float]
    counted: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class DataSet:
    """A labelled set: documents by graph, questions with an answer, questions without one."""

    name: str
    documents: Mapping[str, Sequence[Mapping[str, Any]]]
    queries: Sequence[Query]
    unanswerable: Sequence[Query]

    @classmethod
    def read(cls, folder: Path, *, only: str | None = None) -> DataSet:
        """Read `corpus.jsonl`, `queries.jsonl`, `qrels.tsv` and, if there, `abstain.jsonl`, plain or `.gz`.

        Raises:
            InvalidInput: A file or field is missing, or `only` names no graph.
        """
        gold: dict[str, dict[str, float]] = defaultdict(dict)
        for number, line in enumerate(_lines(folder, "qrels.tsv"), start=1):
            try:
                query, document, grade = line.split("\t")
                gold[query][document] = float(grade)
            except ValueError as error:
                raise InvalidInput(f"qrels.tsv line {number} is not query<TAB>document<TAB>grade.") from error
        documents: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
        for row in _rows(folder, "corpus.jsonl", ("id", "text", "graph")):
            if only is None or row["graph"] == only:
                documents[row["graph"]].append(row)
        if not documents:
            raise InvalidInput(f"{folder} has no document" + (f" of the graph {only!r}." if only else "."))
        rows = [
            row
            for row in _rows(folder, "queries.jsonl", ("id", "text", "graph"))
            if row["graph"] in documents
        ]
        queries = [_query(row, gold) for row in rows]
        apart: list[Query] = []
        if any((folder / name).is_file() for name in ("abstain.jsonl", "abstain.jsonl.gz")):
            apart = [
                _query(row, {})
                for row in _rows(folder, "abstain.jsonl", ("id", "text", "graph"))
                if row["graph"] in documents
            ]
        abstain = apart + [query for query in queries if query.category == "abstention"]
        return cls(
            name=folder.name,
            documents=documents,
            queries=[query for query in queries if query.gold],
            unanswerable=abstain,
        )

    def sample(self, count: int | None, seed: int) -> DataSet:
        """The set with at most `count` queries of either kind, drawn with a fixed seed."""
        if count is None:
            return self
        generator = random.Random(seed)

        def drawn(queries: Sequence[Query]) -> Sequence[Query]:
            return queries if len(queries) <= count else generator.sample(list(queries), count)

        return replace(self, queries=drawn(self.queries), unanswerable=drawn(self.unanswerable))


def _query(row: Mapping[str, Any], gold: Mapping[str, Mapping[str, float]]) -> Query:
    return Query(
        id=str(row["id"]),
        text=row["text"],
        graph=row["graph"],
        category=str(row.get("category") or "all"),
        gold=gold.get(str(row["id"]), {}),
        # Sets that follow a published benchmark mark the queries which that one scores.
        counted=bool(row.get("lmeb", True)),
    )


def _lines(folder: Path, name: str) -> Iterator[str]:
    plain, packed = folder / name, folder / f"{name}.gz"
    if plain.is_file():
        with plain.open(encoding="utf-8") as lines:
            yield from (line.rstrip("\n") for line in lines if line.strip())
    elif packed.is_file():
        with gzip.open(packed, "rt", encoding="utf-8") as lines:
            yield from (line.rstrip("\n") for line in lines if line.strip())
    else:
        raise InvalidInput(f"{folder} has no {name} or {name}.gz; see docs/retrieval.md for the format.")


def _rows(folder: Path, name: str, required: Iterable[str]) -> Iterator[dict[str, Any]]:
    for number, line in enumerate(_lines(folder, name), start=1):
        try:
            row = json.loads(line)
        except json.JSONDecodeError as error:
            raise InvalidInput(f"{name} line {number} is not JSON: {error}") from error
        missing = [field for field in required if field not in row]
        if missing:
            raise InvalidInput(f"{name} line {number} has no field {missing[0]!r}.")
        yield row


def requests(documents: Sequence[Mapping[str, Any]], *, relationships: bool = True) -> list[StoreRequest]:
    """Documents as memories: the text is the description, `meta` the data.

    With `relationships`, a document of a conversation (`meta.session`) gets an edge from the one before
    it in the same session, and `meta.links` (titles) become edges to the documents of these titles.
    """
    by_title: dict[str, str] = {}
    for document in documents:
        title = _meta(document).get("title")
        if isinstance(title, str):
            by_title.setdefault(title, str(document["id"]))
    stored: list[StoreRequest] = []
    previous: Mapping[str, Any] | None = None
    for document in documents:
        edges: list[Mapping[str, object]] = []
        meta = _meta(document)
        if relationships:
            if previous is not None and _same_session(_meta(previous), meta):
                edges.append(
                    {"from_key": str(previous["id"]), "to_key": str(document["id"]), "relationship": FOLLOWS}
                )
            links = meta.get("links")
            for title in cast("list[object]", links) if isinstance(links, list) else []:
                target = by_title.get(str(title))
                if target is not None and target != str(document["id"]):
                    edges.append({"to_key": target, "relationship": LINKS})
        stored.append(
            StoreRequest(
                key=str(document["id"]),
                description=document["text"],
                node_type="fact",
                data={name: value for name, value in meta.items() if name != "links"},
                relationships=tuple(edges),
            )
        )
        previous = document
    return stored


def _meta(document: Mapping[str, Any]) -> dict[str, Any]:
    meta = document.get("meta")
    return cast("dict[str, Any]", meta) if isinstance(meta, dict) else {}


def _same_session(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    if one.get("session") is None or "conversation" not in one:
        return False
    return (one["conversation"], one["session"]) == (other.get("conversation"), other.get("session"))


@dataclass(slots=True)
class _Tally:
    """What is added up over the queries."""

    metrics: dict[str, list[dict[str, float]]] = field(default_factory=lambda: defaultdict(list))
    latency: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    cut: int = 0
    answered_unanswerable: int = 0
    lost_to_floor: int = 0
    with_gold_before_floor: int = 0


async def _evaluate(
    settings: Settings, data: DataSet, chosen: DataSet, arguments: argparse.Namespace
) -> dict[str, Any]:
    services = await open_services(settings)
    try:
        await wait_for_models(services)
        started = time.perf_counter()
        principals = await store_graphs(services, data, relationships=not arguments.no_relationships)
        loaded = time.perf_counter() - started
        tally = _Tally()
        for query in tqdm(chosen.queries, desc="queries", unit="query", file=sys.stderr):
            result = await _ask(services, principals[query.graph], query, tally)
            keys = [hit.node.key for hit in result.hits]
            if query.counted:
                tally.metrics[query.category].append(metrics(keys, query.gold))
            before_floor = {*keys, *result.dropped} & set(query.gold)
            tally.with_gold_before_floor += bool(before_floor)
            tally.lost_to_floor += bool(before_floor) and not set(keys) & set(query.gold)
        for query in tqdm(chosen.unanswerable, desc="unanswerable", unit="query", file=sys.stderr):
            result = await _ask(services, principals[query.graph], query, tally)
            tally.answered_unanswerable += bool(result.hits)
        return _report(services, data, chosen, tally, loaded)
    finally:
        await services.close()


async def store_graphs(
    services: OpenServices, data: DataSet, *, relationships: bool = True
) -> dict[str, Principal]:
    """Store every graph of the set, and return who may read which."""
    principals: dict[str, Principal] = {}
    total = sum(len(documents) for documents in data.documents.values())
    now = services.clock.now()
    with tqdm(total=total, desc="storing", unit="doc", file=sys.stderr) as bar:
        for number, (name, documents) in enumerate(data.documents.items()):
            user = User(user_id=f"{_OWNER}_{number}", name=f"{_OWNER} {number}", created_at=now)
            graph = Graph(
                graph_id=f"graph_{number}",
                name=name,
                owner_id=user.user_id,
                created_at=now,
            )
            await services.store.add_user(user, graph)
            principal = Principal(user_id=user.user_id, graph_id=graph.graph_id, scope=Scope.OWNER)
            before = int(bar.n)

            def advance(done: int, _total: int, before: int = before) -> None:
                bar.update(before + done - bar.n)

            outcomes = await services.remember.store_many(
                principal, requests(documents, relationships=relationships), on_progress=advance
            )
            failed = [outcome for outcome in outcomes if isinstance(outcome, HivememError)]
            if failed:
                raise failed[0]
            principals[name] = principal
    return principals


async def _ask(services: OpenServices, principal: Principal, query: Query, tally: _Tally) -> RecallResult:
    request = RecallRequest(query=query.text, max_results=_RESULTS)
    started = time.perf_counter()
    result = await services.recall.recall(principal, request)
    tally.latency["total"].append(1000 * (time.perf_counter() - started))
    meta = cast("dict[str, Any]", result.meta)
    tally.latency["embed"].append(meta["legs"]["dense"]["embed_ms"])
    tally.latency["bm25"].append(meta["legs"]["bm25"]["ms"])
    tally.latency["dense"].append(meta["legs"]["dense"]["ms"])
    tally.latency["first_stage"].append(meta["first_stage_ms"])
    tally.latency["rerank"].append(meta["rerank"]["ms"])
    tally.latency["all_but_models"].append(
        tally.latency["total"][-1] - meta["legs"]["dense"]["embed_ms"] - meta["rerank"]["ms"]
    )
    tally.cut += any("budget" in note for note in meta.get("degraded", []))
    return result


def metrics(keys: Sequence[str], gold: Mapping[str, float]) -> dict[str, float]:
    """nDCG@10 with linear gain, recall at 2, 5 and 10, and reciprocal rank, for one query."""
    gains = [gold.get(key, 0.0) for key in keys[:10]]
    ideal = sorted(gold.values(), reverse=True)[:10]
    first = next((rank for rank, gain in enumerate(gains, start=1) if gain > 0), None)
    found = {k: sum(1 for key in keys[:k] if key in gold) / len(gold) for k in (2, 5, 10)}
    return {
        "ndcg@10": _dcg(gains) / _dcg(ideal),
        "recall@2": found[2],
        "recall@5": found[5],
        "recall@10": found[10],
        "mrr@10": 1.0 / first if first else 0.0,
    }


def _dcg(gains: Sequence[float]) -> float:
    return math.fsum(gain / math.log2(rank + 1) for rank, gain in enumerate(gains, start=1))


def _mean(rows: Sequence[Mapping[str, float]]) -> dict[str, float]:
    return {name: float(np.mean([row[name] for row in rows])) if rows else 0.0 for name in _METRICS}


def _report(
    services: OpenServices, data: DataSet, chosen: DataSet, tally: _Tally, loaded: float
) -> dict[str, Any]:
    categories = {name: _mean(rows) for name, rows in sorted(tally.metrics.items())}
    every = [row for rows in tally.metrics.values() for row in rows]
    documents = sum(len(rows) for rows in data.documents.values())
    embedder, reranker = services.executor.embedder, services.executor.reranker
    return {
        "set": data.name,
        "documents": documents,
        "graphs": len(data.documents),
        "queries": len(every),
        "micro": _mean(every),
        "macro": _mean(list(categories.values())),
        "categories": {
            name: {**values, "queries": len(tally.metrics[name])} for name, values in categories.items()
        },
        "abstention": {
            "floor": services.settings.relevance_floor,
            "unanswerable": len(chosen.unanswerable),
            "answered_share": _share(tally.answered_unanswerable, len(chosen.unanswerable)),
            "answerable_with_gold_before_floor": tally.with_gold_before_floor,
            "gold_lost_share": _share(tally.lost_to_floor, len(chosen.queries)),
        },
        "latency_ms": {
            step: {"p50": float(np.percentile(values, 50)), "p95": float(np.percentile(values, 95))}
            for step, values in tally.latency.items()
        },
        "budget_cuts": tally.cut,
        "documents_per_second": documents / loaded,
        "peak_memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "embedder": None if embedder is None else embedder.model_id,
        "reranker": None if reranker is None else reranker.model_id,
    }


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def _print(report: Mapping[str, Any], name: str) -> None:
    print(
        f"{name}: {report['documents']} documents in {report['graphs']} graphs, {report['queries']} queries"
    )
    print(f"{'category':<28}{'queries':>8}" + "".join(f"{metric:>11}" for metric in _METRICS))
    rows = [*report["categories"].items(), ("micro", report["micro"]), ("macro", report["macro"])]
    for label, values in rows:
        queries = values.get("queries", "")
        print(f"{label:<28}{queries:>8}" + "".join(f"{values[metric]:>11.4f}" for metric in _METRICS))
    abstention = report["abstention"]
    if abstention["unanswerable"]:
        print(
            f"abstention at floor {abstention['floor']:g}: {abstention['answered_share']:.2%} of "
            f"{abstention['unanswerable']} unanswerable queries returned anything"
        )
    print(f"answerable queries left with no gold hit by the floor: {abstention['gold_lost_share'] or 0:.2%}")
    print(
        "latency in ms  "
        + "  ".join(
            f"{step} {values['p50']:.1f}/{values['p95']:.1f}" for step, values in report["latency_ms"].items()
        )
        + "  (p50/p95)"
    )
    print(
        f"budget cuts {report['budget_cuts']}, stored {report['documents_per_second']:.0f} documents/s, "
        f"peak memory {report['peak_memory_mb']:.0f} MB"
    )
