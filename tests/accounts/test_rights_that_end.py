"""Rights that were taken away stay away."""

from __future__ import annotations

import pytest

from hivemem.domain.accounts import Role
from hivemem.errors import NotFound
from tests.accounts.conftest import House


@pytest.fixture
async def acme(house: House) -> str:
    """Acme: Ada and Eve own it; Sam is a stranger."""
    for name in ("Ada", "Eve", "Sam"):
        await house.newcomer(name)
    made = await house.organizations.add(await house.as_user("Ada"), "Acme")
    await house.organizations.put_member(await house.operator(), "Acme", "Eve", Role.OWNER, is_new=True)
    return made.organization_id


async def test_an_invitation_ends_with_the_right_of_who_made_it(house: House, acme: str) -> None:
    ada, eve, sam = [await house.as_user(name) for name in ("Ada", "Eve", "Sam")]
    as_owner, _ = await house.organizations.invite(eve, acme, Role.OWNER)
    as_member, _ = await house.organizations.invite(eve, acme)

    await house.organizations.put_member(ada, acme, "Eve", Role.ADMIN, is_new=False)
    with pytest.raises(NotFound, match="ask for a new one"):
        await house.organizations.accept(eve.user_id, as_owner)
    await house.organizations.invited(as_member)

    await house.organizations.remove_member(ada, acme, "Eve")
    for person in (eve, sam):
        for secret in (as_owner, as_member):
            with pytest.raises(NotFound, match="ask for a new one"):
                await house.organizations.accept(person.user_id, secret)
    assert (await house.as_user("Eve")).organizations == ()


async def test_an_operators_invitation_needs_no_membership(house: House, acme: str) -> None:
    secret, _ = await house.organizations.invite(await house.operator(), acme, Role.OWNER)
    sam = await house.as_user("Sam")
    assert (await house.organizations.accept(sam.user_id, secret)).role is Role.OWNER
