"""Users, graphs and keys of the `AccountStore` port in dictionaries, a part of `MemoryStore`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime

from hivemem.domain.access import ApiKey
from hivemem.domain.accounts import (
    Account,
    DeletedGraph,
    ExternalIdentity,
    Graph,
    Invitation,
    Membership,
    Organization,
    Role,
    User,
)
from hivemem.domain.graph import GraphId
from hivemem.errors import Conflict, InvalidInput, NotFound
from hivemem.storage.account_rows import check_as_read

Gone = Callable[[str, str], bool]
"""Whether what a user (first id) may do at a graph (second id) ends."""


class MemoryAccounts:
    """Who there is, and by which keys: see `hivemem.ports.store.AccountStore` for the contract.

    Args:
        check_open: Raises when the store is closed.
        forget_reports: Removes the token reports and exports of a user from graphs that stay.
    """

    def __init__(self, check_open: Callable[[], None], forget_reports: Callable[[str], None]) -> None:
        self._require_open = check_open
        self._forget_reports = forget_reports
        self._users: dict[str, User] = {}
        self._graphs: dict[str, Graph] = {}
        self._keys: dict[str, ApiKey] = {}
        self._identities: dict[tuple[str, str], ExternalIdentity] = {}
        self._deleted_graphs: dict[GraphId, DeletedGraph] = {}
        self._organizations: dict[str, Organization] = {}
        self._members: dict[tuple[str, str], tuple[Role, datetime]] = {}
        self._invitations: dict[str, Invitation] = {}

    async def add_user(self, user: User, graph: Graph) -> None:
        """See `AccountStore.add_user`."""
        self._require_open()
        if graph.owner_id != user.user_id:
            raise InvalidInput(
                f"graph {graph.graph_id!r} belongs to {graph.owner_id!r}, not {user.user_id!r}."
            )
        if user.user_id in self._users:
            raise Conflict(f"the id {user.user_id!r} is taken; make fresh ones.")
        self._check_user_name(user)
        self._check_graph_id(graph)
        self._users[user.user_id] = user
        self._put_graph(graph)

    async def user(self, user_id: str) -> User | None:
        """See `AccountStore.user`."""
        self._require_open()
        return self._users.get(user_id)

    async def user_by_name(self, name: str) -> User | None:
        """See `AccountStore.user_by_name`."""
        self._require_open()
        return next((user for user in self._users.values() if user.name == name), None)

    async def users(self) -> Sequence[User]:
        """See `AccountStore.users`."""
        self._require_open()
        return sorted(self._users.values(), key=lambda user: (user.created_at, user.user_id))

    async def put_user(self, user: User, *, read: User | None = None) -> None:
        """See `AccountStore.put_user`."""
        before = self._require_user(user.user_id)
        check_as_read(before, user, read)
        if user.write_organization_id not in (None, *self._organizations):
            raise NotFound(f"no organization {user.write_organization_id!r}; create it first.")
        self._check_user_name(user)
        if before.operator and not user.operator:
            self._check_other_operator(user.user_id)
        self._users[user.user_id] = replace(user, created_at=before.created_at)

    async def remove_user(self, user_id: str, at: datetime) -> bool:
        """See `AccountStore.remove_user`."""
        self._require_open()
        if user_id not in self._users:
            return False
        if self._users[user_id].operator:
            self._check_other_operator(user_id)
        for organization_id, member_id in self._members:
            if member_id == user_id:
                self._check_other_owner(organization_id, user_id)
        for graph in await self.graphs(user_id):
            self._delete_graph(graph.graph_id, at)
        self._forget_access(lambda user, _: user == user_id)
        self._members = {place: one for place, one in self._members.items() if place[1] != user_id}
        self._invitations = {
            hash: one for hash, one in self._invitations.items() if one.invited_by != user_id
        }
        self._identities = {place: one for place, one in self._identities.items() if one.user_id != user_id}
        self._forget_reports(user_id)
        del self._users[user_id]
        return True

    async def add_graph(self, graph: Graph) -> None:
        """See `AccountStore.add_graph`."""
        if graph.owner_id is None:
            raise InvalidInput(f"graph {graph.graph_id!r} is an organization's; add the organization.")
        self._require_user(graph.owner_id)
        self._check_graph_id(graph)
        self._put_graph(graph)

    async def graph(self, graph_id: str) -> Graph | None:
        """See `AccountStore.graph`."""
        self._require_open()
        return self._graphs.get(graph_id)

    async def graphs(self, owner_id: str) -> Sequence[Graph]:
        """See `AccountStore.graphs`."""
        self._require_open()
        own = [graph for graph in self._graphs.values() if graph.owner_id == owner_id]
        return sorted(own, key=lambda graph: (graph.created_at, graph.graph_id))

    async def graph_ids(self) -> Sequence[GraphId]:
        """See `AccountStore.graph_ids`."""
        self._require_open()
        return sorted(self._graphs)

    async def put_graph(self, graph: Graph, *, read: Graph | None = None) -> bool:
        """See `AccountStore.put_graph`."""
        self._require_open()
        before = self._graphs.get(graph.graph_id)
        if before is None:
            return False
        check_as_read(before, graph, read)
        self._put_graph(
            replace(before, name=graph.name, is_default=graph.is_default, frozen_at=graph.frozen_at)
        )
        return True

    async def remove_graph(self, graph_id: str, at: datetime) -> bool:
        """See `AccountStore.remove_graph`."""
        self._require_open()
        graph = self._graphs.get(graph_id)
        if graph is None or graph.owner_id is None:
            return False
        self._delete_graph(graph_id, at)
        return True

    async def add_key(self, key: ApiKey) -> None:
        """See `AccountStore.add_key`."""
        self._require_user(key.user_id)
        if key.graph_id not in self._graphs:
            raise NotFound(f"no graph {key.graph_id!r}; create the graph first.")
        if any(key.key_id == other.key_id or key.hash == other.hash for other in self._keys.values()):
            raise Conflict(f"the key {key.key_id!r} exists already; make a fresh one.")
        self._keys[key.key_id] = key

    async def keys(self, user_id: str | None = None) -> Sequence[ApiKey]:
        """See `AccountStore.keys`."""
        self._require_open()
        found = [key for key in self._keys.values() if user_id in (None, key.user_id)]
        return sorted(found, key=lambda key: (key.created_at, key.key_id))

    async def revoke_key(self, key_id: str, at: datetime) -> bool:
        """See `AccountStore.revoke_key`."""
        self._require_open()
        key = self._keys.get(key_id)
        if key is None or key.revoked_at is not None:
            return False
        self._keys[key_id] = replace(key, revoked_at=at)
        return True

    async def key_used(self, key_id: str, at: datetime) -> None:
        """See `AccountStore.key_used`."""
        self._require_open()
        key = self._keys.get(key_id)
        if key is not None and (key.last_used_at is None or key.last_used_at < at):
            self._keys[key_id] = replace(key, last_used_at=at)

    async def key_account(self, hash: str) -> tuple[ApiKey, Account] | None:
        """See `AccountStore.key_account`."""
        self._require_open()
        key = next((key for key in self._keys.values() if key.hash == hash), None)
        return None if key is None else (key, self._account(key.user_id, key.graph_id))

    async def account(self, user_id: str, graph_id: str) -> Account | None:
        """See `AccountStore.account`."""
        self._require_open()
        return self._account(user_id, graph_id) if user_id in self._users else None

    async def add_external_identity(self, identity: ExternalIdentity) -> None:
        """See `AccountStore.add_external_identity`."""
        self._require_user(identity.user_id)
        place = (identity.issuer, identity.subject)
        if place in self._identities:
            raise Conflict(f"the identity {identity.subject!r} at {identity.issuer!r} is somebody's already.")
        self._identities[place] = identity

    async def user_by_external_identity(self, issuer: str, subject: str) -> User | None:
        """See `AccountStore.user_by_external_identity`."""
        self._require_open()
        identity = self._identities.get((issuer, subject))
        return None if identity is None else self._users[identity.user_id]

    async def external_identities(self, user_id: str) -> Sequence[ExternalIdentity]:
        """See `AccountStore.external_identities`."""
        self._require_open()
        own = [identity for identity in self._identities.values() if identity.user_id == user_id]
        return sorted(own, key=lambda identity: (identity.created_at, identity.issuer, identity.subject))

    async def remove_external_identity(self, issuer: str, subject: str) -> bool:
        """See `AccountStore.remove_external_identity`."""
        self._require_open()
        return self._identities.pop((issuer, subject), None) is not None

    def _account(self, user_id: str, graph_id: str) -> Account:
        memberships = [
            Membership(
                organization_id=organization_id,
                name=self._organizations[organization_id].name,
                graph_id=self._organizations[organization_id].graph_id,
                role=role,
                frozen=self._graphs[self._organizations[organization_id].graph_id].frozen_at is not None,
            )
            for (organization_id, member_id), (role, _) in self._members.items()
            if member_id == user_id
        ]
        memberships.sort(key=lambda membership: (membership.name, membership.organization_id))
        return Account(
            user=self._users[user_id], memberships=tuple(memberships), graph=self._graphs.get(graph_id)
        )

    def _put_graph(self, graph: Graph) -> None:
        if graph.is_default and graph.owner_id is not None:
            for other in self._graphs.values():
                if other.owner_id == graph.owner_id:
                    self._graphs[other.graph_id] = replace(other, is_default=False)
        self._graphs[graph.graph_id] = graph

    def _delete_graph(self, graph_id: GraphId, at: datetime) -> None:
        self._forget_access(lambda _, graph: graph == graph_id)
        del self._graphs[graph_id]
        self._deleted_graphs[graph_id] = DeletedGraph(graph_id=graph_id, deleted_at=at)

    def _forget_access(self, gone: Gone) -> None:
        """Remove the keys that `gone` names; what rests on them goes too."""
        for key in list(self._keys.values()):
            if gone(key.user_id, key.graph_id):
                del self._keys[key.key_id]

    def _require_user(self, user_id: str) -> User:
        self._require_open()
        user = self._users.get(user_id)
        if user is None:
            raise NotFound(f"no user {user_id!r}; create the user first.")
        return user

    def _check_user_name(self, user: User) -> None:
        for other in self._users.values():
            if other.name == user.name and other.user_id != user.user_id:
                raise Conflict(f"the user name {user.name!r} is taken; choose another.")

    def _check_graph_id(self, graph: Graph) -> None:
        if graph.graph_id in self._graphs or graph.graph_id in self._deleted_graphs:
            raise Conflict(f"the graph id {graph.graph_id!r} is taken; make a fresh one.")

    def _check_other_operator(self, user_id: str) -> None:
        if not any(user.operator and user.user_id != user_id for user in self._users.values()):
            raise Conflict(
                f"{user_id!r} is the only operator of this server; make somebody else one first.",
                code="last_operator",
            )

    def _check_other_owner(self, organization_id: str, user_id: str) -> None:
        """Let changes pass after which the organization still has an owner, if `user_id` is none any more."""
        owners = {
            member_id
            for (place, member_id), (role, _) in self._members.items()
            if place == organization_id and role is Role.OWNER
        }
        if owners == {user_id}:
            raise Conflict(
                f"{user_id!r} is the only owner of the organization {organization_id!r}; make another member "
                "an owner first.",
                code="last_owner",
            )
