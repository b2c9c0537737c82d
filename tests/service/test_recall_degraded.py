"""Recall without one of its parts: the rest answers and `_search_meta` says what is missing."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from hivemem.errors import Corruption, HivememError, Overloaded, Unavailable
from hivemem.models.executor import ModelExecutor
from hivemem.models.hashing import HashingEmbedder
from tests.service.recall_world import HARBOUR, READS, Build, OverlapReranker, build, keys_of

__all__ = ["build"]


class Door:
    """Holds whoever passes until the test opens it."""

    def __init__(self) -> None:
        self._opened = threading.Event()
        self._reached = threading.Event()

    def pass_through(self) -> None:
        self._reached.set()
        assert self._opened.wait(timeout=60)

    async def reached(self) -> None:
        assert await asyncio.to_thread(self._reached.wait, 60)

    def open(self) -> None:
        self._opened.set()


class QueryEmbedder(HashingEmbedder):
    """Embeds passages, but fails on questions or waits with them."""

    def __init__(self, error: HivememError | None = None, door: Door | None = None) -> None:
        super().__init__(64)
        self.error = error
        self.door = door

    def embed_query(self, text: str) -> NDArray[np.float32]:
        if text.startswith("gate") and self.door is not None:
            self.door.pass_through()
        if text.endswith("?") and self.error is not None:
            raise self.error
        return super().embed_query(text)


class FailingReranker(OverlapReranker):
    def __init__(self, error: HivememError, after: int = 0) -> None:
        super().__init__()
        self.error = error
        self.after = after

    def score(self, query: str, texts: Sequence[str]) -> NDArray[np.float32]:
        if len(self.read) >= self.after:
            raise self.error
        return super().score(query, texts)


class WaitingReranker(OverlapReranker):
    def __init__(self, door: Door) -> None:
        super().__init__()
        self.door = door

    def score(self, query: str, texts: Sequence[str]) -> NDArray[np.float32]:
        self.door.pass_through()
        return super().score(query, texts)


async def test_without_an_embedder_words_answer(build: Build) -> None:
    world = build(embedder=None, embedder_problem="model.onnx is missing; install it again")
    await world.put_all(HARBOUR)
    result = await world.recall("which rope is for the anchor?")
    assert keys_of(result)[0] == "fact_rope"
    dense = result.meta["legs"]["dense"]
    assert (dense["ran"], dense["hits"]) == (False, 0)
    assert dense["error"] == "model.onnx is missing; install it again"
    assert result.meta["degraded"] == ["dense: model.onnx is missing; install it again"]
    assert result.meta["legs"]["bm25"]["hits"] == 1
    assert "dense" not in result.hits[0].scores


@pytest.mark.parametrize("error", [Unavailable("the host is down"), Corruption("a vector has 3 values")])
async def test_an_embedder_that_fails_on_the_question_is_left_out(build: Build, error: HivememError) -> None:
    world = build(embedder=QueryEmbedder(error))
    await world.put_all(HARBOUR)
    result = await world.recall("which rope is for the anchor?")
    assert keys_of(result)[0] == "fact_rope"
    assert result.meta["legs"]["dense"]["error"] == error.message
    assert result.meta["degraded"] == [f"dense: {error.message}"]


async def test_nodes_without_vectors_are_told_and_found_by_word(build: Build) -> None:
    await build(embedder=None).put_all(HARBOUR)
    world = build()
    await world.put("fact_new", "The buoy was painted yellow.")
    result = await world.recall("anchor rope")
    assert keys_of(result) == ["fact_rope"]
    [note] = result.meta["degraded"]
    assert note.startswith("dense: 6 of 7 nodes have no vector of 'hashing:64:v1'")
    assert result.meta["legs"]["dense"] == {**result.meta["legs"]["dense"], "ran": True, "hits": 1}


async def test_a_reranker_that_is_absent_by_choice_is_no_failure(build: Build) -> None:
    world = build(reranker=None)
    await world.put_all(HARBOUR)
    result = await world.recall("blue rope for the anchor")
    assert keys_of(result)[0] == "fact_rope"
    assert result.meta["rerank"]["ran"] is False
    assert result.meta["rerank"]["model"] is None
    assert "degraded" not in result.meta


async def test_a_reranker_that_could_not_be_loaded_is_told(build: Build) -> None:
    world = build(reranker=None, reranker_problem="the file is cut")
    await world.put_all(HARBOUR)
    result = await world.recall("blue rope for the anchor")
    assert keys_of(result)[0] == "fact_rope"
    assert result.meta["degraded"] == ["reranker: the file is cut"]


@pytest.mark.parametrize("after", [0, 8])
async def test_a_reranker_that_fails_leaves_the_order_to_word_and_meaning(build: Build, after: int) -> None:
    world = build(reranker=FailingReranker(Unavailable("the reranker is down"), after))
    await world.put_all(HARBOUR)
    for number in range(6):
        await world.put(f"log_{number}", f"Rope log {number}: the anchor rope was dried.")
    result = await world.recall("which rope is blue, for the anchor")
    assert keys_of(result)[0] == "fact_rope"
    assert result.meta["degraded"] == ["reranker: the reranker is down"]
    assert not any("cross-encoder" in reason for hit in result.hits for reason in hit.reasons)


async def test_what_the_budget_did_not_reach_is_ranked_without_the_reader(build: Build) -> None:
    world = build(reads=replace(READS, budget_seconds=0.0))
    for number in range(12):
        await world.put(f"log_{number:02}", f"Harbour log {number}.")
    result = await world.recall("harbour log", max_results=50)
    assert len(result.hits) == 12
    assert result.meta["rerank"]["ran"] is True
    # The first turn of the executor is always finished.
    read = result.meta["rerank"]["candidates"]
    assert 0 < read < 12
    assert result.meta["rerank"]["in_context"] == 0
    [note] = result.meta["degraded"]
    assert note.startswith("reranker: the budget of 0 s ended")
    opinions = [any("cross-encoder" in reason for reason in hit.reasons) for hit in result.hits]
    assert opinions.count(True) == read


async def test_a_full_queue_is_told_as_such_by_the_embedder(build: Build) -> None:
    door = Door()
    embedder = QueryEmbedder(door=door)
    executor = ModelExecutor(embedder, None, max_queued_texts=1)
    world = build(embedder=embedder, reranker=None, executor=executor)
    await world.put_all(HARBOUR)
    first = asyncio.create_task(executor.embed_query("gate"))
    await door.reached()
    with pytest.raises(Overloaded) as caught:
        await world.recall("anchor rope")
    assert caught.value.retry_after_seconds >= 1
    door.open()
    await first
    assert await world.keys("anchor rope") == ["fact_rope"]


async def test_a_full_queue_is_told_as_such_by_the_reranker(build: Build) -> None:
    door = Door()
    reranker = WaitingReranker(door)
    executor = ModelExecutor(None, reranker, max_queued_texts=3)
    world = build(embedder=None, reranker=reranker, executor=executor)
    await world.put_all(HARBOUR)
    first = asyncio.create_task(executor.rerank("gate", ["a", "b", "c"], budget_seconds=None))
    await door.reached()
    with pytest.raises(Overloaded):
        await world.recall("anchor rope")
    door.open()
    await first
    assert await world.keys("anchor rope") == ["fact_rope"]


async def test_a_slow_reader_holds_nobody_else_up(build: Build) -> None:
    door = Door()
    world = build(embedder=None, reranker=WaitingReranker(door))
    await world.put_all(HARBOUR)
    slow = asyncio.create_task(world.recall("anchor rope"))
    await door.reached()
    assert await world.keys("rope", force_regex=True) == ["fact_rope"]
    await world.put("fact_new", "The anchor buoy was painted.")
    assert not slow.done()
    door.open()
    assert keys_of(await slow)[0] == "fact_rope"


async def test_a_cancelled_question_leaves_the_service_usable(build: Build) -> None:
    door = Door()
    world = build(embedder=None, reranker=WaitingReranker(door))
    await world.put_all(HARBOUR)
    slow = asyncio.create_task(world.recall("anchor rope"))
    await door.reached()
    slow.cancel()
    with pytest.raises(asyncio.CancelledError):
        await slow
    door.open()
    assert (await world.keys("anchor rope"))[0] == "fact_rope"


async def test_a_closed_store_is_an_error_not_an_empty_answer(build: Build) -> None:
    world = build()
    await world.put_all(HARBOUR)
    await world.recall("anchor rope")
    await world.service.close()
    await world.store.close()
    for fields in ({}, {"force_regex": True}):
        with pytest.raises(Unavailable):
            await world.recall("anchor rope", **fields)


async def test_a_node_that_vanishes_between_search_and_reading_is_left_out(build: Build) -> None:
    world = build(reranker=None)
    await world.put_all(HARBOUR)
    await world.recall("anchor rope")
    searched = world.hot.fresh

    async def then_removed(graph_id: str) -> Any:
        index = await searched(graph_id)
        await world.delete("fact_rope")
        return index

    world.hot.fresh = then_removed  # type: ignore[method-assign]
    assert await world.keys("blue rope of the anchor") == []
