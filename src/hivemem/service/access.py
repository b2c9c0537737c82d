"""Who is calling: the check of a credential at every request, and the owner of a new database."""

from __future__ import annotations

import asyncio
import hmac
import logging
from datetime import datetime, timedelta
from typing import Protocol

from hivemem.domain.access import API_KEY_PATTERN, ApiKey, Principal, Scope, hash_api_key, principal_at
from hivemem.domain.accounts import Account, Graph, User
from hivemem.domain.graph import GraphId, NodeWrite, WriteBatch
from hivemem.domain.keys import USER_PROFILE_KEY
from hivemem.domain.oauth import ACCESS_TOKEN_PREFIX, TokenKind, same_resource
from hivemem.domain.writing import placeholder
from hivemem.errors import Conflict, Forbidden, HivememError, StaleWrite, Unauthorized
from hivemem.ports.clock import Clock
from hivemem.ports.store import AccountStore, GraphStore, OAuthStore
from hivemem.service.keys import new_key

_OWNER_NAME = "owner"
_GRAPH_NAME = "default"
_FIRST_KEY_NAME = "first key"
_LOCAL = "local"
_NOTE_USE_EVERY = timedelta(minutes=1)
_MAX_NOTED = 10_000

log = logging.getLogger(__name__)


class CallerStore(AccountStore, OAuthStore, GraphStore, Protocol):
    """What of a store this use case needs."""


