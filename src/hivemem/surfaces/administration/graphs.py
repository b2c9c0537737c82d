"""Graphs of people, and freezing those of organizations."""

from __future__ import annotations

from pydantic import Field

from hivemem.domain.access import Principal
from hivemem.domain.accounts import Graph
from hivemem.domain.text import JsonObject
from hivemem.surfaces.administration.routes import administration
from hivemem.surfaces.administration.users import reference
from hivemem.surfaces.answers import Answer
from hivemem.surfaces.inputs import Input
from hivemem.surfaces.presentation import timestamp
from hivemem.surfaces.services import Services


class GraphEntry(Answer):
    """A graph."""

    graph_id: str
    name: str
    kind: str
    owner_id: str | None
    organization_id: str | None
    default: bool
    frozen: bool
    created_at: str


class GraphList(Answer):
    """The personal graphs of a user, oldest first."""

    user_id: str
    graphs: list[GraphEntry]
    count: int


class RemovedGraph(Answer):
    """A graph that is gone."""

    graph_id: str
    removed: bool


class AddGraphInput(Input):
    """A further graph."""

    name: str = Field(description="What it is for.")
    user: str = Field("me", description="Id or name of its owner.")


class ListGraphsInput(Input):
    """Whose graphs."""

    user: str = Field("me", description="Id or name of the owner.")


class GraphInput(Input):
    """A graph."""

    graph: str = Field(description="Id of the graph.")


class ChangeGraphInput(GraphInput):
    """What changes of a graph."""

    name: str | None = Field(None, description="New name.")
    frozen: bool | None = Field(None, description="Whether it can only be read.")
    default: bool | None = Field(None, description="True: keys and sign-ins take it when none is named.")


def graph_entry(graph: Graph) -> JsonObject:
    """A graph as JSON."""
    return {
        "graph_id": graph.graph_id,
        "name": graph.name,
        "kind": graph.kind.value,
        "owner_id": graph.owner_id,
        "organization_id": graph.organization_id,
        "default": graph.is_default,
        "frozen": graph.frozen_at is not None,
        "created_at": timestamp(graph.created_at),
    }


async def _add(services: Services, actor: Principal, sent: AddGraphInput) -> JsonObject:
    return graph_entry(await services.people.add_graph(actor, sent.name, reference(sent.user)))


async def _list(services: Services, actor: Principal, sent: ListGraphsInput) -> JsonObject:
    user, graphs = await services.people.graphs(actor, reference(sent.user))
    return {
        "user_id": user.user_id,
        "graphs": [graph_entry(graph) for graph in graphs],
        "count": len(graphs),
    }


async def _show(services: Services, actor: Principal, sent: GraphInput) -> JsonObject:
    return graph_entry(await services.people.graph(actor, sent.graph))


async def _change(services: Services, actor: Principal, sent: ChangeGraphInput) -> JsonObject:
    changed = await services.people.change_graph(
        actor, sent.graph, name=sent.name, frozen=sent.frozen, default=sent.default
    )
    return graph_entry(changed)


async def _remove(services: Services, actor: Principal, sent: GraphInput) -> JsonObject:
    graph = await services.people.remove_graph(actor, sent.graph)
    return {"graph_id": graph.graph_id, "removed": True}


GRAPH_OPERATIONS = (
    administration(
        "graph add", "Make a further graph.", AddGraphInput, GraphEntry, "POST /graphs", _add,
        arguments=("name",),
    ),
    administration("graph list", "List a user's graphs.", ListGraphsInput, GraphList, "GET /graphs", _list),
    administration(
        "graph show", "Show a graph.", GraphInput, GraphEntry, "GET /graphs/{graph}", _show,
        arguments=("graph",),
    ),
    administration(
        "graph change", "Rename a graph, freeze or thaw it, or make it the default.", ChangeGraphInput,
        GraphEntry, "POST /graphs/{graph}", _change, arguments=("graph",),
    ),
    administration(
        "graph remove", "Remove a graph with everything in it.", GraphInput, RemovedGraph,
        "DELETE /graphs/{graph}", _remove, arguments=("graph",), destructive=True,
    ),
)  # fmt: skip
