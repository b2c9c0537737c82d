"""OAuth: programs, sign-ins under way, grants, codes and tokens. Contracts in `hivemem.ports.store`."""

from __future__ import annotations

from collections.abc import Sequence
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
from hivemem.storage import oauth_rows as rows
from hivemem.storage.postgres import account_locks as locks
from hivemem.storage.postgres.statements import named_statements
from hivemem.storage.postgres.transaction import Query, Transaction
from hivemem.storage.times import to_microseconds

_SQL = named_statements("oauth.sql")


async def put_client(transaction: Transaction, client: OAuthClient) -> None:
    """Keep a program, or what it now says of itself."""
    await transaction.send(_SQL["put_client"], rows.client_arguments(client))


def client(client_id: str) -> Query[OAuthClient | None]:
    """A program, also when it is revoked."""
    return Query(
        sql=_SQL["client"],
        arguments={"client_id": client_id},
        decode=lambda found: rows.client_from_row(found[0]) if found else None,
    )


async def revoke_client(transaction: Transaction, client_id: str, at: datetime) -> None:
    """End a program and all that was granted to it."""
    await transaction.send(_SQL["revoke_client"], {"client_id": client_id, "at": to_microseconds(at)})


async def add_sign_in(transaction: Transaction, sign_in: SignIn) -> None:
    """Keep a sign-in that begins."""
    await transaction.send(_SQL["add_sign_in"], rows.sign_in_arguments(sign_in))


def sign_in(hash: str) -> Query[SignIn | None]:
    """A sign-in under way."""
    return Query(
        sql=_SQL["sign_in"],
        arguments={"hash": hash},
        decode=lambda found: rows.sign_in_from_row(found[0]) if found else None,
    )


async def send_out(transaction: Transaction, hash: str, external: str) -> bool:
    """Note what an identity provider's answer must match; False when the sign-in is gone."""
    arguments = {"hash": hash, "external": external}
    return await transaction.ask(Query(sql=_SQL["send_out"], arguments=arguments, decode=bool))


async def identify(transaction: Transaction, hash: str, identity: Identity, consent_hash: str) -> bool:
    """Note who signed in; False when the sign-in is gone."""
    arguments = {"hash": hash, "identity": rows.identity_to_text(identity), "consent_hash": consent_hash}
    return await transaction.ask(Query(sql=_SQL["identify"], arguments=arguments, decode=bool))


async def end_sign_in(transaction: Transaction, hash: str) -> bool:
    """Forget a sign-in; False when it is gone already."""
    return await transaction.ask(Query(sql=_SQL["end_sign_in"], arguments={"hash": hash}, decode=bool))


async def allow(transaction: Transaction, hash: str, grant: Grant, code: AuthorizationCode) -> bool:
    """Turn a sign-in into a grant with a code; False, and nothing written, when what it needs is gone."""
    if not await locks.hold_grantable(transaction, grant.user_id, grant.graph_id, grant.key_id):
        return False
    if not await end_sign_in(transaction, hash):
        return False
    await transaction.send(_SQL["add_grant"], rows.grant_arguments(grant))
    await transaction.send(_SQL["add_code"], rows.code_arguments(code))
    return True


async def was_allowed(transaction: Transaction, hash: str, allowed: bool, code_hash: str) -> bool:
    """Whether `allow` with this result was committed; the deletion of the sign-in waits for its end."""
    await end_sign_in(transaction, hash)
    return allowed and await transaction.ask(code(code_hash)) is not None


def grants(user_id: str) -> Query[list[Grant]]:
    """What a user granted, newest first."""
    return Query(
        sql=_SQL["grants"],
        arguments={"user_id": user_id},
        decode=lambda found: [rows.grant_from_row(row) for row in found],
    )


async def revoke_grant(transaction: Transaction, grant_id: str, at: datetime) -> None:
    """End a grant with all its tokens."""
    await transaction.send(_SQL["revoke_grant"], {"grant_id": grant_id, "at": to_microseconds(at)})


def code(hash: str) -> Query[tuple[AuthorizationCode, Grant] | None]:
    """A code and its grant, whatever became of them."""
    return Query(
        sql=_SQL["code"],
        arguments={"hash": hash},
        decode=lambda found: rows.code_from_row(found[0]) if found else None,
    )


async def exchange_code(transaction: Transaction, hash: str, tokens: Sequence[Token], at: datetime) -> bool:
    """Use a code and keep its tokens; False, and nothing written, when it is used or gone."""
    if not await _use_code(transaction, hash, at):
        return False
    await _add_tokens(transaction, tokens)
    return True


async def code_was_exchanged(
    transaction: Transaction, hash: str, exchanged: bool, tokens: Sequence[Token], at: datetime
) -> bool:
    """Whether `exchange_code` with this result was committed; waits for its end at the code's row."""
    await _use_code(transaction, hash, at)
    return exchanged and await transaction.ask(token(tokens[0].hash)) is not None


def token(hash: str) -> Query[TokenState | None]:
    """A token with all that can end it."""
    return Query(
        sql=_SQL["token"],
        arguments={"hash": hash},
        decode=lambda found: rows.token_state_from_row(found[0]) if found else None,
    )


def token_account(hash: str, graph_id: GraphId | None) -> Query[tuple[TokenState, Account] | None]:
    """A token and the account behind it, in one statement: of one moment."""
    return Query(
        sql=_SQL["token_account"],
        arguments={"hash": hash, "graph_id": graph_id},
        decode=rows.token_account_from_rows,
    )


async def exchange_refresh_token(
    transaction: Transaction, hash: str, tokens: Sequence[Token], at: datetime, reusable_from: datetime
) -> bool:
    """Use a refresh token and keep its successors; False when it was used before `reusable_from`."""
    arguments = {
        "hash": hash,
        "at": to_microseconds(at),
        "reusable_from": to_microseconds(reusable_from),
    }
    # A repetition after a lost answer uses the token a second time, which the grace allows.
    if not await transaction.ask(Query(sql=_SQL["use_refresh_token"], arguments=arguments, decode=bool)):
        return False
    await _add_tokens(transaction, tokens)
    return True


async def drop_stale(transaction: Transaction, now: datetime, before: datetime) -> None:
    """Forget what has no use any more: see `OAuthStore.drop_stale_oauth`."""
    at = {"now": to_microseconds(now)}
    since = {"before": to_microseconds(before)}
    await transaction.send(_SQL["drop_sign_ins"], at)
    await transaction.send(_SQL["drop_codes"], since)
    await transaction.send(_SQL["drop_tokens"], at)
    await transaction.send(_SQL["drop_grants"], since)
    await transaction.send(_SQL["drop_clients"], since)


async def _use_code(transaction: Transaction, hash: str, at: datetime) -> bool:
    arguments = {"hash": hash, "at": to_microseconds(at)}
    return await transaction.ask(Query(sql=_SQL["use_code"], arguments=arguments, decode=bool))


async def _add_tokens(transaction: Transaction, tokens: Sequence[Token]) -> None:
    for token in tokens:
        await transaction.send(_SQL["add_token"], rows.token_arguments(token))
