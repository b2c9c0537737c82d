"""API keys, the account behind a credential, and the end of credentials."""

from __future__ import annotations

import sqlite3
from datetime import datetime

from hivemem.domain.access import ApiKey
from hivemem.domain.accounts import Account
from hivemem.errors import Conflict, NotFound
from hivemem.storage import account_rows as rows
from hivemem.storage.sqlite.statements import named_statements
from hivemem.storage.times import to_microseconds

_SQL = named_statements("keys.sql")


def add_key(connection: sqlite3.Connection, key: ApiKey) -> None:
    """Keep a credential.

    Raises:
        NotFound: Its user or graph does not exist.
        Conflict: It is there already.
    """
    arguments = rows.key_arguments(key)
    if connection.execute(_SQL["user"], arguments).fetchone() is None:
        raise NotFound(f"no user {key.user_id!r}; create the user first.")
    if connection.execute(_SQL["graph"], arguments).fetchone() is None:
        raise NotFound(f"no graph {key.graph_id!r}; create the graph first.")
    if connection.execute(_SQL["same_key"], arguments).fetchone() is not None:
        raise Conflict(f"the key {key.key_id!r} exists already; make a fresh one.")
    connection.execute(_SQL["add_key"], arguments)


def keys(connection: sqlite3.Connection, user_id: str | None) -> list[ApiKey]:
    """All credentials, or those of a user, oldest first."""
    sql = _SQL["keys"] if user_id is None else _SQL["keys_of_user"]
    return [rows.key_from_row(row) for row in connection.execute(sql, {"user_id": user_id})]


def revoke_key(connection: sqlite3.Connection, key_id: str, at: datetime) -> bool:
    """End an active credential; False when there is none with this id."""
    arguments = {"key_id": key_id, "at": to_microseconds(at)}
    return connection.execute(_SQL["revoke_key"], arguments).rowcount == 1


def key_used(connection: sqlite3.Connection, key_id: str, at: datetime) -> None:
    """Note when a key was used last."""
    connection.execute(_SQL["key_used"], {"key_id": key_id, "at": to_microseconds(at)})


def key_account(connection: sqlite3.Connection, hash: str) -> tuple[ApiKey, Account] | None:
    """The key with this SHA-256, and the account behind it, in one statement: of one moment."""
    return rows.key_account_from_rows(connection.execute(_SQL["key_account"], {"hash": hash}).fetchall())


def account(connection: sqlite3.Connection, user_id: str, graph_id: str) -> Account | None:
    """A user with memberships, and the graph if there is one."""
    found = connection.execute(_SQL["account"], {"user_id": user_id, "graph_id": graph_id}).fetchall()
    return rows.account_from_rows(found) if found else None


def forget_access_of_user(connection: sqlite3.Connection, user_id: str) -> None:
    """Remove all keys, grants and sign-ins of a user."""
    own = {"user_id": user_id}
    connection.execute(_SQL["drop_sign_ins_of_user"], own)
    # Grants before the keys that they name.
    connection.execute(_SQL["drop_grants_of_user"], own)
    connection.execute(_SQL["drop_keys_of_user"], own)


def forget_access_to_graph(connection: sqlite3.Connection, graph_id: str) -> None:
    """Remove all keys, grants and sign-ins at a graph, whose ever they are."""
    own = {"graph_id": graph_id}
    connection.execute(_SQL["drop_sign_ins_to_graph"], own)
    connection.execute(_SQL["drop_grants_to_graph"], own)
    connection.execute(_SQL["drop_keys_to_graph"], own)


def forget_access_of_member(connection: sqlite3.Connection, user_id: str, graph_id: str) -> None:
    """Remove the keys, grants and sign-ins of a user at a graph."""
    own = {"user_id": user_id, "graph_id": graph_id}
    connection.execute(_SQL["drop_sign_ins_of_member"], own)
    connection.execute(_SQL["drop_grants_of_member"], own)
    connection.execute(_SQL["drop_keys_of_member"], own)
