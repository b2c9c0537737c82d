"""Users, graphs and API keys."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from hivemem.domain.access import ApiKey, Scope
from hivemem.domain.accounts import Graph, User
from hivemem.errors import Conflict, InvalidInput, NotFound
from hivemem.storage.postgres.statements import named_statements
from hivemem.storage.postgres.transaction import Query, Row, Transaction
from hivemem.storage.times import from_microseconds, to_microseconds

_SQL = named_statements("access.sql")


async def add_user(transaction: Transaction, user: User, graph: Graph) -> None:
    """Create a user with a first graph.

    Raises:
        InvalidInput: The graph belongs to somebody else.
        Conflict: An id, or the user's name, is taken.
    """
    if graph.owner_id != user.user_id:
        raise InvalidInput(f"graph {graph.graph_id!r} belongs to {graph.owner_id!r}, not {user.user_id!r}.")
    added, first = await transaction.ask_two(_insert_user(user), _insert_graph(user, graph))
    if not added:
        raise Conflict(f"the user {user.name!r} or {user.user_id!r} exists; choose another name or id.")
    if not first:
        raise Conflict(f"the graph {graph.graph_id!r} is taken; make a fresh id.")


async def user_was_added(transaction: Transaction, user: User) -> bool:
    """Whether just this user exists; waits for a transaction that adds it. The caller rolls back."""
    added, present = await transaction.ask_two(_insert_user(user), users())
    return not added and user in present


def users() -> Query[list[User]]:
    """All users, oldest first."""
    return Query(
        sql=_SQL["users"],
        arguments={},
        decode=lambda rows: [
            User(user_id=user_id, name=name, created_at=from_microseconds(created_at))
            for user_id, name, created_at in rows
        ],
    )


def graphs(owner_id: str) -> Query[list[Graph]]:
    """The graphs of a user, oldest first."""
    return Query(
        sql=_SQL["graphs"],
        arguments={"owner_id": owner_id},
        decode=lambda rows: [
            Graph(
                graph_id=graph_id,
                name=name,
                owner_id=owner,
                created_at=from_microseconds(created_at),
            )
            for graph_id, name, _, owner, created_at in rows
        ],
    )


async def add_key(transaction: Transaction, key: ApiKey) -> None:
    """Keep a credential.

    Raises:
        NotFound: Its user or graph does not exist.
        Conflict: It is there already.
    """
    user, graph, added = await transaction.ask_three(
        Query(sql=_SQL["user"], arguments={"user_id": key.user_id}, decode=bool),
        Query(sql=_SQL["graph"], arguments={"graph_id": key.graph_id}, decode=bool),
        _insert_key(key),
    )
    if not user:
        raise NotFound(f"no user {key.user_id!r}; create the user first.")
    if not graph:
        raise NotFound(f"no graph {key.graph_id!r}; create the graph first.")
    if not added:
        raise Conflict(f"the key {key.key_id!r} exists already; make a fresh one.")


async def key_was_added(transaction: Transaction, key: ApiKey) -> bool:
    """Whether just this key exists; waits for a transaction that adds it. The caller rolls back."""
    added, present = await transaction.ask_two(_insert_key(key), key_by_hash(key.hash))
    return not added and present == key


def key_by_hash(hash: str) -> Query[ApiKey | None]:
    """The credential with this SHA-256, also when it is revoked."""
    return Query(
        sql=_SQL["key_by_hash"],
        arguments={"hash": hash},
        decode=lambda rows: _key_from_row(rows[0]) if rows else None,
    )


def keys() -> Query[list[ApiKey]]:
    """All credentials, oldest first."""
    return Query(sql=_SQL["keys"], arguments={}, decode=lambda rows: [_key_from_row(row) for row in rows])


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
            decode=lambda rows: [*map(tuple, rows)] == [(moment,)],
        ),
    )
    return not ended_now and same


def _insert_user(user: User) -> Query[bool]:
    arguments = {
        "user_id": user.user_id,
        "name": user.name,
        "created_at": to_microseconds(user.created_at),
    }
    return Query(sql=_SQL["add_user"], arguments=arguments, decode=bool)


def _insert_graph(user: User, graph: Graph) -> Query[bool]:
    arguments = {
        "graph_id": graph.graph_id,
        "graph_name": graph.name,
        "kind": graph.kind.value,
        "graph_created_at": to_microseconds(graph.created_at),
        "user_id": user.user_id,
        "name": user.name,
    }
    return Query(sql=_SQL["add_graph"], arguments=arguments, decode=bool)


def _insert_key(key: ApiKey) -> Query[bool]:
    arguments: dict[str, Any] = {
        "key_id": key.key_id,
        "hash": key.hash,
        "name": key.name,
        "user_id": key.user_id,
        "graph_id": key.graph_id,
        "scope": key.scope.value,
        "created_at": to_microseconds(key.created_at),
        "revoked_at": None if key.revoked_at is None else to_microseconds(key.revoked_at),
    }
    return Query(sql=_SQL["add_key"], arguments=arguments, decode=bool)


def _end_key(key_id: str, at: datetime) -> Query[bool]:
    arguments = {"key_id": key_id, "at": to_microseconds(at)}
    return Query(sql=_SQL["revoke_key"], arguments=arguments, decode=bool)


def _key_from_row(row: Row) -> ApiKey:
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
