"""Recall with organization memory: what is searched, how it is told, that neither half harms the other."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from hivemem.domain.access import Principal, Scope
from hivemem.domain.accounts import Membership, Role
from hivemem.errors import Corruption, HivememError, InvalidInput, InvalidRequest, Overloaded, Unavailable
from hivemem.models.hashing import HashingEmbedder
from hivemem.ports.store import Store
from hivemem.projection.graph_index import GraphIndex
from hivemem.service.organization_memory import AllRecalled, Status, chosen_memory, recall_everywhere
from hivemem.service.recall import RecallRequest
from hivemem.service.remember import StoreRequest
from hivemem.service.shared_reading import LEAST_SHARE, MORE_READING, divided
from tests.service.conftest import GRAPH, OWNER
from tests.service.recall_world import HARBOUR, READS, Build, OverlapReranker, RecallWorld, build, keys_of

__all__ = ["build"]

ACME = Membership(organization_id="org_acme", name="Acme", graph_id="graph_acme", role=Role.MEMBER)
BOATS = Membership(organization_id="org_boats", name="Boats", graph_id="graph_boats", role=Role.ADMIN)
MEMBER = replace(OWNER, organizations=(ACME,))
OF_BOTH = replace(OWNER, organizations=(ACME, BOATS))
BOUND = replace(OF_BOTH, graph_id=ACME.graph_id, organization_id=ACME.organization_id)
POLICY = {
    "policy_leave": "Acme gives 30 days of leave, booked at the harbour office.",
    "policy_rope": "Rope for the anchor is bought by the office.",
}


async def filled(build: Build, **parts: Any) -> RecallWorld:
    """Own memory about a harbour, and what Acme wrote down."""
    world = build(**parts)
    await world.put_all(HARBOUR)
    at_acme = Principal(user_id="user_acme", graph_id=ACME.graph_id, scope=Scope.OWNER)
    for key, text in POLICY.items():
        await world.remember.store(at_acme, StoreRequest(key=key, description=text))
    return world


async def ask(
    world: RecallWorld, query: str, *, by: Principal = MEMBER, grace_seconds: float = 60.0, **fields: Any
) -> AllRecalled:
    request = RecallRequest(query=query, **fields)
    return await recall_everywhere(world.service, by, request, grace_seconds=grace_seconds)


@pytest.mark.parametrize(
    ("by", "sent", "status", "organization"),
    [
        (OWNER, None, None, None),
        (OWNER, "none", None, None),
        (MEMBER, None, Status.INCLUDED, ACME),
        (MEMBER, ACME.organization_id, Status.INCLUDED, ACME),
        (MEMBER, "none", Status.EXCLUDED, None),
        (OF_BOTH, None, Status.SELECTION_REQUIRED, None),
        (OF_BOTH, BOATS.organization_id, Status.INCLUDED, BOATS),
        (OF_BOTH, "none", Status.EXCLUDED, None),
        (BOUND, None, Status.SELECTED_GRAPH, ACME),
        (BOUND, ACME.organization_id, Status.SELECTED_GRAPH, ACME),
        (BOUND, BOATS.organization_id, Status.INCLUDED, BOATS),
        (BOUND, "none", Status.EXCLUDED, None),
    ],
)
def test_what_is_done_follows_from_caller_and_request(
    by: Principal, sent: str | None, status: Status | None, organization: Membership | None
) -> None:
    memory = chosen_memory(by, sent)
    if memory is None:
        assert status is None
    else:
        assert (memory.status, memory.organization) == (status, organization)


@pytest.mark.parametrize("sent", ["org_boats", "org_unknown", "", "None", 'acme" OR 1=1 --', ACME.graph_id])
@pytest.mark.parametrize("by", [OWNER, MEMBER, replace(BOUND, organizations=(ACME,))])
def test_a_foreign_organization_and_none_at_all_are_refused_alike(by: Principal, sent: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        chosen_memory(by, sent)
    assert refused.value.message.replace(repr(sent), "ID") == (
        "/organization_id 'ID' is not one of your organizations; leave it out, or send 'none' for your own "
        "memory alone."
    ).replace("'ID'", "ID")
    assert refused.value.code == "invalid_request"


async def test_both_memories_answer_apart(build: Build) -> None:
    world = await filled(build)
    found = await ask(world, "rope for the anchor")
    assert found.organization is not None and found.organization.result is not None
    assert found.organization.status is Status.INCLUDED
    assert keys_of(found.own)[0] == "fact_rope"
    assert keys_of(found.organization.result) == ["policy_rope"]
    assert not set(keys_of(found.own)) & set(POLICY)


async def test_an_organization_alone_may_know(build: Build) -> None:
    world = await filled(build)
    found = await ask(world, "how many days of leave?")
    assert keys_of(found.own) == []
    assert found.organization is not None and found.organization.result is not None
    assert keys_of(found.organization.result) == ["policy_leave"]
    excluded = await ask(world, "how many days of leave?", organization_id="none")
    assert keys_of(excluded.own) == []
    assert excluded.organization is not None and excluded.organization.result is None


async def test_patterns_are_searched_in_both(build: Build) -> None:
    world = await filled(build)
    found = await ask(world, "^(policy|decision)_", force_regex=True)
    assert found.organization is not None and found.organization.result is not None
    assert keys_of(found.own) == ["decision_paint"]
    assert sorted(keys_of(found.organization.result)) == sorted(POLICY)
    with pytest.raises(InvalidInput):
        await ask(world, "(", force_regex=True)


async def test_the_number_of_results_counts_for_each_memory(build: Build) -> None:
    world = await filled(build)
    found = await ask(world, "the office at the harbour", max_results=1)
    assert found.organization is not None and found.organization.result is not None
    assert (len(found.own.hits), len(found.organization.result.hits)) == (1, 1)


async def test_a_conversation_is_noted_in_ones_own_graph_alone(build: Build) -> None:
    world = await filled(build)
    before = await world.store.touched(ACME.graph_id, "default")
    await ask(world, "rope for the anchor", session_id="talk")
    await ask(world, "rope for the anchor")
    await world.service.close()
    assert "fact_rope" in [one.key for one in await world.store.touched(GRAPH, "talk")]
    assert not await world.store.touched(ACME.graph_id, "talk")
    assert await world.store.touched(ACME.graph_id, "default") == before


@pytest.mark.parametrize(
    ("role", "scope", "noted"),
    [
        (Role.MEMBER, Scope.MEMBER, False),
        (Role.MEMBER, Scope.OWNER, False),
        (Role.ADMIN, Scope.MEMBER, False),
        (Role.ADMIN, Scope.OWNER, True),
    ],
)
async def test_only_who_may_write_an_organization_leaves_traces_there(
    build: Build, role: Role, scope: Scope, noted: bool
) -> None:
    world = await filled(build)
    by = replace(BOUND, organizations=(replace(ACME, role=role),), scope=scope)
    found = await ask(world, "rope for the anchor", by=by, session_id="talk")
    assert keys_of(found.own) == ["policy_rope"]
    await world.service.close()
    assert bool(await world.store.touched(ACME.graph_id, "talk")) is noted


class BreakingIndex:
    """Stands before the hot graphs: the index of one graph cannot be had, or waits for a door."""

    def __init__(self, world: RecallWorld, graph_id: str, error: BaseException | None) -> None:
        self._fresh = world.hot.fresh
        self._graph_id = graph_id
        self._error = error
        self.asked = asyncio.Event()
        self.door = asyncio.Event()

    async def fresh(self, graph_id: str) -> GraphIndex:
        if graph_id == self._graph_id:
            self.asked.set()
            if self._error is not None:
                raise self._error
            await self.door.wait()
        return await self._fresh(graph_id)


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (Unavailable("/secret/path/hivemem.db is locked"), "its database does not answer"),
        (Corruption("row 7 of graph_acme is damaged"), "the server's log says why"),
        (Overloaded("2,000 texts wait", retry_after_seconds=3), "ask again"),
        (KeyError("fact_rope"), "the server's log says why"),
    ],
)
async def test_a_failure_there_is_a_status_and_never_an_error(
    build: Build, monkeypatch: pytest.MonkeyPatch, error: Exception, told: str
) -> None:
    world = await filled(build)
    alone = await ask(world, "rope for the anchor", organization_id="none")
    monkeypatch.setattr(world.hot, "fresh", BreakingIndex(world, ACME.graph_id, error).fresh)
    found = await ask(world, "rope for the anchor")
    assert found.organization is not None
    assert (found.organization.status, found.organization.result) == (Status.FAILED, None)
    message = found.organization.error or ""
    assert told in message
    assert not any(secret in message for secret in ("/secret", "row 7", "2,000", "fact_rope"))
    assert [(hit.node.key, hit.score) for hit in found.own.hits] == [
        (hit.node.key, hit.score) for hit in alone.own.hits
    ]


async def test_a_search_that_never_ends_is_given_up(build: Build, monkeypatch: pytest.MonkeyPatch) -> None:
    world = await filled(build)
    stuck = BreakingIndex(world, ACME.graph_id, None)
    monkeypatch.setattr(world.hot, "fresh", stuck.fresh)
    found = await ask(world, "rope for the anchor", grace_seconds=0.01)
    assert stuck.asked.is_set()
    assert found.organization is not None
    assert (found.organization.status, found.organization.organization) == (Status.FAILED, ACME)
    assert "longer than your own memory" in (found.organization.error or "")
    assert keys_of(found.own)[0] == "fact_rope"
    await asyncio.sleep(0)
    assert not [task for task in asyncio.all_tasks() if task.get_name().startswith("recall in")]


@pytest.mark.parametrize("fails", [Unavailable("down"), Overloaded("busy", retry_after_seconds=1)])
async def test_a_failure_of_ones_own_memory_is_the_answer(
    build: Build, monkeypatch: pytest.MonkeyPatch, fails: HivememError
) -> None:
    world = await filled(build)
    monkeypatch.setattr(world.hot, "fresh", BreakingIndex(world, GRAPH, fails).fresh)
    with pytest.raises(type(fails)):
        await ask(world, "rope for the anchor")
    await asyncio.sleep(0)
    assert not [task for task in asyncio.all_tasks() if task.get_name().startswith("recall in")]


async def test_the_searches_run_at_the_same_time(build: Build, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each waits in its first stage until the other is there too: one after the other would never end."""
    world = await filled(build)
    meeting = threading.Barrier(2, timeout=60)
    reading = GraphIndex.reading

    def meet(index: GraphIndex) -> Any:
        meeting.wait()
        return reading(index)

    await ask(world, "rope for the anchor")
    monkeypatch.setattr(GraphIndex, "reading", meet)
    found = await ask(world, "rope for the anchor")
    assert found.organization is not None
    assert found.organization.status is Status.INCLUDED


