"""Locks that make writes of accounts wait for each other where their rules need it.

Every write takes what it needs of these in this order, so that no two of them can wait for each other:

1. organizations, by id: whoever changes members locks the organization, and so sees how many owners it has;
2. the user: whoever changes one, or makes another graph the default, locks the row;
3. the right to make somebody no operator any more;
4. graphs, by id, and then writers of a graph, for which see `purging`;
5. sign-ins, codes, tokens, grants, keys.

An answer is read by the statement after the lock, which sees all that was committed before it got it.
"""

from __future__ import annotations

from hivemem.domain.accounts import Graph, User
from hivemem.errors import NotFound
from hivemem.storage import account_rows as rows
from hivemem.storage.postgres.statements import named_statements
from hivemem.storage.postgres.transaction import Query, Row, Transaction

_SQL = named_statements("account_locks.sql")
_SAVEPOINT = b"SAVEPOINT before_locks"
_RELEASE = b"ROLLBACK TO SAVEPOINT before_locks"


async def hold_organization(transaction: Transaction, organization_id: str) -> None:
    """Keep an organization from being removed.

    Raises:
        NotFound: There is none.
    """
    arguments = {"organization_id": organization_id}
    if not await transaction.ask(Query(sql=_SQL["hold_organization"], arguments=arguments, decode=bool)):
        raise no_organization(organization_id)


async def lock_organization(transaction: Transaction, organization_id: str) -> bool:
    """Hold off other changes of an organization and its members; False when there is none."""
    arguments = {"organization_id": organization_id}
    return await transaction.ask(Query(sql=_SQL["lock_organization"], arguments=arguments, decode=bool))


async def hold_user(transaction: Transaction, user_id: str) -> None:
    """Keep a user from being removed.

    Raises:
        NotFound: There is none.
    """
    query = Query(sql=_SQL["hold_user"], arguments={"user_id": user_id}, decode=bool)
    if not await transaction.ask(query):
        raise no_user(user_id)


async def lock_user(transaction: Transaction, user_id: str) -> User | None:
    """Hold off other changes of a user; None when there is none."""
    query = Query(
        sql=_SQL["lock_user"],
        arguments={"user_id": user_id},
        decode=lambda found: rows.user_from_row(found[0]) if found else None,
    )
    return await transaction.ask(query)


async def lock_user_and_organizations(transaction: Transaction, user_id: str) -> User | None:
    """As `lock_user`, with the organizations that the user belongs to; nobody can add them to another one."""
    own = {"user_id": user_id}
    organizations = Query(sql=_SQL["lock_organizations_of_user"], arguments=own, decode=_ids)
    present = Query(sql=_SQL["organizations_of_user"], arguments=own, decode=_ids)
    while True:
        await transaction.send(_SAVEPOINT, {})
        locked = await transaction.ask(organizations)
        user = await lock_user(transaction, user_id)
        if user is None or {*await transaction.ask(present)} <= {*locked}:
            return user
        # They have joined one meanwhile, whose lock would come too late now: let go, and begin anew.
        await transaction.send(_RELEASE, {})


async def lock_operators(transaction: Transaction) -> None:
    """Hold off others who would make somebody no operator any more."""
    await transaction.send(_SQL["lock_operators"], {})


async def hold_graph(transaction: Transaction, graph_id: str) -> bool:
    """Keep a graph from being deleted; False when there is none."""
    query = Query(sql=_SQL["hold_graph"], arguments={"graph_id": graph_id}, decode=bool)
    return await transaction.ask(query)


async def lock_graph(transaction: Transaction, graph_id: str) -> Graph | None:
    """Hold off other changes of a graph's row, and keys and grants at it; None when there is none."""
    query = Query(
        sql=_SQL["lock_graph"],
        arguments={"graph_id": graph_id},
        decode=lambda found: rows.graph_from_row(found[0]) if found else None,
    )
    return await transaction.ask(query)


async def lock_graphs_of_user(transaction: Transaction, user_id: str) -> list[str]:
    """The personal graphs of a user, by id, locked as by `lock_graph`."""
    query = Query(
        sql=_SQL["lock_graphs_of_user"],
        arguments={"owner_id": user_id},
        decode=_ids,
    )
    return await transaction.ask(query)


async def hold_grantable(transaction: Transaction, user_id: str, graph_id: str, key_id: str | None) -> bool:
    """Keep what a grant names from being removed; False when one of it is gone."""
    user, graph, key = await transaction.ask_three(
        Query(sql=_SQL["hold_user"], arguments={"user_id": user_id}, decode=bool),
        Query(sql=_SQL["hold_graph"], arguments={"graph_id": graph_id}, decode=bool),
        Query(sql=_SQL["hold_key"], arguments={"key_id": key_id}, decode=bool),
    )
    return user and graph and (key or key_id is None)


def no_user(user_id: str) -> NotFound:
    """The refusal of what needs a user who is not there."""
    return NotFound(f"no user {user_id!r}; create the user first.")


def no_organization(organization_id: str) -> NotFound:
    """The refusal of what needs an organization that is not there."""
    return NotFound(f"no organization {organization_id!r}; create it first.")


def _ids(found: list[Row]) -> list[str]:
    return [id for (id,) in found]
