"""The use cases of people and organizations over every store that needs no server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path

import pytest

from hivemem.domain.access import Principal
from hivemem.domain.accounts import AuditQuery
from hivemem.domain.rates import MINUTE, Bucket, Rate
from hivemem.ports.store import Store
from hivemem.service.access import Access
from hivemem.service.audit import AuditLog
from hivemem.service.keys import Keys
from hivemem.service.limits import Limits
from hivemem.service.organizations import Organizations
from hivemem.service.passwords import Passwords
from hivemem.service.people import People
from hivemem.service.rate_limits import RateLimits
from hivemem.storage.rates_memory import MemoryRateCounts
from tests.service.conftest import STORES, open_store
from tests.support.builders import FixedClock

PASSWORD = "four quite ordinary words"
LIMITS = Limits(
    max_graphs_per_user=4, max_keys_per_user=6, max_organizations_per_user=3, max_open_invitations=5
)


@dataclass(kw_only=True)
class House:
    """The use cases, and a principal for each user by name."""

    store: Store
    clock: FixedClock
    access: Access
    people: People
    organizations: Organizations
    keys: Keys
    audit: AuditLog
    passwords: Passwords
    rate_limits: RateLimits

    async def operator(self) -> Principal:
        return await self.access.local_principal()

    async def newcomer(self, name: str) -> Principal:
        """A user with administration of their own account alone."""
        await self.people.add_user(await self.operator(), name)
        return await self.as_user(name)

    async def as_user(self, name: str) -> Principal:
        """Who they are now, with an admin credential."""
        user = await self.store.user_by_name(name)
        assert user is not None
        return replace(await self.access.principal_of(user), may_administer=True)

    async def actions(self) -> list[str]:
        """What the audit log holds, oldest first."""
        events = await self.store.audit_events(AuditQuery(limit=1000))
        return [event.action for event in reversed(events)]


@pytest.fixture(params=STORES)
async def house(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[House]:
    store = await open_store(request.param, tmp_path)
    clock = FixedClock(step=timedelta(milliseconds=1))
    audit = AuditLog(store=store, clock=clock)
    passwords = Passwords()
    # The clock stands still between two calls, nearly: what is counted stays counted.
    rates = {Bucket.PASSWORD: Rate(calls=5, period=15 * MINUTE)}
    rate_limits = RateLimits(counts=MemoryRateCounts(), clock=clock, rates=rates)
    yield House(
        store=store,
        clock=clock,
        access=Access(store=store, clock=clock),
        people=People(
            store=store, passwords=passwords, audit=audit, rate_limits=rate_limits, limits=LIMITS, clock=clock
        ),
        organizations=Organizations(store=store, audit=audit, limits=LIMITS, clock=clock),
        keys=Keys(store=store, audit=audit, limits=LIMITS, clock=clock),
        audit=audit,
        passwords=passwords,
        rate_limits=rate_limits,
    )
    await store.close()