class CountedQueries(HashingEmbedder):
    def __init__(self) -> None:
        super().__init__(64)
        self.asked: list[str] = []

    def embed_query(self, text: str) -> NDArray[np.float32]:
        self.asked.append(text)
        return super().embed_query(text)


async def test_the_question_is_embedded_once(build: Build) -> None:
    embedder = CountedQueries()
    world = await filled(build, embedder=embedder)
    embedder.asked.clear()
    found = await ask(world, "rope for the anchor")
    assert embedder.asked == ["rope for the anchor"]
    assert found.organization is not None and found.organization.result is not None
    assert "dense" in found.organization.result.hits[0].scores


class RefusesQuestions(HashingEmbedder):
    def embed_query(self, text: str) -> NDArray[np.float32]:
        if text.endswith("?"):
            raise Unavailable("the model is gone")
        return super().embed_query(text)


async def test_both_searches_tell_that_the_question_was_not_embedded(build: Build) -> None:
    world = await filled(build, embedder=RefusesQuestions(64))
    found = await ask(world, "rope for the anchor?")
    assert found.organization is not None and found.organization.result is not None
    for result in (found.own, found.organization.result):
        assert result.meta["degraded"] == ["dense: the model is gone"]
        assert result.hits


async def test_together_they_read_little_more_than_one(build: Build) -> None:
    """Both graphs have more good candidates than a search reads."""
    reranker = OverlapReranker()
    world = build(reranker=reranker)
    at_acme = Principal(user_id="user_acme", graph_id=ACME.graph_id, scope=Scope.OWNER)
    for number in range(READS.depth + 6):
        text = f"Rope number {number} is for the anchor."
        await world.put(f"rope_{number}", text)
        await world.remember.store(at_acme, StoreRequest(key=f"their_{number}", description=text))
    reranker.read.clear()
    await ask(world, "which rope is for the anchor?", organization_id="none")
    alone = len(reranker.read)
    assert alone == READS.depth
    reranker.read.clear()
    found = await ask(world, "which rope is for the anchor?")
    assert len(reranker.read) == round(MORE_READING * alone)
    assert found.organization is not None and found.organization.result is not None
    counts = [
        result.meta["rerank"]["candidates"]  # type: ignore[index]
        for result in (found.own, found.organization.result)
    ]
    assert sum(counts) == len(reranker.read)
    assert min(counts) >= LEAST_SHARE * sum(counts) - 1


