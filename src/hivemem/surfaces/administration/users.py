"""Users."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic import Field

from hivemem.domain.access import Principal
from hivemem.domain.accounts import Member, Organization, User
from hivemem.domain.text import JsonObject
from hivemem.surfaces.administration.routes import administration
from hivemem.surfaces.answers import Answer
from hivemem.surfaces.inputs import Input
from hivemem.surfaces.presentation import timestamp
from hivemem.surfaces.services import Services


class UserEntry(Answer):
    """A user."""

    user_id: str
    name: str
    operator: bool = Field(description="Whether they run this server.")
    has_password: bool
    write_organization_id: str | None = Field(
        description="The organization that their writes go to; null for their own memory."
    )
    created_at: str
    graph_id: str | None = Field(None, description="Their first graph, when the user was just made.")


class UserList(Answer):
    """Users, oldest first."""

    users: list[UserEntry]
    count: int


class RemovedUser(Answer):
    """A user who is gone, with their graphs and credentials."""

    user_id: str
    removed: bool


class AddUserInput(Input):
    """A new user."""

    name: str = Field(description="What they sign in with; unique on this server.")
    password: str | None = Field(None, description="10 to 256 characters; left out: no sign-in by password.")
    operator: bool = Field(False, description="They run this server too, and may decide about everybody.")


class NoInput(Input):
    """Nothing."""


class UserInput(Input):
    """A user."""

    user: str = Field(description="Id or name of the user; 'me' for yourself.")


class ChangeUserInput(UserInput):
    """What changes of a user."""

    name: str | None = Field(None, description="New name.")
    password: str | None = Field(None, description="New password; it ends all sign-ins by password.")
    current_password: str | None = Field(
        None, description="The present password, when people change their own."
    )
    operator: bool | None = Field(None, description="Whether they run this server.")


def user_entry(user: User) -> JsonObject:
    """A user as JSON; never a hash."""
    return {
        "user_id": user.user_id,
        "name": user.name,
        "operator": user.operator,
        "has_password": user.password_hash is not None,
        "write_organization_id": user.write_organization_id,
        "created_at": timestamp(user.created_at),
    }


def reference(user: str) -> str | None:
    """Whom an input means; None for the caller."""
    return None if user == "me" else user


def organization_entry(organization: Organization) -> JsonObject:
    """An organization as JSON."""
    return {
        "organization_id": organization.organization_id,
        "name": organization.name,
        "graph_id": organization.graph_id,
        "created_at": timestamp(organization.created_at),
    }


def member_entries(members: Sequence[Member]) -> list[Any]:
    """Members as JSON."""
    return [
        {
            "user_id": member.user_id,
            "name": member.name,
            "role": member.role.value,
            "joined_at": timestamp(member.joined_at),
        }
        for member in members
    ]


async def _add(services: Services, actor: Principal, sent: AddUserInput) -> JsonObject:
    user, graph = await services.people.add_user(actor, sent.name, sent.password, operator=sent.operator)
    return {**user_entry(user), "graph_id": graph.graph_id}


async def _list(services: Services, actor: Principal, _: NoInput) -> JsonObject:
    users = await services.people.users(actor)
    return {"users": [user_entry(user) for user in users], "count": len(users)}


async def _show(services: Services, actor: Principal, sent: UserInput) -> JsonObject:
    return user_entry(await services.people.user(actor, reference(sent.user)))


async def _change(services: Services, actor: Principal, sent: ChangeUserInput) -> JsonObject:
    changed = await services.people.change_user(
        actor,
        reference(sent.user),
        name=sent.name,
        password=sent.password,
        current_password=sent.current_password,
        operator=sent.operator,
    )
    return user_entry(changed)


async def _remove(services: Services, actor: Principal, sent: UserInput) -> JsonObject:
    user = await services.people.remove_user(actor, actor.user_id if sent.user == "me" else sent.user)
    return {"user_id": user.user_id, "removed": True}


USER_OPERATIONS = (
    administration(
        "user add", "Make a user, with a first graph.", AddUserInput, UserEntry, "POST /users", _add,
        arguments=("name",),
    ),
    administration("user list", "List users, oldest first.", NoInput, UserList, "GET /users", _list),
    administration(
        "user show", "Show a user.", UserInput, UserEntry, "GET /users/{user}", _show, arguments=("user",)
    ),
    administration(
        "user change", "Change a user's name, password or rights.", ChangeUserInput, UserEntry,
        "POST /users/{user}", _change, arguments=("user",),
    ),
    administration(
        "user remove", "Remove a user with all their graphs and credentials.", UserInput, RemovedUser,
        "DELETE /users/{user}", _remove, arguments=("user",), destructive=True,
    ),
)  # fmt: skip
