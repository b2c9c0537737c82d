"""Conversations: what a recall touches, and how little that moves."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

import pytest

from hivemem.errors import Unavailable
from hivemem.retrieval.session import MAX_BOOST
from hivemem.storage.memory import MemoryStore
from tests.service.conftest import GRAPH, READER
from tests.service.recall_world import HARBOUR, Build, RecallWorld, build, keys_of
from tests.support.builders import START

__all__ = ["build"]


async def touched(world: RecallWorld, session_id: str) -> dict[str, int]:
    await world.service.close()
    return {touch.key: touch.touch_count for touch in await world.store.touched(GRAPH, session_id)}


@pytest.mark.parametrize("force_regex", [False, True])
async def test_an_answer_touches_its_hits_once_each(build: Build, force_regex: bool) -> None:
    world = build()
    await world.put_all(HARBOUR)
    first = await world.recall("rope", session_id="talk", force_regex=force_regex, by=READER)
    assert keys_of(first) == ["fact_rope"]
    assert await touched(world, "talk") == {"fact_rope": 1}
    await world.recall("rope", session_id="talk", force_regex=force_regex)
    assert await touched(world, "talk") == {"fact_rope": 2}
    assert await touched(world, "other talk") == {}


async def test_an_empty_answer_touches_nothing(build: Build) -> None:
    world = build()
    await world.put_all(HARBOUR)
    assert await world.keys("boiling point of mercury", session_id="talk") == []
    assert await touched(world, "talk") == {}


async def twins(world: RecallWorld) -> None:
    """Two memories that match alike, one that matches worse, one that does not."""
    await world.put("fact_a", "The ferry to the island leaves at nine.")
    await world.put("fact_b", "The ferry to the island leaves at nine.")
    await world.put("fact_ferry", "A ferry was sold.")
    await world.put("fact_soup", "The soup was cold.")


async def test_a_touched_memory_comes_before_its_equal_in_its_conversation_alone(build: Build) -> None:
    world = build()
    await twins(world)
    await world.store.touch(GRAPH, "talk", ["fact_b"], START)
    question = "when does the island ferry leave"
    here = await world.recall(question, session_id="talk")
    assert keys_of(here)[:2] == ["fact_b", "fact_a"]
    assert "part of this conversation" in here.hits[0].reasons
    assert "part of this conversation" not in here.hits[1].reasons
    assert 0.0 <= here.hits[0].score - here.hits[1].score <= MAX_BOOST
    assert here.hits[0].scores["relevance"] == here.hits[1].scores["relevance"]
    assert keys_of(await world.recall(question, session_id="another"))[:2] == ["fact_a", "fact_b"]


async def test_the_shared_session_boosts_nothing(build: Build) -> None:
    world = build()
    await twins(world)
    for _ in range(3):
        await world.store.touch(GRAPH, "default", ["fact_b"], START)
    result = await world.recall("when does the island ferry leave")
    assert keys_of(result)[:2] == ["fact_a", "fact_b"]
    assert all("part of this conversation" not in hit.reasons for hit in result.hits)


async def test_many_touches_lift_no_worse_memory_and_nothing_over_the_floor(build: Build) -> None:
    world = build()
    await twins(world)
    for _ in range(200):
        await world.store.touch(GRAPH, "talk", ["fact_ferry", "fact_soup"], START)
    result = await world.recall("when does the island ferry leave", session_id="talk")
    assert keys_of(result)[:2] == ["fact_a", "fact_b"]
    assert "fact_soup" not in keys_of(result)
    assert await world.keys("boiling point of mercury", session_id="talk") == []


async def test_the_next_question_knows_what_the_last_answer_touched(build: Build) -> None:
    world = build()
    await twins(world)
    await world.recall("fact_b", session_id="talk", max_results=1)
    following = await world.recall("when does the island ferry leave", session_id="talk")
    assert keys_of(following)[:2] == ["fact_b", "fact_a"]


async def test_scores_stay_within_bounds_and_in_order_with_boosts(build: Build) -> None:
    world = build()
    await twins(world)
    for _ in range(9):
        await world.store.touch(GRAPH, "talk", ["fact_a", "fact_b"], START)
    result = await world.recall("the ferry to the island leaves at nine", session_id="talk")
    scores = [hit.score for hit in result.hits]
    assert scores == sorted(scores, reverse=True)
    assert all(0.0 <= score <= 1.0 for score in scores)


class NoTouches(MemoryStore):
    """Too busy for touches."""

    async def touch(self, graph_id: str, session_id: str, keys: Collection[str], at: datetime) -> None:
        raise Unavailable("the database is locked")


async def test_a_touch_that_cannot_be_stored_spoils_no_answer() -> None:
    world = RecallWorld(NoTouches(), embedder=None, reranker=None)
    await world.put_all(HARBOUR)
    for _ in range(2):
        assert await world.keys("blue rope anchor", session_id="talk") == ["fact_rope"]
    assert await touched(world, "talk") == {}
    await world.close()
