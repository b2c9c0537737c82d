"""The `OAuthStore` port in dictionaries, a part of `MemoryStore`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime

from hivemem.domain.accounts import Account
from hivemem.domain.graph import GraphId
from hivemem.domain.oauth import (
    AuthorizationCode,
    Grant,
    Identity,
    OAuthClient,
    SignIn,
    Token,
    TokenState,
)
from hivemem.storage.memory_accounts import Gone
from hivemem.storage.memory_organizations import MemoryOrganizations


class MemoryOAuth(MemoryOrganizations):
    """Programs, sign-ins, grants, codes and tokens: see `hivemem.ports.store.OAuthStore` for the contract."""

    def __init__(self, check_open: Callable[[], None], forget_reports: Callable[[str], None]) -> None:
        super().__init__(check_open, forget_reports)
        self._clients: dict[str, OAuthClient] = {}
        self._sign_ins: dict[str, SignIn] = {}
        self._grants: dict[str, Grant] = {}
        self._codes: dict[str, AuthorizationCode] = {}
        self._tokens: dict[str, Token] = {}

    async def put_oauth_client(self, client: OAuthClient) -> None:
        """See `OAuthStore.put_oauth_client`."""
        self._require_open()
        before = self._clients.get(client.client_id)
        if before is not None:
            client = replace(client, created_at=before.created_at, revoked_at=before.revoked_at)
        self._clients[client.client_id] = client

    async def oauth_client(self, client_id: str) -> OAuthClient | None:
        """See `OAuthStore.oauth_client`."""
        self._require_open()
        return self._clients.get(client_id)

    async def revoke_oauth_client(self, client_id: str, at: datetime) -> None:
        """See `OAuthStore.revoke_oauth_client`."""
        client = self._clients.get(client_id)
        if client is not None and client.revoked_at is None:
            self._clients[client_id] = replace(client, revoked_at=at)

    async def add_sign_in(self, sign_in: SignIn) -> None:
        """See `OAuthStore.add_sign_in`."""
        self._sign_ins.setdefault(sign_in.hash, sign_in)

    async def sign_in(self, hash: str) -> SignIn | None:
        """See `OAuthStore.sign_in`."""
        self._require_open()
        return self._sign_ins.get(hash)

    async def send_out(self, hash: str, external: str) -> bool:
        """See `OAuthStore.send_out`."""
        sign_in = self._sign_ins.get(hash)
        if sign_in is None:
            return False
        self._sign_ins[hash] = replace(sign_in, external=external)
        return True

    async def identify(self, hash: str, identity: Identity, consent_hash: str) -> bool:
        """See `OAuthStore.identify`."""
        sign_in = self._sign_ins.get(hash)
        if sign_in is None:
            return False
        self._sign_ins[hash] = replace(sign_in, identity=identity, consent_hash=consent_hash)
        return True

    async def end_sign_in(self, hash: str) -> bool:
        """See `OAuthStore.end_sign_in`."""
        return self._sign_ins.pop(hash, None) is not None

    async def allow_sign_in(self, hash: str, grant: Grant, code: AuthorizationCode) -> bool:
        """See `OAuthStore.allow_sign_in`."""
        known = grant.user_id in self._users and grant.graph_id in self._graphs
        if not known or grant.key_id not in (None, *self._keys):
            return False
        if not await self.end_sign_in(hash):
            return False
        self._grants[grant.grant_id] = grant
        self._codes[code.hash] = code
        return True

    async def grants(self, user_id: str) -> Sequence[Grant]:
        """See `OAuthStore.grants`."""
        self._require_open()
        own = [grant for grant in self._grants.values() if grant.user_id == user_id]
        return sorted(own, key=lambda grant: (grant.created_at, grant.grant_id), reverse=True)

    async def revoke_grant(self, grant_id: str, at: datetime) -> None:
        """See `OAuthStore.revoke_grant`."""
        grant = self._grants.get(grant_id)
        if grant is not None and grant.revoked_at is None:
            self._grants[grant_id] = replace(grant, revoked_at=at)

    async def authorization_code(self, hash: str) -> tuple[AuthorizationCode, Grant] | None:
        """See `OAuthStore.authorization_code`."""
        self._require_open()
        code = self._codes.get(hash)
        return None if code is None else (code, self._grants[code.grant_id])

    async def exchange_code(self, hash: str, tokens: Sequence[Token], at: datetime) -> bool:
        """See `OAuthStore.exchange_code`."""
        code = self._codes.get(hash)
        if code is None or code.used_at is not None:
            return False
        self._codes[hash] = replace(code, used_at=at)
        self._tokens |= {token.hash: token for token in tokens}
        return True

    async def oauth_token(self, hash: str) -> TokenState | None:
        """See `OAuthStore.oauth_token`."""
        self._require_open()
        token = self._tokens.get(hash)
        if token is None:
            return None
        grant = self._grants[token.grant_id]
        return TokenState(
            token=token,
            grant=grant,
            client_revoked_at=self._clients[grant.client_id].revoked_at,
            key=None if grant.key_id is None else self._keys[grant.key_id],
        )

    async def token_account(self, hash: str, graph_id: GraphId | None) -> tuple[TokenState, Account] | None:
        """See `OAuthStore.token_account`."""
        state = await self.oauth_token(hash)
        if state is None:
            return None
        place = state.grant.graph_id if graph_id is None else graph_id
        return state, self._account(state.grant.user_id, place)

    async def exchange_refresh_token(
        self, hash: str, tokens: Sequence[Token], at: datetime, reusable_from: datetime
    ) -> bool:
        """See `OAuthStore.exchange_refresh_token`."""
        token = self._tokens.get(hash)
        if token is None or (token.used_at is not None and token.used_at < reusable_from):
            return False
        self._tokens[hash] = replace(token, used_at=token.used_at or at)
        self._tokens |= {token.hash: token for token in tokens}
        return True

    async def drop_stale_oauth(self, now: datetime, before: datetime) -> None:
        """See `OAuthStore.drop_stale_oauth`."""
        self._sign_ins = {hash: one for hash, one in self._sign_ins.items() if one.expires_at > now}
        self._codes = {hash: one for hash, one in self._codes.items() if one.expires_at > before}
        self._tokens = {hash: one for hash, one in self._tokens.items() if one.expires_at > now}
        used = {one.grant_id for one in (*self._codes.values(), *self._tokens.values())}
        self._grants = {
            id: grant for id, grant in self._grants.items() if grant.created_at > before or id in used
        }
        known = {grant.client_id for grant in self._grants.values()}
        known |= {sign_in.request.client_id for sign_in in self._sign_ins.values()}
        self._clients = {
            id: client
            for id, client in self._clients.items()
            if client.created_at > before or client.revoked_at is not None or id in known
        }

    def _forget_access(self, gone: Gone) -> None:
        ended = {key.key_id for key in self._keys.values() if gone(key.user_id, key.graph_id)}
        super()._forget_access(gone)
        self._grants = {
            id: grant
            for id, grant in self._grants.items()
            if not gone(grant.user_id, grant.graph_id) and grant.key_id not in ended
        }
        self._tokens = {hash: one for hash, one in self._tokens.items() if one.grant_id in self._grants}
        self._codes = {hash: one for hash, one in self._codes.items() if one.grant_id in self._grants}
        self._sign_ins = {
            hash: one
            for hash, one in self._sign_ins.items()
            if one.identity is None or not gone(one.identity.user_id, one.identity.graph_id)
        }
