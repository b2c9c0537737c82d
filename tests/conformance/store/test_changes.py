"""`GraphStore.changes`: the whole replication protocol."""

from __future__ import annotations

import itertools

import pytest

from hivemem.domain.graph import ChangePage
from hivemem.ports.store import Store
from tests.conformance.store.observe import GRAPH, OTHER_GRAPH, Replica, replica
from tests.support.builders import (
    MODEL,
    batch,
    create,
    delete,
    edge,
    hyperedge,
    node,
    passage,
    update,
    vectors,
)


def rows(page: ChangePage) -> int:
    return len(page.nodes) + len(page.edges) + len(page.hyperedges) + len(page.removals)


async def write_a_history(store: Store) -> list[Replica]:
    """Nine changes of all kinds; the replicas are the graph after each, known from the writes."""
    a, b, c, d = (node(key) for key in ("a_1", "b_1", "c_1", "d_1"))
    one, four = edge("a_1", "b_1"), hyperedge("a_1", "b_1", "c_1", "d_1")
    batches = [
        batch(a, b),
        batch(create(c, vectors(passage(1.0, 2.0), passage(3.0, 4.0))), one),
        batch(d, four),
        batch(update(a, vectors(passage(5.0, 6.0)))),
        batch(delete(b)),
        batch(b, one),
        batch(edge("b_1", "a_1"), edge("c_1", "d_1")),
        batch(delete(one)),
        batch(delete(d)),
    ]
    states: list[Replica] = []
    for number, changes in enumerate(batches, start=1):
        assert await store.apply(GRAPH, changes) == number
        states.append(await replica(store))
    return states


async def test_a_replica_that_catches_up_from_any_revision_equals_the_graph(store: Store) -> None:
    states = await write_a_history(store)
    for state in states:
        await state.catch_up(store)
        assert state == states[-1]


@pytest.mark.parametrize("limit", [1, 2, 3, 5, 1000])
async def test_pages_of_any_size_replay_to_the_same_graph(store: Store, limit: int) -> None:
    states = await write_a_history(store)
    paged = Replica()
    pages = await paged.catch_up(store, limit=limit)
    assert paged == states[-1]
    assert pages[-1].revision == 9
    for page, following in itertools.pairwise(pages):
        assert page.more
        assert page.revision < following.revision
    for page in pages:
        revisions = {
            *(changed.node.revision for changed in page.nodes),
            *(thing.revision for things in (page.edges, page.hyperedges) for thing in things),
            *(removal.revision for removal in page.removals),
        }
        assert rows(page) <= limit or len(revisions) == 1


async def test_a_replica_that_follows_in_small_pages_equals_the_graph_at_every_step(store: Store) -> None:
    following = Replica()
    for number in range(1, 8):
        things = [node(f"n_{number}_{i}") for i in range(number)]
        await store.apply(GRAPH, batch(*things))
        await following.catch_up(store, limit=2)
        assert following == await replica(store)


async def test_things_come_oldest_revision_first_and_once(store: Store) -> None:
    await store.apply(GRAPH, batch(node("b_1"), node("a_1")))
    await store.apply(GRAPH, batch(node("c_1")))
    await store.apply(GRAPH, batch(update(node("a_1"))))
    page = await store.changes(GRAPH, 0, model_id=MODEL)
    assert [(changed.node.key, changed.node.revision) for changed in page.nodes] == [
        ("b_1", 1),
        ("c_1", 2),
        ("a_1", 3),
    ]


async def test_a_batch_larger_than_the_limit_comes_whole(store: Store) -> None:
    await store.apply(GRAPH, batch(*(node(f"n_{i}") for i in range(10))))
    await store.apply(GRAPH, batch(node("last_1")))
    first = await store.changes(GRAPH, 0, model_id=MODEL, limit=3)
    assert (rows(first), first.revision, first.more) == (10, 1, True)
    second = await store.changes(GRAPH, 1, model_id=MODEL, limit=3)
    assert (rows(second), second.revision, second.more) == (1, 2, False)


async def test_a_single_large_revision_is_the_last_page(store: Store) -> None:
    await store.apply(GRAPH, batch(*(node(f"n_{i}") for i in range(10))))
    page = await store.changes(GRAPH, 0, model_id=MODEL, limit=1)
    assert (rows(page), page.revision, page.more) == (10, 1, False)


async def test_nothing_new_is_an_empty_page_at_the_present_revision(store: Store) -> None:
    assert await store.changes(GRAPH, 0, model_id=MODEL) == ChangePage(revision=0)
    await store.apply(GRAPH, batch(node("a_1")))
    assert await store.changes(GRAPH, 1, model_id=MODEL) == ChangePage(revision=1)


async def test_a_consumer_ahead_of_the_store_is_told_the_present_revision(store: Store) -> None:
    """As after a backup was restored: the page's revision is lower than what was asked for."""
    await store.apply(GRAPH, batch(node("a_1")))
    assert await store.changes(GRAPH, 5, model_id=MODEL) == ChangePage(revision=1)


async def test_nodes_come_with_their_passages_of_the_model_asked_for(store: Store) -> None:
    long = tuple(passage(float(i), 0.5, source="search_text", start=i, end=i + 9) for i in range(12))
    await store.apply(GRAPH, batch(create(node("a_1"), vectors(*long)), node("b_1")))
    page = await store.changes(GRAPH, 0, model_id=MODEL)
    assert [(changed.node.key, changed.passages) for changed in page.nodes] == [("a_1", long), ("b_1", ())]
    other = await store.changes(GRAPH, 0, model_id="another-model")
    assert [changed.passages for changed in other.nodes] == [(), ()]


async def test_graphs_do_not_see_each_other(store: Store) -> None:
    same = (node("a_1"), node("b_1"), node("c_1"), edge("a_1", "b_1"), hyperedge("a_1", "b_1", "c_1"))
    await store.apply(GRAPH, batch(*same))
    await store.apply(OTHER_GRAPH, batch(*same))
    before = await replica(store, OTHER_GRAPH)
    await store.apply(GRAPH, batch(delete(node("a_1")), update(node("b_1"), description="Changed.")))
    assert await replica(store, OTHER_GRAPH) == before
    assert await store.revision(OTHER_GRAPH) == 1
    assert await store.revision("graph_three") == 0
