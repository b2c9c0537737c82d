"""Recall shows every write that has returned, whoever made it, and never a vector of another model."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from hivemem.domain.node import EnrichmentStatus, Node
from hivemem.models.hashing import HashingEmbedder
from hivemem.service import recall as recall_module
from hivemem.service.first_stage import FirstStage
from hivemem.service.recall import RecallResult
from hivemem.service.reembed import Reembed
from hivemem.storage.sqlite import SqliteStore
from tests.service.conftest import GRAPH
from tests.service.recall_world import HARBOUR, Build, OverlapReranker, RecallWorld, build, keys_of, to

__all__ = ["build"]


class RenamedEmbedder(HashingEmbedder):
    """The same vectors under another name: another model of the same size."""

    @property
    def model_id(self) -> str:
        return "another"


@asynccontextmanager
async def neighbour_process(path: Path) -> AsyncIterator[RecallWorld]:
    """A store, index and models of its own on the same file, as another process would have them."""
    store = await SqliteStore.open(path)
    world = RecallWorld(store, embedder=HashingEmbedder(64), reranker=OverlapReranker())
    try:
        yield world
    finally:
        await world.close()
        await store.close()


async def test_two_stores_on_one_file_see_each_others_writes_at_once(tmp_path: Path) -> None:
    path = tmp_path / "hivemem.db"
    async with neighbour_process(path) as one, neighbour_process(path) as two:
        assert await two.keys("rope") == []
        for writer, reader in ((one, two), (two, one)):
            key = f"fact_of_{id(writer)}"
            await writer.put(key, "The rope is frayed.")
            assert key in await reader.keys("rope frayed")
            await writer.put(key, "The lamp is lit.", to("place_pier", "hangs on the pier"))
            assert await reader.keys("rope frayed") == []
            [hit] = (await reader.recall("lamp lit")).hits
            assert [link.relationship for link in hit.expansion] == ["hangs on the pier"]
            await writer.delete(key)
            assert await reader.keys("lamp lit") == []
            assert (await reader.recall("lamp", force_regex=True)).hits == ()


async def test_questions_during_writes_of_another_store_never_fail(tmp_path: Path) -> None:
    path = tmp_path / "hivemem.db"
    async with neighbour_process(path) as writer, neighbour_process(path) as reader:
        for number in range(15):
            write = writer.put(f"log_{number}", f"Writer item {number}.")
            await asyncio.gather(write, reader.recall(f"writer item {number}"))
            assert (await reader.keys(f"log_{number}"))[0] == f"log_{number}"


def assert_no_vector_was_compared(result: RecallResult) -> None:
    assert result.meta["legs"]["dense"]["hits"] == 0
    assert all("dense" not in hit.scores for hit in result.hits)


async def test_vectors_of_another_model_are_never_compared(build: Build) -> None:
    await build().put_all(HARBOUR)
    for embedder in (HashingEmbedder(32), RenamedEmbedder(64)):
        world = build(embedder=embedder)
        result = await world.recall("blue rope for the anchor")
        assert keys_of(result)[0] == "fact_rope"
        assert_no_vector_was_compared(result)
        [note] = result.meta["degraded"]
        assert f"6 of 6 nodes have no vector of {embedder.model_id!r}" in note
        assert "reembed" in note


async def test_after_embedding_again_meaning_counts_again(build: Build) -> None:
    await build().put_all(HARBOUR)
    world = build(embedder=RenamedEmbedder(64))
    assert await Reembed(store=world.store, executor=world.executor).run(GRAPH) == len(HARBOUR)
    result = await world.recall("blue rope for the anchor")
    assert result.meta["legs"]["dense"]["hits"] == len(HARBOUR)
    assert result.hits[0].scores["dense"] > 0
    assert "degraded" not in result.meta
    assert_no_vector_was_compared(await build().recall("blue rope for the anchor"))


async def test_a_model_exchanged_while_running_is_followed(build: Build) -> None:
    world = build()
    await world.put_all(HARBOUR)
    assert (await world.recall("rope")).meta["legs"]["dense"]["hits"] == len(HARBOUR)
    other = HashingEmbedder(32)
    # The executor has the new model a moment before the index has: nothing may be compared between.
    world.executor.use_embedder(other)
    between = await world.recall("rope")
    assert keys_of(between) == ["fact_rope"]
    assert_no_vector_was_compared(between)
    world.hot.use_model(other.model_id, other.dimension)
    after = await world.recall("rope")
    assert keys_of(after) == ["fact_rope"]
    assert_no_vector_was_compared(after)
    await world.put("fact_new", "The rope was replaced.")
    assert (await world.recall("rope replaced")).meta["legs"]["dense"]["hits"] == 1


async def test_an_embedder_that_comes_later_is_taken_up(build: Build) -> None:
    world = build(embedder=None, embedder_problem="still being loaded")
    await world.put_all(HARBOUR)
    assert (await world.recall("rope")).meta["degraded"] == ["dense: still being loaded"]
    embedder = HashingEmbedder(64)
    world.executor.use_embedder(embedder)
    world.hot.use_model(embedder.model_id, embedder.dimension)
    await Reembed(store=world.store, executor=world.executor).run(GRAPH)
    result = await world.recall("rope")
    assert result.meta["legs"]["dense"]["hits"] == len(HARBOUR)
    assert "degraded" not in result.meta


def writes_between(world: RecallWorld, monkeypatch: pytest.MonkeyPatch, texts: list[str]) -> list[str]:
    """Store the next of `texts` whenever records are about to be fetched; returns the log of searches."""
    searches: list[str] = []
    plain_nodes, plain_stage = world.store.nodes, recall_module.first_stage

    async def nodes(graph_id: str, keys: Collection[str]) -> dict[str, Node]:
        # The writer reads its own snapshot, so only a recall comes here.
        if texts:
            monkeypatch.setattr(world.store, "nodes", plain_nodes)
            await world.put("note", texts.pop(0))
            monkeypatch.setattr(world.store, "nodes", nodes)
        return await plain_nodes(graph_id, keys)

    def stage(*given: Any, **named: Any) -> FirstStage:
        searches.append("search")
        return plain_stage(*given, **named)

    monkeypatch.setattr(world.store, "nodes", nodes)
    monkeypatch.setattr(recall_module, "first_stage", stage)
    return searches


async def test_a_node_that_changes_after_the_search_is_searched_again(
    build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = build()
    await world.put("note", "The rope is frayed.")
    await world.put("other", "The rope locker is dry.")
    searches = writes_between(world, monkeypatch, ["The lamp is lit and no rope is left."])
    [hit] = [hit for hit in (await world.recall("lamp lit rope")).hits if hit.node.key == "note"]
    assert searches == ["search", "search"]
    assert hit.node.description == "The lamp is lit and no rope is left."
    assert "holds every word of the query" in hit.reasons


async def test_a_node_that_changes_again_is_shown_without_evidence_of_an_old_text(
    build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = build()
    await world.put("note", "The rope is frayed.")
    searches = writes_between(
        world, monkeypatch, ["The frayed rope was cut.", "The rope: frayed, cut and thrown away."]
    )
    [hit] = (await world.recall("frayed rope")).hits
    assert searches == ["search", "search"]
    assert hit.node.description == "The rope: frayed, cut and thrown away."
    assert set(hit.scores) == {"relevance"}
    assert not any(reason.startswith(("holds", "nearness")) for reason in hit.reasons)
    assert hit.node.enrichment_status is not EnrichmentStatus.PENDING
