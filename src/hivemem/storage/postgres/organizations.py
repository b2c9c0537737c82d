"""Organizations, who belongs to them, and invitations. Contracts in `hivemem.ports.store`.

`..._was_...` tell whether a transaction whose commit got no answer happened, as in `users`.
"""

from __future__ import annotations

from datetime import datetime

from psycopg.errors import UniqueViolation

from hivemem.domain.accounts import Invitation, Member, Organization, Role
from hivemem.errors import Conflict
from hivemem.storage import account_rows as rows
from hivemem.storage.postgres import account_locks as locks
from hivemem.storage.postgres import keys, users
from hivemem.storage.postgres.statements import named_statements
from hivemem.storage.postgres.transaction import Query, Row, Transaction
from hivemem.storage.times import to_microseconds

_SQL = named_statements("organizations.sql")


async def add(transaction: Transaction, organization: Organization, owner_id: str) -> None:
    """Create an organization with its graph, and its first owner."""
    # Its row is new, and nobody can wait for it who has locked the user.
    await locks.hold_user(transaction, owner_id)
    if not await transaction.ask(_insert(organization)):
        raise Conflict(
            f"the organization {organization.name!r} or {organization.organization_id!r} exists; choose "
            "another name or id."
        )
    await users.insert_graph(transaction, rows.graph_of_organization(organization))
    await _write_member(
        transaction, organization.organization_id, owner_id, Role.OWNER, organization.created_at
    )


async def was_added(transaction: Transaction, added: Organization) -> bool:
    """Whether just this organization exists."""
    new, present = await transaction.ask_two(_insert(added), organization(added.organization_id))
    return not new and present == added


def organization(organization_id: str) -> Query[Organization | None]:
    """An organization."""
    return Query(
        sql=_SQL["organization"],
        arguments={"organization_id": organization_id},
        decode=lambda found: rows.organization_from_row(found[0]) if found else None,
    )


def organizations() -> Query[list[Organization]]:
    """All organizations, oldest first."""
    return Query(
        sql=_SQL["organizations"],
        arguments={},
        decode=lambda found: [rows.organization_from_row(row) for row in found],
    )


async def rename(transaction: Transaction, organization_id: str, name: str) -> bool:
    """Change the name; False when there is no such organization."""
    arguments = {"organization_id": organization_id, "name": name}
    if not await locks.lock_organization(transaction, organization_id):
        return False
    try:
        return await transaction.ask(Query(sql=_SQL["rename"], arguments=arguments, decode=bool))
    except UniqueViolation:
        raise Conflict(f"the organization name {name!r} is taken; choose another.") from None


async def remove(transaction: Transaction, organization_id: str, at: datetime) -> bool:
    """Remove an organization; its graph becomes a deleted one. False when there is none."""
    present = await _locked(transaction, organization_id)
    if present is None:
        return False
    own = {"organization_id": organization_id}
    await transaction.send(_SQL["end_write_modes"], own)
    await locks.lock_graph(transaction, present.graph_id)
    await users.delete_graph(transaction, present.graph_id, at)
    await transaction.send(_SQL["drop_memberships"], own)
    await transaction.send(_SQL["drop_invitations"], own)
    await transaction.send(_SQL["drop_organization"], own)
    return True


async def was_removed(transaction: Transaction, organization_id: str, removed: bool) -> bool:
    """Whether a removal with this result happened."""
    return removed and not await locks.lock_organization(transaction, organization_id)


def members(organization_id: str) -> Query[list[Member]]:
    """Who belongs to an organization, longest first."""
    return Query(
        sql=_SQL["members"],
        arguments={"organization_id": organization_id},
        decode=lambda found: [rows.member_from_row(row) for row in found],
    )


async def put_member(
    transaction: Transaction, organization_id: str, user_id: str, role: Role, at: datetime
) -> None:
    """Make a user a member, or change their role."""
    if not await locks.lock_organization(transaction, organization_id):
        raise locks.no_organization(organization_id)
    if await locks.lock_user(transaction, user_id) is None:
        raise locks.no_user(user_id)
    if role is not Role.OWNER and await _role(transaction, organization_id, user_id) is Role.OWNER:
        await _check_other_owner(transaction, organization_id, user_id)
    await _write_member(transaction, organization_id, user_id, role, at)
    if not role.may_write:
        await _end_write_mode(transaction, organization_id, user_id)


async def remove_member(transaction: Transaction, organization_id: str, user_id: str, at: datetime) -> bool:
    """End a membership, with the keys and grants of the user at its graph; False when there is none."""
    present = await _locked(transaction, organization_id)
    if present is None or await locks.lock_user(transaction, user_id) is None:
        return False
    role = await _role(transaction, organization_id, user_id)
    if role is None:
        return False
    if role is Role.OWNER:
        await _check_other_owner(transaction, organization_id, user_id)
    own = {"organization_id": organization_id, "user_id": user_id}
    await transaction.send(_SQL["drop_member"], own)
    await _end_write_mode(transaction, organization_id, user_id)
    await keys.forget_access_of_member(transaction, user_id, present.graph_id)
    return True


