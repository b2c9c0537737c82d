"""Users, graphs and credentials."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hivemem.domain.access import Scope
from hivemem.errors import Conflict, InvalidInput, NotFound
from hivemem.ports.store import Store
from tests.support.builders import api_key, batch, graph, minutes, node, user


async def test_an_empty_store_knows_nobody(store: Store) -> None:
    assert await store.users() == []
    assert await store.graphs("user_one") == []
    assert await store.keys() == []
    assert await store.key_by_hash("0" * 64) is None
    assert not await store.revoke_key("000000000000", minutes(1))


async def test_users_and_graphs_are_listed_oldest_first(store: Store) -> None:
    late = user("user_late", name="Åse 👩", created_at=minutes(2))
    early = user("user_early", created_at=minutes(1))
    await store.add_user(late, graph("graph_late", "user_late", name="Å"))
    await store.add_user(early, graph("graph_early", "user_early"))
    assert await store.users() == [early, late]
    assert await store.graphs("user_late") == [
        graph("graph_late", "user_late", name="Å")
    ]
    assert await store.graphs("user_early") == [graph("graph_early", "user_early")]


async def test_a_taken_id_or_name_is_refused_and_adds_nothing(store: Store) -> None:
    await store.add_user(user(), graph())
    refused = [
        (user(name="Other"), graph("graph_new")),
        (user("user_two", name=user().name), graph("graph_new", "user_two")),
        (user("user_two"), graph("graph_one", "user_two")),
    ]
    for person, first_graph in refused:
        with pytest.raises(Conflict):
            await store.add_user(person, first_graph)
    with pytest.raises(InvalidInput):
        await store.add_user(user("user_two"), graph("graph_two", "user_one"))
    assert await store.users() == [user()]
    assert await store.graphs("user_one") == [graph()]
    assert await store.graphs("user_two") == []


async def test_a_graph_may_be_written_before_it_has_an_owner(store: Store) -> None:
    await store.apply("graph_one", batch(node("a_1")))
    await store.add_user(user(), graph())
    assert await store.revision("graph_one") == 1


async def test_keys_are_found_by_hash_also_when_revoked(store: Store) -> None:
    await store.add_user(user(), graph())
    first = api_key(scope=Scope.MEMBER, created_at=minutes(2))
    second = api_key("hm_" + "1" * 64, created_at=minutes(1))
    await store.add_key(first)
    await store.add_key(second)
    assert await store.key_by_hash(first.hash) == first
    assert await store.key_by_hash(first.hash.upper()) is None
    assert await store.keys() == [second, first]
    assert await store.revoke_key(first.key_id, minutes(9))
    ended = replace(first, revoked_at=minutes(9))
    assert await store.key_by_hash(first.hash) == ended
    assert not await store.revoke_key(first.key_id, minutes(10))
    assert await store.keys() == [second, ended]


async def test_a_key_needs_its_user_and_graph_and_is_added_once(store: Store) -> None:
    await store.add_user(user(), graph())
    with pytest.raises(NotFound, match="user_none"):
        await store.add_key(api_key(user_id="user_none"))
    with pytest.raises(NotFound, match="graph_none"):
        await store.add_key(api_key(graph_id="graph_none"))
    await store.add_key(api_key())
    with pytest.raises(Conflict):
        await store.add_key(api_key())
    assert await store.keys() == [api_key()]
