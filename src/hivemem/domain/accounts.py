"""Who there is: users, their graphs, organizations, and who belongs to one in which role."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from hivemem.domain.text import JsonObject, empty_object

NO_ORGANIZATION = "none"
"""What callers send to leave organizations out; never the id of one."""

INVITATION_PREFIX = "inv_"
INVITATION_LIFETIME = timedelta(days=7)


class GraphKind(enum.StrEnum):
    """Whose memory a graph is."""

    PERSONAL = "personal"
    ORGANIZATION = "organization"


class Role(enum.StrEnum):
    """What somebody is in an organization."""

    OWNER = "owner"
    """Everything, also making owners and ending the organization."""
    ADMIN = "admin"
    """Writes its memory, and decides about members and admins."""
    MEMBER = "member"
    """Reads its memory."""

    @property
    def may_write(self) -> bool:
        """Whether this role can write the organization's memory."""
        return self is not Role.MEMBER

    @property
    def may_decide_members(self) -> bool:
        """Whether this role can invite, add and remove people."""
        return self is not Role.MEMBER

    def is_above(self, role: Role) -> bool:
        """Whether this role may more than `role`."""
        roles = list(Role)
        return roles.index(self) < roles.index(role)

    def may_give(self, role: Role) -> bool:
        """Whether somebody with this role can make others `role`, or take it from them."""
        return self is Role.OWNER or (self is Role.ADMIN and role is not Role.OWNER)


@dataclass(frozen=True, slots=True, kw_only=True)
class User:
    """A person. `password_hash` is argon2id in PHC form, None when they sign in by other means only.

    Attributes:
        operator: Whether they run this server, and may decide about everybody on it.
        write_organization_id: The organization whose memory their writes go to, None for their own. It
            holds only while their role there may write.
    """

    user_id: str
    name: str
    created_at: datetime
    operator: bool = False
    password_hash: str | None = field(default=None, repr=False)
    write_organization_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Graph:
    """An isolated set of nodes and relationships, of one user or of one organization.

    Attributes:
        owner_id: The user, None when it is an organization's.
        organization_id: The organization, None when it is a user's.
        is_default: Whether it is the one that a user's sign-ins and keys take when none is named.
        frozen_at: Since when it can only be read; None when it is writable.

    Raises:
        ValueError: It has two owners, or none.
    """

    graph_id: str
    name: str
    owner_id: str | None = None
    organization_id: str | None = None
    created_at: datetime
    is_default: bool = False
    frozen_at: datetime | None = None

    def __post_init__(self) -> None:
        if (self.owner_id is None) == (self.organization_id is None):
            raise ValueError(f"graph {self.graph_id!r} belongs to one user or to one organization.")

    @property
    def kind(self) -> GraphKind:
        """Whose memory it is."""
        return GraphKind.PERSONAL if self.organization_id is None else GraphKind.ORGANIZATION


@dataclass(frozen=True, slots=True, kw_only=True)
class Organization:
    """People who share one graph."""

    organization_id: str
    name: str
    graph_id: str
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """Somebody in an organization, as the organization sees them."""

    user_id: str
    name: str
    role: Role
    joined_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Membership:
    """An organization as one of its members sees it. `frozen`: its graph can only be read."""

    organization_id: str
    name: str
    graph_id: str
    role: Role
    frozen: bool = False

    @property
    def may_write(self) -> bool:
        """Whether the member can write the organization's memory now."""
        return self.role.may_write and not self.frozen


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """A user with all that decides what they may reach, read at one moment.

    Attributes:
        user: The user.
        memberships: By name, then id (code points).
        graph: The graph that was asked for, None when there is none of that id. It may be a stranger's.
    """

    user: User
    memberships: tuple[Membership, ...] = ()
    graph: Graph | None = None

    def membership(self, organization_id: str | None) -> Membership | None:
        """Their membership of an organization, None when they do not belong to it."""
        found = (one for one in self.memberships if one.organization_id == organization_id)
        return next(found, None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Invitation:
    """A link that makes whoever opens it first a member. Kept is the SHA-256 of its secret."""

    hash: str
    organization_id: str
    role: Role
    invited_by: str
    created_at: datetime
    expires_at: datetime
    used_at: datetime | None = None
    used_by: str | None = None

    def is_open(self, now: datetime) -> bool:
        """Whether it can still be used."""
        return self.used_at is None and now < self.expires_at


@dataclass(frozen=True, slots=True, kw_only=True)
class ExternalIdentity:
    """Who somebody is at an identity provider; (`issuer`, `subject`) never changes there."""

    issuer: str
    subject: str
    user_id: str
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletedGraph:
    """A graph that is gone for everybody. `purged_at`: when the last of its content was removed."""

    graph_id: str
    deleted_at: datetime
    purged_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEvent:
    """A line of the audit log: who did what, where and when. Ids only: no names, no memories, no secrets.

    Attributes:
        at: Aware UTC.
        action: Dotted, such as `key.create` or `sign_in.failed`.
        user_id: Who; None when nobody was known.
        credential: By which: `key:ID`, `grant:ID`, `local`, or empty.
        graph_id: The graph it was about.
        organization_id: The organization it was about.
        target: Id of what was made, changed or removed.
        address: Network address of the caller; empty for commands on the server.
        request_id: Of the HTTP request; empty for commands.
        detail: Further facts, without texts of people.
        id: Number in the log, rising; 0 before it is stored.
    """

    at: datetime
    action: str
    user_id: str | None = None
    credential: str = ""
    graph_id: str | None = None
    organization_id: str | None = None
    target: str | None = None
    address: str = ""
    request_id: str = ""
    detail: JsonObject = field(default_factory=empty_object)
    id: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditQuery:
    """Which lines of the audit log to read; what is None does not matter. Newest first.

    Attributes:
        since: Only lines from then on.
    """

    user_id: str | None = None
    graph_id: str | None = None
    organization_id: str | None = None
    action: str | None = None
    since: datetime | None = None
    before_id: int | None = None
    limit: int = 100


Leftovers = Mapping[str, int]
"""Table name to its number of rows that belong to no graph or user; only tables that have such rows."""
