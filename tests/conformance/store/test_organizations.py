"""Organizations, their members and invitations."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from hivemem.domain.accounts import DeletedGraph, Graph, GraphKind, Member, Membership, Role
from hivemem.errors import Conflict, NotFound
from hivemem.ports.store import Store
from tests.support.builders import (
    api_key,
    authorization_code,
    grant,
    graph,
    invitation,
    minutes,
    oauth_client,
    organization,
    sign_in,
    user,
)

PEOPLE = ("user_one", "user_two", "user_three")
SHARED_GRAPH = organization().graph_id


async def fill(store: Store) -> None:
    """Three users; the first owns the organization, the second is an admin of it."""
    for name in PEOPLE:
        await store.add_user(user(name), graph(f"graph_{name}", name))
    await store.add_organization(organization(), "user_one")
    await store.put_member("org_one", "user_two", Role.ADMIN, minutes(2))


@pytest.fixture
async def shared(store: Store) -> Store:
    await fill(store)
    return store


async def roles(store: Store) -> dict[str, Role]:
    return {member.user_id: member.role for member in await store.members("org_one")}


async def test_an_empty_store_has_no_organization(store: Store) -> None:
    assert await store.organization("org_one") is None
    assert await store.organizations() == []
    assert await store.members("org_one") == []
    assert await store.invitations("org_one") == []
    assert await store.invitation("0" * 64) is None
    assert not await store.rename_organization("org_one", "New")
    assert not await store.remove_organization("org_one", minutes(1))
    assert not await store.remove_member("org_one", "user_one", minutes(1))
    assert not await store.remove_invitation("0" * 64)
    assert not await store.accept_invitation("0" * 64, "user_one", minutes(1))


async def test_an_organization_comes_with_its_graph_and_owner(shared: Store) -> None:
    assert await shared.organization("org_one") == organization()
    own = await shared.graph(SHARED_GRAPH)
    expected = Graph(
        graph_id=SHARED_GRAPH,
        name=organization().name,
        organization_id="org_one",
        created_at=organization().created_at,
    )
    assert own == expected
    assert own.kind is GraphKind.ORGANIZATION
    assert SHARED_GRAPH in await shared.graph_ids()
    assert await shared.members("org_one") == [
        Member(user_id="user_one", name="Name of user_one", role=Role.OWNER, joined_at=minutes(0)),
        Member(user_id="user_two", name="Name of user_two", role=Role.ADMIN, joined_at=minutes(2)),
    ]
    assert [one.graph_id for one in await shared.graphs("user_one")] == ["graph_user_one"]


async def test_a_taken_id_or_name_is_refused_and_adds_nothing(shared: Store) -> None:
    refused = [
        organization(name="Other", graph_id="graph_new"),
        organization("org_two", name=organization().name),
        organization("org_two", graph_id="graph_user_one"),
    ]
    for one in refused:
        with pytest.raises(Conflict):
            await shared.add_organization(one, "user_one")
    with pytest.raises(NotFound, match="user_none"):
        await shared.add_organization(organization("org_two"), "user_none")
    assert await shared.organizations() == [organization()]
    # A user and an organization may have the same name.
    namesake = organization("org_two", name=user().name, created_at=minutes(-1))
    await shared.add_organization(namesake, "user_three")
    assert await shared.organizations() == [namesake, organization()]


async def test_an_organization_is_renamed(shared: Store) -> None:
    await shared.add_organization(organization("org_two"), "user_two")
    assert await shared.rename_organization("org_one", "Åse & Co ☕")
    assert await shared.rename_organization("org_one", "Åse & Co ☕")
    assert await shared.organization("org_one") == organization(name="Åse & Co ☕")
    with pytest.raises(Conflict):
        await shared.rename_organization("org_one", organization("org_two").name)
    assert await shared.organization("org_one") == organization(name="Åse & Co ☕")


async def test_an_account_lists_memberships_by_name(shared: Store) -> None:
    for id, name in (("org_b", "A"), ("org_a", "a"), ("org_c", "Ä")):
        await shared.add_organization(organization(id, name=name), "user_three")
        await shared.put_member(id, "user_two", Role.MEMBER, minutes(3))
    frozen = await shared.graph("graph_of_org_a")
    assert frozen is not None
    assert await shared.put_graph(replace(frozen, frozen_at=minutes(4)))
    account = await shared.account("user_two", SHARED_GRAPH)
    assert account is not None
    assert account.user == user("user_two")
    assert account.graph == await shared.graph(SHARED_GRAPH)
    assert [one.name for one in account.memberships] == ["A", organization().name, "a", "Ä"]
    assert account.membership("org_a") == Membership(
        organization_id="org_a", name="a", graph_id="graph_of_org_a", role=Role.MEMBER, frozen=True
    )
    assert account.membership("org_one") == Membership(
        organization_id="org_one", name=organization().name, graph_id=SHARED_GRAPH, role=Role.ADMIN
    )
    stranger = await shared.account("user_two", "graph_none")
    assert stranger == replace(account, graph=None)


async def test_a_role_changes_and_the_joining_stays(shared: Store) -> None:
    await shared.put_member("org_one", "user_two", Role.OWNER, minutes(8))
    assert (await shared.members("org_one"))[1].joined_at == minutes(2)
    await shared.put_member("org_one", "user_one", Role.MEMBER, minutes(9))
    assert await roles(shared) == {"user_one": Role.MEMBER, "user_two": Role.OWNER}
    for organization_id, user_id in (("org_none", "user_one"), ("org_one", "user_none")):
        with pytest.raises(NotFound, match="none"):
            await shared.put_member(organization_id, user_id, Role.MEMBER, minutes(1))


async def test_an_organization_keeps_an_owner(shared: Store) -> None:
    for role in (Role.ADMIN, Role.MEMBER):
        with pytest.raises(Conflict) as refused:
            await shared.put_member("org_one", "user_one", role, minutes(3))
        assert refused.value.code == "last_owner"
    with pytest.raises(Conflict) as refused:
        await shared.remove_member("org_one", "user_one", minutes(3))
    assert refused.value.code == "last_owner"
    await shared.put_member("org_one", "user_one", Role.OWNER, minutes(3))
    assert await roles(shared) == {"user_one": Role.OWNER, "user_two": Role.ADMIN}


async def test_of_two_owners_that_go_at_once_one_stays(two_stores: tuple[Store, Store]) -> None:
    one, two = two_stores
    await fill(one)
    for leave in ("demote", "remove", "remove_user"):
        await one.put_member("org_one", "user_one", Role.OWNER, minutes(1))
        await one.put_member("org_one", "user_two", Role.OWNER, minutes(1))
        first = one.put_member("org_one", "user_one", Role.MEMBER, minutes(3))
        if leave == "demote":
            second = two.put_member("org_one", "user_two", Role.MEMBER, minutes(3))
        elif leave == "remove":
            second = two.remove_member("org_one", "user_two", minutes(3))
        else:
            second = two.remove_user("user_two", minutes(3))
        results = await asyncio.gather(first, second, return_exceptions=True)
        refused = [result for result in results if isinstance(result, Conflict)]
        assert [error.code for error in refused] == ["last_owner"]
        assert list((await roles(two)).values()).count(Role.OWNER) == 1


async def test_write_mode_ends_with_the_right_to_write(shared: Store) -> None:
    writing = user("user_two", write_organization_id="org_one")

    async def mode() -> str | None:
        person = await shared.user("user_two")
        assert person is not None
        return person.write_organization_id

    await shared.put_user(writing)
    await shared.put_member("org_one", "user_two", Role.OWNER, minutes(1))
    assert await mode() == "org_one"
    await shared.put_member("org_one", "user_two", Role.MEMBER, minutes(1))
    assert await mode() is None
    await shared.put_user(writing)
    assert await shared.remove_member("org_one", "user_two", minutes(1))
    assert await mode() is None
    await shared.put_member("org_one", "user_two", Role.ADMIN, minutes(1))
    await shared.put_user(writing)
    assert await shared.remove_organization("org_one", minutes(2))
    assert await mode() is None


async def test_who_leaves_loses_keys_and_grants_there_alone(shared: Store) -> None:
    away = api_key("hm_" + "1" * 64, user_id="user_two", graph_id=SHARED_GRAPH)
    own = api_key("hm_" + "2" * 64, user_id="user_two", graph_id="graph_user_two")
    other = api_key("hm_" + "3" * 64, graph_id=SHARED_GRAPH)
    await shared.put_oauth_client(oauth_client())
    for number, key in enumerate((away, own, other)):
        await shared.add_key(key)
        secret = f"sign-in {number}"
        await shared.add_sign_in(sign_in(secret))
        given = grant(secret, user_id=key.user_id, graph_id=key.graph_id, key_id=key.key_id)
        code = authorization_code(secret, secret)
        assert await shared.allow_sign_in(sign_in(secret).hash, given, code)
    assert await shared.remove_member("org_one", "user_two", minutes(3))
    assert not await shared.remove_member("org_one", "user_two", minutes(3))
    assert sorted(key.key_id for key in await shared.keys()) == sorted((own.key_id, other.key_id))
    assert [one.grant_id for one in await shared.grants("user_two")] == ["sign-in 1"]
    assert [one.grant_id for one in await shared.grants("user_one")] == ["sign-in 2"]
    assert await roles(shared) == {"user_one": Role.OWNER}


async def test_a_removed_organization_leaves_its_members_alone(shared: Store) -> None:
    await shared.add_key(api_key(graph_id=SHARED_GRAPH))
    own = api_key("hm_" + "2" * 64, graph_id="graph_user_one")
    await shared.add_key(own)
    await shared.add_invitation(invitation())
    assert await shared.remove_organization("org_one", minutes(5))
    assert not await shared.remove_organization("org_one", minutes(6))
    assert await shared.organizations() == []
    assert await shared.members("org_one") == []
    assert await shared.invitation(invitation().hash) is None
    assert await shared.keys() == [own]
    assert await shared.graph(SHARED_GRAPH) is None
    assert await shared.deleted_graphs() == [DeletedGraph(graph_id=SHARED_GRAPH, deleted_at=minutes(5))]
    account = await shared.account("user_two", "graph_user_two")
    assert account is not None
    assert account.memberships == ()
    assert await shared.leftovers() == {}
    with pytest.raises(Conflict, match=SHARED_GRAPH):
        await shared.add_organization(organization(), "user_one")
    fresh = organization(graph_id="graph_fresh")
    await shared.add_organization(fresh, "user_two")
    assert await shared.organizations() == [fresh]


async def test_invitations_are_listed_newest_first(shared: Store) -> None:
    first, second = invitation(), invitation("inv_2", created_at=minutes(1), role=Role.OWNER)
    await shared.add_invitation(first)
    await shared.add_invitation(second)
    assert await shared.invitations("org_one") == [second, first]
    assert await shared.invitation(second.hash) == second
    assert await shared.remove_invitation(second.hash)
    assert not await shared.remove_invitation(second.hash)
    assert await shared.invitations("org_one") == [first]
    for refused in (invitation("inv_3", organization_id="org_none"), invitation(invited_by="user_none")):
        with pytest.raises(NotFound, match="none"):
            await shared.add_invitation(refused)


async def test_an_invitation_is_used_once(two_stores: tuple[Store, Store]) -> None:
    one, two = two_stores
    await fill(one)
    await one.add_invitation(invitation())
    with pytest.raises(NotFound, match="user_none"):
        await one.accept_invitation(invitation().hash, "user_none", minutes(9))
    results = await asyncio.gather(
        *(
            store.accept_invitation(invitation().hash, "user_three", minutes(at))
            for at, store in enumerate((one, two, one, two))
        )
    )
    assert sorted(results) == [False, False, False, True]
    used = minutes(results.index(True))
    assert await two.invitation(invitation().hash) == invitation(used_at=used, used_by="user_three")
    joined = (await two.members("org_one"))[-1] if used > minutes(2) else None
    assert (await roles(two))["user_three"] is Role.MEMBER
    assert joined is None or joined.joined_at == used


async def test_an_invitation_ends_and_never_takes_a_role_away(shared: Store) -> None:
    await shared.add_invitation(invitation())
    assert not await shared.accept_invitation(invitation().hash, "user_three", minutes(60))
    assert "user_three" not in await roles(shared)
    assert await shared.invitation(invitation().hash) == invitation()
    assert await shared.accept_invitation(invitation().hash, "user_two", minutes(59))
    assert (await roles(shared))["user_two"] is Role.ADMIN
    raised = invitation("inv_2", role=Role.OWNER)
    await shared.add_invitation(raised)
    assert await shared.accept_invitation(raised.hash, "user_two", minutes(5))
    assert (await roles(shared))["user_two"] is Role.OWNER
