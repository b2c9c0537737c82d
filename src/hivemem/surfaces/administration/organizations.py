"""Organizations, their members, invitations, and whose writes go to them."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from hivemem.domain.access import Principal
from hivemem.domain.accounts import Invitation, Role
from hivemem.domain.text import JsonObject
from hivemem.service.organizations import invitation_id
from hivemem.surfaces.administration.routes import administration
from hivemem.surfaces.administration.users import (
    NoInput,
    UserEntry,
    member_entries,
    organization_entry,
    reference,
    user_entry,
)
from hivemem.surfaces.answers import Answer
from hivemem.surfaces.inputs import Input
from hivemem.surfaces.presentation import timestamp
from hivemem.surfaces.services import Services

RoleName = Literal["owner", "admin", "member"]


class OrganizationEntry(Answer):
    """An organization."""

    organization_id: str
    name: str
    graph_id: str
    created_at: str


class OrganizationList(Answer):
    """Organizations, oldest first."""

    organizations: list[OrganizationEntry]
    count: int


class MemberEntry(Answer):
    """Somebody in an organization."""

    user_id: str
    name: str
    role: RoleName
    joined_at: str


class OrganizationDetails(OrganizationEntry):
    """An organization and who belongs to it."""

    members: list[MemberEntry]


class MembershipEntry(Answer):
    """A membership that was made, changed or ended; `role` is null when it ended."""

    organization_id: str
    user_id: str
    role: RoleName | None


class RemovedOrganization(Answer):
    """An organization that is gone with its memory."""

    organization_id: str
    removed: bool


class InvitationEntry(Answer):
    """An invitation; `link` and `secret` are there once, when it is made."""

    invitation_id: str
    organization_id: str
    role: RoleName
    invited_by: str
    created_at: str
    expires_at: str
    used_at: str | None
    used_by: str | None
    secret: str | None = None
    link: str | None = Field(None, description="To open in a browser; null without a public_url.")


class InvitationList(Answer):
    """Invitations, newest first."""

    invitations: list[InvitationEntry]
    count: int


class JoinedAnswer(Answer):
    """The membership that an invitation gave."""

    organization_id: str
    name: str
    graph_id: str
    role: RoleName


class AddOrganizationInput(Input):
    """A new organization."""

    name: str = Field(description="Unique on this server.")
    owner: str = Field("me", description="Id or name of its first owner.")


class OrganizationInput(Input):
    """An organization."""

    org: str = Field(description="Id or name of the organization.")


class RenameOrganizationInput(OrganizationInput):
    """A new name."""

    name: str = Field(description="New name.")


class MemberInput(OrganizationInput):
    """A member."""

    user: str = Field(description="Id or name of the user.")


class MemberRoleInput(MemberInput):
    """A member and a role."""

    role: RoleName = Field("member", description="owner, admin or member.")


class WriteModeInput(Input):
    """Where writes go."""

    org: str = Field(
        "none", description="Organization whose memory they go to; 'none' for the user's own memory."
    )
    user: str = Field("me", description="Id or name of the user.")


class InviteInput(OrganizationInput):
    """An invitation."""

    role: RoleName = Field("member", description="owner, admin or member.")
    days: int | None = Field(None, ge=1, le=90, description="How long it is good for; 7 when left out.")


class InvitationInput(OrganizationInput):
    """An invitation of an organization."""

    invitation: str = Field(description="Id of the invitation.")


class JoinInput(Input):
    """A secret from an invitation."""

    secret: str = Field(
        description="The part of the link after 'invitation='; on a command line '-' reads standard input."
    )


def _invitation(invitation: Invitation) -> JsonObject:
    used_at = invitation.used_at
    return {
        "invitation_id": invitation_id(invitation),
        "organization_id": invitation.organization_id,
        "role": invitation.role.value,
        "invited_by": invitation.invited_by,
        "created_at": timestamp(invitation.created_at),
        "expires_at": timestamp(invitation.expires_at),
        "used_at": None if used_at is None else timestamp(used_at),
        "used_by": invitation.used_by,
    }


async def _add(services: Services, actor: Principal, sent: AddOrganizationInput) -> JsonObject:
    return organization_entry(await services.organizations.add(actor, sent.name, reference(sent.owner)))


async def _list(services: Services, actor: Principal, _: NoInput) -> JsonObject:
    known = await services.organizations.list(actor)
    return {"organizations": [organization_entry(one) for one in known], "count": len(known)}


async def _show(services: Services, actor: Principal, sent: OrganizationInput) -> JsonObject:
    organization, members = await services.organizations.show(actor, sent.org)
    return {**organization_entry(organization), "members": member_entries(members)}


async def _rename(services: Services, actor: Principal, sent: RenameOrganizationInput) -> JsonObject:
    return organization_entry(await services.organizations.rename(actor, sent.org, sent.name))


async def _remove(services: Services, actor: Principal, sent: OrganizationInput) -> JsonObject:
    organization = await services.organizations.remove(actor, sent.org)
    return {"organization_id": organization.organization_id, "removed": True}


async def _member_add(services: Services, actor: Principal, sent: MemberRoleInput) -> JsonObject:
    return await _put_member(services, actor, sent, is_new=True)


async def _member_role(services: Services, actor: Principal, sent: MemberRoleInput) -> JsonObject:
    return await _put_member(services, actor, sent, is_new=False)


async def _put_member(
    services: Services, actor: Principal, sent: MemberRoleInput, *, is_new: bool
) -> JsonObject:
    organization, user = await services.organizations.put_member(
        actor, sent.org, sent.user, Role(sent.role), is_new=is_new
    )
    return {
        "organization_id": organization.organization_id,
        "user_id": user.user_id,
        "role": sent.role,
    }


async def _member_remove(services: Services, actor: Principal, sent: MemberInput) -> JsonObject:
    organization, user = await services.organizations.remove_member(actor, sent.org, sent.user)
    return {"organization_id": organization.organization_id, "user_id": user.user_id, "role": None}


async def _write_mode(services: Services, actor: Principal, sent: WriteModeInput) -> JsonObject:
    chosen = None if sent.org == "none" else sent.org
    user, organization = await services.organizations.write_mode(actor, chosen, reference(sent.user))
    target = None if organization is None else organization.organization_id
    return {**user_entry(user), "write_organization_id": target}


async def _invite(services: Services, actor: Principal, sent: InviteInput) -> JsonObject:
    secret, invitation = await services.organizations.invite(actor, sent.org, Role(sent.role), sent.days)
    public = services.settings.public_url.rstrip("/")
    link = f"{public}/join?invitation={secret}" if public else None
    return {**_invitation(invitation), "secret": secret, "link": link}


async def _invitations(services: Services, actor: Principal, sent: OrganizationInput) -> JsonObject:
    found = await services.organizations.invitations(actor, sent.org)
    return {"invitations": [_invitation(one) for one in found], "count": len(found)}


async def _withdraw(services: Services, actor: Principal, sent: InvitationInput) -> JsonObject:
    return _invitation(await services.organizations.withdraw(actor, sent.org, sent.invitation))


async def _join(services: Services, actor: Principal, sent: JoinInput) -> JsonObject:
    joined = await services.organizations.accept(actor.user_id, sent.secret)
    return {
        "organization_id": joined.organization_id,
        "name": joined.name,
        "graph_id": joined.graph_id,
        "role": joined.role.value,
    }


ORGANIZATION_OPERATIONS = (
    administration(
        "org add", "Make an organization, with its graph and its first owner.", AddOrganizationInput,
        OrganizationEntry, "POST /organizations", _add, arguments=("name",),
    ),
    administration(
        "org list", "List organizations, oldest first.", NoInput, OrganizationList,
        "GET /organizations", _list,
    ),
    administration(
        "org show", "Show an organization and its members.", OrganizationInput, OrganizationDetails,
        "GET /organizations/{org}", _show, arguments=("org",),
    ),
    administration(
        "org rename", "Give an organization another name.", RenameOrganizationInput, OrganizationEntry,
        "POST /organizations/{org}", _rename, arguments=("org", "name"),
    ),
    administration(
        "org remove", "Remove an organization with its memory, memberships and keys.", OrganizationInput,
        RemovedOrganization, "DELETE /organizations/{org}", _remove, arguments=("org",), destructive=True,
    ),
    administration(
        "org member add", "Make somebody a member without an invitation, as who runs the server.",
        MemberRoleInput,
        MembershipEntry, "POST /organizations/{org}/members", _member_add, arguments=("org", "user"),
    ),
    administration(
        "org member role", "Change a member's role.", MemberRoleInput, MembershipEntry,
        "POST /organizations/{org}/members/{user}", _member_role, arguments=("org", "user"),
    ),
    administration(
        "org member remove", "End a membership, with the keys and sign-ins that depend on it.", MemberInput,
        MembershipEntry, "DELETE /organizations/{org}/members/{user}", _member_remove,
        arguments=("org", "user"), destructive=True,
    ),
    administration(
        "org write-mode", "Let a user's writes go to an organization's memory, or to their own again.",
        WriteModeInput, UserEntry, "POST /write-mode", _write_mode, arguments=("org",),
    ),
    administration(
        "org invite", "Make a link that lets one person join.", InviteInput, InvitationEntry,
        "POST /organizations/{org}/invitations", _invite, arguments=("org",),
    ),
    administration(
        "org invitation list", "List the invitations of an organization.", OrganizationInput,
        InvitationList, "GET /organizations/{org}/invitations", _invitations, arguments=("org",),
    ),
    administration(
        "org invitation remove", "Take an invitation back.", InvitationInput, InvitationEntry,
        "DELETE /organizations/{org}/invitations/{invitation}", _withdraw, arguments=("org", "invitation"),
        destructive=True,
    ),
    administration(
        "org join", "Join an organization by the secret of an invitation.", JoinInput, JoinedAnswer,
        "POST /join", _join, arguments=("secret",),
    ),
)  # fmt: skip
