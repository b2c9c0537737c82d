"""What people granted to programs: seen and ended by them, and by who runs the server."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from hivemem.domain.access import Principal
from hivemem.domain.oauth import Grant
from hivemem.errors import NotFound
from hivemem.ports.clock import Clock
from hivemem.ports.store import AccountStore, OAuthStore
from hivemem.service.audit import AuditLog
from hivemem.service.people import decided_user


class GrantStore(AccountStore, OAuthStore, Protocol):
    """What of a store this use case needs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedGrant:
    """A grant, and what its program calls itself; nobody has checked that name."""

    grant: Grant
    client_name: str


class Grants:
    """Lists and ends grants."""

    def __init__(self, *, store: GrantStore, audit: AuditLog, clock: Clock) -> None:
        self._store = store
        self._audit = audit
        self._clock = clock

    async def list(self, actor: Principal, user: str | None = None) -> Sequence[NamedGrant]:
        """Grants, newest first, ended ones included: of one user, or of all for who runs the server.

        Raises:
            Forbidden: They are somebody else's.
            NotFound: There is no such user.
        """
        actor.require_administration()
        if user is None:
            found = await self._reached(actor)
        else:
            person = await decided_user(
                self._store, actor, user, "grants of other people are seen and ended by who runs this server."
            )
            found = await self._store.grants(person.user_id)
        names: dict[str, str] = {}
        for client_id in {grant.client_id for grant in found}:
            client = await self._store.oauth_client(client_id)
            names[client_id] = "" if client is None else client.name
        return [NamedGrant(grant=grant, client_name=names[grant.client_id]) for grant in found]

    async def revoke(self, actor: Principal, grant_id: str) -> Grant:
        """End a grant with all its tokens, from the next request on.

        Raises:
            NotFound: The actor has no active grant of this id.
        """
        actor.require_administration()
        for grant in await self._reached(actor):
            if grant.grant_id == grant_id and grant.revoked_at is None:
                await self._store.revoke_grant(grant_id, self._clock.now())
                await self._audit.record("grant.revoke", actor, graph_id=grant.graph_id, target=grant_id)
                return grant
        raise NotFound(f"there is no active grant {grant_id[:100]!r}; list the grants to see their ids.")

    async def _reached(self, actor: Principal) -> Sequence[Grant]:
        if not actor.operator:
            return await self._store.grants(actor.user_id)
        found = [
            grant for user in await self._store.users() for grant in await self._store.grants(user.user_id)
        ]
        return sorted(found, key=lambda grant: (grant.created_at, grant.grant_id), reverse=True)
