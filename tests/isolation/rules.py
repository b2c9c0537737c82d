"""Who may reach what, said once more in the plainest way, to compare the server with.

Nothing here is shared with the server. Graphs are named by labels; each has a mark of its own in every text
that is written into it, so that a text in an answer tells which graph it came from.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

OWNER, ADMIN, MEMBER = "owner", "admin", "member"
WRITERS = (OWNER, ADMIN)
DENIED = "zqdeniedzq"
"""In texts of writes that must be refused: nobody may ever see it."""


@dataclass
class Graph:
    label: str
    graph_id: str
    user: str | None = None
    organization: str | None = None
    frozen: bool = False
    is_default: bool = False

    @property
    def mark(self) -> str:
        return f"zq{self.label}zq"


@dataclass
class Person:
    name: str
    user_id: str
    operator: bool = False
    writes_to: str | None = None


@dataclass
class Organization:
    name: str
    organization_id: str
    roles: dict[str, str] = field(default_factory=dict)

    def owners(self) -> list[str]:
        return [name for name, role in self.roles.items() if role == OWNER]


@dataclass
class Credential:
    """`graph` is the one it is bound to; `bound` whether a header may choose another of the person's."""

    secret: str
    name: str
    person: str
    graph: str
    writes: bool
    admin: bool
    bound: bool = True
    alive: bool = True
    key_id: str = ""


@dataclass
class World:
    people: dict[str, Person] = field(default_factory=dict)
    graphs: dict[str, Graph] = field(default_factory=dict)
    organizations: dict[str, Organization] = field(default_factory=dict)
    credentials: list[Credential] = field(default_factory=list)

    def role(self, person: str, organization: str | None) -> str | None:
        return (
            self.organizations[organization].roles.get(person) if organization in self.organizations else None
        )

    def graph_of(self, organization: str) -> Graph:
        return next(graph for graph in self.graphs.values() if graph.organization == organization)

    def by_id(self, graph_id: str) -> Graph | None:
        return next((graph for graph in self.graphs.values() if graph.graph_id == graph_id), None)

    def is_reached(self, person: str, graph: Graph | None) -> bool:
        """A personal graph by its owner, an organization's by its members."""
        if graph is None:
            return False
        return graph.user == person if graph.user else self.role(person, graph.organization) is not None

    def works(self, credential: Credential) -> bool:
        return (
            credential.alive
            and credential.person in self.people
            and self.is_reached(credential.person, self.graphs.get(credential.graph))
        )

    def selected(self, credential: Credential, header: str | None) -> Graph | None:
        """The graph that a request works on; None when the header asks for one that is out of reach."""
        own = self.graphs.get(credential.graph)
        if header is None:
            return own
        asked = self.by_id(header)
        if credential.bound and asked is not own:
            return None
        return asked if self.is_reached(credential.person, asked) else None

    def target(self, credential: Credential, selected: Graph) -> Graph | None:
        """Where a write goes; None when it must be refused."""
        if not credential.writes:
            return None
        graph = selected
        writes_to = self.people[credential.person].writes_to
        if selected.user and writes_to and self.role(credential.person, writes_to) in WRITERS:
            graph = self.graph_of(writes_to)
        if graph.organization and self.role(credential.person, graph.organization) not in WRITERS:
            return None
        return None if graph.frozen else graph

    def notes_conversations(self, credential: Credential, graph: Graph) -> bool:
        """Whether reading may leave a trace of the conversation in the graph."""
        if graph.frozen:
            return False
        if graph.user:
            return True
        return credential.writes and self.role(credential.person, graph.organization) in WRITERS

    def mine(self, person: str) -> list[Organization]:
        return [one for one in self.organizations.values() if person in one.roles]

    def chosen(self, person: str, organization_id: str | None) -> Organization | str | None:
        """The organization that an id names; None for none, 'refused' for one that is not the person's."""
        if organization_id in (None, "none"):
            return None
        found = [one for one in self.mine(person) if one.organization_id == organization_id]
        return found[0] if found else "refused"

    def recalled(self, person: str, selected: Graph, organization_id: str | None) -> set[str]:
        """Labels of the graphs that a recall may answer from."""
        labels = {selected.label}
        chosen = self.chosen(person, organization_id)
        mine = self.mine(person)
        if organization_id is None and not selected.organization and len(mine) == 1:
            chosen = mine[0]
        if isinstance(chosen, Organization):
            labels.add(self.graph_of(chosen.name).label)
        return labels

    def visible_ids(self, person: str) -> set[str]:
        """Ids that the administration may show somebody."""
        one = self.people[person]
        if one.operator:
            return self.all_ids()
        ids = {one.user_id}
        ids |= {graph.graph_id for graph in self.graphs.values() if graph.user == person}
        ids |= {key.key_id for key in self.credentials if key.person == person and key.key_id}
        for organization in self.mine(person):
            ids |= {organization.organization_id, self.graph_of(organization.name).graph_id}
            ids |= {self.people[name].user_id for name in organization.roles}
        return ids

    def all_ids(self) -> set[str]:
        return {
            *(one.user_id for one in self.people.values()),
            *(graph.graph_id for graph in self.graphs.values()),
            *(one.organization_id for one in self.organizations.values()),
            *(key.key_id for key in self.credentials if key.key_id),
        }

    def may_give(self, person: str, organization: str, role: str) -> bool:
        own = self.role(person, organization)
        return self.people[person].operator or own == OWNER or (own == ADMIN and role != OWNER)

    def decides(self, person: str, organization: str) -> bool:
        return self.people[person].operator or self.role(person, organization) in WRITERS

    def leave(self, person: str, organization: str) -> None:
        """What ends with a membership: the write mode, and the credentials at the organization's graph."""
        del self.organizations[organization].roles[person]
        if self.people[person].writes_to == organization:
            self.people[person].writes_to = None
        label = self.graph_of(organization).label
        for credential in self.credentials:
            if credential.person == person and credential.graph == label:
                credential.alive = False


Arguments = dict[str, Any]
