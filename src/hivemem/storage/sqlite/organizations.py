"""Organizations, who belongs to them, and invitations. Contracts in `hivemem.ports.store`."""

from __future__ import annotations

import sqlite3
from datetime import datetime

from hivemem.domain.accounts import Invitation, Member, Organization, Role
from hivemem.errors import Conflict, NotFound
from hivemem.storage import account_rows as rows
from hivemem.storage.sqlite import keys, users
from hivemem.storage.sqlite.statements import named_statements
from hivemem.storage.times import to_microseconds

_SQL = named_statements("organizations.sql")


def add(connection: sqlite3.Connection, organization: Organization, owner_id: str) -> None:
    """Create an organization with its graph, and its first owner."""
    users.require_user(connection, owner_id)
    arguments = rows.organization_arguments(organization)
    taken = connection.execute(_SQL["taken"], arguments).fetchone()
    if taken is not None:
        raise Conflict(f"{taken[0]!r} is taken by another organization; choose another name.")
    connection.execute(_SQL["add"], arguments)
    users.insert_graph(connection, rows.graph_of_organization(organization))
    _write_member(connection, organization.organization_id, owner_id, Role.OWNER, organization.created_at)


def organization(connection: sqlite3.Connection, organization_id: str) -> Organization | None:
    """An organization."""
    row = connection.execute(_SQL["organization"], {"organization_id": organization_id}).fetchone()
    return None if row is None else rows.organization_from_row(row)


def organizations(connection: sqlite3.Connection) -> list[Organization]:
    """All organizations, oldest first."""
    return [rows.organization_from_row(row) for row in connection.execute(_SQL["organizations"])]


def rename(connection: sqlite3.Connection, organization_id: str, name: str) -> bool:
    """Change the name; False when there is no such organization."""
    arguments = {"organization_id": organization_id, "name": name}
    holder = connection.execute(_SQL["holder_of_name"], arguments).fetchone()
    if holder is not None and holder[0] != organization_id:
        raise Conflict(f"the organization name {name!r} is taken; choose another.")
    return connection.execute(_SQL["rename"], arguments).rowcount == 1


def remove(connection: sqlite3.Connection, organization_id: str, at: datetime) -> bool:
    """Remove an organization; its graph becomes a deleted one. False when there is none."""
    present = organization(connection, organization_id)
    if present is None:
        return False
    users.delete_graph(connection, present.graph_id, at)
    own = {"organization_id": organization_id}
    connection.execute(_SQL["end_write_modes"], own)
    connection.execute(_SQL["drop_memberships"], own)
    connection.execute(_SQL["drop_invitations"], own)
    connection.execute(_SQL["drop_organization"], own)
    return True


def members(connection: sqlite3.Connection, organization_id: str) -> list[Member]:
    """Who belongs to an organization, longest first."""
    found = connection.execute(_SQL["members"], {"organization_id": organization_id})
    return [rows.member_from_row(row) for row in found]


def put_member(
    connection: sqlite3.Connection, organization_id: str, user_id: str, role: Role, at: datetime
) -> None:
    """Make a user a member, or change their role."""
    if organization(connection, organization_id) is None:
        raise NotFound(f"no organization {organization_id!r}; create it first.")
    users.require_user(connection, user_id)
    if role is not Role.OWNER and _role(connection, organization_id, user_id) is Role.OWNER:
        _check_other_owner(connection, organization_id, user_id)
    _write_member(connection, organization_id, user_id, role, at)
    if not role.may_write:
        _end_write_mode(connection, organization_id, user_id)


def remove_member(connection: sqlite3.Connection, organization_id: str, user_id: str, at: datetime) -> bool:
    """End a membership, with the keys and grants of the user at its graph; False when there is none."""
    present, role = organization(connection, organization_id), _role(connection, organization_id, user_id)
    if present is None or role is None:
        return False
    if role is Role.OWNER:
        _check_other_owner(connection, organization_id, user_id)
    own = {"organization_id": organization_id, "user_id": user_id}
    connection.execute(_SQL["drop_member"], own)
    _end_write_mode(connection, organization_id, user_id)
    keys.forget_access_of_member(connection, user_id, present.graph_id)
    return True


def add_invitation(connection: sqlite3.Connection, invitation: Invitation) -> None:
    """Keep an invitation."""
    if organization(connection, invitation.organization_id) is None:
        raise NotFound(f"no organization {invitation.organization_id!r}; create it first.")
    users.require_user(connection, invitation.invited_by)
    connection.execute(_SQL["add_invitation"], rows.invitation_arguments(invitation))


def invitation(connection: sqlite3.Connection, hash: str) -> Invitation | None:
    """An invitation, also when it was used or its time is over."""
    row = connection.execute(_SQL["invitation"], {"hash": hash}).fetchone()
    return None if row is None else rows.invitation_from_row(row)


def invitations(connection: sqlite3.Connection, organization_id: str) -> list[Invitation]:
    """The invitations of an organization, newest first."""
    found = connection.execute(_SQL["invitations"], {"organization_id": organization_id})
    return [rows.invitation_from_row(row) for row in found]


def accept_invitation(connection: sqlite3.Connection, hash: str, user_id: str, at: datetime) -> bool:
    """Use an invitation, and make the user a member, unless their present role is higher."""
    present = invitation(connection, hash)
    if present is None or not present.is_open(at):
        return False
    users.require_user(connection, user_id)
    arguments = {"hash": hash, "user_id": user_id, "at": to_microseconds(at)}
    connection.execute(_SQL["use_invitation"], arguments)
    role = _role(connection, present.organization_id, user_id)
    if role is None or present.role.is_above(role):
        _write_member(connection, present.organization_id, user_id, present.role, at)
    return True


def remove_invitation(connection: sqlite3.Connection, hash: str) -> bool:
    """Take an invitation back; False when there is none."""
    return connection.execute(_SQL["remove_invitation"], {"hash": hash}).rowcount == 1


def _role(connection: sqlite3.Connection, organization_id: str, user_id: str) -> Role | None:
    own = {"organization_id": organization_id, "user_id": user_id}
    row = connection.execute(_SQL["role"], own).fetchone()
    return None if row is None else Role(row[0])


def _write_member(
    connection: sqlite3.Connection, organization_id: str, user_id: str, role: Role, at: datetime
) -> None:
    connection.execute(
        _SQL["put_member"],
        {
            "organization_id": organization_id,
            "user_id": user_id,
            "role": role.value,
            "at": to_microseconds(at),
        },
    )


def _end_write_mode(connection: sqlite3.Connection, organization_id: str, user_id: str) -> None:
    own = {"organization_id": organization_id, "user_id": user_id}
    connection.execute(_SQL["end_write_mode"], own)


def _check_other_owner(connection: sqlite3.Connection, organization_id: str, user_id: str) -> None:
    own = {"organization_id": organization_id, "user_id": user_id}
    if connection.execute(_SQL["other_owner"], own).fetchone() is None:
        raise Conflict(
            f"{user_id!r} is the only owner of the organization {organization_id!r}; make another member an "
            "owner first.",
            code="last_owner",
        )
