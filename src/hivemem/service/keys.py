"""API keys: made for a user and one graph, listed, and ended."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from hivemem.domain.access import API_KEY_PATTERN, ApiKey, Principal, Scope, hash_api_key, new_api_key
from hivemem.domain.accounts import Graph, User
from hivemem.errors import Forbidden, InvalidInput, NotFound
from hivemem.ports.clock import Clock
from hivemem.ports.store import AccountStore
from hivemem.service.audit import AuditLog
from hivemem.service.limits import Limits, require_room
from hivemem.service.people import checked_name, decided_user, found_organization

_KEY_ID_DIGITS = 12
_MAX_DAYS = 3650


class Keys:
    """Creates, lists and ends API keys."""

    def __init__(self, *, store: AccountStore, audit: AuditLog, limits: Limits, clock: Clock) -> None:
        self._store = store
        self._audit = audit
        self._limits = limits
        self._clock = clock

    async def create(
        self,
        actor: Principal,
        *,
        name: str = "key",
        user: str | None = None,
        graph_id: str | None = None,
        organization: str | None = None,
        scope: Scope | None = None,
        admin: bool = False,
        days: int | None = None,
    ) -> tuple[str, ApiKey]:
        """Make a key; the secret is given here and never again.

        Args:
            actor: Who makes it: the user themselves, or the operator for others.
            name: What uses it.
            user: Id or name of the user it stands for; the actor when None.
            graph_id: One of that user's graphs; the default one when None.
            organization: Id or name of the organization whose graph it is for, instead of `graph_id`.
            scope: None is `owner` for a personal graph and `member` for an organization's.
            admin: Whether it reaches the administration.
            days: After how many days it ends by itself.

        Raises:
            Forbidden: It is for somebody else, or for more than their role allows.
            NotFound: There is no such user, graph or organization for them.
            InvalidInput: A bad name or number of days, or both a graph and an organization.
            Conflict: They have `max_keys_per_user`.
        """
        actor.require_administration()
        person = await self._for(actor, user)
        graph, may_write = await self._graph(actor, person, graph_id, organization)
        if scope is None:
            scope = Scope.OWNER if graph.organization_id is None else Scope.MEMBER
        if scope is Scope.OWNER and not may_write:
            raise Forbidden(
                f"{person.name!r} reads this organization's memory only; make a key with the scope 'member'."
            )
        if days is not None and not 1 <= days <= _MAX_DAYS:
            raise InvalidInput(f"/days is {days}; choose 1 to {_MAX_DAYS}, or leave it out.")
        now = self._clock.now()
        good = sum(key.is_alive(now) for key in await self._store.keys(person.user_id))
        require_room(
            good, "max_keys_per_user", self._limits.max_keys_per_user, f"good keys of {person.name!r}"
        )
        secret, key = new_key(
            name=checked_name(name, "/name"),
            user_id=person.user_id,
            graph_id=graph.graph_id,
            scope=scope,
            admin=admin,
            at=now,
            expires_at=None if days is None else now + timedelta(days=days),
        )
        await self._store.add_key(key)
        await self._audit.record(
            "key.create",
            actor,
            graph_id=key.graph_id,
            organization_id=graph.organization_id,
            target=key.key_id,
            detail={"user_id": key.user_id, "scope": key.scope.value, "admin": key.admin},
        )
        return secret, key

    async def list(self, actor: Principal, user: str | None = None) -> Sequence[ApiKey]:
        """Keys, oldest first, revoked ones included, never a secret: of one user, or of all for the operator.

        Raises:
            Forbidden: They are somebody else's.
            NotFound: There is no such user.
        """
        actor.require_administration()
        if user is None and actor.operator:
            return await self._store.keys()
        return await self._store.keys((await self._for(actor, user)).user_id)

    async def show(self, actor: Principal, key: str) -> ApiKey:
        """A key, named by its id or by the whole secret.

        Raises:
            NotFound: The actor has no key of this name.
        """
        actor.require_administration()
        key_id = hash_api_key(key)[:_KEY_ID_DIGITS] if API_KEY_PATTERN.fullmatch(key) else key
        for one in await self._store.keys(None if actor.operator else actor.user_id):
            if one.key_id == key_id:
                return one
        raise NotFound(f"there is no key {key_id[:_KEY_ID_DIGITS]!r}; list the keys to see their ids.")

    async def revoke(self, actor: Principal, key: str) -> str:
        """End a key, named by its id or by the whole secret, from the next request on.

        Returns:
            The id of the key.

        Raises:
            NotFound: The actor has no active key of this name.
        """
        found = await self.show(actor, key)
        if not await self._store.revoke_key(found.key_id, self._clock.now()):
            raise NotFound(f"the key {found.key_id!r} is revoked already.")
        await self._audit.record("key.revoke", actor, graph_id=found.graph_id, target=found.key_id)
        return found.key_id

    async def _for(self, actor: Principal, user: str | None) -> User:
        return await decided_user(
            self._store, actor, user, "keys of other people are made, seen and ended by who runs this server."
        )

    async def _graph(
        self, actor: Principal, person: User, graph_id: str | None, organization: str | None
    ) -> tuple[Graph, bool]:
        """The graph that is meant, and whether the person may write it."""
        if graph_id is not None and organization is not None:
            raise InvalidInput("/graph and /org are both given; a key is for one graph.")
        if organization is not None:
            graph_id = (await found_organization(self._store, actor, organization)).graph_id
        if graph_id is None:
            graphs = await self._store.graphs(person.user_id)
            graph_id = next((graph.graph_id for graph in graphs if graph.is_default), graphs[0].graph_id)
        account = await self._store.account(person.user_id, graph_id)
        graph = None if account is None else account.graph
        membership = None if account is None or graph is None else account.membership(graph.organization_id)
        if graph is None or (graph.owner_id != person.user_id and membership is None):
            raise NotFound(f"{person.name!r} has no graph {graph_id!r}; `hivemem graph list` shows them.")
        return graph, membership is None or membership.role.may_write


def new_key(
    *,
    name: str,
    user_id: str,
    graph_id: str,
    scope: Scope,
    at: datetime,
    admin: bool = False,
    expires_at: datetime | None = None,
) -> tuple[str, ApiKey]:
    """A fresh secret and the key that is kept of it."""
    secret = new_api_key()
    hash = hash_api_key(secret)
    key = ApiKey(
        key_id=hash[:_KEY_ID_DIGITS],
        hash=hash,
        name=name,
        user_id=user_id,
        graph_id=graph_id,
        scope=scope,
        admin=admin,
        created_at=at,
        expires_at=expires_at,
    )
    return secret, key
