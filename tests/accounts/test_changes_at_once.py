"""A change of a user that was read before another change undoes nothing of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from hivemem.errors import Conflict
from hivemem.service.passwords import Passwords
from hivemem.service.people import People
from tests.accounts.conftest import LIMITS, PASSWORD, House


class Meanwhile(Passwords):
    """Hashes, and lets something happen before it is done: hashing takes a while, and waits for its turn."""

    def __init__(self, happens: Callable[[], Awaitable[object]]) -> None:
        super().__init__()
        self._happens = happens

    async def hash(self, password: str) -> str:
        hashed = await super().hash(password)
        await self._happens()
        return hashed


async def test_a_change_under_way_gives_nobody_the_operators_right_back(house: House) -> None:
    await house.newcomer("Eve")
    operator = await house.operator()
    await house.people.change_user(operator, "Eve", operator=True)
    people = People(
        store=house.store,
        passwords=Meanwhile(lambda: house.people.change_user(operator, "Eve", operator=False)),
        audit=house.audit,
        rate_limits=house.rate_limits,
        limits=LIMITS,
        clock=house.clock,
    )
    with pytest.raises(Conflict, match="changed meanwhile"):
        await people.change_user(await house.as_user("Eve"), None, password=PASSWORD)
    assert not (await house.as_user("Eve")).operator


async def test_a_change_of_write_mode_under_way_brings_no_old_password_back(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    await house.people.add_user(await house.operator(), "Eve", PASSWORD)
    await house.organizations.add(await house.as_user("Eve"), "Acme")
    eve, operator, members = await house.as_user("Eve"), await house.operator(), house.store.members

    async def slow(organization_id: str) -> object:
        await house.people.change_user(operator, "Eve", password="set by the operator")
        return await members(organization_id)

    monkeypatch.setattr(house.store, "members", slow)
    with pytest.raises(Conflict, match="changed meanwhile"):
        await house.organizations.write_mode(eve, "Acme")
    assert not await house.passwords.matches(await house.store.user_by_name("Eve"), PASSWORD)


async def test_a_change_of_name_under_way_thaws_no_graph(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    eve, operator, graph = await house.newcomer("Eve"), await house.operator(), house.store.graph

    async def slow(graph_id: str) -> object:
        read = await graph(graph_id)
        monkeypatch.setattr(house.store, "graph", graph)
        await house.people.change_graph(operator, graph_id, frozen=True)
        return read

    monkeypatch.setattr(house.store, "graph", slow)
    with pytest.raises(Conflict, match="changed meanwhile"):
        await house.people.change_graph(eve, eve.graph_id, name="Home")
    kept = await house.store.graph(eve.graph_id)
    assert kept is not None and kept.frozen_at is not None