async def test_who_comes_late_does_not_hold_up_ones_own_reading(
    build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One's own search reads in full while that of the organization has no candidates yet."""
    world = await filled(build)
    late = BreakingIndex(world, ACME.graph_id, None)
    monkeypatch.setattr(world.hot, "fresh", late.fresh)
    read = asyncio.Event()

    class Told(OverlapReranker):
        def score(self, query: str, texts: Sequence[str]) -> NDArray[np.float32]:
            loop.call_soon_threadsafe(read.set)
            return super().score(query, texts)

    loop = asyncio.get_running_loop()
    world.executor.use_reranker(Told())
    asking = asyncio.create_task(ask(world, "rope for the anchor"))
    await read.wait()
    assert not late.door.is_set()
    late.door.set()
    found = await asking
    assert found.organization is not None and found.organization.result is not None
    assert keys_of(found.organization.result) == ["policy_rope"]


points = st.lists(st.floats(-10, 10), max_size=40).map(lambda values: sorted(values, reverse=True))


@settings(max_examples=50, deadline=None)
@given(points, points)
def test_places_are_shared_by_worth_with_a_least_share_for_each(own: list[float], other: list[float]) -> None:
    mine, theirs = divided(READS, own, other)
    places = round(MORE_READING * READS.depth)
    assert mine.depth + theirs.depth <= places
    assert mine.depth <= min(len(own), READS.depth)
    assert theirs.depth <= min(len(other), READS.depth)
    # No place stays empty that a candidate could have.
    for part, candidates in ((mine, own), (theirs, other)):
        waits = part.depth < min(len(candidates), READS.depth)
        assert not waits or mine.depth + theirs.depth == places
        assert part.depth >= min(round(LEAST_SHARE * places), len(candidates))
    tokens = mine.tokens + theirs.tokens
    assert not own or not other or tokens <= round(MORE_READING * READS.tokens) + 1
    for part in (mine, theirs):
        assert part.tokens <= READS.tokens
        assert part.budget_seconds <= READS.budget_seconds
        assert part.context_depth <= part.depth
    mirrored = divided(READS, other, own)
    if not set(own) & set(other):
        assert (mirrored[1].depth, mirrored[0].depth) == (mine.depth, theirs.depth)


def test_the_better_candidates_get_the_places() -> None:
    assert divided(READS, [2.0] * 40, [1.0] * 40)[0].depth == 22
    assert divided(READS, [1.0] * 40, [2.0] * 40)[0].depth == 8
    assert divided(READS, [1.0] * 40, [])[0].depth == READS.depth
    assert divided(replace(READS, depth=0), [1.0], [1.0])[0].depth == 0


async def test_the_store_of_the_organization_is_read_through_the_members_graph(
    build: Build, store: Store
) -> None:
    world = await filled(build)
    before = await store.revision(ACME.graph_id)
    await ask(world, "rope for the anchor", session_id="talk")
    await world.service.close()
    assert await store.revision(ACME.graph_id) == before
