"""What a credential may reach: API keys, and the principal that every operation gets.

This is the one place that decides it. A `Principal` is made from what one read told at authentication, and
operations reach graphs only through it.
"""

from __future__ import annotations

import enum
import hashlib
import re
import secrets
from dataclasses import dataclass, replace
from datetime import datetime

from hivemem.domain.accounts import NO_ORGANIZATION, Account, Membership
from hivemem.errors import Forbidden, InvalidRequest

API_KEY_PATTERN = re.compile(r"hm_[0-9a-f]{64}")


class Scope(enum.StrEnum):
    """What a credential may do."""

    OWNER = "owner"
    """Read and write."""
    MEMBER = "member"
    """Read only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiKey:
    """A credential as it is stored: the SHA-256 of the whole key, never the key.

    Attributes:
        key_id: Names it in listings and revocations: the first 12 hex digits of the hash.
        admin: Whether it may call the administration, as far as its user may.
        expires_at: When it ends by itself; None for never.
        last_used_at: When it was used last, to the minute; None when it never was.
    """

    key_id: str
    hash: str
    name: str
    user_id: str
    graph_id: str
    scope: Scope
    admin: bool = False
    created_at: datetime
    expires_at: datetime | None = None
    revoked_at: datetime | None = None
    last_used_at: datetime | None = None

    def is_alive(self, now: datetime) -> bool:
        """Whether neither time nor a revocation has ended it."""
        return self.revoked_at is None and (self.expires_at is None or now < self.expires_at)


@dataclass(frozen=True, slots=True, kw_only=True)
class Principal:
    """The caller of an operation, and the graph that it works on.

    Attributes:
        user_id: Who.
        graph_id: The graph that is read and written.
        scope: What the credential may do.
        organization_id: The organization whose graph `graph_id` is; None for a personal graph.
        organizations: The caller's organizations, by name.
        frozen: Whether the graph can only be read.
        write_organization_id: The organization that writes go to instead of a personal graph.
        may_administer: Whether the credential reaches the administration.
        operator: Whether the caller runs the server.
        credential: Names the credential in the audit log.
    """

    user_id: str
    graph_id: str
    scope: Scope
    organization_id: str | None = None
    organizations: tuple[Membership, ...] = ()
    frozen: bool = False
    write_organization_id: str | None = None
    may_administer: bool = False
    operator: bool = False
    credential: str = ""

    def membership(self, organization_id: str | None) -> Membership | None:
        """The caller's membership of an organization, None when they do not belong to it."""
        found = (one for one in self.organizations if one.organization_id == organization_id)
        return next(found, None)

    @property
    def keeps_conversations(self) -> bool:
        """Whether it is noted in `graph_id` what a conversation touched there.

        In a personal graph always, unless it is frozen: reading must not change it then. In an
        organization's only for callers who may write it: a conversation that is noted becomes a
        relationship that all members see.
        """
        if self.frozen:
            return False
        if self.organization_id is None:
            return True
        membership = self.membership(self.organization_id)
        return self.scope is Scope.OWNER and membership is not None and membership.role.may_write

    def require_write(self) -> None:
        """Let callers pass that may write `graph_id`.

        Raises:
            Forbidden: The credential is read-only, the graph is frozen, or the role is 'member'.
        """
        if self.scope is not Scope.OWNER:
            raise Forbidden(
                "this credential is read-only; use a key with the scope 'owner', or a sign-in that may write."
            )
        if self.organization_id is not None:
            membership = self.membership(self.organization_id)
            if membership is None or not membership.role.may_write:
                raise Forbidden("members read the organization's memory; ask an owner or admin to write it.")
        if self.frozen:
            raise Forbidden("this memory is frozen: it can be read, not written.", code="graph_frozen")

    def for_writing(self) -> Principal:
        """The caller at the graph that writes go to.

        That is `graph_id`, or the graph of the organization whose write mode is on.

        Raises:
            Forbidden: See `require_write`.
        """
        target = self.membership(self.write_organization_id) if self.organization_id is None else None
        if target is None or not target.role.may_write:
            self.require_write()
            return self
        writing = self._at(target)
        writing.require_write()
        return writing

    def for_reading(self, organization_id: str | None) -> Principal:
        """The caller at an organization's graph, to read it; at their own without an id, or with 'none'.

        Raises:
            InvalidRequest: They do not belong to it; the same whether or not it exists.
        """
        if organization_id in (None, NO_ORGANIZATION):
            return self
        membership = self.membership(organization_id)
        if membership is None:
            raise InvalidRequest(
                f"/organization_id {organization_id!r} is not one of your organizations; leave it out, or "
                f"send {NO_ORGANIZATION!r} for your own memory alone."
            )
        return replace(self._at(membership), scope=Scope.MEMBER)

    def require_administration(self) -> None:
        """Let callers pass whose credential reaches the administration.

        Raises:
            Forbidden: It does not.
        """
        if not self.may_administer:
            raise Forbidden(
                "this credential cannot administer; use a key made with 'hivemem key create --admin', or "
                "sign in with the scope memory:admin."
            )

    def require_operator(self) -> None:
        """Let those pass who run the server.

        Raises:
            Forbidden: The credential cannot administer, or its user does not run the server.
        """
        self.require_administration()
        if not self.operator:
            raise Forbidden("only who runs this server can do this; ask its operator.")

    def _at(self, membership: Membership) -> Principal:
        return replace(
            self,
            graph_id=membership.graph_id,
            organization_id=membership.organization_id,
            frozen=membership.frozen,
            write_organization_id=None,
        )


def principal_at(
    account: Account, *, scope: Scope, may_administer: bool = False, credential: str = ""
) -> Principal | None:
    """The caller at `account.graph`; None when the graph is not there, or not theirs to reach.

    A personal graph is reached by its owner alone, an organization's by its members.
    """
    graph, user = account.graph, account.user
    if graph is None:
        return None
    if graph.organization_id is None:
        if graph.owner_id != user.user_id:
            return None
    elif account.membership(graph.organization_id) is None:
        return None
    return Principal(
        user_id=user.user_id,
        graph_id=graph.graph_id,
        scope=scope,
        organization_id=graph.organization_id,
        organizations=account.memberships,
        frozen=graph.frozen_at is not None,
        write_organization_id=user.write_organization_id,
        may_administer=may_administer,
        operator=user.operator,
        credential=credential,
    )


def new_api_key() -> str:
    """A fresh secret: `hm_` and 64 lower-case hex digits, 256 bits from the system's generator."""
    return f"hm_{secrets.token_hex(32)}"


def hash_api_key(key: str) -> str:
    """SHA-256 of the whole key as 64 hex digits. The key has full entropy, so no salt is needed."""
    return hashlib.sha256(key.encode()).hexdigest()
