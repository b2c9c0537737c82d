"""Users, their graphs, and who they are at identity providers. Contracts in `hivemem.ports.store`."""

from __future__ import annotations

import sqlite3
from datetime import datetime

from hivemem.domain.accounts import ExternalIdentity, Graph, User
from hivemem.errors import Conflict, InvalidInput, NotFound
from hivemem.storage import account_rows as rows
from hivemem.storage.sqlite import keys
from hivemem.storage.sqlite.statements import named_statements
from hivemem.storage.times import to_microseconds

_SQL = named_statements("users.sql")


def add_user(connection: sqlite3.Connection, user: User, graph: Graph) -> None:
    """Create a user with a first graph; see `AccountStore.add_user`."""
    if graph.owner_id != user.user_id:
        raise InvalidInput(f"graph {graph.graph_id!r} belongs to {graph.owner_id!r}, not {user.user_id!r}.")
    arguments = rows.user_arguments(user)
    taken = connection.execute(_SQL["taken_user"], arguments).fetchone()
    if taken is not None:
        raise Conflict(f"{taken[0]!r} is taken; choose another name or make fresh ids.")
    connection.execute(_SQL["add_user"], arguments)
    insert_graph(connection, graph)


def user(connection: sqlite3.Connection, user_id: str) -> User | None:
    """A user."""
    row = connection.execute(_SQL["user"], {"user_id": user_id}).fetchone()
    return None if row is None else rows.user_from_row(row)


def user_by_name(connection: sqlite3.Connection, name: str) -> User | None:
    """The user of this name."""
    row = connection.execute(_SQL["user_by_name"], {"name": name}).fetchone()
    return None if row is None else rows.user_from_row(row)


def users(connection: sqlite3.Connection) -> list[User]:
    """All users, oldest first."""
    return [rows.user_from_row(row) for row in connection.execute(_SQL["users"])]


def put_user(connection: sqlite3.Connection, user: User, read: User | None) -> None:
    """Change a user; see `AccountStore.put_user`."""
    before = require_user(connection, user.user_id)
    rows.check_as_read(before, user, read)
    arguments = rows.user_arguments(user)
    organization = {"organization_id": user.write_organization_id}
    if (
        user.write_organization_id is not None
        and not connection.execute(_SQL["organization"], organization).fetchone()
    ):
        raise NotFound(f"no organization {user.write_organization_id!r}; create it first.")
    holder = connection.execute(_SQL["user_of_name"], arguments).fetchone()
    if holder is not None and holder[0] != user.user_id:
        raise Conflict(f"the user name {user.name!r} is taken; choose another.")
    if before.operator and not user.operator:
        _check_other_operator(connection, user.user_id)
    connection.execute(_SQL["put_user"], arguments)


def remove_user(connection: sqlite3.Connection, user_id: str, at: datetime) -> bool:
    """Remove a user with all that is theirs; see `AccountStore.remove_user`."""
    present = user(connection, user_id)
    if present is None:
        return False
    own = {"user_id": user_id}
    if present.operator:
        _check_other_operator(connection, user_id)
    alone = connection.execute(_SQL["left_without_owner"], own).fetchone()
    if alone is not None:
        raise Conflict(
            f"{user_id!r} is the only owner of the organization {alone[0]!r}; make another member its owner, "
            "or remove it.",
            code="last_owner",
        )
    for graph in graphs(connection, user_id):
        delete_graph(connection, graph.graph_id, at)
    keys.forget_access_of_user(connection, user_id)
    connection.execute(_SQL["drop_memberships"], own)
    connection.execute(_SQL["drop_invitations"], own)
    connection.execute(_SQL["drop_identities"], own)
    # In the graphs of organizations; their own go with their content.
    places = [{"graph_id": graph_id, "user_id": user_id} for graph_id in graph_ids(connection)]
    connection.executemany(_SQL["drop_token_reports"], places)
    connection.executemany(_SQL["drop_exports"], places)
    connection.execute(_SQL["drop_user"], own)
    return True


def add_graph(connection: sqlite3.Connection, graph: Graph) -> None:
    """Create a further personal graph; see `AccountStore.add_graph`."""
    if graph.owner_id is None:
        raise InvalidInput(f"graph {graph.graph_id!r} is an organization's; add the organization.")
    require_user(connection, graph.owner_id)
    insert_graph(connection, graph)


