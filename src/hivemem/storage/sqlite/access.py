"""Users, graphs and API keys."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from hivemem.domain.access import ApiKey, Scope
from hivemem.domain.accounts import Graph, User
from hivemem.errors import Conflict, InvalidInput, NotFound
from hivemem.storage.sqlite.statements import named_statements
from hivemem.storage.times import from_microseconds, to_microseconds

_SQL = named_statements("access.sql")


def add_user(connection: sqlite3.Connection, user: User, graph: Graph) -> None:
    """Create a user with a first graph.

    Raises:
        InvalidInput: The graph belongs to somebody else.
        Conflict: An id, or the user's name, is taken.
    """
    if graph.owner_id != user.user_id:
        raise InvalidInput(f"graph {graph.graph_id!r} belongs to {graph.owner_id!r}, not {user.user_id!r}.")
    names = {"user_id": user.user_id, "graph_id": graph.graph_id, "name": user.name}
    taken = connection.execute(_SQL["taken_names"], names).fetchone()
    if taken is not None:
        raise Conflict(f"{taken[0]!r} is taken; choose another name or make fresh ids.")
    connection.execute(_SQL["add_user"], {**names, "created_at": to_microseconds(user.created_at)})
    connection.execute(
        _SQL["add_graph"],
        {
            "graph_id": graph.graph_id,
            "name": graph.name,
            "kind": graph.kind.value,
            "owner_id": graph.owner_id,
            "created_at": to_microseconds(graph.created_at),
        },
    )


def users(connection: sqlite3.Connection) -> list[User]:
    """All users, oldest first."""
    return [
        User(user_id=user_id, name=name, created_at=from_microseconds(created_at))
        for user_id, name, created_at in connection.execute(_SQL["users"])
    ]


def graphs(connection: sqlite3.Connection, owner_id: str) -> list[Graph]:
    """The graphs of a user, oldest first."""
    return [
        Graph(
            graph_id=graph_id,
            name=name,
            owner_id=owner,
            created_at=from_microseconds(created_at),
        )
        for graph_id, name, _, owner, created_at in connection.execute(
            _SQL["graphs"], {"owner_id": owner_id}
        )
    ]


def add_key(connection: sqlite3.Connection, key: ApiKey) -> None:
    """Keep a credential.

    Raises:
        NotFound: Its user or graph does not exist.
        Conflict: It is there already.
    """
    if connection.execute(_SQL["user"], {"user_id": key.user_id}).fetchone() is None:
        raise NotFound(f"no user {key.user_id!r}; create the user first.")
    if connection.execute(_SQL["graph"], {"graph_id": key.graph_id}).fetchone() is None:
        raise NotFound(f"no graph {key.graph_id!r}; create the graph first.")
    own = {"key_id": key.key_id, "hash": key.hash}
    if connection.execute(_SQL["same_key"], own).fetchone() is not None:
        raise Conflict(f"the key {key.key_id!r} exists already; make a fresh one.")
    connection.execute(
        _SQL["add_key"],
        {
            **own,
            "name": key.name,
            "user_id": key.user_id,
            "graph_id": key.graph_id,
            "scope": key.scope,
            "created_at": to_microseconds(key.created_at),
            "revoked_at": None if key.revoked_at is None else to_microseconds(key.revoked_at),
        },
    )


def key_by_hash(connection: sqlite3.Connection, hash: str) -> ApiKey | None:
    """The credential with this SHA-256, also when it is revoked."""
    row = connection.execute(_SQL["key_by_hash"], {"hash": hash}).fetchone()
    return None if row is None else _key_from_row(row)


def keys(connection: sqlite3.Connection) -> list[ApiKey]:
    """All credentials, oldest first."""
    return [_key_from_row(row) for row in connection.execute(_SQL["keys"])]


def revoke_key(connection: sqlite3.Connection, key_id: str, at: datetime) -> bool:
    """End an active credential; False when there is none with this id."""
    arguments = {"key_id": key_id, "at": to_microseconds(at)}
    return connection.execute(_SQL["revoke_key"], arguments).rowcount == 1


def _key_from_row(row: Sequence[Any]) -> ApiKey:
    key_id, hash, name, user_id, graph_id, scope, created_at, revoked_at = row
    return ApiKey(
        key_id=key_id,
        hash=hash,
        name=name,
        user_id=user_id,
        graph_id=graph_id,
        scope=Scope(scope),
        created_at=from_microseconds(created_at),
        revoked_at=None if revoked_at is None else from_microseconds(revoked_at),
    )
