"""Users, their graphs, and who they are at identity providers. Contracts in `hivemem.ports.store`.

`..._was_...` tell whether a transaction whose commit got no answer happened: they wait for its end, and the
caller rolls back what they do.
"""

from __future__ import annotations

from datetime import datetime

from psycopg.errors import UniqueViolation

from hivemem.domain.accounts import ExternalIdentity, Graph, User
from hivemem.errors import Conflict, InvalidInput
from hivemem.storage import account_rows as rows
from hivemem.storage.postgres import account_locks as locks
from hivemem.storage.postgres import keys, purging
from hivemem.storage.postgres.statements import named_statements
from hivemem.storage.postgres.transaction import Query, Row, Transaction

_SQL = named_statements("users.sql")


async def add_user(transaction: Transaction, user: User, graph: Graph) -> None:
    """Create a user with a first graph; see `AccountStore.add_user`."""
    if graph.owner_id != user.user_id:
        raise InvalidInput(f"graph {graph.graph_id!r} belongs to {graph.owner_id!r}, not {user.user_id!r}.")
    if not await transaction.ask(_insert_user(user)):
        raise Conflict(f"the user {user.name!r} or {user.user_id!r} exists; choose another name or id.")
    await insert_graph(transaction, graph)


async def user_was_added(transaction: Transaction, added: User) -> bool:
    """Whether just this user exists."""
    new, present = await transaction.ask_two(_insert_user(added), user(added.user_id))
    return not new and present == added


def user(user_id: str) -> Query[User | None]:
    """A user."""
    return Query(sql=_SQL["user"], arguments={"user_id": user_id}, decode=_first_user)


def user_by_name(name: str) -> Query[User | None]:
    """The user of this name."""
    return Query(sql=_SQL["user_by_name"], arguments={"name": name}, decode=_first_user)


def users() -> Query[list[User]]:
    """All users, oldest first."""
    return Query(
        sql=_SQL["users"], arguments={}, decode=lambda found: [rows.user_from_row(row) for row in found]
    )


async def put_user(transaction: Transaction, user: User, read: User | None) -> None:
    """Change a user; see `AccountStore.put_user`."""
    if user.write_organization_id is not None:
        await locks.hold_organization(transaction, user.write_organization_id)
    before = await locks.lock_user(transaction, user.user_id)
    if before is None:
        raise locks.no_user(user.user_id)
    rows.check_as_read(before, user, read)
    if before.operator and not user.operator:
        await _check_other_operator(transaction, user.user_id)
    try:
        await transaction.ask(Query(sql=_SQL["put_user"], arguments=rows.user_arguments(user), decode=bool))
    except UniqueViolation:
        raise Conflict(f"the user name {user.name!r} is taken; choose another.") from None


async def remove_user(transaction: Transaction, user_id: str, at: datetime) -> bool:
    """Remove a user with all that is theirs; see `AccountStore.remove_user`."""
    present = await locks.lock_user_and_organizations(transaction, user_id)
    if present is None:
        return False
    if present.operator:
        await _check_other_operator(transaction, user_id)
    await _check_other_owners(transaction, user_id)
    for graph_id in await locks.lock_graphs_of_user(transaction, user_id):
        await delete_graph(transaction, graph_id, at)
    await keys.forget_access_of_user(transaction, user_id)
    own = {"user_id": user_id}
    await transaction.send(_SQL["drop_memberships"], own)
    await transaction.send(_SQL["drop_invitations"], own)
    await transaction.send(_SQL["drop_identities"], own)
    # Their own graphs go with their content; in those of others they can have left something.
    await purging.forget_user(transaction, await transaction.ask(_shared_graph_ids()), user_id)
    await transaction.send(_SQL["drop_user"], own)
    return True


async def user_was_removed(transaction: Transaction, user_id: str, removed: bool) -> bool:
    """Whether a removal with this result happened."""
    return removed and await locks.lock_user(transaction, user_id) is None


async def add_graph(transaction: Transaction, graph: Graph) -> None:
    """Create a further personal graph; see `AccountStore.add_graph`."""
    if graph.owner_id is None:
        raise InvalidInput(f"graph {graph.graph_id!r} is an organization's; add the organization.")
    if await locks.lock_user(transaction, graph.owner_id) is None:
        raise locks.no_user(graph.owner_id)
    if graph.is_default:
        await transaction.send(_SQL["clear_default"], rows.graph_arguments(graph))
    await insert_graph(transaction, graph)


async def graph_was_added(transaction: Transaction, added: Graph) -> bool:
    """Whether just this graph exists."""
    if added.owner_id is not None:
        await locks.lock_user(transaction, added.owner_id)
    return await transaction.ask(graph(added.graph_id)) == added


async def insert_graph(transaction: Transaction, graph: Graph) -> None:
    """Create a graph; what it belongs to exists, and has no other default.

    Raises:
        Conflict: Its id is taken.
    """
    query = Query(sql=_SQL["add_graph"], arguments=rows.graph_arguments(graph), decode=bool)
    if not await transaction.ask(query):
        raise Conflict(f"the graph id {graph.graph_id!r} is taken; make a fresh one.")


def graph(graph_id: str) -> Query[Graph | None]:
    """A graph that is not deleted."""
    return Query(
        sql=_SQL["graph"],
        arguments={"graph_id": graph_id},
        decode=lambda found: rows.graph_from_row(found[0]) if found else None,
    )


