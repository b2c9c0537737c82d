"""Deleted graphs: their content goes in pieces, and nothing of others."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from hivemem.domain.accounts import DeletedGraph, Role
from hivemem.errors import NotFound
from hivemem.ports.store import Store
from hivemem.storage.tables import PURGED_TABLES
from tests.conformance.store.backends import Backend
from tests.conformance.store.content import (
    all_of,
    export,
    file,
    fill_graph,
    skill,
    token_report,
)
from tests.conformance.store.observe import GRAPH, OTHER_GRAPH
from tests.support.builders import (
    batch,
    delete,
    entry,
    graph,
    minutes,
    node,
    organization,
    user,
    vectors,
)

NOT_IN_MEMORY = {"hyperedge_participants", "timeline_terms"}
"""Parts of other rows in the reference store."""

Remove = Callable[[Store], Awaitable[bool]]


async def remove_user(store: Store) -> bool:
    return await store.remove_user("user_one", minutes(5))


async def remove_graph(store: Store) -> bool:
    return await store.remove_graph(GRAPH, minutes(5))


async def remove_organization(store: Store) -> bool:
    return await store.remove_organization("org_one", minutes(5))


async def people(store: Store, *, shared: bool = False) -> None:
    """Two users; the first graph is the first one's, or their organization's."""
    await store.add_user(user("user_two"), graph(OTHER_GRAPH, "user_two"))
    await store.add_user(user(), graph("graph_own" if shared else GRAPH))
    if shared:
        await store.add_organization(organization(graph_id=GRAPH), "user_two")
        await store.put_member("org_one", "user_one", Role.ADMIN, minutes(1))


async def colleagues(store: Store) -> None:
    """Two users; the first graph is the first one's, the other one is their organization's."""
    await store.add_user(user("user_two"), graph("graph_own", "user_two"))
    await store.add_user(user(), graph())
    await store.add_organization(organization(graph_id=OTHER_GRAPH), "user_two")
    await store.put_member("org_one", "user_one", Role.MEMBER, minutes(1))


async def purge(store: Store, limit: int) -> list[int]:
    """Rows that went in each step, until none was left."""
    steps: list[int] = []
    while removed := await store.purge_graph(GRAPH, limit):
        steps.append(removed)
    return steps


async def test_an_empty_store_has_nothing_to_purge(store: Store) -> None:
    assert await store.deleted_graphs() == []
    assert await store.deleted_graphs(minutes(0)) == []
    assert await store.purge_graph(GRAPH) == 0
    assert await store.leftovers() == {}
    await store.graph_purged(GRAPH, minutes(1))
    await store.reclaim()
    assert await store.deleted_graphs(minutes(0)) == []


@pytest.mark.parametrize("remove", [remove_user, remove_graph, remove_organization])
async def test_the_content_of_a_removed_graph_goes_in_pieces(
    store: Store, backend: Backend, remove: Remove
) -> None:
    if remove is remove_user:
        await colleagues(store)
    else:
        await people(store, shared=remove is remove_organization)
    await fill_graph(store, GRAPH, "secret")
    await fill_graph(store, OTHER_GRAPH, "public")
    before = await all_of(store, OTHER_GRAPH)
    assert await remove(store)
    assert await store.deleted_graphs() == [DeletedGraph(graph_id=GRAPH, deleted_at=minutes(5))]
    left = await store.leftovers()
    expected = {table.name for table in PURGED_TABLES} - (
        set() if backend.capabilities.durable else NOT_IN_MEMORY
    )
    assert left.keys() >= expected
    assert min(left.values()) > 0
    steps = await purge(store, 10)
    assert len(steps) > 5
    assert max(steps) <= 20
    assert await store.purge_graph(GRAPH) == 0
    assert await store.leftovers() == {}
    if remove is remove_user:
        # Reports and exports of the user at the organization went with the user.
        assert await store.export(OTHER_GRAPH, "export_1") is None
        await store.add_export(OTHER_GRAPH, export())
        for ordinal in range(3):
            chunk = b"Chunk public" * 9
            await store.add_export_chunk(OTHER_GRAPH, "export_1", "doc", ordinal, chunk)
    assert await all_of(store, OTHER_GRAPH) == before
    await store.reclaim()
    assert await all_of(store, OTHER_GRAPH) == before


async def test_what_is_purged_is_noted(store: Store) -> None:
    await people(store)
    await store.add_graph(graph("graph_three"))
    assert await store.remove_graph("graph_three", minutes(9))
    assert await store.remove_graph(GRAPH, minutes(5))
    first = DeletedGraph(graph_id=GRAPH, deleted_at=minutes(5))
    second = DeletedGraph(graph_id="graph_three", deleted_at=minutes(9))
    assert await store.deleted_graphs() == [first, second]
    await store.graph_purged(GRAPH, minutes(20))
    done = DeletedGraph(graph_id=GRAPH, deleted_at=minutes(5), purged_at=minutes(20))
    assert await store.deleted_graphs() == [second]
    assert await store.deleted_graphs(minutes(5)) == [done, second]
    assert await store.deleted_graphs(minutes(6)) == [second]
    assert await store.deleted_graphs(minutes(10)) == [second]


async def test_a_graph_that_is_not_deleted_is_left_alone(store: Store) -> None:
    await people(store)
    await fill_graph(store, GRAPH, "kept")
    before = await all_of(store, GRAPH)
    assert await store.purge_graph(GRAPH) == 0
    assert await all_of(store, GRAPH) == before
    assert await store.leftovers() == {}


async def test_rows_without_owner_are_told(store: Store) -> None:
    await people(store)
    await store.apply("graph_of_nobody", batch(node("a_1"), entry()))
    await store.record_tokens(GRAPH, token_report("user_none"))
    await store.add_export(GRAPH, export("export_2", "user_none"))
    left = await store.leftovers()
    assert {name: left[name] for name in ("nodes", "timeline", "token_reports", "exports")} == {
        "nodes": 1,
        "timeline": 1,
        "token_reports": 1,
        "exports": 1,
    }
    assert "users" not in left


async def test_a_deleted_graph_takes_nothing_new(store: Store) -> None:
    """A request can be under way when its graph is deleted."""
    await people(store)
    await fill_graph(store, GRAPH, "old", nodes=4)
    stored = await store.nodes(GRAPH, ["n_03"])
    assert await store.remove_graph(GRAPH, minutes(5))
    late: list[Callable[[], Awaitable[object]]] = [
        lambda: store.apply(GRAPH, batch(node("late_1"))),
        lambda: store.apply(GRAPH, batch(delete(stored["n_03"]))),
        lambda: store.apply(GRAPH, batch(entry())),
        lambda: store.touch(GRAPH, "late", ["n_00"], minutes(6)),
        lambda: store.add_event(GRAPH, entry()),
        lambda: store.record_tokens(GRAPH, token_report(session_id="late")),
        lambda: store.add_file(GRAPH, file("late")),
        lambda: store.put_skill(GRAPH, skill("late")),
        lambda: store.add_export(GRAPH, export("export_late")),
    ]
    for purged in (False, True):
        for write in late:
            with pytest.raises(NotFound, match=GRAPH) as refused:
                await write()
            assert refused.value.code == "graph_deleted"
        # What works behind a request ends quietly, and leaves nothing.
        enriched = await store.put_vectors(
            GRAPH, "n_00", stored["n_03"].write_version, vectors(), stored["n_03"].enrichment_status
        )
        assert enriched is not purged
        await store.add_export_chunk(GRAPH, "export_1", "doc", 7, b"late")
        await store.drop_forgotten_files(GRAPH, minutes(0))
        await store.drop_stale_exports(GRAPH, minutes(0), minutes(0))
        assert not await store.remove_skill(GRAPH, "none")
        await purge(store, 1000)
        await store.graph_purged(GRAPH, minutes(7))
        assert await store.leftovers() == {}
