"""Vectors travel with their nodes and belong to one model."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hivemem.domain.graph import ChangedNode, Kind, Passage
from hivemem.domain.node import EnrichmentStatus
from hivemem.errors import InvalidInput
from hivemem.ports.store import Store
from tests.conformance.store.observe import GRAPH, OTHER_GRAPH, everything
from tests.support.builders import MODEL, batch, create, delete, node, passage, placeholder, update, vectors

ONE = node("a_1")
SKIPPED = EnrichmentStatus.SKIPPED


async def stored_passages(store: Store, key: str, model_id: str = MODEL) -> tuple[Passage, ...]:
    page = await store.changes(GRAPH, 0, model_id=model_id)
    (passages,) = (changed.passages for changed in page.nodes if changed.node.key == key)
    return passages


async def test_a_write_without_vectors_keeps_those_that_are_stored(store: Store) -> None:
    await store.apply(GRAPH, batch(create(ONE, vectors(passage(1.0), passage(2.0)))))
    await store.apply(GRAPH, batch(update(ONE, description="Changed.")))
    assert await stored_passages(store, "a_1") == (passage(1.0), passage(2.0))
    assert await store.vector_models(GRAPH) == {MODEL: 1}


async def test_a_write_with_vectors_replaces_those_of_all_models(store: Store) -> None:
    await store.apply(GRAPH, batch(create(ONE, vectors(passage(1.0), passage(2.0), model_id="old"))))
    await store.apply(GRAPH, batch(update(ONE, vectors(passage(3.0), model_id="new"))))
    assert await stored_passages(store, "a_1", "old") == ()
    assert await stored_passages(store, "a_1", "new") == (passage(3.0),)
    assert await store.vector_models(GRAPH) == {"new": 1}


async def test_a_write_with_an_empty_instance_clears_vectors(store: Store) -> None:
    await store.apply(GRAPH, batch(create(ONE, vectors(passage(1.0)))))
    await store.apply(GRAPH, batch(update(ONE, vectors())))
    assert await stored_passages(store, "a_1") == ()
    assert await store.vector_models(GRAPH) == {}
    assert [one.key for one in await store.without_vectors(GRAPH, MODEL)] == ["a_1"]


async def test_vector_bytes_are_kept_exactly(store: Store) -> None:
    exact = passage(float("inf"), -0.0, 1e-45, 3.4028235e38, 0.1, float("nan"))
    empty = replace(passage(), source="search_text", start=2_000_000, end=2_000_000)
    await store.apply(GRAPH, batch(create(ONE, vectors(exact, empty))))
    assert await stored_passages(store, "a_1") == (exact, empty)


async def test_put_vectors_replaces_vectors_and_status_under_a_new_revision(store: Store) -> None:
    await store.apply(GRAPH, batch(create(ONE, vectors(passage(1.0), model_id="old")), node("b_1")))
    assert await store.put_vectors(GRAPH, "a_1", 1, vectors(passage(2.0), passage(3.0)), SKIPPED)
    expected = replace(ONE, enrichment_status=SKIPPED, revision=2)
    assert await store.revision(GRAPH) == 2
    page = await store.changes(GRAPH, 1, model_id=MODEL)
    assert page.nodes == (ChangedNode(node=expected, passages=(passage(2.0), passage(3.0))),)
    assert await store.vector_models(GRAPH) == {MODEL: 1}
    history = await store.versions(GRAPH, Kind.NODE, "a_1")
    assert [version.state for version in history] == [replace(ONE, revision=1)]


async def test_put_vectors_can_clear_them(store: Store) -> None:
    await store.apply(GRAPH, batch(create(ONE, vectors(passage(1.0)))))
    assert await store.put_vectors(GRAPH, "a_1", 1, vectors(), EnrichmentStatus.FAILED)
    assert await store.vector_models(GRAPH) == {}


async def test_put_vectors_of_a_changed_or_missing_node_writes_nothing(store: Store) -> None:
    await store.apply(GRAPH, batch(ONE, node("b_1")))
    await store.apply(GRAPH, batch(update(ONE), delete(node("b_1"))))
    before = await everything(store)
    for key, version in (("a_1", 1), ("a_1", 3), ("b_1", 1), ("nobody_1", 1), ("nobody_1", 0)):
        assert not await store.put_vectors(GRAPH, key, version, vectors(passage(1.0)), SKIPPED)
    assert not await store.put_vectors(OTHER_GRAPH, "a_1", 2, vectors(passage(1.0)), SKIPPED)
    assert await everything(store) == before


async def test_put_vectors_refuses_a_status_that_the_node_cannot_have(store: Store) -> None:
    await store.apply(GRAPH, batch(ONE))
    before = await everything(store)
    with pytest.raises(InvalidInput):
        await store.put_vectors(GRAPH, "a_1", 1, vectors(), EnrichmentStatus.PLACEHOLDER)
    assert await everything(store) == before


async def test_without_vectors_lists_described_nodes_in_key_order(store: Store) -> None:
    await store.apply(
        GRAPH,
        batch(
            create(node("e_1"), vectors(passage(1.0))),
            create(node("d_1"), vectors(passage(1.0), model_id="a-model-before")),
            create(node("b_1"), vectors(passage(1.0), model_id="z-model-after")),
            node("c_1"),
            node("a_1"),
            placeholder("f_1"),
        ),
    )
    keys = [one.key for one in await store.without_vectors(GRAPH, MODEL)]
    assert keys == ["a_1", "b_1", "c_1", "d_1"]
    assert [one.key for one in await store.without_vectors(GRAPH, MODEL, limit=2)] == ["a_1", "b_1"]
    assert (await store.without_vectors(GRAPH, MODEL))[0] == node("a_1", revision=1)
    assert await store.without_vectors(OTHER_GRAPH, MODEL) == []
    assert await store.vector_models(GRAPH) == {MODEL: 1, "a-model-before": 1, "z-model-after": 1}


async def test_removed_nodes_leave_no_vectors(store: Store) -> None:
    await store.apply(GRAPH, batch(create(ONE, vectors(passage(1.0)))))
    await store.apply(GRAPH, batch(delete(ONE)))
    assert await store.vector_models(GRAPH) == {}
    assert await store.without_vectors(GRAPH, MODEL) == []
