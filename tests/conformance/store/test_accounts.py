"""Users, their graphs, and who they are elsewhere."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from hivemem.domain.access import Scope
from hivemem.domain.accounts import DeletedGraph, Graph, Role
from hivemem.domain.oauth import Identity
from hivemem.errors import Conflict, InvalidInput, NotFound, StaleWrite
from hivemem.ports.store import Store
from tests.support.builders import (
    api_key,
    authorization_code,
    batch,
    external_identity,
    grant,
    graph,
    invitation,
    minutes,
    node,
    oauth_client,
    organization,
    sign_in,
    token,
    user,
)

IDENTITY = Identity(user_id="user_one", graph_id="graph_one", scope=Scope.OWNER, key_id=api_key().key_id)


async def test_an_empty_store_knows_nobody(store: Store) -> None:
    assert await store.users() == []
    assert await store.user("user_one") is None
    assert await store.user_by_name("Name of user_one") is None
    assert await store.graphs("user_one") == []
    assert await store.graph("graph_one") is None
    assert await store.graph_ids() == []
    assert not await store.put_graph(graph())
    assert not await store.remove_graph("graph_one", minutes(1))
    assert not await store.remove_user("user_one", minutes(1))
    assert await store.account("user_one", "graph_one") is None
    assert await store.external_identities("user_one") == []
    assert not await store.remove_external_identity("https://accounts.example", "1")
    with pytest.raises(NotFound, match="user_one"):
        await store.put_user(user())


async def test_users_and_graphs_are_listed_oldest_first(store: Store) -> None:
    late = user("user_late", name="Åse 👩", created_at=minutes(2), operator=True, password_hash="$argon2id$")
    early = user("user_early", created_at=minutes(1))
    of_late = graph("graph_late", "user_late", name="Å", is_default=True, frozen_at=minutes(4))
    await store.add_user(late, of_late)
    await store.add_user(early, graph("graph_early", "user_early"))
    assert await store.users() == [early, late]
    assert await store.user("user_late") == late
    assert await store.user_by_name("Åse 👩") == late
    assert await store.user_by_name("åse 👩") is None
    older = graph("graph_a", "user_late", created_at=minutes(-1))
    await store.add_graph(older)
    assert await store.graphs("user_late") == [older, of_late]
    assert await store.graphs("user_early") == [graph("graph_early", "user_early")]
    assert sorted(await store.graph_ids()) == ["graph_a", "graph_early", "graph_late"]


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


async def test_a_user_changes(store: Store) -> None:
    await store.add_user(user(operator=True), graph())
    await store.add_user(user("user_two"), graph("graph_two", "user_two"))
    await store.add_organization(organization(), "user_one")
    changed = user("user_two", name="New", operator=True, password_hash="$a", write_organization_id="org_one")
    await store.put_user(replace(changed, created_at=minutes(9)))
    assert await store.user("user_two") == changed
    await store.put_user(user())
    assert await store.users() == [user(), changed]
    for refused, error in (
        (user(name="New"), Conflict),
        (user(write_organization_id="org_none"), NotFound),
        (user("user_none"), NotFound),
    ):
        with pytest.raises(error):
            await store.put_user(refused)
    assert await store.users() == [user(), changed]


async def test_a_change_undoes_none_that_was_made_since_it_was_read(store: Store) -> None:
    await store.add_user(user(operator=True), graph())
    read = user("user_two", operator=True)
    await store.add_user(read, graph("graph_two", "user_two"))
    demoted = replace(read, operator=False)
    await store.put_user(demoted, read=read)
    with pytest.raises(StaleWrite, match="changed meanwhile"):
        await store.put_user(replace(read, name="New"), read=read)
    assert await store.user("user_two") == demoted
    await store.put_user(demoted, read=read)  # as after an answer that was lost
    await store.put_user(replace(demoted, name="New"), read=demoted)
    assert await store.user("user_two") == replace(demoted, name="New")


async def test_a_change_of_a_graph_undoes_none_that_was_made_since_it_was_read(store: Store) -> None:
    await store.add_user(user(), graph())
    read = await store.graph("graph_one")
    assert read is not None
    frozen = replace(read, frozen_at=minutes(3))
    assert await store.put_graph(frozen, read=read)
    with pytest.raises(StaleWrite, match="'graph_one' was changed meanwhile"):
        await store.put_graph(replace(read, name="New"), read=read)
    assert await store.graph("graph_one") == frozen
    assert await store.put_graph(frozen, read=read), "as after an answer that was lost"
    assert not await store.put_graph(graph("graph_gone"), read=graph("graph_gone"))


async def test_a_user_has_at_most_one_default_graph(store: Store) -> None:
    await store.add_user(user(), graph(is_default=True))
    await store.add_user(user("user_two"), graph("graph_two", "user_two", is_default=True))
    await store.add_graph(graph("graph_b", is_default=True, created_at=minutes(1)))

    async def defaults() -> list[str]:
        return [one.graph_id for one in await store.graphs("user_one") if one.is_default]

    assert await defaults() == ["graph_b"]
    changed = graph(name="Work", is_default=True, frozen_at=minutes(3))
    assert await store.put_graph(replace(changed, created_at=minutes(9)))
    assert await store.graph("graph_one") == changed
    assert await defaults() == ["graph_one"]
    assert not await store.put_graph(graph("graph_gone", is_default=True))
    assert await defaults() == ["graph_one"]
    assert await store.put_graph(graph())
    assert await store.graph("graph_one") == graph()
    assert await defaults() == []
    assert await store.graphs("user_two") == [graph("graph_two", "user_two", is_default=True)]


async def test_a_further_graph_needs_its_user_and_a_fresh_id(store: Store) -> None:
    await store.add_user(user(), graph())
    await store.add_organization(organization(), "user_one")
    with pytest.raises(NotFound, match="user_none"):
        await store.add_graph(graph("graph_two", "user_none"))
    with pytest.raises(Conflict, match="graph_one"):
        await store.add_graph(graph())
    theirs = Graph(graph_id="graph_two", name="b", organization_id="org_one", created_at=minutes(0))
    with pytest.raises(InvalidInput, match="graph_two"):
        await store.add_graph(theirs)
    assert await store.graphs("user_one") == [graph()]


async def test_a_removed_graph_is_gone_with_keys_and_grants(store: Store) -> None:
    await store.add_user(user(), graph())
    await store.add_graph(graph("graph_two"))
    await fill_access(store)
    await store.add_key(api_key("hm_" + "1" * 64, graph_id="graph_two"))
    assert await store.remove_graph("graph_one", minutes(5))
    assert not await store.remove_graph("graph_one", minutes(6))
    assert await store.graph("graph_one") is None
    assert await store.graph_ids() == ["graph_two"]
    assert [key.graph_id for key in await store.keys()] == ["graph_two"]
    await expect_no_access(store)
    assert await store.deleted_graphs() == [DeletedGraph(graph_id="graph_one", deleted_at=minutes(5))]
    assert await store.account("user_one", "graph_one") == await store.account("user_one", "none")
    with pytest.raises(Conflict, match="graph_one"):
        await store.add_graph(graph())
    with pytest.raises(NotFound, match="graph_one"):
        await store.add_key(api_key())


async def test_the_graph_of_an_organization_is_not_removed_alone(store: Store) -> None:
    await store.add_user(user(), graph())
    await store.add_organization(organization(), "user_one")
    assert not await store.remove_graph(organization().graph_id, minutes(1))
    assert await store.graph(organization().graph_id) is not None


async def test_a_removed_user_takes_all_that_is_theirs(store: Store) -> None:
    await store.add_user(user("user_two"), graph("graph_two", "user_two"))
    await store.add_user(user(), graph())
    await store.add_graph(graph("graph_more", created_at=minutes(1)))
    await store.add_organization(organization(), "user_two")
    await store.put_member("org_one", "user_one", Role.ADMIN, minutes(1))
    await store.add_invitation(invitation())
    await store.add_external_identity(external_identity())
    await fill_access(store)
    shared_key = api_key("hm_" + "1" * 64, graph_id=organization().graph_id)
    kept_key = api_key("hm_" + "2" * 64, user_id="user_two", graph_id="graph_two")
    await store.add_key(shared_key)
    await store.add_key(kept_key)
    assert await store.remove_user("user_one", minutes(5))
    assert not await store.remove_user("user_one", minutes(6))
    assert await store.user("user_one") is None
    assert await store.users() == [user("user_two")]
    assert await store.keys() == [kept_key]
    assert await store.invitations("org_one") == []
    assert [member.user_id for member in await store.members("org_one")] == ["user_two"]
    assert await store.user_by_external_identity("https://accounts.example", "248289761001") is None
    await expect_no_access(store)
    deleted = [DeletedGraph(graph_id=id, deleted_at=minutes(5)) for id in ("graph_more", "graph_one")]
    assert await store.deleted_graphs() == deleted
    assert await store.leftovers() == {}
    await store.add_user(user(), graph("graph_fresh"))
    assert await store.user("user_one") == user()


async def test_nobody_leaves_without_an_operator_or_owner(store: Store) -> None:
    await store.add_user(user(operator=True), graph())
    for change in (store.remove_user("user_one", minutes(1)), store.put_user(user())):
        with pytest.raises(Conflict) as only_operator:
            await change
        assert only_operator.value.code == "last_operator"
    await store.add_user(user("user_two", operator=True), graph("graph_two", "user_two"))
    await store.add_organization(organization(), "user_one")
    with pytest.raises(Conflict, match="org_one") as only_owner:
        await store.remove_user("user_one", minutes(1))
    assert only_owner.value.code == "last_owner"
    assert await store.users() == [user(operator=True), user("user_two", operator=True)]
    assert await store.graphs("user_one") == [graph()]
    await store.put_member("org_one", "user_two", Role.OWNER, minutes(1))
    assert await store.remove_user("user_one", minutes(1))


async def test_of_two_operators_that_go_at_once_one_stays(two_stores: tuple[Store, Store]) -> None:
    one, two = two_stores
    for number in range(3):
        names = (f"user_{number}_a", f"user_{number}_b")
        for name in names:
            await one.add_user(user(name, operator=True), graph(f"graph_{name}", name))
        others = [person for person in await one.users() if person.operator and person.user_id not in names]
        for person in others:
            await one.put_user(replace(person, operator=False))
        results = await asyncio.gather(
            one.remove_user(names[0], minutes(1)),
            two.put_user(user(names[1])),
            return_exceptions=True,
        )
        refused = [result for result in results if isinstance(result, Conflict)]
        assert [error.code for error in refused] == ["last_operator"]
        assert sum(person.operator for person in await two.users()) == 1


async def test_outside_identities(store: Store) -> None:
    await store.add_user(user(), graph())
    late, early = external_identity("é", created_at=minutes(2)), external_identity("1")
    for identity in (late, early):
        await store.add_external_identity(identity)
    assert await store.external_identities("user_one") == [early, late]
    assert await store.user_by_external_identity(late.issuer, "é") == user()
    assert await store.user_by_external_identity("https://other.example", "é") is None
    with pytest.raises(Conflict):
        await store.add_external_identity(early)
    with pytest.raises(NotFound, match="user_none"):
        await store.add_external_identity(external_identity("2", user_id="user_none"))
    assert await store.remove_external_identity(late.issuer, "é")
    assert not await store.remove_external_identity(late.issuer, "é")
    assert await store.external_identities("user_one") == [early]


async def fill_access(store: Store) -> None:
    """A key, a grant with code and tokens, and a sign-in under way, of the default user and graph."""
    await store.add_key(api_key())
    await store.put_oauth_client(oauth_client())
    await store.add_sign_in(sign_in())
    await store.allow_sign_in(sign_in().hash, grant(), authorization_code())
    await store.exchange_code(authorization_code().hash, [token()], minutes(1))
    await store.add_sign_in(sign_in("another"))
    await store.identify(sign_in("another").hash, IDENTITY, "consent")


async def expect_no_access(store: Store) -> None:
    """Nothing of `fill_access` is left, and what looked at it meanwhile gets nothing."""
    assert await store.key_account(api_key().hash) is None
    assert await store.grants("user_one") == []
    assert await store.oauth_token(token().hash) is None
    assert await store.authorization_code(authorization_code().hash) is None
    assert await store.sign_in(sign_in("another").hash) is None
    await store.add_sign_in(sign_in("late"))
    late = authorization_code("ac_2", "grant_two")
    assert not await store.allow_sign_in(sign_in("late").hash, grant("grant_two"), late)
