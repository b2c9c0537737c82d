"""API keys, and the account that one read tells with a key."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hivemem.domain.access import Scope, principal_at
from hivemem.domain.accounts import Account, Membership, Role
from hivemem.errors import Conflict, NotFound
from hivemem.ports.store import Store
from tests.support.builders import api_key, graph, minutes, organization, user

SHARED_GRAPH = organization().graph_id


async def test_an_empty_store_has_no_key(store: Store) -> None:
    assert await store.keys() == []
    assert await store.keys("user_one") == []
    assert await store.key_account("0" * 64) is None
    assert not await store.revoke_key("000000000000", minutes(1))
    await store.key_used("000000000000", minutes(1))


async def test_keys_are_found_by_hash_also_when_they_have_ended(store: Store) -> None:
    await store.add_user(user(), graph(is_default=True))
    first = api_key(scope=Scope.MEMBER, created_at=minutes(2), admin=True, expires_at=minutes(5))
    second = api_key("hm_" + "1" * 64, created_at=minutes(1))
    await store.add_key(first)
    await store.add_key(second)
    account = Account(user=user(), graph=graph(is_default=True))
    assert await store.key_account(first.hash) == (first, account)
    assert await store.key_account(second.hash) == (second, account)
    assert await store.key_account(first.hash.upper()) is None
    assert await store.keys() == [second, first]
    assert await store.revoke_key(first.key_id, minutes(9))
    ended = replace(first, revoked_at=minutes(9))
    assert await store.key_account(first.hash) == (ended, account)
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


async def test_keys_of_one_user(store: Store) -> None:
    await store.add_user(user(), graph())
    await store.add_user(user("user_two"), graph("graph_two", "user_two"))
    own = [api_key("hm_" + digit * 64, created_at=minutes(int(digit))) for digit in "213"]
    for key in (*own, api_key(user_id="user_two", graph_id="graph_two")):
        await store.add_key(key)
    assert await store.keys("user_one") == [own[1], own[0], own[2]]
    assert [key.user_id for key in await store.keys("user_two")] == ["user_two"]
    assert await store.keys("user_none") == []
    assert len(await store.keys()) == 4


async def test_the_last_use_only_advances(store: Store) -> None:
    await store.add_user(user(), graph())
    await store.add_key(api_key())
    for at, expected in ((5, 5), (3, 5), (7, 7)):
        await store.key_used(api_key().key_id, minutes(at))
        assert await store.keys() == [api_key(last_used_at=minutes(expected))]


async def test_a_key_tells_of_memberships_and_of_its_graph(store: Store) -> None:
    """One read has all that a principal is made of."""
    person = user(operator=True, password_hash="$argon2id$v=19", write_organization_id="org_one")
    await store.add_user(replace(person, write_organization_id=None), graph())
    await store.add_organization(organization(), "user_one")
    await store.add_organization(organization("org_two", name="A"), "user_one")
    await store.put_user(person)
    key = api_key(graph_id=SHARED_GRAPH, admin=True)
    await store.add_key(key)
    shared = await store.graph(SHARED_GRAPH)
    assert shared is not None
    frozen = replace(shared, frozen_at=minutes(1))
    assert await store.put_graph(frozen)
    found = await store.key_account(key.hash)
    memberships = (
        Membership(organization_id="org_two", name="A", graph_id="graph_of_org_two", role=Role.OWNER),
        Membership(
            organization_id="org_one",
            name=organization().name,
            graph_id=SHARED_GRAPH,
            role=Role.OWNER,
            frozen=True,
        ),
    )
    assert found == (key, Account(user=person, memberships=memberships, graph=frozen))
    principal = principal_at(found[1], scope=key.scope)
    assert principal is not None
    assert (principal.organization_id, principal.frozen) == ("org_one", True)


async def test_a_key_is_told_without_a_right_that_ended(store: Store) -> None:
    """A key at a graph that its user does not reach is found, and makes no principal."""
    await store.add_user(user(), graph())
    await store.add_user(user("user_two"), graph("graph_two", "user_two"))
    await store.add_key(api_key(graph_id="graph_two"))
    found = await store.key_account(api_key().hash)
    assert found is not None
    assert found[1] == Account(user=user(), graph=graph("graph_two", "user_two"))
    assert principal_at(found[1], scope=Scope.OWNER) is None
