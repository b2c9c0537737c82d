"""Writes of accounts at the same time: the rules hold, and no two writes wait for each other."""

from __future__ import annotations

import asyncio
import itertools
import random
from collections.abc import Coroutine
from typing import Any

import pytest

from hivemem.domain.access import Scope
from hivemem.domain.accounts import Role
from hivemem.domain.oauth import Identity, TokenKind
from hivemem.errors import Conflict, NotFound
from hivemem.storage.postgres import PostgresStore
from tests.conformance.store.content import token_report
from tests.storage.postgres.conftest import Stores, administrator
from tests.support.builders import (
    api_key,
    authorization_code,
    batch,
    grant,
    graph,
    hash_api_key,
    invitation,
    minutes,
    node,
    oauth_client,
    organization,
    sign_in,
    token,
    user,
)

PEOPLE = [f"user_{number}" for number in range(4)]
GROUPS = [f"org_{number}" for number in range(3)]


class Crowd:
    """Does what people and administrators do, at random, to few users and organizations."""

    def __init__(self, stores: Stores, seed: int) -> None:
        self._stores = stores
        self._dice = random.Random(seed)
        self._numbers = itertools.count()

    async def begin(self) -> None:
        store = self._stores[0]
        await store.put_oauth_client(oauth_client())
        for person in PEOPLE:
            first = graph(f"graph_{person}", person, is_default=True)
            await store.add_user(user(person, operator=person < "user_2"), first)
        for group, person in zip(GROUPS, PEOPLE, strict=False):
            await store.add_organization(organization(group), person)

    def step(self) -> Coroutine[Any, Any, object]:
        """One operation, which is not awaited yet."""
        store, number, dice = self._dice.choice(self._stores), next(self._numbers), self._dice
        person, other, group = dice.choice(PEOPLE), dice.choice(PEOPLE), dice.choice(GROUPS)
        where = dice.choice([f"graph_{person}", f"graph_of_{group}"])
        put_user = user(
            person,
            name=dice.choice([person, "Wanted"]),
            operator=dice.random() < 0.5,
            write_organization_id=dice.choice([None, *GROUPS]),
        )
        possible: list[Coroutine[Any, Any, object]] = [
            self._invite(store, group, person, other, number),
            self._sign_in(store, person, where, number),
            store.put_user(put_user),
            store.add_user(user(person), graph(f"graph_{number}", person, is_default=True)),
            store.put_member(group, person, dice.choice([*Role]), minutes(1)),
            store.put_member(group, person, Role.OWNER, minutes(1)),
            store.remove_member(group, person, minutes(1)),
            store.remove_user(person, minutes(1)),
            store.add_organization(organization(group, graph_id=f"graph_of_{number}"), person),
            store.rename_organization(group, dice.choice(["Wanted", group])),
            store.remove_organization(group, minutes(1)),
            store.add_graph(graph(f"graph_{number}", person, is_default=True)),
            store.put_graph(graph(f"graph_{person}", person, is_default=True)),
            store.remove_graph(f"graph_{person}", minutes(1)),
            store.add_key(api_key(f"hm_{number}", user_id=person, graph_id=where)),
            store.apply(where, batch(node(f"n_{number}"))),
            store.record_tokens(where, token_report(person, f"s {number}")),
        ]
        chosen = dice.choice(possible)
        for left in possible:
            if left is not chosen:
                left.close()
        return chosen

    async def _invite(
        self, store: PostgresStore, group: str, maker: str, guest: str, number: int
    ) -> list[bool]:
        secret = f"inv_{number}"
        await store.add_invitation(invitation(secret, organization_id=group, invited_by=maker))
        calls = (one.accept_invitation(hash_api_key(secret), guest, minutes(1)) for one in self._stores)
        accepted = await asyncio.gather(*calls)
        assert sum(accepted) <= 1
        return accepted

    async def _sign_in(self, store: PostgresStore, person: str, where: str, number: int) -> bool:
        request, grant_id = sign_in(f"request_{number}"), f"grant_{number}"
        identity = Identity(user_id=person, graph_id=where, scope=Scope.OWNER, key_id=None)
        await store.add_sign_in(request)
        await store.identify(request.hash, identity, "hash")
        own = grant(grant_id, user_id=person, graph_id=where, key_id=None)
        code = authorization_code(f"ac_{number}", grant_id)
        if not await store.allow_sign_in(request.hash, own, code):
            return False
        refresh = token(f"rt_{number}", grant_id, kind=TokenKind.REFRESH)
        if not await store.exchange_code(code.hash, [token(f"at_{number}", grant_id), refresh], minutes(1)):
            return False
        following = [token(f"at_{number}_2", grant_id)]
        return await store.exchange_refresh_token(refresh.hash, following, minutes(2), minutes(1))


LEFT_WITHOUT_OWNER = (
    "SELECT organization_id FROM organizations WHERE organization_id NOT IN"
    " (SELECT organization_id FROM memberships WHERE role = 'owner')"
)
OPERATORS = "SELECT count(*) FROM users WHERE operator = 1"


@pytest.mark.parametrize(
    ("seed", "rounds"), [(11, 6), *(pytest.param(seed, 25, marks=pytest.mark.soak) for seed in range(12))]
)
async def test_writes_of_accounts_in_any_order_never_block_each_other(
    stores: Stores, url: str, collisions: list[BaseException], seed: int, rounds: int
) -> None:
    crowd = Crowd(stores, seed)
    await crowd.begin()
    for _ in range(rounds):
        outcomes = await asyncio.gather(*(crowd.step() for _ in range(60)), return_exceptions=True)
        refused = [outcome for outcome in outcomes if isinstance(outcome, BaseException)]
        assert [error for error in refused if not isinstance(error, Conflict | NotFound)] == []
        assert len(refused) < len(outcomes)
        with administrator(url) as other:
            assert other.execute(LEFT_WITHOUT_OWNER).fetchall() == []
            assert other.execute(OPERATORS).fetchone() != (0,)
    assert collisions == []
    for deleted in await stores[0].deleted_graphs():
        while await stores[0].purge_graph(deleted.graph_id):
            pass
    # A report that somebody sent at an organization while they were removed is told, and nothing else is.
    assert (await stores[0].leftovers()).keys() <= {"token_reports"}


async def test_of_two_new_default_graphs_one_is_it(stores: Stores) -> None:
    await stores[0].add_user(user(), graph(is_default=True))
    await asyncio.gather(
        *(stores[i % 2].add_graph(graph(f"graph_{i}", is_default=True)) for i in range(12)),
        *(stores[i % 2].put_graph(graph(is_default=True)) for i in range(12)),
    )
    assert sum(one.is_default for one in await stores[0].graphs("user_one")) == 1


async def test_a_name_that_two_want_at_once_is_one_ones(stores: Stores) -> None:
    for number in range(6):
        await stores[0].add_user(user(f"user_{number}"), graph(f"graph_{number}", f"user_{number}"))
        await stores[0].add_organization(organization(f"org_{number}"), f"user_{number}")
    outcomes = await asyncio.gather(
        *(stores[i % 2].put_user(user(f"user_{i}", name="Wanted")) for i in range(6)),
        *(stores[i % 2].rename_organization(f"org_{i}", "Wanted") for i in range(6)),
        return_exceptions=True,
    )
    assert sorted(type(outcome).__name__ for outcome in outcomes) == ["Conflict"] * 10 + ["NoneType", "bool"]
    assert [one.name for one in await stores[0].users()].count("Wanted") == 1
