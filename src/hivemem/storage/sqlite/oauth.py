"""OAuth: programs, sign-ins under way, grants, codes and tokens. Contracts in `hivemem.ports.store`."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from datetime import datetime

from hivemem.domain.accounts import Account
from hivemem.domain.oauth import (
    AuthorizationCode,
    Grant,
    Identity,
    OAuthClient,
    SignIn,
    Token,
    TokenState,
)
from hivemem.storage import oauth_rows as rows
from hivemem.storage.sqlite.statements import named_statements
from hivemem.storage.times import to_microseconds

_SQL = named_statements("oauth.sql")


def put_client(connection: sqlite3.Connection, client: OAuthClient) -> None:
    """Keep a program, or what it now says of itself."""
    connection.execute(_SQL["put_client"], rows.client_arguments(client))


def client(connection: sqlite3.Connection, client_id: str) -> OAuthClient | None:
    """A program, also when it is revoked."""
    row = connection.execute(_SQL["client"], {"client_id": client_id}).fetchone()
    return None if row is None else rows.client_from_row(row)


def revoke_client(connection: sqlite3.Connection, client_id: str, at: datetime) -> None:
    """End a program and all that was granted to it."""
    connection.execute(_SQL["revoke_client"], {"client_id": client_id, "at": to_microseconds(at)})


def add_sign_in(connection: sqlite3.Connection, sign_in: SignIn) -> None:
    """Keep a sign-in that begins."""
    connection.execute(_SQL["add_sign_in"], rows.sign_in_arguments(sign_in))


def sign_in(connection: sqlite3.Connection, hash: str) -> SignIn | None:
    """A sign-in under way."""
    row = connection.execute(_SQL["sign_in"], {"hash": hash}).fetchone()
    return None if row is None else rows.sign_in_from_row(row)


def send_out(connection: sqlite3.Connection, hash: str, external: str) -> bool:
    """Note what an identity provider's answer must match; False when the sign-in is gone."""
    return connection.execute(_SQL["send_out"], {"hash": hash, "external": external}).rowcount == 1


def identify(connection: sqlite3.Connection, hash: str, identity: Identity, consent_hash: str) -> bool:
    """Note who signed in; False when the sign-in is gone."""
    arguments = {"hash": hash, "identity": rows.identity_to_text(identity), "consent_hash": consent_hash}
    return connection.execute(_SQL["identify"], arguments).rowcount == 1


def end_sign_in(connection: sqlite3.Connection, hash: str) -> bool:
    """Forget a sign-in; False when it is gone already."""
    return connection.execute(_SQL["end_sign_in"], {"hash": hash}).rowcount == 1


def allow(connection: sqlite3.Connection, hash: str, grant: Grant, code: AuthorizationCode) -> bool:
    """Turn a sign-in into a grant with a code; False, and nothing written, when what it needs is gone."""
    if connection.execute(_SQL["grantable"], rows.grant_arguments(grant)).fetchone() is None:
        return False
    if not end_sign_in(connection, hash):
        return False
    connection.execute(_SQL["add_grant"], rows.grant_arguments(grant))
    connection.execute(_SQL["add_code"], rows.code_arguments(code))
    return True


def grants(connection: sqlite3.Connection, user_id: str) -> list[Grant]:
    """What a user granted, newest first."""
    return [rows.grant_from_row(row) for row in connection.execute(_SQL["grants"], {"user_id": user_id})]


def revoke_grant(connection: sqlite3.Connection, grant_id: str, at: datetime) -> None:
    """End a grant with all its tokens."""
    connection.execute(_SQL["revoke_grant"], {"grant_id": grant_id, "at": to_microseconds(at)})


def code(connection: sqlite3.Connection, hash: str) -> tuple[AuthorizationCode, Grant] | None:
    """A code and its grant, whatever became of them."""
    row = connection.execute(_SQL["code"], {"hash": hash}).fetchone()
    return None if row is None else rows.code_from_row(row)


def exchange_code(connection: sqlite3.Connection, hash: str, tokens: Iterable[Token], at: datetime) -> bool:
    """Use a code and keep its tokens; False, and nothing written, when it is used or gone."""
    if connection.execute(_SQL["use_code"], {"hash": hash, "at": to_microseconds(at)}).rowcount != 1:
        return False
    _add_tokens(connection, tokens)
    return True


def token(connection: sqlite3.Connection, hash: str) -> TokenState | None:
    """A token with all that can end it."""
    row = connection.execute(_SQL["token"], {"hash": hash}).fetchone()
    return None if row is None else rows.token_state_from_row(row)


def token_account(
    connection: sqlite3.Connection, hash: str, graph_id: str | None
) -> tuple[TokenState, Account] | None:
    """A token and the account behind it, in one statement: of one moment."""
    found = connection.execute(_SQL["token_account"], {"hash": hash, "graph_id": graph_id}).fetchall()
    return rows.token_account_from_rows(found)


def exchange_refresh_token(
    connection: sqlite3.Connection, hash: str, tokens: Iterable[Token], at: datetime, reusable_from: datetime
) -> bool:
    """Use a refresh token and keep its successors; False when it was used before `reusable_from`."""
    arguments = {
        "hash": hash,
        "at": to_microseconds(at),
        "reusable_from": to_microseconds(reusable_from),
    }
    if connection.execute(_SQL["use_refresh_token"], arguments).rowcount != 1:
        return False
    _add_tokens(connection, tokens)
    return True


def drop_stale(connection: sqlite3.Connection, now: datetime, before: datetime) -> None:
    """Forget what has no use any more: see `OAuthStore.drop_stale_oauth`."""
    moments = {"now": to_microseconds(now), "before": to_microseconds(before)}
    connection.execute(_SQL["drop_sign_ins"], moments)
    connection.execute(_SQL["drop_codes"], moments)
    connection.execute(_SQL["drop_tokens"], moments)
    connection.execute(_SQL["drop_grants"], moments)
    connection.execute(_SQL["drop_clients"], moments)


def _add_tokens(connection: sqlite3.Connection, tokens: Iterable[Token]) -> None:
    connection.executemany(_SQL["add_token"], [rows.token_arguments(token) for token in tokens])
