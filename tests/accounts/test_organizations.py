"""Organizations: roles, members, invitations and write mode."""

from __future__ import annotations

import asyncio

import pytest

from hivemem.domain.access import Scope
from hivemem.domain.accounts import Role
from hivemem.errors import Conflict, Forbidden, InvalidInput, InvalidRequest, NotFound, Unauthorized
from tests.accounts.conftest import House


@pytest.fixture
async def acme(house: House) -> str:
    """Acme: Ada owns it, Adam is admin, Mia a member; Sam is a stranger."""
    for name in ("Ada", "Adam", "Mia", "Sam"):
        await house.newcomer(name)
    ada = await house.as_user("Ada")
    organization = await house.organizations.add(ada, "Acme")
    operator = await house.operator()
    await house.organizations.put_member(operator, "Acme", "Adam", Role.ADMIN, is_new=True)
    await house.organizations.put_member(operator, "Acme", "Mia", Role.MEMBER, is_new=True)
    return organization.organization_id


async def test_everybody_reads_the_organization_and_owners_and_admins_write_it(
    house: House, acme: str
) -> None:
    for name, may_write in (("Ada", True), ("Adam", True), ("Mia", False)):
        caller = await house.as_user(name)
        reading = caller.for_reading(acme)
        assert reading.graph_id != caller.graph_id and reading.organization_id == acme
        with pytest.raises(Forbidden):
            reading.require_write()
        if may_write:
            await house.organizations.write_mode(caller, "Acme")
            assert (await house.as_user(name)).for_writing().graph_id == reading.graph_id
            await house.organizations.write_mode(caller, None)
        else:
            with pytest.raises(Forbidden, match="members read"):
                await house.organizations.write_mode(caller, "Acme")
        assert (await house.as_user(name)).for_writing().graph_id == caller.graph_id


async def test_a_stranger_learns_nothing_about_an_organization(house: House, acme: str) -> None:
    sam = await house.as_user("Sam")
    assert await house.organizations.list(sam) == []
    for named in (acme, "Acme", "nobody's"):
        with pytest.raises(InvalidRequest, match="not one of your organizations"):
            sam.for_reading(named)
        for call in (
            house.organizations.show(sam, named),
            house.organizations.rename(sam, named, "Mine"),
            house.organizations.remove(sam, named),
            house.organizations.put_member(sam, named, "Sam", Role.OWNER, is_new=True),
            house.organizations.invite(sam, named),
            house.organizations.invitations(sam, named),
            house.organizations.write_mode(sam, named),
            house.keys.create(sam, organization=named),
        ):
            with pytest.raises(NotFound) as refused:
                await call
            assert refused.value.message == f"there is no organization {named!r} for you; list yours."


async def test_admins_decide_about_members_and_admins_only(house: House, acme: str) -> None:
    adam, mia = await house.as_user("Adam"), await house.as_user("Mia")
    put, remove = house.organizations.put_member, house.organizations.remove_member
    secret, _ = await house.organizations.invite(adam, acme)
    await house.organizations.accept((await house.as_user("Sam")).user_id, secret)
    await put(adam, acme, "Sam", Role.ADMIN, is_new=False)
    await remove(adam, acme, "Sam")
    for call in (
        put(adam, acme, "Sam", Role.OWNER, is_new=True),
        put(adam, acme, "Ada", Role.MEMBER, is_new=False),
        remove(adam, acme, "Ada"),
        house.organizations.invite(adam, acme, Role.OWNER),
        house.organizations.remove(adam, acme),
        house.organizations.rename(adam, acme, "Ours"),
        put(mia, acme, "Sam", Role.MEMBER, is_new=True),
        remove(mia, acme, "Adam"),
        house.organizations.invite(mia, acme),
    ):
        with pytest.raises(Forbidden):
            await call


async def test_nobody_gets_into_an_organization_unasked_but_by_who_runs_the_server(
    house: House, acme: str
) -> None:
    """Its memory gets into their recalls, and several organizations at once make a recall ask which."""
    for name in ("Ada", "Adam"):
        told: list[str] = []
        for person in ("Sam", "Mia", "Nobody"):
            with pytest.raises(Forbidden, match="invitation") as refused:
                await house.organizations.put_member(
                    await house.as_user(name), acme, person, Role.MEMBER, is_new=True
                )
            told.append(refused.value.message)
        assert told == told[:1] * 3
    assert (await house.as_user("Sam")).organizations == ()
    await house.organizations.put_member(await house.operator(), acme, "Sam", Role.MEMBER, is_new=True)
    assert (await house.as_user("Sam")).membership(acme) is not None


async def test_there_is_always_an_owner(house: House, acme: str) -> None:
    ada = await house.as_user("Ada")
    for call in (
        house.organizations.put_member(ada, acme, "Ada", Role.ADMIN, is_new=False),
        house.organizations.remove_member(ada, acme, "Ada"),
        house.people.remove_user(await house.operator(), "Ada"),
    ):
        with pytest.raises(Conflict):
            await call
    await house.organizations.put_member(ada, acme, "Mia", Role.OWNER, is_new=False)
    await house.organizations.remove_member(ada, acme, "Ada")
    assert (await house.as_user("Ada")).organizations == ()


