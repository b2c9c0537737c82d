"""Recall with organization memory against one search alone: how much longer, and what the sharing costs.

    python benchmarks/latency/organization.py [--data DIR] [--graphs 4] [--queries 200]

Each question is asked three times in a row, in rotating order: to one's own memory, to the organization's,
and to both at once. Times are compared within a run alone. With a data set there are two pictures of an
organization, both told:

- `apart`: one conversation is one's own, another the organization's, so that one of them knows nothing.
- `split`: the sessions of one conversation are dealt to both, so that both have good candidates.

Quality is nDCG@10 of each memory's answer for the relevant documents that it holds, alone and beside the
other. Without a data set two generated graphs are asked, for their times only.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from corpus import read_corpus
from measuring import add_common_arguments, bar, print_bars, print_table, spread, texts_hash, write_result
from opening import Opened, opened
from tqdm import tqdm

from hivemem.domain.access import Principal
from hivemem.domain.accounts import Membership, Role
from hivemem.service import shared_reading
from hivemem.service.organization_memory import recall_everywhere
from hivemem.service.recall import RecallRequest, RecallResult
from hivemem.surfaces.cli.evaluate import DataSet, Query, metrics, store_graphs

WARM_UP = 8
WAYS = ("own", "organization", "both")


@dataclass(frozen=True, slots=True)
class Question:
    """A question to a pair of graphs. `gold`: the relevant documents of each, if they are known."""

    text: str
    own: Principal
    organization: Principal
    gold: tuple[Mapping[str, float], Mapping[str, float]] = ({}, {})


@dataclass(slots=True)
class Tally:
    """Milliseconds and pairs by way, nDCG@10 of the halves alone and beside each other."""

    wall: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    cpu: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    pairs: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    quality: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))


def pairs_of(result: RecallResult) -> int:
    rerank: Any = result.meta["rerank"]
    return rerank["candidates"] + rerank["in_context"]


async def ask(running: Opened, question: Question, way: str, tally: Tally) -> list[RecallResult]:
    """Ask in one of the three ways, and note how long it took."""
    recall, request = running.services.recall, RecallRequest(query=question.text)
    membership = Membership(
        organization_id="organization",
        name="Organization",
        graph_id=question.organization.graph_id,
        role=Role.MEMBER,
    )
    started, cpu = time.perf_counter(), time.process_time()
    if way == "both":
        caller = replace(question.own, organizations=(membership,))
        found = await recall_everywhere(recall, caller, request, grace_seconds=60)
        assert found.organization is not None and found.organization.result is not None
        results = [found.own, found.organization.result]
    else:
        results = [await recall.recall(question.own if way == "own" else question.organization, request)]
    tally.wall[way].append(1000 * (time.perf_counter() - started))
    tally.cpu[way].append(1000 * (time.process_time() - cpu))
    tally.pairs[way] += sum(pairs_of(result) for result in results)
    # Touches are written after the answer, and belong to no question.
    await recall.close()
    return results


async def measure(running: Opened, questions: list[Question]) -> dict[str, Any]:
    """Ask all questions in all ways."""
    for question in questions[:WARM_UP]:
        for way in WAYS:
            await ask(running, question, way, Tally())
    tally = Tally()
    for number, question in enumerate(tqdm(questions, desc="questions", file=sys.stderr, disable=None)):
        answers: dict[str, list[RecallResult]] = {}
        for turn in range(len(WAYS)):
            way = WAYS[(number + turn) % len(WAYS)]
            answers[way] = await ask(running, question, way, tally)
        for side, name in enumerate(WAYS[:2]):
            if question.gold[side]:
                for key, result in (("alone", answers[name][0]), ("beside", answers["both"][side])):
                    keys = [hit.node.key for hit in result.hits]
                    tally.quality[f"{name}_{key}"].append(metrics(keys, question.gold[side])["ndcg@10"])
    wall = {way: spread(times) for way, times in tally.wall.items()}
    cpu = {way: spread(times) for way, times in tally.cpu.items()}
    slower = max(WAYS[:2], key=lambda way: wall[way]["p95"])
    paired = [
        both / max(own, organization)
        for own, organization, both in zip(*(tally.wall[way] for way in WAYS), strict=True)
    ]
    return {
        "latency_ms": wall,
        "cpu_ms": cpu,
        "p95_ratio": round(wall["both"]["p95"] / wall[slower]["p95"], 3),
        "p95_cpu_ratio": round(cpu["both"]["p95"] / max(cpu[way]["p95"] for way in WAYS[:2]), 3),
        "paired_ratio": spread(paired),
        "pairs_a_recall": {way: round(count / len(questions), 1) for way, count in tally.pairs.items()},
        "ndcg@10": {name: round(sum(values) / len(values), 4) for name, values in tally.quality.items()},
        "questions_with_gold": {
            name: len(tally.quality[f"{name}_alone"]) for name in WAYS[:2] if tally.quality[f"{name}_alone"]
        },
    }


def apart(data: DataSet, principals: Mapping[str, Principal]) -> list[Question]:
    """Every other question is about one's own conversation, the rest about the organization's."""
    names = list(data.documents)
    questions: list[Question] = []
    for number, query in enumerate(data.queries):
        known = principals[query.graph]
        stranger = principals[names[(names.index(query.graph) + 1) % len(names)]]
        if number % 2 == 0:
            questions.append(Question(query.text, known, stranger, (query.gold, {})))
        else:
            questions.append(Question(query.text, stranger, known, ({}, query.gold)))
    return questions


def dealt(data: DataSet) -> DataSet:
    """The set with each conversation in two graphs, session by session."""
    documents: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for name, rows in data.documents.items():
        for row in rows:
            documents[f"{name}/{int(row['meta']['session']) % 2}"].append(row)
    return replace(data, documents=documents)


def split(data: DataSet, principals: Mapping[str, Principal]) -> list[Question]:
    """Both halves of the conversation, with the part of the relevant documents that each holds."""
    place = {str(row["id"]): name for name, rows in data.documents.items() for row in rows}

    def held(query: Query, half: str) -> Mapping[str, float]:
        return {key: grade for key, grade in query.gold.items() if place[key] == half}

    questions: list[Question] = []
    for query in data.queries:
        own, organization = f"{query.graph}/0", f"{query.graph}/1"
        gold = (held(query, own), held(query, organization))
        questions.append(Question(query.text, principals[own], principals[organization], gold))
    return questions


Arrange = Callable[[DataSet, Mapping[str, Principal]], list[Question]]


async def labelled(data: DataSet, chosen: DataSet, arrange: Arrange) -> dict[str, Any]:
    # No time budget: what is read must not depend on how busy the machine is.
    async with opened({"rerank_budget_seconds": 60}) as running:
        principals = await store_graphs(running.services, data)
        figures = await measure(running, arrange(replace(chosen, documents=data.documents), principals))
        return {"models": running.models(), **figures}


async def generated(arguments: argparse.Namespace) -> dict[str, Any]:
    halves = [read_corpus(None, arguments.nodes, arguments.queries, arguments.seed + n) for n in range(2)]
    data = DataSet(
        name="generated",
        documents={half.source: half.documents for half in halves},
        queries=(),
        unanswerable=(),
    )
    async with opened({"rerank_budget_seconds": 60}) as running:
        own, organization = (await store_graphs(running.services, data)).values()
        questions = [Question(text, own, organization) for text in halves[0].questions]
        return {"models": running.models(), **await measure(running, questions)}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_common_arguments(parser)
    parser.add_argument("--graphs", type=int, default=4, help="conversations of the data set (default 4)")
    parser.add_argument("--nodes", type=int, default=2_000, help="nodes of each generated graph")
    parser.add_argument("--queries", type=int, default=200, help="questions of each picture")
    parser.add_argument(
        "--more-reading",
        type=float,
        default=shared_reading.MORE_READING,
        help="what both searches read together, in readings of one; 2 shares nothing",
    )
    parser.add_argument("--only", choices=("apart", "split"), help="one of the two pictures")
    arguments = parser.parse_args()
    shared_reading.MORE_READING = arguments.more_reading
    pictures: dict[str, Any] = {}
    if arguments.data is None:
        pictures["generated"] = asyncio.run(generated(arguments))
        corpus: dict[str, Any] = {"source": "generated", "documents": 2 * arguments.nodes}
    else:
        data = DataSet.read(arguments.data)
        names = list(data.documents)[: arguments.graphs]
        queries = [query for query in data.queries if query.graph in names and query.counted]
        data = replace(data, documents={name: data.documents[name] for name in names}, queries=queries)
        chosen = data.sample(arguments.queries, arguments.seed)
        texts = [str(row["text"]) for rows in data.documents.values() for row in rows]
        corpus = {
            "source": data.name,
            "graphs": len(names),
            "documents": len(texts),
            "sha256": texts_hash(texts),
            "questions": len(chosen.queries),
        }
        if arguments.only != "split":
            pictures["apart"] = asyncio.run(labelled(data, chosen, apart))
        if arguments.only != "apart":
            pictures["split"] = asyncio.run(labelled(dealt(data), chosen, split))
    bars: list[dict[str, Any]] = []
    for name, figures in pictures.items():
        what = f"p95 with organization memory, in the slower single search ({name})"
        bars.append(bar(what, figures["p95_ratio"], "<=", 1.35))
        print(f"\n{name}: pairs a recall {figures['pairs_a_recall']}, nDCG@10 {figures['ndcg@10']}")
        print_table(
            ("ms", "p50", "p95", "mean", "CPU p95"),
            [
                (
                    way,
                    *(f"{figures['latency_ms'][way][k]:.1f}" for k in ("p50", "p95", "mean")),
                    f"{figures['cpu_ms'][way]['p95']:.1f}",
                )
                for way in WAYS
            ],
        )
        print(f"CPU p95 ratio {figures['p95_cpu_ratio']}, paired {figures['paired_ratio']}")
    print_bars(bars)
    path = write_result(
        "organization",
        arguments.results,
        models={name: figures.pop("models") for name, figures in pictures.items()},
        corpus=corpus,
        figures={"more_reading": arguments.more_reading, "bars": bars, **pictures},
    )
    print(f"result: {path}")


if __name__ == "__main__":
    main()