def insert_graph(connection: sqlite3.Connection, graph: Graph) -> None:
    """Create a graph; what it belongs to exists.

    Raises:
        Conflict: Its id is taken.
    """
    arguments = rows.graph_arguments(graph)
    if connection.execute(_SQL["taken_graph"], arguments).fetchone() is not None:
        raise Conflict(f"the graph id {graph.graph_id!r} is taken; make a fresh one.")
    if graph.is_default:
        connection.execute(_SQL["clear_default"], arguments)
    connection.execute(_SQL["add_graph"], arguments)


def graph(connection: sqlite3.Connection, graph_id: str) -> Graph | None:
    """A graph that is not deleted."""
    row = connection.execute(_SQL["graph"], {"graph_id": graph_id}).fetchone()
    return None if row is None else rows.graph_from_row(row)


def graphs(connection: sqlite3.Connection, owner_id: str) -> list[Graph]:
    """The personal graphs of a user, oldest first."""
    return [rows.graph_from_row(row) for row in connection.execute(_SQL["graphs"], {"owner_id": owner_id})]


def graph_ids(connection: sqlite3.Connection) -> list[str]:
    """All graphs that are not deleted."""
    return [graph_id for (graph_id,) in connection.execute(_SQL["graph_ids"])]


def put_graph(connection: sqlite3.Connection, graph: Graph, read: Graph | None) -> bool:
    """Change name, end of writing and default; see `AccountStore.put_graph`."""
    arguments = rows.graph_arguments(graph)
    row = connection.execute(_SQL["graph"], arguments).fetchone()
    if row is None:
        return False
    rows.check_as_read(rows.graph_from_row(row), graph, read)
    if graph.is_default:
        connection.execute(_SQL["clear_default"], arguments)
    connection.execute(_SQL["put_graph"], arguments)
    return True


def remove_graph(connection: sqlite3.Connection, graph_id: str, at: datetime) -> bool:
    """Delete a personal graph; False when there is none."""
    present = graph(connection, graph_id)
    if present is None or present.owner_id is None:
        return False
    delete_graph(connection, graph_id, at)
    return True


def delete_graph(connection: sqlite3.Connection, graph_id: str, at: datetime) -> None:
    """Make a graph that exists a deleted one, with all keys and grants at it."""
    keys.forget_access_to_graph(connection, graph_id)
    connection.execute(_SQL["drop_graph"], {"graph_id": graph_id})
    connection.execute(_SQL["delete_graph"], {"graph_id": graph_id, "at": to_microseconds(at)})


def add_identity(connection: sqlite3.Connection, identity: ExternalIdentity) -> None:
    """Note who a user is at an identity provider; see `AccountStore.add_external_identity`."""
    arguments = rows.identity_arguments(identity)
    require_user(connection, identity.user_id)
    if connection.execute(_SQL["same_identity"], arguments).fetchone() is not None:
        raise Conflict(f"the identity {identity.subject!r} at {identity.issuer!r} is somebody's already.")
    connection.execute(_SQL["add_identity"], arguments)


def user_by_identity(connection: sqlite3.Connection, issuer: str, subject: str) -> User | None:
    """Who is known by this identity."""
    row = connection.execute(_SQL["user_by_identity"], {"issuer": issuer, "subject": subject}).fetchone()
    return None if row is None else rows.user_from_row(row)


def identities(connection: sqlite3.Connection, user_id: str) -> list[ExternalIdentity]:
    """The identities of a user, oldest first."""
    found = connection.execute(_SQL["identities"], {"user_id": user_id})
    return [rows.identity_from_row(row) for row in found]


def remove_identity(connection: sqlite3.Connection, issuer: str, subject: str) -> bool:
    """Forget an identity; False when there is none."""
    arguments = {"issuer": issuer, "subject": subject}
    return connection.execute(_SQL["remove_identity"], arguments).rowcount == 1


def require_user(connection: sqlite3.Connection, user_id: str) -> User:
    """The user of this id.

    Raises:
        NotFound: There is none.
    """
    found = user(connection, user_id)
    if found is None:
        raise NotFound(f"no user {user_id!r}; create the user first.")
    return found


def _check_other_operator(connection: sqlite3.Connection, user_id: str) -> None:
    if connection.execute(_SQL["other_operator"], {"user_id": user_id}).fetchone() is None:
        raise Conflict(
            f"{user_id!r} is the only operator of this server; make somebody else one first.",
            code="last_operator",
        )
