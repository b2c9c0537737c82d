"""Organizations of the `AccountStore` port in dictionaries, a part of `MemoryStore`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from hivemem.domain.accounts import Invitation, Member, Organization, Role
from hivemem.errors import Conflict, NotFound
from hivemem.storage.account_rows import graph_of_organization
from hivemem.storage.memory_accounts import MemoryAccounts


class MemoryOrganizations(MemoryAccounts):
    """Organizations: see `hivemem.ports.store.AccountStore` for the contract."""

    async def add_organization(self, organization: Organization, owner_id: str) -> None:
        """See `AccountStore.add_organization`."""
        self._require_user(owner_id)
        if organization.organization_id in self._organizations:
            raise Conflict(f"the id {organization.organization_id!r} is taken; make a fresh one.")
        self._check_name(organization.organization_id, organization.name)
        graph = graph_of_organization(organization)
        self._check_graph_id(graph)
        self._organizations[organization.organization_id] = organization
        self._put_graph(graph)
        self._members[organization.organization_id, owner_id] = (Role.OWNER, organization.created_at)

    async def organization(self, organization_id: str) -> Organization | None:
        """See `AccountStore.organization`."""
        self._require_open()
        return self._organizations.get(organization_id)

    async def organizations(self) -> Sequence[Organization]:
        """See `AccountStore.organizations`."""
        self._require_open()
        return sorted(self._organizations.values(), key=lambda one: (one.created_at, one.organization_id))

    async def rename_organization(self, organization_id: str, name: str) -> bool:
        """See `AccountStore.rename_organization`."""
        self._require_open()
        self._check_name(organization_id, name)
        organization = self._organizations.get(organization_id)
        if organization is None:
            return False
        self._organizations[organization_id] = replace(organization, name=name)
        return True

    async def remove_organization(self, organization_id: str, at: datetime) -> bool:
        """See `AccountStore.remove_organization`."""
        self._require_open()
        organization = self._organizations.pop(organization_id, None)
        if organization is None:
            return False
        self._delete_graph(organization.graph_id, at)
        for place in [place for place in self._members if place[0] == organization_id]:
            del self._members[place]
        self._invitations = {
            hash: one for hash, one in self._invitations.items() if one.organization_id != organization_id
        }
        for user_id in self._users:
            self._end_write_mode(organization_id, user_id)
        return True

    async def members(self, organization_id: str) -> Sequence[Member]:
        """See `AccountStore.members`."""
        self._require_open()
        found = [
            Member(user_id=user_id, name=self._users[user_id].name, role=role, joined_at=joined_at)
            for (place, user_id), (role, joined_at) in self._members.items()
            if place == organization_id
        ]
        return sorted(found, key=lambda member: (member.joined_at, member.user_id))

    async def put_member(self, organization_id: str, user_id: str, role: Role, at: datetime) -> None:
        """See `AccountStore.put_member`."""
        self._require_organization(organization_id)
        self._require_user(user_id)
        if role is not Role.OWNER:
            self._check_other_owner(organization_id, user_id)
        _, joined_at = self._members.get((organization_id, user_id), (role, at))
        self._members[organization_id, user_id] = (role, joined_at)
        if not role.may_write:
            self._end_write_mode(organization_id, user_id)

    async def remove_member(self, organization_id: str, user_id: str, at: datetime) -> bool:
        """See `AccountStore.remove_member`."""
        self._require_open()
        if (organization_id, user_id) not in self._members:
            return False
        self._check_other_owner(organization_id, user_id)
        del self._members[organization_id, user_id]
        self._end_write_mode(organization_id, user_id)
        place = (user_id, self._organizations[organization_id].graph_id)
        self._forget_access(lambda user, graph: (user, graph) == place)
        return True

    async def add_invitation(self, invitation: Invitation) -> None:
        """See `AccountStore.add_invitation`."""
        self._require_organization(invitation.organization_id)
        self._require_user(invitation.invited_by)
        self._invitations[invitation.hash] = invitation

    async def invitation(self, hash: str) -> Invitation | None:
        """See `AccountStore.invitation`."""
        self._require_open()
        return self._invitations.get(hash)

    async def invitations(self, organization_id: str) -> Sequence[Invitation]:
        """See `AccountStore.invitations`."""
        self._require_open()
        found = [one for one in self._invitations.values() if one.organization_id == organization_id]
        return sorted(found, key=lambda one: (one.created_at, one.hash), reverse=True)

    async def accept_invitation(self, hash: str, user_id: str, at: datetime) -> bool:
        """See `AccountStore.accept_invitation`."""
        self._require_open()
        invitation = self._invitations.get(hash)
        if invitation is None or not invitation.is_open(at):
            return False
        self._require_user(user_id)
        self._invitations[hash] = replace(invitation, used_at=at, used_by=user_id)
        place = (invitation.organization_id, user_id)
        role, joined_at = self._members.get(place, (None, at))
        if role is None or invitation.role.is_above(role):
            self._members[place] = (invitation.role, joined_at)
        return True

    async def remove_invitation(self, hash: str) -> bool:
        """See `AccountStore.remove_invitation`."""
        self._require_open()
        return self._invitations.pop(hash, None) is not None

    def _require_organization(self, organization_id: str) -> None:
        self._require_open()
        if organization_id not in self._organizations:
            raise NotFound(f"no organization {organization_id!r}; create it first.")

    def _check_name(self, organization_id: str, name: str) -> None:
        for other in self._organizations.values():
            if other.name == name and other.organization_id != organization_id:
                raise Conflict(f"the organization name {name!r} is taken; choose another.")

    def _end_write_mode(self, organization_id: str, user_id: str) -> None:
        user = self._users[user_id]
        if user.write_organization_id == organization_id:
            self._users[user_id] = replace(user, write_organization_id=None)