def graphs(owner_id: str) -> Query[list[Graph]]:
    """The personal graphs of a user, oldest first."""
    return Query(
        sql=_SQL["graphs"],
        arguments={"owner_id": owner_id},
        decode=lambda found: [rows.graph_from_row(row) for row in found],
    )


def graph_ids() -> Query[list[str]]:
    """All graphs that are not deleted."""
    return Query(sql=_SQL["graph_ids"], arguments={}, decode=_ids)


async def put_graph(transaction: Transaction, graph: Graph, read: Graph | None) -> bool:
    """Change name, end of writing and default; see `AccountStore.put_graph`."""
    if graph.owner_id is not None:
        # The owner's other graphs must not become the default at the same time.
        await locks.lock_user(transaction, graph.owner_id)
    before = await locks.lock_graph(transaction, graph.graph_id)
    if before is None:
        return False
    rows.check_as_read(before, graph, read)
    arguments = rows.graph_arguments(graph)
    if graph.is_default:
        await transaction.send(_SQL["clear_default"], arguments)
    return await transaction.ask(Query(sql=_SQL["put_graph"], arguments=arguments, decode=bool))


async def remove_graph(transaction: Transaction, graph_id: str, at: datetime) -> bool:
    """Delete a personal graph; False when there is none."""
    present = await locks.lock_graph(transaction, graph_id)
    if present is None or present.owner_id is None:
        return False
    await delete_graph(transaction, graph_id, at)
    return True


async def graph_was_removed(transaction: Transaction, graph_id: str, removed: bool) -> bool:
    """Whether a removal with this result happened."""
    return removed and await locks.lock_graph(transaction, graph_id) is None


async def delete_graph(transaction: Transaction, graph_id: str, at: datetime) -> None:
    """Make a graph, whose row is locked, a deleted one, with all keys and grants at it."""
    await purging.wait_for_writers(transaction, graph_id)
    await keys.forget_access_to_graph(transaction, graph_id)
    await transaction.send(_SQL["drop_graph"], {"graph_id": graph_id})
    await purging.delete_graph(transaction, graph_id, at)


async def add_identity(transaction: Transaction, identity: ExternalIdentity) -> None:
    """Note who a user is at an identity provider; see `AccountStore.add_external_identity`."""
    await locks.hold_user(transaction, identity.user_id)
    if not await transaction.ask(_insert_identity(identity)):
        raise Conflict(f"the identity {identity.subject!r} at {identity.issuer!r} is somebody's already.")


async def identity_was_added(transaction: Transaction, identity: ExternalIdentity) -> bool:
    """Whether just this identity is noted."""
    await locks.hold_user(transaction, identity.user_id)
    same = Query(
        sql=_SQL["identity"],
        arguments={"issuer": identity.issuer, "subject": identity.subject},
        decode=lambda found: [rows.identity_from_row(row) for row in found] == [identity],
    )
    added_now, present = await transaction.ask_two(_insert_identity(identity), same)
    return not added_now and present


def user_by_identity(issuer: str, subject: str) -> Query[User | None]:
    """Who is known by this identity."""
    return Query(
        sql=_SQL["user_by_identity"], arguments={"issuer": issuer, "subject": subject}, decode=_first_user
    )


def identities(user_id: str) -> Query[list[ExternalIdentity]]:
    """The identities of a user, oldest first."""
    return Query(
        sql=_SQL["identities"],
        arguments={"user_id": user_id},
        decode=lambda found: [rows.identity_from_row(row) for row in found],
    )


async def remove_identity(transaction: Transaction, issuer: str, subject: str) -> bool:
    """Forget an identity; False when there is none."""
    arguments = {"issuer": issuer, "subject": subject}
    return await transaction.ask(Query(sql=_SQL["remove_identity"], arguments=arguments, decode=bool))


async def identity_was_removed(transaction: Transaction, issuer: str, subject: str, removed: bool) -> bool:
    """Whether a removal with this result happened."""
    return removed and not await remove_identity(transaction, issuer, subject)


async def _check_other_operator(transaction: Transaction, user_id: str) -> None:
    await locks.lock_operators(transaction)
    query = Query(sql=_SQL["other_operator"], arguments={"user_id": user_id}, decode=bool)
    if not await transaction.ask(query):
        raise Conflict(
            f"{user_id!r} is the only operator of this server; make somebody else one first.",
            code="last_operator",
        )


async def _check_other_owners(transaction: Transaction, user_id: str) -> None:
    query = Query(sql=_SQL["left_without_owner"], arguments={"user_id": user_id}, decode=_ids)
    for organization_id in await transaction.ask(query):
        raise Conflict(
            f"{user_id!r} is the only owner of the organization {organization_id!r}; make another member its "
            "owner, or remove it.",
            code="last_owner",
        )


def _insert_user(user: User) -> Query[bool]:
    return Query(sql=_SQL["add_user"], arguments=rows.user_arguments(user), decode=bool)


def _insert_identity(identity: ExternalIdentity) -> Query[bool]:
    return Query(sql=_SQL["add_identity"], arguments=rows.identity_arguments(identity), decode=bool)


def _shared_graph_ids() -> Query[list[str]]:
    return Query(sql=_SQL["shared_graph_ids"], arguments={}, decode=_ids)


def _first_user(found: list[Row]) -> User | None:
    return rows.user_from_row(found[0]) if found else None


def _ids(found: list[Row]) -> list[str]:
    return [id for (id,) in found]
