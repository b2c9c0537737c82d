"""Credentials of the owner of a database, made and checked in one place."""

from __future__ import annotations

from collections.abc import Sequence

from hivemem.domain.access import ApiKey, Scope
from hivemem.ports.store import Store
from hivemem.service.access import Access
from hivemem.service.audit import AuditLog
from hivemem.service.keys import Keys
from hivemem.service.limits import Limits
from tests.support.builders import FixedClock


class Desk(Access):
    """The check of credentials, and the keys that the owner of the database makes."""

    def __init__(self, store: Store, clock: FixedClock) -> None:
        super().__init__(store=store, clock=clock)
        self.keys = Keys(store=store, audit=AuditLog(store=store, clock=clock), limits=Limits(), clock=clock)

    async def create_key(self, name: str, scope: Scope) -> tuple[str, ApiKey]:
        return await self.keys.create(await self.local_principal(), name=name, scope=scope)

    async def list_keys(self) -> Sequence[ApiKey]:
        return await self.keys.list(await self.local_principal())

    async def revoke_key(self, key: str) -> str:
        return await self.keys.revoke(await self.local_principal(), key)
