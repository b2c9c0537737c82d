"""Rows of users, graphs, organizations, keys and the audit log, alike in every database.

`..._arguments` are the columns that statements write, `..._from_row` reads all columns of a table in the
order of `tables.py`, unless it says otherwise.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from hivemem.domain.access import ApiKey, Scope
from hivemem.domain.accounts import (
    Account,
    AuditEvent,
    DeletedGraph,
    ExternalIdentity,
    Graph,
    Invitation,
    Member,
    Membership,
    Organization,
    Role,
    User,
)
from hivemem.errors import StaleWrite
from hivemem.storage.states import to_json
from hivemem.storage.times import from_microseconds, to_microseconds

USER_COLUMNS = 6
GRAPH_COLUMNS = 7
MEMBERSHIP_COLUMNS = 5
KEY_COLUMNS = 11
"""How many columns of a joined row belong to each, in the order below."""


def check_as_read(present: User | Graph, changed: User | Graph, read: User | Graph | None) -> None:
    """Let a change pass that was decided on what is still there; see `AccountStore.put_user`.

    Raises:
        StaleWrite: It was not. One that is made already passes: a lost answer makes callers repeat it.
    """
    if read is not None and present not in (read, changed):
        what = f"user {present.user_id!r}" if isinstance(present, User) else f"graph {present.graph_id!r}"
        raise StaleWrite(f"the {what} was changed meanwhile; look again, and repeat it.")


def user_arguments(user: User) -> dict[str, Any]:
    """The columns of `users`."""
    return {
        "user_id": user.user_id,
        "name": user.name,
        "created_at": to_microseconds(user.created_at),
        "operator": int(user.operator),
        "password_hash": user.password_hash,
        "write_organization_id": user.write_organization_id,
    }


def user_from_row(row: Sequence[Any]) -> User:
    """The user of all columns of `users`."""
    user_id, name, created_at, operator, password_hash, write_organization_id = row
    return User(
        user_id=user_id,
        name=name,
        created_at=from_microseconds(created_at),
        operator=bool(operator),
        password_hash=password_hash,
        write_organization_id=write_organization_id,
    )


def graph_arguments(graph: Graph) -> dict[str, Any]:
    """The columns of `graphs`."""
    return {
        "graph_id": graph.graph_id,
        "name": graph.name,
        "owner_id": graph.owner_id,
        "organization_id": graph.organization_id,
        "created_at": to_microseconds(graph.created_at),
        "is_default": int(graph.is_default),
        "frozen_at": optional_microseconds(graph.frozen_at),
    }


def graph_from_row(row: Sequence[Any]) -> Graph:
    """The graph of all columns of `graphs`."""
    graph_id, name, owner_id, organization_id, created_at, is_default, frozen_at = row
    return Graph(
        graph_id=graph_id,
        name=name,
        owner_id=owner_id,
        organization_id=organization_id,
        created_at=from_microseconds(created_at),
        is_default=bool(is_default),
        frozen_at=optional_moment(frozen_at),
    )


def graph_of_organization(organization: Organization) -> Graph:
    """The graph that a new organization comes with."""
    return Graph(
        graph_id=organization.graph_id,
        name=organization.name,
        organization_id=organization.organization_id,
        created_at=organization.created_at,
    )


def organization_arguments(organization: Organization) -> dict[str, Any]:
    """The columns of `organizations`; its graph is a row of `graphs`."""
    return {
        "organization_id": organization.organization_id,
        "name": organization.name,
        "created_at": to_microseconds(organization.created_at),
    }


def organization_from_row(row: Sequence[Any]) -> Organization:
    """The organization of `organization_id, name, graph_id, created_at`."""
    organization_id, name, graph_id, created_at = row
    return Organization(
        organization_id=organization_id,
        name=name,
        graph_id=graph_id,
        created_at=from_microseconds(created_at),
    )


def member_from_row(row: Sequence[Any]) -> Member:
    """The member of `user_id, name of the user, role, joined_at`."""
    user_id, name, role, joined_at = row
    return Member(user_id=user_id, name=name, role=Role(role), joined_at=from_microseconds(joined_at))


def membership_from_row(row: Sequence[Any]) -> Membership:
    """The membership of `organization_id, name of it, graph_id, role, frozen_at of the graph`."""
    organization_id, name, graph_id, role, frozen_at = row
    return Membership(
        organization_id=organization_id,
        name=name,
        graph_id=graph_id,
        role=Role(role),
        frozen=frozen_at is not None,
    )


def account_from_rows(rows: Sequence[Sequence[Any]]) -> Account:
    """The account of rows that join a user with a graph and each with one membership.

    Columns: those of `users`, those of `graphs` (all NULL without a graph), and those of
    `membership_from_row` (all NULL in the only row of somebody who belongs to no organization).
    """
    user_end, graph_end = USER_COLUMNS, USER_COLUMNS + GRAPH_COLUMNS
    first = rows[0]
    memberships = [membership_from_row(row[graph_end:]) for row in rows if row[graph_end] is not None]
    memberships.sort(key=lambda membership: (membership.name, membership.organization_id))
    return Account(
        user=user_from_row(first[:user_end]),
        memberships=tuple(memberships),
        graph=None if first[user_end] is None else graph_from_row(first[user_end:graph_end]),
    )


def invitation_arguments(invitation: Invitation) -> dict[str, Any]:
    """The columns of `invitations`."""
    return {
        "hash": invitation.hash,
        "organization_id": invitation.organization_id,
        "role": invitation.role.value,
        "invited_by": invitation.invited_by,
        "created_at": to_microseconds(invitation.created_at),
        "expires_at": to_microseconds(invitation.expires_at),
        "used_at": optional_microseconds(invitation.used_at),
        "used_by": invitation.used_by,
    }


def invitation_from_row(row: Sequence[Any]) -> Invitation:
    """The invitation of all columns of `invitations`."""
    hash, organization_id, role, invited_by, created_at, expires_at, used_at, used_by = row
    return Invitation(
        hash=hash,
        organization_id=organization_id,
        role=Role(role),
        invited_by=invited_by,
        created_at=from_microseconds(created_at),
        expires_at=from_microseconds(expires_at),
        used_at=optional_moment(used_at),
        used_by=used_by,
    )


def key_arguments(key: ApiKey) -> dict[str, Any]:
    """The columns of `api_keys`."""
    return {
        "key_id": key.key_id,
        "hash": key.hash,
        "name": key.name,
        "user_id": key.user_id,
        "graph_id": key.graph_id,
        "scope": key.scope.value,
        "created_at": to_microseconds(key.created_at),
        "revoked_at": optional_microseconds(key.revoked_at),
        "admin": int(key.admin),
        "expires_at": optional_microseconds(key.expires_at),
        "last_used_at": optional_microseconds(key.last_used_at),
    }


def key_from_row(row: Sequence[Any]) -> ApiKey:
    """The key of all columns of `api_keys`."""
    (
        key_id,
        hash,
        name,
        user_id,
        graph_id,
        scope,
        created_at,
        revoked_at,
        admin,
        expires_at,
        last_used_at,
    ) = row
    return ApiKey(
        key_id=key_id,
        hash=hash,
        name=name,
        user_id=user_id,
        graph_id=graph_id,
        scope=Scope(scope),
        admin=bool(admin),
        created_at=from_microseconds(created_at),
        expires_at=optional_moment(expires_at),
        revoked_at=optional_moment(revoked_at),
        last_used_at=optional_moment(last_used_at),
    )


def key_account_from_rows(rows: Sequence[Sequence[Any]]) -> tuple[ApiKey, Account] | None:
    """The key and account of rows that hold the columns of `api_keys` and those of `account_from_rows`."""
    if not rows:
        return None
    return key_from_row(rows[0][:KEY_COLUMNS]), account_from_rows([row[KEY_COLUMNS:] for row in rows])


def identity_arguments(identity: ExternalIdentity) -> dict[str, Any]:
    """The columns of `external_identities`."""
    return {
        "issuer": identity.issuer,
        "subject": identity.subject,
        "user_id": identity.user_id,
        "created_at": to_microseconds(identity.created_at),
    }


def identity_from_row(row: Sequence[Any]) -> ExternalIdentity:
    """The identity of all columns of `external_identities`."""
    issuer, subject, user_id, created_at = row
    return ExternalIdentity(
        issuer=issuer, subject=subject, user_id=user_id, created_at=from_microseconds(created_at)
    )


def deleted_graph_from_row(row: Sequence[Any]) -> DeletedGraph:
    """The graph of all columns of `deleted_graphs`."""
    graph_id, deleted_at, purged_at = row
    return DeletedGraph(
        graph_id=graph_id, deleted_at=from_microseconds(deleted_at), purged_at=optional_moment(purged_at)
    )


def audit_arguments(event: AuditEvent) -> dict[str, Any]:
    """The columns of `audit_events` but `event_id`, which the database counts."""
    return {
        "at": to_microseconds(event.at),
        "action": event.action,
        "user_id": event.user_id,
        "credential": event.credential,
        "graph_id": event.graph_id,
        "organization_id": event.organization_id,
        "target": event.target,
        "address": event.address,
        "request_id": event.request_id,
        "detail": to_json(event.detail),
    }


def audit_from_row(row: Sequence[Any]) -> AuditEvent:
    """The event of all columns of `audit_events`."""
    (
        event_id,
        at,
        action,
        user_id,
        credential,
        graph_id,
        organization_id,
        target,
        address,
        request_id,
        detail,
    ) = row
    return AuditEvent(
        id=event_id,
        at=from_microseconds(at),
        action=action,
        user_id=user_id,
        credential=credential,
        graph_id=graph_id,
        organization_id=organization_id,
        target=target,
        address=address,
        request_id=request_id,
        detail=json.loads(detail),
    )


def optional_microseconds(moment: datetime | None) -> int | None:
    """The column of a moment that may be missing."""
    return None if moment is None else to_microseconds(moment)


def optional_moment(microseconds: int | None) -> datetime | None:
    """The moment of a column that may be NULL."""
    return None if microseconds is None else from_microseconds(microseconds)