class Access:
    """Turns credentials into principals."""

    def __init__(self, *, store: CallerStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._local_token: str | None = None
        self._owner: tuple[str, str] | None = None
        self._noted: dict[str, datetime] = {}
        self._noting: set[asyncio.Task[None]] = set()

    def admit_local(self, token: str) -> None:
        """Let `token`, the one in the server's lock file, stand for the owner while this process runs."""
        self._local_token = token

    async def ensure_owner(self) -> tuple[User, Graph, str | None]:
        """The owner and default graph, created when the database is new.

        Returns:
            The oldest user, that user's default graph, and the secret of a first API key when the
            database had none, else None. It cannot be read again later.
        """
        user, graph = await self._first_user()
        if await self._store.keys():
            return user, graph, None
        secret, key = new_key(
            name=_FIRST_KEY_NAME,
            user_id=user.user_id,
            graph_id=graph.graph_id,
            scope=Scope.OWNER,
            at=self._clock.now(),
        )
        await self._store.add_key(key)
        return user, graph, secret

    async def local_principal(self, graph_id: GraphId | None = None) -> Principal:
        """The owner: for callers on this machine that could read the database file anyway.

        Raises:
            Forbidden: `graph_id` is not one of the owner's graphs.
        """
        if self._owner is None:
            user, graph = await self._first_user()
            self._owner = (user.user_id, graph.graph_id)
        account = await self._store.account(self._owner[0], graph_id or self._owner[1])
        if account is None or (account.graph is None and graph_id is None):
            # Removed meanwhile: whoever is the oldest user now is the owner.
            self._owner = None
            return await self.local_principal(graph_id)
        return self._chosen(account, Scope.OWNER, graph_id, may_administer=True, credential=_LOCAL)

    async def principal_of(self, user: User, graph_id: GraphId | None = None) -> Principal:
        """The principal of a user at one of their graphs, for commands on the server.

        Raises:
            Forbidden: `graph_id` is not one of the user's graphs, or they have none.
        """
        graphs = await self._store.graphs(user.user_id)
        default = next((graph for graph in graphs if graph.is_default), graphs[0] if graphs else None)
        wanted = graph_id or (default.graph_id if default is not None else "")
        account = await self._store.account(user.user_id, wanted)
        if account is None:
            raise Forbidden(f"the user {user.user_id!r} is gone.")
        return self._chosen(account, Scope.OWNER, wanted, may_administer=True, credential=_LOCAL)

    async def authenticate(
        self, credential: str | None, *, address: str | None = None, graph_id: GraphId | None = None
    ) -> Principal:
        """Who an API key or an access token stands for.

        Every call reads the credential with all that decides its reach, at one moment, so that a revocation,
        an expiry or a change of role holds at once. A malformed credential is refused without a read.

        Args:
            credential: What was sent.
            address: Where, as scheme, host and port: an access token is good for the server that it was
                issued for. None where that is known otherwise.
            graph_id: The graph that is asked for, as `X-Graph-Id`. A credential that is bound to another one
                does not reach it.

        Raises:
            Unauthorized: Missing, malformed, unknown, expired or revoked.
            Forbidden: The graph is not one that the credential reaches.
        """
        if not credential:
            raise Unauthorized("no credential; send the header 'Authorization: Bearer hm_...'.")
        if self._local_token and hmac.compare_digest(credential.encode(), self._local_token.encode()):
            return await self.local_principal(graph_id)
        if credential.startswith(ACCESS_TOKEN_PREFIX):
            return await self._token_principal(credential, address, graph_id)
        _, principal = await self.active_key(credential)
        if graph_id is not None and graph_id != principal.graph_id:
            raise _not_yours(graph_id)
        return principal

    async def active_key(self, credential: str) -> tuple[ApiKey, Principal]:
        """The API key with this secret, and whom it stands for.

        Raises:
            Unauthorized: Malformed, unknown, expired or revoked.
        """
        if not API_KEY_PATTERN.fullmatch(credential):
            raise Unauthorized("the credential is not an API key: 'hm_' and 64 lower-case hex digits.")
        hash, now = hash_api_key(credential), self._clock.now()
        found = await self._store.key_account(hash)
        if found is not None and hmac.compare_digest(found[0].hash, hash) and found[0].is_alive(now):
            key, account = found
            principal = principal_at(
                account, scope=key.scope, may_administer=key.admin, credential=f"key:{key.key_id}"
            )
            if principal is not None:
                self._note_use(key.key_id, now)
                return key, principal
        raise Unauthorized(
            "the API key is unknown, expired or revoked; create one with 'hivemem key create'."
        )

    async def written(self) -> None:
        """Wait until what was noted of the use of keys is stored."""
        while self._noting:
            await asyncio.gather(*self._noting, return_exceptions=True)

    async def _token_principal(self, token: str, address: str | None, graph_id: GraphId | None) -> Principal:
        found = await self._store.token_account(hash_api_key(token), graph_id)
        if (
            found is None
            or found[0].token.kind is not TokenKind.ACCESS
            or not found[0].is_alive(self._clock.now())
        ):
            raise Unauthorized(
                "the access token is unknown, expired or revoked; refresh it or sign in again."
            )
        state, account = found
        grant = state.grant
        if address is not None and not same_resource(grant.resource, address):
            raise Unauthorized(f"the access token is for {grant.resource!r}; sign in at {address!r}.")
        if graph_id is not None and grant.key_id is not None and graph_id != grant.graph_id:
            raise _not_yours(graph_id)
        principal = principal_at(
            account,
            scope=state.scope,
            may_administer=state.may_administer,
            credential=f"grant:{grant.grant_id}",
        )
        if principal is not None:
            return principal
        if graph_id is not None:
            raise _not_yours(graph_id)
        raise Unauthorized("the memory that this sign-in was for is gone; sign in again.")

    def _chosen(
        self,
        account: Account,
        scope: Scope,
        graph_id: GraphId | None,
        *,
        may_administer: bool,
        credential: str,
    ) -> Principal:
        principal = principal_at(account, scope=scope, may_administer=may_administer, credential=credential)
        if principal is None:
            raise _not_yours(graph_id or "")
        return principal

    async def _first_user(self) -> tuple[User, Graph]:
        users = await self._store.users()
        if not users:
            await self._create_owner()
            users = await self._store.users()
        user = users[0]
        graphs = await self._store.graphs(user.user_id)
        graph = next((graph for graph in graphs if graph.is_default), graphs[0])
        await self._ensure_profile(graph.graph_id)
        return user, graph

    async def _create_owner(self) -> None:
        now = self._clock.now()
        user = User(user_id=self._clock.new_id("user"), name=_OWNER_NAME, created_at=now, operator=True)
        graph = Graph(
            graph_id=self._clock.new_id("graph"),
            name=_GRAPH_NAME,
            owner_id=user.user_id,
            created_at=now,
            is_default=True,
        )
        try:
            await self._store.add_user(user, graph)
        except Conflict:
            # Another process started at the same moment and was first; its owner is the owner.
            return

    async def _ensure_profile(self, graph_id: GraphId) -> None:
        """Create the blank `user_profile`, which clients look for before they link to it."""
        if await self._store.nodes(graph_id, [USER_PROFILE_KEY]):
            return
        now = self._clock.now()
        write = NodeWrite(node=placeholder(USER_PROFILE_KEY, at=now), expected=0)
        try:
            await self._store.apply(graph_id, WriteBatch(at=now, nodes=(write,)))
        except StaleWrite:
            return

    def _note_use(self, key_id: str, now: datetime) -> None:
        """Note the use of a key at most once a minute, beside the request."""
        noted = self._noted.get(key_id)
        if noted is not None and now - noted < _NOTE_USE_EVERY:
            return
        if len(self._noted) >= _MAX_NOTED:
            self._noted.clear()
        self._noted[key_id] = now
        task = asyncio.create_task(self._store_use(key_id, now), name="note the use of a key")
        self._noting.add(task)
        task.add_done_callback(self._noting.discard)

    async def _store_use(self, key_id: str, now: datetime) -> None:
        try:
            await self._store.key_used(key_id, now)
        except HivememError as error:
            # It tells people which keys are forgotten; no request fails for it.
            log.debug("the use of the key %s was not noted: %s", key_id, error.message)


def _not_yours(graph_id: str) -> Forbidden:
    return Forbidden(
        f"the graph {graph_id!r} is not one that this credential reaches.", code="graph_not_yours"
    )
