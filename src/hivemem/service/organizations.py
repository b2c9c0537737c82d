"""Organizations: who belongs to them in which role, invitations, and whose writes go to their memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Protocol

from hivemem.domain.access import Principal
from hivemem.domain.access import hash_api_key as hash_of
from hivemem.domain.accounts import (
    INVITATION_LIFETIME,
    INVITATION_PREFIX,
    Invitation,
    Member,
    Membership,
    Organization,
    Role,
    User,
)
from hivemem.domain.oauth import new_secret
from hivemem.errors import Conflict, Forbidden, InvalidInput, NotFound
from hivemem.ports.clock import Clock
from hivemem.ports.store import AccountStore, GraphStore
from hivemem.service.audit import AuditLog
from hivemem.service.limits import Limits, require_room
from hivemem.service.people import checked_name, decided_user, found_organization, found_user

_MAX_INVITATION_DAYS = 90


class OrganizationStore(AccountStore, GraphStore, Protocol):
    """What of a store this use case needs."""


class Organizations:
    """Creates, changes and removes organizations and memberships."""

    def __init__(
        self,
        *,
        store: OrganizationStore,
        audit: AuditLog,
        limits: Limits,
        clock: Clock,
        on_removed: Callable[[], None] | None = None,
    ) -> None:
        self._store = store
        self._audit = audit
        self._limits = limits
        self._clock = clock
        self._on_removed = on_removed

    async def add(self, actor: Principal, name: str, owner: str | None = None) -> Organization:
        """A new organization with its graph. Its first owner is the actor, unless they run the server.

        Raises:
            Forbidden: It is for somebody else, and the actor does not run the server.
            NotFound: There is no such user.
            InvalidInput: A bad name.
            Conflict: The name is taken, or they own `max_organizations_per_user`.
        """
        actor.require_administration()
        person = await decided_user(
            self._store, actor, owner, "an organization is made for somebody else by who runs this server."
        )
        await self._require_room_for_owner(person)
        organization = Organization(
            organization_id=self._clock.new_id("org"),
            name=checked_name(name, "/name"),
            graph_id=self._clock.new_id("graph"),
            created_at=self._clock.now(),
        )
        await self._store.add_organization(organization, person.user_id)
        await self._log("organization.create", actor, organization, target=person.user_id)
        return organization

    async def list(self, actor: Principal) -> Sequence[Organization]:
        """All organizations for who runs the server, their own for others; oldest first."""
        actor.require_administration()
        known = await self._store.organizations()
        return [one for one in known if actor.operator or actor.membership(one.organization_id)]

    async def show(self, actor: Principal, organization: str) -> tuple[Organization, Sequence[Member]]:
        """An organization and its members.

        Raises:
            NotFound: There is none for the actor.
        """
        actor.require_administration()
        found = await found_organization(self._store, actor, organization)
        return found, await self._store.members(found.organization_id)

    async def rename(self, actor: Principal, organization: str, name: str) -> Organization:
        """Change the name.

        Raises:
            NotFound: There is none for the actor.
            Forbidden: The actor does not own it.
            Conflict: The name is taken.
        """
        found = await self._owned(actor, organization)
        renamed = replace(found, name=checked_name(name, "/name"))
        if not await self._store.rename_organization(found.organization_id, renamed.name):
            raise _gone(found)
        await self._log("organization.change", actor, found)
        return renamed

    async def remove(self, actor: Principal, organization: str) -> Organization:
        """Remove an organization with its memory, memberships, invitations and keys.

        Raises:
            NotFound: There is none for the actor.
            Forbidden: The actor does not own it.
        """
        found = await self._owned(actor, organization)
        if not await self._store.remove_organization(found.organization_id, self._clock.now()):
            raise _gone(found)
        if self._on_removed is not None:
            self._on_removed()
        await self._log("organization.remove", actor, found)
        return found

    async def put_member(
        self, actor: Principal, organization: str, user: str, role: Role, *, is_new: bool
    ) -> tuple[Organization, User]:
        """Make somebody a member, or change their role.

        Raises:
            NotFound: There is no such organization for the actor, or no such user or member.
            Forbidden: The actor may not give or take that role, or adds somebody and does not run the server.
            Conflict: Somebody new is a member already, or nobody would own it any more.
        """
        found = await self._decided(actor, organization)
        if is_new and not actor.operator:
            # Its memory gets into their agents' answers from then on: that is for them to agree to.
            raise Forbidden("people join by an invitation; who runs this server adds them without one.")
        person = await self._person(actor, found, user)
        present = await self._role(found, person.user_id)
        if is_new and present is not None:
            raise Conflict(f"{person.name!r} is a member already; change the role instead.")
        if not is_new and present is None:
            raise NotFound(f"{person.name!r} is not a member; add them first.")
        self._require_giving(actor, found, role)
        if present is not None:
            self._require_giving(actor, found, present)
        await self._store.put_member(found.organization_id, person.user_id, role, self._clock.now())
        action = "member.add" if is_new else "member.role"
        await self._log(action, actor, found, target=person.user_id, detail={"role": role.value})
        return found, person

    async def remove_member(
        self, actor: Principal, organization: str, user: str
    ) -> tuple[Organization, User]:
        """End a membership, with the member's keys and sign-ins at the organization's graph.

        Everybody may leave; others are removed by owners and admins.

        Raises:
            NotFound: There is no such organization for the actor, or no such member.
            Forbidden: The actor may not take that role.
            Conflict: Nobody would own it any more.
        """
        actor.require_administration()
        found = await found_organization(self._store, actor, organization)
        person = await self._person(actor, found, user)
        role = await self._role(found, person.user_id)
        if role is None:
            raise NotFound(f"{person.name!r} is not a member.")
        if person.user_id != actor.user_id:
            self._require_giving(actor, found, role)
        if not await self._store.remove_member(found.organization_id, person.user_id, self._clock.now()):
            raise NotFound(f"{person.name!r} is not a member any more.")
        await self._log("member.remove", actor, found, target=person.user_id)
        return found, person

    async def write_mode(
        self, actor: Principal, organization: str | None, user: str | None = None
    ) -> tuple[User, Organization | None]:
        """Let a user's writes go to an organization's memory, or to their own again with None.

        Raises:
            NotFound: There is no such organization for the actor, or no such user.
            Forbidden: Their role is 'member', or it is for somebody else.
        """
        person = await decided_user(self._store, actor, user, "people switch their own write mode.")
        found = None if organization is None else await found_organization(self._store, actor, organization)
        if found is not None:
            role = await self._role(found, person.user_id)
            if role is None or not role.may_write:
                raise Forbidden("owners and admins write an organization's memory; members read it.")
        chosen = None if found is None else found.organization_id
        await self._store.put_user(replace(person, write_organization_id=chosen), read=person)
        await self._audit.record("write_mode.change", actor, organization_id=chosen, target=person.user_id)
        return person, found

    async def invite(
        self, actor: Principal, organization: str, role: Role = Role.MEMBER, days: int | None = None
    ) -> tuple[str, Invitation]:
        """An invitation that works once; its secret is given here and never again.

        Raises:
            NotFound: There is no such organization for the actor.
            Forbidden: The actor may not give that role.
            InvalidInput: A number of days that is not 1 to 90.
            Conflict: There are `max_open_invitations`.
        """
        found = await self._decided(actor, organization)
        self._require_giving(actor, found, role)
        if days is not None and not 1 <= days <= _MAX_INVITATION_DAYS:
            raise InvalidInput(f"/days is {days}; choose 1 to {_MAX_INVITATION_DAYS}.")
        now, secret = self._clock.now(), new_secret(INVITATION_PREFIX)
        known = await self._store.invitations(found.organization_id)
        count, most = sum(one.is_open(now) for one in known), self._limits.max_open_invitations
        require_room(count, "max_open_invitations", most, f"open invitations of {found.name!r}")
        invitation = Invitation(
            hash=hash_of(secret),
            organization_id=found.organization_id,
            role=role,
            invited_by=actor.user_id,
            created_at=now,
            expires_at=now + (INVITATION_LIFETIME if days is None else timedelta(days=days)),
        )
        await self._store.add_invitation(invitation)
        await self._log(
            "invitation.create", actor, found, target=invitation_id(invitation), detail={"role": role.value}
        )
        return secret, invitation

    async def invitations(self, actor: Principal, organization: str) -> Sequence[Invitation]:
        """The invitations of an organization, newest first."""
        found = await self._decided(actor, organization)
        return await self._store.invitations(found.organization_id)

    async def withdraw(self, actor: Principal, organization: str, invitation: str) -> Invitation:
        """Take an invitation back, named by its id.

        Raises:
            NotFound: The organization has none of this id.
        """
        found = await self._decided(actor, organization)
        for one in await self._store.invitations(found.organization_id):
            if invitation_id(one) == invitation:
                self._require_giving(actor, found, one.role)
                if not await self._store.remove_invitation(one.hash):
                    break
                await self._log("invitation.remove", actor, found, target=invitation)
                return one
        raise NotFound(f"there is no invitation {invitation[:20]!r}; list the invitations.")

    async def invited(self, secret: str) -> tuple[Invitation, Organization]:
        """The invitation that a link names.

        Raises:
            NotFound: It never was, was used or taken back, its time is over, or who made it could not make it
                any more.
        """
        return await self.invited_by_hash(hash_of(secret))

    async def invited_by_hash(self, hash: str) -> tuple[Invitation, Organization]:
        """The invitation whose secret has this SHA-256; the errors are those of `invited`."""
        invitation = await self._store.invitation(hash)
        if invitation is not None and invitation.is_open(self._clock.now()):
            organization = await self._store.organization(invitation.organization_id)
            if organization is not None and await self._still_gives(invitation):
                return invitation, organization
        raise NotFound(
            "this invitation was used, taken back, or is too old; ask for a new one.", code="invitation_over"
        )

    async def accept(self, user_id: str, secret: str) -> Membership:
        """Use an invitation for a user.

        Raises:
            NotFound: See `invited`.
        """
        return await self.accept_by_hash(user_id, hash_of(secret))

    async def accept_by_hash(self, user_id: str, hash: str) -> Membership:
        """Use the invitation whose secret has this SHA-256; the errors are those of `accept`."""
        invitation, organization = await self.invited_by_hash(hash)
        if not await self._store.accept_invitation(invitation.hash, user_id, self._clock.now()):
            raise NotFound("this invitation was used already; ask for a new one.", code="invitation_over")
        await self._audit.record(
            "invitation.accept",
            user_id=user_id,
            graph_id=organization.graph_id,
            organization_id=organization.organization_id,
            target=invitation_id(invitation),
        )
        role = await self._role(organization, user_id)
        return Membership(
            organization_id=organization.organization_id,
            name=organization.name,
            graph_id=organization.graph_id,
            role=invitation.role if role is None else role,
        )

    async def _require_room_for_owner(self, person: User) -> None:
        account = await self._store.account(person.user_id, "")
        memberships = () if account is None else account.memberships
        count = sum(membership.role is Role.OWNER for membership in memberships)
        most = self._limits.max_organizations_per_user
        require_room(count, "max_organizations_per_user", most, f"organizations of {person.name!r}")

    async def _decided(self, actor: Principal, organization: str) -> Organization:
        """An organization whose members the actor decides about."""
        actor.require_administration()
        found = await found_organization(self._store, actor, organization)
        membership = actor.membership(found.organization_id)
        if not actor.operator and (membership is None or not membership.role.may_decide_members):
            raise Forbidden("only owners and admins decide about an organization's members.")
        return found

    async def _owned(self, actor: Principal, organization: str) -> Organization:
        actor.require_administration()
        found = await found_organization(self._store, actor, organization)
        membership = actor.membership(found.organization_id)
        if not actor.operator and (membership is None or membership.role is not Role.OWNER):
            raise Forbidden("only owners can do this to an organization.")
        return found

    def _require_giving(self, actor: Principal, organization: Organization, role: Role) -> None:
        membership = actor.membership(organization.organization_id)
        if not actor.operator and (membership is None or not membership.role.may_give(role)):
            raise Forbidden(
                f"your role in {organization.name!r} cannot give or take the role {role.value!r}."
            )

    async def _person(self, actor: Principal, organization: Organization, user: str) -> User:
        """A user by id or name; for who does not run the server, a member: they must not learn of others."""
        if actor.operator:
            return await found_user(self._store, user)
        for member in await self._store.members(organization.organization_id):
            if user in (member.user_id, member.name):
                return await found_user(self._store, member.user_id)
        raise NotFound(f"there is no member {user[:100]!r}; list the members.")

    async def _still_gives(self, invitation: Invitation) -> bool:
        """Whether who made an invitation may still make it: nobody comes back by one of their own."""
        account = await self._store.account(invitation.invited_by, "")
        if account is None:
            return False
        membership = account.membership(invitation.organization_id)
        return account.user.operator or (membership is not None and membership.role.may_give(invitation.role))

    async def _role(self, organization: Organization, user_id: str) -> Role | None:
        members = await self._store.members(organization.organization_id)
        return next((member.role for member in members if member.user_id == user_id), None)

    async def _log(self, action: str, actor: Principal, organization: Organization, **facts: object) -> None:
        await self._audit.record(
            action,
            actor,
            organization_id=organization.organization_id,
            graph_id=organization.graph_id,
            **facts,
        )


def _gone(organization: Organization) -> NotFound:
    return NotFound(f"the organization {organization.organization_id!r} is gone already.")


def invitation_id(invitation: Invitation) -> str:
    """What names an invitation in lists: the first 12 hex digits of the hash of its secret."""
    return invitation.hash[:12]