async def test_a_role_that_no_longer_writes_ends_the_write_mode(house: House, acme: str) -> None:
    adam = await house.as_user("Adam")
    await house.organizations.write_mode(adam, acme)
    await house.organizations.put_member(await house.as_user("Ada"), acme, "Adam", Role.MEMBER, is_new=False)
    adam = await house.as_user("Adam")
    assert adam.write_organization_id is None
    assert adam.for_writing().graph_id == adam.graph_id
    await house.organizations.put_member(await house.as_user("Ada"), acme, "Adam", Role.ADMIN, is_new=False)
    assert (await house.as_user("Adam")).for_writing().graph_id == adam.graph_id


async def test_keys_at_the_organization_are_for_members_and_follow_their_role(
    house: House, acme: str
) -> None:
    mia, adam = await house.as_user("Mia"), await house.as_user("Adam")
    reading, key = await house.keys.create(mia, organization=acme)
    assert key.scope is Scope.MEMBER
    with pytest.raises(Forbidden, match="scope 'member'"):
        await house.keys.create(mia, organization=acme, scope=Scope.OWNER)
    with pytest.raises(InvalidInput, match="one graph"):
        await house.keys.create(adam, organization=acme, graph_id=adam.graph_id)
    writing, _ = await house.keys.create(adam, organization=acme, scope=Scope.OWNER)
    (await house.access.authenticate(writing)).for_writing()

    ada = await house.as_user("Ada")
    await house.organizations.put_member(ada, acme, "Adam", Role.MEMBER, is_new=False)
    demoted = await house.access.authenticate(writing)
    with pytest.raises(Forbidden, match="members read"):
        demoted.for_writing()
    await house.organizations.remove_member(ada, acme, "Mia")
    with pytest.raises(Unauthorized):
        await house.access.authenticate(reading)


async def test_an_invitation_works_once(house: House, acme: str) -> None:
    secret, invitation = await house.organizations.invite(await house.as_user("Adam"), acme, Role.ADMIN)
    assert secret not in repr(invitation) and secret not in invitation.hash
    sam, bob = await house.as_user("Sam"), await house.newcomer("Bob")
    results = await asyncio.gather(
        *(house.organizations.accept(person.user_id, secret) for person in (sam, bob)), return_exceptions=True
    )
    assert sorted(type(result).__name__ for result in results) == ["Membership", "NotFound"]
    roles = [(await house.as_user(name)).membership(acme) for name in ("Sam", "Bob")]
    assert [role.role for role in roles if role is not None] == [Role.ADMIN]
    assert "invitation.accept" in await house.actions()


async def test_an_invitation_takes_no_right_away(house: House, acme: str) -> None:
    ada = await house.as_user("Ada")
    secret, _ = await house.organizations.invite(ada, acme, Role.MEMBER)
    await house.organizations.accept(ada.user_id, secret)
    membership = (await house.as_user("Ada")).membership(acme)
    assert membership is not None and membership.role is Role.OWNER


async def test_an_invitation_ends_by_time_and_by_withdrawal(house: House, acme: str) -> None:
    ada, sam = await house.as_user("Ada"), await house.as_user("Sam")
    late, _ = await house.organizations.invite(ada, acme, days=1)
    house.clock.advance(days=2)
    taken, invitation = await house.organizations.invite(ada, acme)
    await house.organizations.withdraw(ada, acme, invitation.hash[:12])
    for secret in (late, taken, "inv_nonsense"):
        with pytest.raises(NotFound, match="ask for a new one"):
            await house.organizations.accept(sam.user_id, secret)


async def test_owners_read_their_organizations_audit_log_and_others_do_not(house: House, acme: str) -> None:
    from hivemem.domain.accounts import AuditQuery

    ada, sam, mia = await house.as_user("Ada"), await house.as_user("Sam"), await house.as_user("Mia")
    events = await house.audit.read(ada, AuditQuery(organization_id=acme))
    assert [event.action for event in events] == ["member.add", "member.add", "organization.create"]
    assert all(event.organization_id == acme and "Ada" not in str(event) for event in events)
    for caller in (sam, mia):
        for query in (AuditQuery(), AuditQuery(organization_id=acme), AuditQuery(user_id=ada.user_id)):
            with pytest.raises(Forbidden):
                await house.audit.read(caller, query)
    assert await house.audit.read(sam, AuditQuery(user_id=sam.user_id)) == []


async def test_what_happened_to_a_graph_is_its_owners_to_read(house: House) -> None:
    from hivemem.domain.accounts import AuditQuery

    ada, sam = await house.newcomer("Ada"), await house.newcomer("Sam")
    await house.people.change_graph(await house.operator(), ada.graph_id, frozen=True)
    about_it = AuditQuery(graph_id=ada.graph_id)
    assert (await house.audit.read(ada, about_it))[0].action == "graph.change"
    for query in (about_it, AuditQuery(graph_id="graph_none")):
        with pytest.raises(Forbidden):
            await house.audit.read(sam, query)


async def test_a_removed_organization_is_nobodys(house: House, acme: str) -> None:
    mia = await house.as_user("Mia")
    secret, _ = await house.keys.create(mia, organization=acme)
    graph_id = mia.for_reading(acme).graph_id
    await house.organizations.remove(await house.as_user("Ada"), acme)
    with pytest.raises(Unauthorized):
        await house.access.authenticate(secret)
    assert (await house.as_user("Mia")).organizations == ()
    assert await house.store.graph(graph_id) is None
