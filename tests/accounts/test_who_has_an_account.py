"""Who administers their own account alone learns of no other."""

from __future__ import annotations

from collections.abc import Awaitable

import pytest

from hivemem.errors import HivememError
from hivemem.service.grants import Grants
from hivemem.service.identities import Identities
from tests.accounts.conftest import House


async def test_nobody_learns_who_else_has_an_account(house: House) -> None:
    sam, ada = await house.newcomer("Sam"), await house.newcomer("Ada")
    grants = Grants(store=house.store, audit=house.audit, clock=house.clock)
    identities = Identities(store=house.store, audit=house.audit, clock=house.clock)
    told: list[list[str]] = []
    for named in ("Ada", ada.user_id, "Nobody", "user_" + "f" * 20):
        answers = [
            await _refusal(call)
            for call in (
                house.people.user(sam, named),
                house.people.graphs(sam, named),
                house.keys.create(sam, user=named),
                house.keys.list(sam, named),
                grants.list(sam, named),
                identities.list(sam, named),
                identities.unlink(sam, named, "https://id.example", "subject"),
                house.organizations.write_mode(sam, None, named),
                house.organizations.add(sam, "Bolt", named),
            )
        ]
        told.append(answers)
    assert told == [told[0]] * len(told)


async def _refusal(call: Awaitable[object]) -> str:
    with pytest.raises(HivememError) as refused:
        await call
    return f"{refused.value.code}: {refused.value.message}"
