"""Nodes without vectors of the present model get them in the background."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from hivemem.domain.graph import NodeVectors
from hivemem.domain.node import EnrichmentStatus
from hivemem.errors import Unavailable
from hivemem.models.executor import ModelExecutor
from hivemem.service.reembed import Reembed
from tests.service.conftest import GRAPH, CountingEmbedder, World


async def store_without_vectors(world: World, count: int) -> None:
    world.embedder.fails = True
    for number in range(count):
        await world.put(f"fact_{number:03d}", f"Note {number}.")
    world.embedder.fails = False


@pytest.fixture
async def reembed(world: World) -> AsyncIterator[Reembed]:
    yield Reembed(store=world.store, executor=world.executor)


async def test_pending_nodes_get_vectors_and_their_status(world: World, reembed: Reembed) -> None:
    await store_without_vectors(world, 5)
    before = await world.node("fact_003")
    assert await reembed.run(GRAPH) == 5
    after = await world.node("fact_003")
    assert after.enrichment_status is EnrichmentStatus.SKIPPED
    assert (after.write_version, after.updated_at) == (before.write_version, before.updated_at)
    assert after.revision > before.revision
    assert await world.passages("fact_003") == ["description"]


async def test_a_second_run_finds_nothing_to_do(world: World, reembed: Reembed) -> None:
    await store_without_vectors(world, 3)
    await world.put("fact_fine", "Has vectors.", {"to_key": "fact_placeholder", "relationship": "names"})
    await reembed.run(GRAPH)
    world.embedder.embedded.clear()
    assert await reembed.run(GRAPH) == 0
    assert world.embedder.embedded == []


async def test_many_pages_are_done_with_progress(world: World, reembed: Reembed) -> None:
    await store_without_vectors(world, 150)
    told: list[tuple[int, int]] = []
    assert await reembed.run(GRAPH, on_progress=lambda done, total: told.append((done, total))) == 150
    assert told[-1] == (150, 150)
    assert len(told) == 3


async def test_another_model_replaces_all_vectors(world: World) -> None:
    await world.put("fact_a", "The boiler is serviced every October.")
    other = CountingEmbedder(dimension=32)
    executor = ModelExecutor(other, None)
    assert await Reembed(store=world.store, executor=executor).run(GRAPH) == 1
    executor.close()
    assert await world.store.vector_models(GRAPH) == {other.model_id: 1}
    page = await world.store.changes(GRAPH, 0, model_id=other.model_id)
    [passage] = next(changed.passages for changed in page.nodes if changed.node.key == "fact_a")
    assert len(passage.vector) == 4 * 32


async def test_a_node_that_changes_meanwhile_is_not_overwritten(
    world: World, reembed: Reembed, monkeypatch: pytest.MonkeyPatch
) -> None:
    await store_without_vectors(world, 1)
    put_vectors = world.store.put_vectors

    async def overtaken(
        graph_id: str, key: str, write_version: int, vectors: NodeVectors, status: EnrichmentStatus
    ) -> bool:
        monkeypatch.setattr(world.store, "put_vectors", put_vectors)
        await world.put(key, "Changed while it was embedded.")
        return await put_vectors(graph_id, key, write_version, vectors, status)

    monkeypatch.setattr(world.store, "put_vectors", overtaken)
    assert await reembed.run(GRAPH) == 0
    page = await world.store.changes(GRAPH, 0, model_id=world.embedder.model_id)
    [passage] = next(changed.passages for changed in page.nodes if changed.node.key == "fact_000")
    expected = world.embedder.embed_query("Changed while it was embedded.")
    assert np.allclose(np.frombuffer(passage.vector, "<f4"), expected)


async def test_without_a_model_it_says_so(world: World) -> None:
    await store_without_vectors(world, 1)
    executor = ModelExecutor(None, None, embedder_problem="the file model.onnx is missing")
    with pytest.raises(Unavailable, match=r"model\.onnx is missing"):
        await Reembed(store=world.store, executor=executor).run(GRAPH)
    executor.close()


class PickyEmbedder(CountingEmbedder):
    def embed_passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        if any("7" in text for text in texts):
            raise RuntimeError("shape mismatch")
        return super().embed_passages(texts)


async def test_a_text_that_the_model_fails_on_is_left_and_the_run_ends(world: World) -> None:
    await store_without_vectors(world, 80)
    executor = ModelExecutor(PickyEmbedder(), None)
    done = await Reembed(store=world.store, executor=executor).run(GRAPH)
    executor.close()
    failing = [number for number in range(80) if "7" in str(number)]
    assert done == 80 - len(failing)
    left = await world.store.without_vectors(GRAPH, world.embedder.model_id)
    assert [node.key for node in left] == [f"fact_{number:03d}" for number in failing]
