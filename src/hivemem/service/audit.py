"""The audit log: who did what, to which graph, when and from where."""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Protocol

from hivemem.domain.access import Principal
from hivemem.domain.accounts import AuditEvent, AuditQuery
from hivemem.errors import Forbidden
from hivemem.ports.clock import Clock
from hivemem.ports.store import AccountStore, AuditStore


class AuditedStore(AuditStore, AccountStore, Protocol):
    """What of a store this use case needs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Where a request came from: the caller's network address, and the id of the request."""

    address: str = ""
    request_id: str = ""


NOWHERE = Origin()
origin: ContextVar[Origin] = ContextVar("origin", default=NOWHERE)
"""Set by the surface for the time of a request; commands on the server leave it as it is."""


class AuditLog:
    """Adds lines, and lets those read them who may."""

    def __init__(self, *, store: AuditedStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def record(self, action: str, principal: Principal | None = None, **facts: object) -> None:
        """Keep a line. `facts` are fields of `AuditEvent`; the graph is not taken from the principal.

        Raises:
            Unavailable: The store is busy or down. What was done before is done, and told as failed.
        """
        came = origin.get()
        event = AuditEvent(
            at=self._clock.now(), action=action, address=came.address, request_id=came.request_id
        )
        if principal is not None:
            event = replace(event, user_id=principal.user_id, credential=principal.credential)
        await self._store.add_audit_events([replace(event, **facts)])  # pyright: ignore[reportArgumentType] - named by callers

    async def read(self, actor: Principal, query: AuditQuery) -> Sequence[AuditEvent]:
        """The newest lines, newest first.

        Who runs the server reads everything; others what they did themselves and what happened to their
        own graphs, and owners and admins what happened in their organization.

        Raises:
            Forbidden: The lines are not the actor's to read.
        """
        actor.require_administration()
        if not actor.operator and not await self._may_read(actor, query):
            raise Forbidden(
                "this part of the audit log is not yours to read; ask for your own user, for a graph of "
                "yours, or for an organization where you are owner or admin."
            )
        return await self._store.audit_events(query)

    async def _may_read(self, actor: Principal, query: AuditQuery) -> bool:
        if query.user_id == actor.user_id:
            return True
        membership = actor.membership(query.organization_id)
        if membership is not None and membership.role.may_decide_members:
            return True
        graph = None if query.graph_id is None else await self._store.graph(query.graph_id)
        return graph is not None and graph.owner_id == actor.user_id
