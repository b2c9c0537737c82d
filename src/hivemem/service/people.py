"""Users and their graphs, and how people and organizations are found by id or by name."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Protocol

from hivemem.domain.access import Principal
from hivemem.domain.accounts import Graph, Membership, Organization, User
from hivemem.domain.graph import NodeWrite, WriteBatch
from hivemem.domain.keys import USER_PROFILE_KEY
from hivemem.domain.text import storable_text
from hivemem.domain.writing import placeholder
from hivemem.errors import Conflict, Forbidden, InvalidInput, NotFound, Unauthorized
from hivemem.ports.clock import Clock
from hivemem.ports.store import AccountStore, GraphStore, OAuthStore
from hivemem.service.audit import AuditLog
from hivemem.service.limits import Limits, require_room
from hivemem.service.passwords import Passwords
from hivemem.service.rate_limits import RateLimits

MAX_NAME_CHARACTERS = 100
# Ids, and words that mean the caller or nobody.
_TAKEN = re.compile(r"(user|org|graph)_[0-9a-f]{20}|none|me", re.IGNORECASE)
_FIRST_GRAPH = "default"


class PeopleStore(AccountStore, OAuthStore, GraphStore, Protocol):
    """What of a store this use case needs."""


class People:
    """Creates, changes and removes users and their graphs."""

    def __init__(
        self,
        *,
        store: PeopleStore,
        passwords: Passwords,
        audit: AuditLog,
        rate_limits: RateLimits,
        limits: Limits,
        clock: Clock,
        on_removed: Callable[[], None] | None = None,
    ) -> None:
        self._store = store
        self._passwords = passwords
        self._audit = audit
        self._rate_limits = rate_limits
        self._limits = limits
        self._clock = clock
        self._on_removed = on_removed

    async def add_user(
        self, actor: Principal | None, name: str, password: str | None = None, *, operator: bool = False
    ) -> tuple[User, Graph]:
        """A new user with a first graph.

        Args:
            actor: Who runs the server; None for somebody who was invited, or signed in at a trusted provider.
            name: What they sign in with.
            password: None for people who sign in by other means.
            operator: Whether they run the server too.

        Raises:
            Forbidden: The actor does not run the server.
            InvalidInput: A bad name or password.
            Conflict: The name is taken.
        """
        if actor is not None:
            actor.require_operator()
        now = self._clock.now()
        user = User(
            user_id=self._clock.new_id("user"),
            name=checked_name(name, "/name"),
            created_at=now,
            operator=operator,
            password_hash=None if password is None else await self._passwords.hash(password),
        )
        graph = self._new_graph(user.user_id, _FIRST_GRAPH, now, is_default=True)
        await self._store.add_user(user, graph)
        await self._add_profile(graph, now)
        by = actor.user_id if actor is not None else user.user_id
        await self._audit.record(
            "user.create", actor, user_id=by, graph_id=graph.graph_id, target=user.user_id
        )
        return user, graph

    async def users(self, actor: Principal) -> Sequence[User]:
        """All users, oldest first, for who runs the server; themselves for everybody else."""
        actor.require_administration()
        if actor.operator:
            return await self._store.users()
        return [await found_user(self._store, actor.user_id)]

    async def user(self, actor: Principal, user: str | None) -> User:
        """A user by id or name; the actor when None.

        Raises:
            Forbidden: It is somebody else, and the actor does not run the server.
            NotFound: There is none.
        """
        return await decided_user(
            self._store, actor, user, "other people's accounts are for who runs this server."
        )

    async def found(self, user: str) -> User:
        """A user by id or name, for commands on the server.

        Raises:
            NotFound: There is none.
        """
        return await found_user(self._store, user)

    async def change_user(
        self,
        actor: Principal,
        user: str | None,
        *,
        name: str | None = None,
        password: str | None = None,
        current_password: str | None = None,
        operator: bool | None = None,
    ) -> User:
        """Change what is given. A new password ends all sign-ins that were not made with an API key.

        Raises:
            Forbidden: It is somebody else, or `operator`, and the actor does not run the server.
            Unauthorized: Somebody changes their own password, and the present one is wrong.
            RateLimited: The present one was guessed too often, here or at the sign-in.
            InvalidInput: Nothing is given, or a bad name or password.
            Conflict: The name is taken, or nobody would run the server any more.
            StaleWrite: The user was changed meanwhile; making a hash takes its time.
        """
        person = await self.user(actor, user)
        if name is None and password is None and operator is None:
            raise InvalidInput("/ changes nothing; give /name, /password or /operator.")
        if operator is not None:
            actor.require_operator()
        changed = replace(
            person,
            name=person.name if name is None else checked_name(name, "/name"),
            operator=person.operator if operator is None else operator,
        )
        if password is not None:
            if not actor.operator:
                await self._require_present(person, current_password)
            changed = replace(changed, password_hash=await self._passwords.hash(password))
        await self._store.put_user(changed, read=person)
        if password is not None:
            await self._end_sign_ins(person.user_id)
        facts = {"name": name is not None, "password": password is not None, "operator": operator}
        await self._audit.record("user.change", actor, target=person.user_id, detail={**facts})
        return changed

    async def remove_user(self, actor: Principal, user: str) -> User:
        """Remove a user with all their graphs and credentials; what they wrote in organizations stays there.

        Raises:
            Forbidden: It is somebody else, and the actor does not run the server.
            NotFound: There is none.
            Conflict: They alone own an organization, or run the server.
        """
        person = await self.user(actor, user)
        if not await self._store.remove_user(person.user_id, self._clock.now()):
            raise NotFound(f"the user {person.user_id!r} is gone already.")
        self._removed()
        await self._audit.record("user.remove", actor, target=person.user_id)
        return person

    async def graphs(self, actor: Principal, user: str | None = None) -> tuple[User, Sequence[Graph]]:
        """The personal graphs of a user, oldest first."""
        person = await self.user(actor, user)
        return person, await self._store.graphs(person.user_id)

    async def add_graph(self, actor: Principal, name: str, user: str | None = None) -> Graph:
        """A further personal graph.

        Raises:
            Forbidden: It is for somebody else, and the actor does not run the server.
            InvalidInput: A bad name.
            Conflict: They have `max_graphs_per_user`.
        """
        person = await self.user(actor, user)
        count, most = len(await self._store.graphs(person.user_id)), self._limits.max_graphs_per_user
        require_room(count, "max_graphs_per_user", most, f"memories of {person.name!r}")
        now = self._clock.now()
        graph = self._new_graph(person.user_id, checked_name(name, "/name"), now)
        await self._store.add_graph(graph)
        await self._add_profile(graph, now)
        await self._audit.record("graph.create", actor, graph_id=graph.graph_id, target=graph.graph_id)
        return graph

    async def graph(self, actor: Principal, graph_id: str) -> Graph:
        """A graph that the actor may decide about: their own, or one of an organization that they own.

        Raises:
            NotFound: There is none of this id for them.
        """
        actor.require_administration()
        graph = await self._store.graph(graph_id)
        if graph is not None:
            membership = actor.membership(graph.organization_id)
            decides = membership is not None and membership.role.may_decide_members
            if actor.operator or graph.owner_id == actor.user_id or decides:
                return graph
        raise NotFound(f"there is no graph {graph_id!r} for you to decide about; list the graphs.")

    async def change_graph(
        self,
        actor: Principal,
        graph_id: str,
        *,
        name: str | None = None,
        frozen: bool | None = None,
        default: bool | None = None,
    ) -> Graph:
        """Change what is given. A frozen graph can be read and not written.

        Raises:
            NotFound: There is none of this id for the actor.
            InvalidInput: Nothing is given, a bad name, or a default that is not a personal graph.
            StaleWrite: The graph was changed meanwhile.
        """
        graph = await self.graph(actor, graph_id)
        if name is None and frozen is None and default is None:
            raise InvalidInput("/ changes nothing; give /name, /frozen or /default.")
        if default is False:
            raise InvalidInput("/default is taken from a graph by making another one the default.")
        if default and graph.organization_id is not None:
            raise InvalidInput("/default is for personal graphs; this one is an organization's.")
        frozen_at = graph.frozen_at
        if frozen is not None:
            frozen_at = (graph.frozen_at or self._clock.now()) if frozen else None
        changed = replace(
            graph,
            name=graph.name if name is None else checked_name(name, "/name"),
            frozen_at=frozen_at,
            is_default=graph.is_default or bool(default),
        )
        if not await self._store.put_graph(changed, read=graph):
            raise NotFound(f"the graph {graph_id!r} is gone.")
        detail = {"name": name is not None, "frozen": frozen, "default": default}
        await self._audit.record(
            "graph.change",
            actor,
            graph_id=graph_id,
            organization_id=graph.organization_id,
            target=graph_id,
            detail=detail,
        )
        return changed

    async def remove_graph(self, actor: Principal, graph_id: str) -> Graph:
        """Remove a personal graph with everything in it, and all keys and sign-ins at it.

        Raises:
            NotFound: There is none of this id for the actor.
            Conflict: It is the default graph, or an organization's.
        """
        graph = await self.graph(actor, graph_id)
        if graph.organization_id is not None:
            raise Conflict("this graph is an organization's; remove the organization.")
        if graph.is_default:
            raise Conflict("this is the default graph; make another one the default first.")
        if not await self._store.remove_graph(graph_id, self._clock.now()):
            raise NotFound(f"the graph {graph_id!r} is gone already.")
        self._removed()
        await self._audit.record("graph.remove", actor, graph_id=graph_id, target=graph_id)
        return graph

    def _removed(self) -> None:
        """Let the content go that is left."""
        if self._on_removed is not None:
            self._on_removed()

    def _new_graph(self, owner_id: str, name: str, at: datetime, *, is_default: bool = False) -> Graph:
        graph_id = self._clock.new_id("graph")
        return Graph(graph_id=graph_id, name=name, owner_id=owner_id, created_at=at, is_default=is_default)

    async def _add_profile(self, graph: Graph, at: datetime) -> None:
        """The blank `user_profile`, which clients look for before they link to it."""
        write = NodeWrite(node=placeholder(USER_PROFILE_KEY, at=at), expected=0)
        await self._store.apply(graph.graph_id, WriteBatch(at=at, nodes=(write,)))

    async def _require_present(self, person: User, password: str | None) -> None:
        """Let pass who knows the present password, if there is one."""
        if person.password_hash is None:
            return
        await self._rate_limits.guess(person.name)
        if not await self._passwords.matches(person, password or ""):
            raise Unauthorized("/current_password is not right.", code="wrong_password")

    async def _end_sign_ins(self, user_id: str) -> None:
        now = self._clock.now()
        for grant in await self._store.grants(user_id):
            if grant.revoked_at is None and grant.key_id is None:
                await self._store.revoke_grant(grant.grant_id, now)


async def found_user(store: AccountStore, user: str) -> User:
    """A user by id, else by name.

    Raises:
        NotFound: There is none.
    """
    found = await store.user(user) or await store.user_by_name(user)
    if found is None:
        raise NotFound(f"there is no user {user[:MAX_NAME_CHARACTERS]!r}; list the users.")
    return found


async def decided_user(store: AccountStore, actor: Principal, user: str | None, refusal: str) -> User:
    """A user that the actor decides about, by id or name: any for who runs the server, else themselves.

    Args:
        store: Where users are.
        actor: Who asks.
        user: Who is meant; the actor when None.
        refusal: What others are told.

    Raises:
        Forbidden: It is somebody else; the same whether or not there is somebody of this name.
        NotFound: There is none, for who runs the server.
    """
    actor.require_administration()
    if actor.operator and user is not None:
        return await found_user(store, user)
    own = await found_user(store, actor.user_id)
    if user not in (None, own.user_id, own.name):
        raise Forbidden(refusal)
    return own


async def found_organization(store: AccountStore, actor: Principal, organization: str) -> Organization:
    """An organization by id, else by name: any for who runs the server, their own for others.

    Raises:
        NotFound: There is none; the same whether it is a stranger's or nobody's.
    """
    if actor.operator:
        known: Sequence[Organization | Membership] = await store.organizations()
    else:
        known = actor.organizations
    named = [one for one in known if organization in (one.organization_id, one.name)]
    # An id is nobody's name.
    found = await store.organization(named[0].organization_id) if named else None
    if found is None:
        raise NotFound(
            f"there is no organization {organization[:MAX_NAME_CHARACTERS]!r} for you; list yours."
        )
    return found


def checked_name(name: str, where: str) -> str:
    """A name without blanks around it.

    Raises:
        InvalidInput: Blank, longer than 100 characters, with line breaks, or like one of our ids.
    """
    label = storable_text(name, where).strip()
    if not 1 <= len(label) <= MAX_NAME_CHARACTERS:
        raise InvalidInput(f"{where} has {len(label)} characters; use 1 to {MAX_NAME_CHARACTERS}.")
    if not label.isprintable():
        raise InvalidInput(f"{where} has line breaks or other control characters; leave them out.")
    if _TAKEN.fullmatch(label):
        raise InvalidInput(f"{where} {label!r} is an id or a word with a meaning here; choose another name.")
    return label
