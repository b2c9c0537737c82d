"""How many graphs, keys, organizations and invitations there can be; each number is a setting."""

from __future__ import annotations

import pytest

from hivemem.errors import Conflict
from tests.accounts.conftest import LIMITS, House


async def test_graphs_of_a_person(house: House) -> None:
    eve = await house.newcomer("Eve")
    for number in range(1, LIMITS.max_graphs_per_user):
        await house.people.add_graph(eve, f"Graph {number}")
    with pytest.raises(Conflict, match=r"there are 4 memories of 'Eve'.*max_graphs_per_user") as refused:
        await house.people.add_graph(eve, "One more")
    assert refused.value.code == "limit_reached"
    _, graphs = await house.people.graphs(eve)
    await house.people.remove_graph(eve, graphs[-1].graph_id)
    await house.people.add_graph(eve, "One more")


async def test_good_keys_of_a_person(house: House) -> None:
    eve = await house.newcomer("Eve")
    secrets = [(await house.keys.create(eve))[0] for _ in range(LIMITS.max_keys_per_user - 1)]
    await house.keys.create(eve, days=1)
    with pytest.raises(Conflict, match=r"there are 6 good keys of 'Eve'.*max_keys_per_user"):
        await house.keys.create(eve)
    await house.keys.revoke(eve, secrets[0])
    await house.keys.create(eve)
    house.clock.advance(days=2)
    await house.keys.create(eve)  # in the place of the one that ended


async def test_organizations_of_an_owner(house: House) -> None:
    eve = await house.newcomer("Eve")
    for number in range(LIMITS.max_organizations_per_user):
        await house.organizations.add(eve, f"Acme {number}")
    with pytest.raises(Conflict, match=r"there are 3 organizations of 'Eve'.*max_organizations_per_user"):
        await house.organizations.add(await house.as_user("Eve"), "One more")
    await house.organizations.remove(await house.as_user("Eve"), "Acme 0")
    await house.organizations.add(await house.as_user("Eve"), "One more")


async def test_open_invitations_of_an_organization(house: House) -> None:
    await house.organizations.add(await house.newcomer("Eve"), "Acme")
    eve, sam = await house.as_user("Eve"), await house.newcomer("Sam")
    secrets = [(await house.organizations.invite(eve, "Acme"))[0] for _ in range(LIMITS.max_open_invitations)]
    with pytest.raises(Conflict, match=r"there are 5 open invitations of 'Acme'.*max_open_invitations"):
        await house.organizations.invite(eve, "Acme")
    await house.organizations.accept(sam.user_id, secrets[0])
    await house.organizations.invite(eve, "Acme")
