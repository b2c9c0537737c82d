"""The same memory and the same questions on SQLite and PostgreSQL: the same answers, to the last digit."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from hivemem.domain.access import Principal, Scope
from hivemem.domain.graph import ChangePage, Kind
from hivemem.errors import HivememError
from hivemem.models.hashing import HashingEmbedder
from hivemem.ports.store import Store
from hivemem.service.recall import RecallRequest, RecallResult
from hivemem.service.remember import StoreRequest
from hivemem.storage.sqlite import SqliteStore
from hivemem.surfaces.cli.evaluate import DataSet, requests
from tests.service.conftest import GRAPH
from tests.service.recall_world import HARBOUR, OverlapReranker, RecallWorld, to
from tests.storage.postgres.conftest import Opener
from tests.support.builders import minutes

Worlds = tuple[RecallWorld, RecallWorld]


@pytest.fixture
async def worlds(opened: Opener, tmp_path: Path) -> AsyncIterator[Worlds]:
    sqlite = await SqliteStore.open(tmp_path / "memory.db")
    pair = world(sqlite), world(await opened())
    yield pair
    for one in pair:
        await one.close()
    await sqlite.close()


def world(store: Store) -> RecallWorld:
    return RecallWorld(store, embedder=HashingEmbedder(128), reranker=OverlapReranker())


def answer(result: RecallResult) -> list[tuple[object, ...]]:
    """All of an answer but its timings; equal only when every number is."""
    hits = [
        (hit.node, hit.score, hit.scores, hit.expansion, hit.expansion_omitted, hit.reasons)
        for hit in result.hits
    ]
    return [*hits, result.dropped, result.warnings]


async def pages(store: Store, graph_id: str, model_id: str, limit: int) -> list[ChangePage]:
    found: list[ChangePage] = []
    while not found or found[-1].more:
        since = found[-1].revision if found else 0
        found.append(await store.changes(graph_id, since, model_id=model_id, limit=limit))
    return found


async def same(worlds: Worlds, ask: Any) -> Any:
    """What both answer to `ask(world)`."""
    one, other = await ask(worlds[0]), await ask(worlds[1])
    assert one == other
    return one


async def test_a_small_world_answers_alike(worlds: Worlds) -> None:
    for one in worlds:
        await one.put_all(HARBOUR)
        await one.put(
            "person_éva",
            "Éva keeps the keys of the lighthouse: 灯台の鍵を持っています。",
            to("place_harbour", "works at"),
            to("event_race", "starts the race of"),
        )
        await one.put("fact_rope", "The blue rope is for the anchor, the red one for guests.")
        await one.delete("decision_paint")
        await one.store.touch(GRAPH, "s", ["fact_tide", "fact_rope"], minutes(5))
    questions = (
        "Who repairs outboard motors?",
        "When is high tide on Sunday?",
        "Who keeps the keys of the lighthouse?",
        "鍵",
        "rope",
        "What colour is the hull?",
        "harbour -tickets",
        "unknown words only, zxqv",
    )
    found = 0
    for question in questions:
        for fields in ({}, {"max_results": 2}, {"session_id": "s"}):
            result = await same(worlds, lambda w, q=question, f=fields: answered(w, q, **f))
            found += len(result) - 2
    assert found > 10
    assert await same(worlds, lambda w: answered(w, "ro.e", force_regex=True))
    await same(worlds, everything_told)


async def answered(world: RecallWorld, question: str, **fields: Any) -> list[tuple[object, ...]]:
    return answer(await world.recall(question, **fields))


async def everything_told(world: RecallWorld) -> list[object]:
    """Whatever the port tells about the graph, in the order in which it tells it."""
    store, model_id = world.store, HashingEmbedder(128).model_id
    keys = [one.key for one in await store.scan(GRAPH)]
    found = await store.relationships(GRAPH, keys, edge_limit=2, hyperedge_limit=2)
    return [
        keys,
        list(found.items()),
        [await pages(store, GRAPH, model_id, limit) for limit in (1, 3, 1000)],
        [await store.versions(GRAPH, Kind.NODE, key) for key in (*keys, "decision_paint")],
        await store.timeline(GRAPH, limit=1000),
        await store.touched(GRAPH, "s"),
        await store.counts(GRAPH),
        await store.without_vectors(GRAPH, "another model", limit=3),
        await store.vector_models(GRAPH),
    ]


@pytest.mark.soak
@pytest.mark.shared
@pytest.mark.timeout(3600)
async def test_whole_conversations_answer_alike(worlds: Worlds, shared_dir: Path) -> None:
    """Every conversation of LoCoMo with all its questions, answerable or not."""
    data = DataSet.read(shared_dir / "bench" / "locomo")
    for one in worlds:
        for name, documents in data.documents.items():
            await import_all(one, name, requests(documents))
    asked = hits = 0
    for query in (*data.queries, *data.unanswerable):
        principal = owner(query.graph)
        request = RecallRequest(query=query.text, max_results=10)
        answers = [answer(await one.service.recall(principal, request)) for one in worlds]
        assert answers[0] == answers[1], query.text
        asked += 1
        hits += len(answers[0]) - 2
    assert asked > 1_900
    assert hits > asked
    model_id = HashingEmbedder(128).model_id
    for name in data.documents:
        one, other = [await pages(each.store, name, model_id, 1000) for each in worlds]
        assert one == other


async def import_all(world: RecallWorld, graph_id: str, items: Sequence[StoreRequest]) -> None:
    outcomes = await world.remember.store_many(owner(graph_id), items)
    assert not [outcome for outcome in outcomes if isinstance(outcome, HivememError)]


def owner(graph_id: str) -> Principal:
    return Principal(user_id="user_one", graph_id=graph_id, scope=Scope.OWNER)
