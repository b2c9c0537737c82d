"""Who may use this server: the owner of the database, API keys, and the check of a credential."""

from __future__ import annotations

import hmac
from collections.abc import Sequence
from typing import Protocol

from hivemem.domain.access import API_KEY_PATTERN, ApiKey, Principal, Scope, hash_api_key, new_api_key
from hivemem.domain.accounts import Graph, User
from hivemem.domain.graph import GraphId, NodeWrite, WriteBatch
from hivemem.domain.keys import USER_PROFILE_KEY
from hivemem.domain.oauth import ACCESS_TOKEN_PREFIX, TokenKind, same_resource
from hivemem.domain.text import storable_text
from hivemem.domain.writing import placeholder
from hivemem.errors import Conflict, InvalidInput, NotFound, StaleWrite, Unauthorized
from hivemem.ports.clock import Clock
from hivemem.ports.store import AccountStore, GraphStore, OAuthStore

_OWNER_NAME = "owner"
_GRAPH_NAME = "default"
_FIRST_KEY_NAME = "first key"
_MAX_NAME_CHARACTERS = 100
_KEY_ID_DIGITS = 12


class OwnerStore(AccountStore, OAuthStore, GraphStore, Protocol):
    """What of a store this use case needs."""


class Access:
    """Creates and ends credentials, and turns them into principals."""

    def __init__(self, *, store: OwnerStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._local_token: str | None = None

    def admit_local(self, token: str) -> None:
        """Let `token`, the one in the server's lock file, stand for the owner while this process runs."""
        self._local_token = token

    async def ensure_owner(self) -> tuple[User, Graph, str | None]:
        """The owner and default graph, created when the database is new.

        Returns:
            The oldest user, the user's oldest graph, and the secret of a first API key when the
            database had none, else None. It cannot be read again later.
        """
        user, graph = await self._owner()
        if await self._store.keys():
            return user, graph, None
        secret, _ = await self._add_key(user, graph, _FIRST_KEY_NAME, Scope.OWNER)
        return user, graph, secret

    async def local_principal(self) -> Principal:
        """The owner: for callers on this machine that could read the database file anyway."""
        user, graph = await self._owner()
        return Principal(user_id=user.user_id, graph_id=graph.graph_id, scope=Scope.OWNER)

    async def create_key(self, name: str, scope: Scope) -> tuple[str, ApiKey]:
        """Make a key for the owner's default graph; the secret is given here and never again.

        Raises:
            InvalidInput: The name is blank, or longer than 100 characters.
        """
        label = storable_text(name, "/name").strip()
        if not 1 <= len(label) <= _MAX_NAME_CHARACTERS:
            raise InvalidInput(
                f"/name has {len(label)} characters; say in 1 to {_MAX_NAME_CHARACTERS} what uses the key."
            )
        user, graph = await self._owner()
        return await self._add_key(user, graph, label, scope)

    async def list_keys(self) -> Sequence[ApiKey]:
        """All credentials, oldest first, revoked ones included; never a secret."""
        return await self._store.keys()

    async def revoke_key(self, key: str) -> str:
        """End a credential, named by its id or by the whole secret, from the next request on.

        Returns:
            The id of the key.

        Raises:
            NotFound: No active key has this name.
        """
        key_id = hash_api_key(key)[:_KEY_ID_DIGITS] if API_KEY_PATTERN.fullmatch(key) else key
        if not await self._store.revoke_key(key_id, self._clock.now()):
            raise NotFound(f"there is no active key {key_id!r}; list the keys to see their ids.")
        return key_id

    async def authenticate(self, credential: str | None, *, address: str | None = None) -> Principal:
        """Who an API key or an access token stands for.

        Every call reads the credential's row, one indexed read, so that a revocation holds at once. A
        malformed credential is refused without a read.

        Args:
            credential: What was sent.
            address: Where, as scheme, host and port: an access token is good for the server that it was
                issued for. None where that is known otherwise.

        Raises:
            Unauthorized: Missing, malformed, unknown or revoked.
        """
        if not credential:
            raise Unauthorized("no credential; send the header 'Authorization: Bearer hm_...'.")
        if self._local_token and hmac.compare_digest(credential.encode(), self._local_token.encode()):
            return await self.local_principal()
        if credential.startswith(ACCESS_TOKEN_PREFIX):
            return await self._token_principal(credential, address)
        key = await self.active_key(credential)
        return Principal(user_id=key.user_id, graph_id=key.graph_id, scope=key.scope)

    async def active_key(self, credential: str) -> ApiKey:
        """The API key with this secret.

        Raises:
            Unauthorized: Malformed, unknown or revoked.
        """
        if not API_KEY_PATTERN.fullmatch(credential):
            raise Unauthorized("the credential is not an API key: 'hm_' and 64 lower-case hex digits.")
        hash = hash_api_key(credential)
        key = await self._store.key_by_hash(hash)
        if key is None or not hmac.compare_digest(key.hash, hash) or key.revoked_at is not None:
            raise Unauthorized("the API key is unknown or revoked; create one with 'hivemem key create'.")
        return key

    async def _token_principal(self, token: str, address: str | None) -> Principal:
        """Whom an access token stands for; its row tells what may have ended it."""
        state = await self._store.oauth_token(hash_api_key(token))
        if state is None or state.token.kind is not TokenKind.ACCESS or not state.is_alive(self._clock.now()):
            raise Unauthorized(
                "the access token is unknown, expired or revoked; refresh it or sign in again."
            )
        if address is not None and not same_resource(state.grant.resource, address):
            raise Unauthorized(f"the access token is for {state.grant.resource!r}; sign in at {address!r}.")
        grant = state.grant
        return Principal(user_id=grant.user_id, graph_id=grant.graph_id, scope=state.scope)

    async def _owner(self) -> tuple[User, Graph]:
        users = await self._store.users()
        if not users:
            await self._create_owner()
            users = await self._store.users()
        user = users[0]
        graph = (await self._store.graphs(user.user_id))[0]
        await self._ensure_profile(graph.graph_id)
        return user, graph

    async def _create_owner(self) -> None:
        now = self._clock.now()
        user = User(user_id=self._clock.new_id("user"), name=_OWNER_NAME, created_at=now)
        graph = Graph(
            graph_id=self._clock.new_id("graph"),
            name=_GRAPH_NAME,
            owner_id=user.user_id,
            created_at=now,
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

    async def _add_key(self, user: User, graph: Graph, name: str, scope: Scope) -> tuple[str, ApiKey]:
        secret = new_api_key()
        hash = hash_api_key(secret)
        key = ApiKey(
            key_id=hash[:_KEY_ID_DIGITS],
            hash=hash,
            name=name,
            user_id=user.user_id,
            graph_id=graph.graph_id,
            scope=scope,
            created_at=self._clock.now(),
        )
        await self._store.add_key(key)
        return secret, key