async def member_was_removed(
    transaction: Transaction, organization_id: str, user_id: str, removed: bool
) -> bool:
    """Whether a removal with this result happened."""
    await locks.lock_organization(transaction, organization_id)
    return removed and await _role(transaction, organization_id, user_id) is None


async def add_invitation(transaction: Transaction, invitation: Invitation) -> None:
    """Keep an invitation."""
    await locks.hold_organization(transaction, invitation.organization_id)
    await locks.hold_user(transaction, invitation.invited_by)
    await transaction.send(_SQL["add_invitation"], rows.invitation_arguments(invitation))


def invitation(hash: str) -> Query[Invitation | None]:
    """An invitation, also when it was used or its time is over."""
    return Query(
        sql=_SQL["invitation"],
        arguments={"hash": hash},
        decode=lambda found: rows.invitation_from_row(found[0]) if found else None,
    )


def invitations(organization_id: str) -> Query[list[Invitation]]:
    """The invitations of an organization, newest first."""
    return Query(
        sql=_SQL["invitations"],
        arguments={"organization_id": organization_id},
        decode=lambda found: [rows.invitation_from_row(row) for row in found],
    )


async def accept_invitation(transaction: Transaction, hash: str, user_id: str, at: datetime) -> bool:
    """Use an invitation, and make the user a member, unless their present role is higher."""
    present = await transaction.ask(invitation(hash))
    if present is None or not present.is_open(at):
        return False
    if not await locks.lock_organization(transaction, present.organization_id):
        return False
    await locks.hold_user(transaction, user_id)
    if not await transaction.ask(_use(hash, user_id, at)):
        return False
    role = await _role(transaction, present.organization_id, user_id)
    if role is None or present.role.is_above(role):
        await _write_member(transaction, present.organization_id, user_id, present.role, at)
    return True


async def invitation_was_accepted(
    transaction: Transaction, hash: str, user_id: str, at: datetime, accepted: bool
) -> bool:
    """Whether an acceptance with this result happened."""
    used_now, present = await transaction.ask_two(_use(hash, user_id, at), invitation(hash))
    return (
        accepted
        and not used_now
        and present is not None
        and (present.used_by, present.used_at) == (user_id, at)
    )


async def remove_invitation(transaction: Transaction, hash: str) -> bool:
    """Take an invitation back; False when there is none."""
    query = Query(sql=_SQL["remove_invitation"], arguments={"hash": hash}, decode=bool)
    return await transaction.ask(query)


async def invitation_was_removed(transaction: Transaction, hash: str, removed: bool) -> bool:
    """Whether a removal with this result happened."""
    return removed and not await remove_invitation(transaction, hash)


async def _locked(transaction: Transaction, organization_id: str) -> Organization | None:
    if not await locks.lock_organization(transaction, organization_id):
        return None
    return await transaction.ask(organization(organization_id))


async def _role(transaction: Transaction, organization_id: str, user_id: str) -> Role | None:
    query = Query(
        sql=_SQL["role"],
        arguments={"organization_id": organization_id, "user_id": user_id},
        decode=_first_role,
    )
    return await transaction.ask(query)


async def _write_member(
    transaction: Transaction, organization_id: str, user_id: str, role: Role, at: datetime
) -> None:
    await transaction.send(
        _SQL["put_member"],
        {
            "organization_id": organization_id,
            "user_id": user_id,
            "role": role.value,
            "at": to_microseconds(at),
        },
    )


async def _end_write_mode(transaction: Transaction, organization_id: str, user_id: str) -> None:
    own = {"organization_id": organization_id, "user_id": user_id}
    await transaction.send(_SQL["end_write_mode"], own)


async def _check_other_owner(transaction: Transaction, organization_id: str, user_id: str) -> None:
    own = {"organization_id": organization_id, "user_id": user_id}
    if not await transaction.ask(Query(sql=_SQL["other_owner"], arguments=own, decode=bool)):
        raise Conflict(
            f"{user_id!r} is the only owner of the organization {organization_id!r}; make another member an "
            "owner first.",
            code="last_owner",
        )


def _insert(organization: Organization) -> Query[bool]:
    return Query(sql=_SQL["add"], arguments=rows.organization_arguments(organization), decode=bool)


def _use(hash: str, user_id: str, at: datetime) -> Query[bool]:
    arguments = {"hash": hash, "user_id": user_id, "at": to_microseconds(at)}
    return Query(sql=_SQL["use_invitation"], arguments=arguments, decode=bool)


def _first_role(found: list[Row]) -> Role | None:
    return Role(found[0][0]) if found else None
