"""API keys, the account behind a credential, and the end of credentials."""

from __future__ import annotations

from datetime import datetime

from hivemem.domain.access import ApiKey
from hivemem.domain.accounts import Account
from hivemem.errors import Conflict, NotFound
from hivemem.storage import account_rows as rows
from hivemem.storage.postgres import account_locks as locks
from hivemem.storage.postgres.statements import named_statements
from hivemem.storage.postgres.transaction import Query, Row, Transaction
from hivemem.storage.times import to_microseconds

_SQL = named_statements("keys.sql")


async def add_key(transaction: Transaction, key: ApiKey) -> None:
    """Keep a credential.

    Raises:
        NotFound: Its user or graph does not exist.
        Conflict: It is there already.
    """
    await locks.hold_user(transaction, key.user_id)
    if not await locks.hold_graph(transaction, key.graph_id):
        raise NotFound(f"no graph {key.graph_id!r}; create the graph first.")
    if not await transaction.ask(_insert_key(key)):
        raise Conflict(f"the key {key.key_id!r} exists already; make a fresh one.")


async def key_was_added(transaction: Transaction, key: ApiKey) -> bool:
    """Whether just this key exists; waits for a transaction that adds it. The caller rolls back."""
    await locks.hold_user(transaction, key.user_id)
    if not await locks.hold_graph(transaction, key.graph_id):
        return False
    present = Query(sql=_SQL["key_by_hash"], arguments={"hash": key.hash}, decode=_keys)
    added_now, found = await transaction.ask_two(_insert_key(key), present)
    return not added_now and found == [key]


def keys(user_id: str | None) -> Query[list[ApiKey]]:
    """All credentials, or those of a user, oldest first."""
    if user_id is None:
        return Query(sql=_SQL["keys"], arguments={}, decode=_keys)
    return Query(sql=_SQL["keys_of_user"], arguments={"user_id": user_id}, decode=_keys)


async def revoke_key(transaction: Transaction, key_id: str, at: datetime) -> bool:
    """End an active credential; False when there is none with this id."""
    return await transaction.ask(_end_key(key_id, at))


async def key_was_revoked(transaction: Transaction, key_id: str, at: datetime) -> bool:
    """Whether the key was ended at just this time; waits for a transaction that does. Roll back."""
    moment = to_microseconds(at)
    ended_now, same = await transaction.ask_two(
        _end_key(key_id, at),
        Query(
            sql=_SQL["revoked_at"],
            arguments={"key_id": key_id},
            decode=lambda found: [*map(tuple, found)] == [(moment,)],
        ),
    )
    return not ended_now and same


async def key_used(transaction: Transaction, key_id: str, at: datetime) -> None:
    """Note when a key was used last."""
    await transaction.send(_SQL["key_used"], {"key_id": key_id, "at": to_microseconds(at)})


def key_account(hash: str) -> Query[tuple[ApiKey, Account] | None]:
    """The key with this SHA-256 and the account behind it, in one statement: of one moment."""
    return Query(sql=_SQL["key_account"], arguments={"hash": hash}, decode=rows.key_account_from_rows)


def account(user_id: str, graph_id: str) -> Query[Account | None]:
    """A user with memberships, and the graph if there is one."""
    return Query(
        sql=_SQL["account"],
        arguments={"user_id": user_id, "graph_id": graph_id},
        decode=lambda found: rows.account_from_rows(found) if found else None,
    )


async def forget_access_of_user(transaction: Transaction, user_id: str) -> None:
    """Remove all keys, grants and sign-ins of a user, whose row is locked."""
    own = {"user_id": user_id}
    await transaction.send(_SQL["drop_sign_ins_of_user"], own)
    await _drop_grants(transaction, Query(sql=_SQL["grants_of_user"], arguments=own, decode=_ids))
    await transaction.send(_SQL["drop_keys_of_user"], own)


async def forget_access_to_graph(transaction: Transaction, graph_id: str) -> None:
    """Remove all keys, grants and sign-ins at a graph, whose row is locked; whose ever they are."""
    own = {"graph_id": graph_id}
    await transaction.send(_SQL["drop_sign_ins_to_graph"], own)
    await _drop_grants(transaction, Query(sql=_SQL["grants_to_graph"], arguments=own, decode=_ids))
    await transaction.send(_SQL["drop_keys_to_graph"], own)


async def forget_access_of_member(transaction: Transaction, user_id: str, graph_id: str) -> None:
    """Remove the keys, grants and sign-ins of a user, whose row is locked, at a graph."""
    own = {"user_id": user_id, "graph_id": graph_id}
    await transaction.send(_SQL["drop_sign_ins_of_member"], own)
    await _drop_grants(transaction, Query(sql=_SQL["grants_of_member"], arguments=own, decode=_ids))
    await transaction.send(_SQL["drop_keys_of_member"], own)


async def _drop_grants(transaction: Transaction, wanted: Query[list[str]]) -> None:
    grants = {"grant_ids": await transaction.ask(wanted)}
    await transaction.send(_SQL["drop_codes"], grants)
    await transaction.send(_SQL["drop_tokens"], grants)
    await transaction.send(_SQL["drop_grants"], grants)


def _insert_key(key: ApiKey) -> Query[bool]:
    return Query(sql=_SQL["add_key"], arguments=rows.key_arguments(key), decode=bool)


def _end_key(key_id: str, at: datetime) -> Query[bool]:
    arguments = {"key_id": key_id, "at": to_microseconds(at)}
    return Query(sql=_SQL["revoke_key"], arguments=arguments, decode=bool)


def _keys(found: list[Row]) -> list[ApiKey]:
    return [rows.key_from_row(row) for row in found]


def _ids(found: list[Row]) -> list[str]:
    return [id for (id,) in found]
