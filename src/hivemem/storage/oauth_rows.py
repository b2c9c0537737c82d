"""Rows of the OAuth tables and what they mean, alike in every database."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

from hivemem.domain.access import Scope
from hivemem.domain.accounts import Account
from hivemem.domain.oauth import (
    AuthorizationCode,
    AuthorizationRequest,
    ClientAuthentication,
    Grant,
    Identity,
    OAuthClient,
    SignIn,
    Token,
    TokenKind,
    TokenState,
)
from hivemem.storage.account_rows import KEY_COLUMNS, account_from_rows, key_from_row, optional_moment
from hivemem.storage.states import to_json
from hivemem.storage.times import from_microseconds, to_microseconds

TOKEN_STATE_COLUMNS = 15 + KEY_COLUMNS
"""How many columns of a joined row make a `TokenState`."""


def client_arguments(client: OAuthClient) -> dict[str, Any]:
    """The columns of `oauth_clients`."""
    return {
        "client_id": client.client_id,
        "name": client.name,
        "redirect_uris": to_json(client.redirect_uris),
        "grant_types": to_json(client.grant_types),
        "scopes": to_json(client.scopes),
        "authentication": client.authentication.value,
        "secret_hash": client.secret_hash,
        "created_at": to_microseconds(client.created_at),
    }


def client_from_row(row: Sequence[Any]) -> OAuthClient:
    """The program of all columns of `oauth_clients`, in the order of the schema."""
    (
        client_id,
        name,
        redirect_uris,
        grant_types,
        scopes,
        authentication,
        secret_hash,
        created_at,
        revoked_at,
    ) = row
    return OAuthClient(
        client_id=client_id,
        name=name,
        redirect_uris=_texts(redirect_uris),
        grant_types=_texts(grant_types),
        scopes=_texts(scopes),
        authentication=ClientAuthentication(authentication),
        secret_hash=secret_hash,
        created_at=from_microseconds(created_at),
        revoked_at=optional_moment(revoked_at),
    )


def sign_in_arguments(sign_in: SignIn) -> dict[str, Any]:
    """The columns of `oauth_sign_ins` for a sign-in that begins."""
    return {
        "hash": sign_in.hash,
        "client_id": sign_in.request.client_id,
        "request": to_json(asdict(sign_in.request)),
        "expires_at": to_microseconds(sign_in.expires_at),
    }


def sign_in_from_row(row: Sequence[Any]) -> SignIn:
    """The sign-in of `hash, request, expires_at, identity, consent_hash, external`."""
    hash, request, expires_at, identity, consent_hash, external = row
    asked: dict[str, Any] = json.loads(request)
    asked["scopes"] = tuple(asked["scopes"])
    return SignIn(
        hash=hash,
        request=AuthorizationRequest(**asked),
        expires_at=from_microseconds(expires_at),
        identity=None if identity is None else _identity(json.loads(identity)),
        consent_hash=consent_hash,
        external=external,
    )


def identity_to_text(identity: Identity) -> str:
    """The column `identity`."""
    return to_json(asdict(identity))


def grant_arguments(grant: Grant) -> dict[str, Any]:
    """The columns of `oauth_grants`."""
    return {
        "grant_id": grant.grant_id,
        "client_id": grant.client_id,
        "user_id": grant.user_id,
        "graph_id": grant.graph_id,
        "key_id": grant.key_id,
        "scopes": to_json(grant.scopes),
        "resource": grant.resource,
        "created_at": to_microseconds(grant.created_at),
    }


def grant_from_row(row: Sequence[Any]) -> Grant:
    """The grant of all columns of `oauth_grants`, in the order of the schema."""
    grant_id, client_id, user_id, graph_id, key_id, scopes, resource, created_at, revoked_at = row
    return Grant(
        grant_id=grant_id,
        client_id=client_id,
        user_id=user_id,
        graph_id=graph_id,
        key_id=key_id,
        scopes=_texts(scopes),
        resource=resource,
        created_at=from_microseconds(created_at),
        revoked_at=optional_moment(revoked_at),
    )


def code_arguments(code: AuthorizationCode) -> dict[str, Any]:
    """The columns of `oauth_codes`."""
    return {
        "hash": code.hash,
        "grant_id": code.grant_id,
        "redirect_uri": code.redirect_uri,
        "redirect_uri_given": int(code.redirect_uri_given),
        "code_challenge": code.code_challenge,
        "expires_at": to_microseconds(code.expires_at),
    }


def code_from_row(row: Sequence[Any]) -> tuple[AuthorizationCode, Grant]:
    """The code and its grant of `hash, redirect_uri, ..., used_at` and then the columns of the grant."""
    hash, redirect_uri, redirect_uri_given, code_challenge, expires_at, used_at, *of_grant = row
    grant = grant_from_row(of_grant)
    code = AuthorizationCode(
        hash=hash,
        grant_id=grant.grant_id,
        redirect_uri=redirect_uri,
        redirect_uri_given=bool(redirect_uri_given),
        code_challenge=code_challenge,
        expires_at=from_microseconds(expires_at),
        used_at=optional_moment(used_at),
    )
    return code, grant


def token_arguments(token: Token) -> dict[str, Any]:
    """The columns of `oauth_tokens`."""
    return {
        "hash": token.hash,
        "kind": token.kind.value,
        "grant_id": token.grant_id,
        "scopes": to_json(token.scopes),
        "expires_at": to_microseconds(token.expires_at),
    }


def token_state_from_row(row: Sequence[Any]) -> TokenState:
    """The state of `hash, kind, scopes, expires_at, used_at`, the grant, the client's end and the key.

    The key's columns are those of `api_keys`, all NULL when the grant has none.
    """
    hash, kind, scopes, expires_at, used_at = row[:5]
    grant = grant_from_row(row[5:14])
    client_revoked_at, *of_key = row[14:TOKEN_STATE_COLUMNS]
    token = Token(
        hash=hash,
        kind=TokenKind(kind),
        grant_id=grant.grant_id,
        scopes=_texts(scopes),
        expires_at=from_microseconds(expires_at),
        used_at=optional_moment(used_at),
    )
    return TokenState(
        token=token,
        grant=grant,
        client_revoked_at=optional_moment(client_revoked_at),
        key=None if grant.key_id is None else key_from_row(of_key),
    )


def token_account_from_rows(rows: Sequence[Sequence[Any]]) -> tuple[TokenState, Account] | None:
    """The token and account of rows with the columns of `token_state_from_row` and `account_from_rows`."""
    if not rows:
        return None
    account = account_from_rows([row[TOKEN_STATE_COLUMNS:] for row in rows])
    return token_state_from_row(rows[0]), account


def _identity(fields: dict[str, Any]) -> Identity:
    fields["scope"] = Scope(fields["scope"])
    return Identity(**fields)


def _texts(text: str) -> tuple[str, ...]:
    found: Iterable[str] = json.loads(text)
    return tuple(found)
