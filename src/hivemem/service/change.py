"""hm_forget, and the edge half of hm_update: by id, against the version that the caller has seen."""

from __future__ import annotations

from dataclasses import dataclass

from hivemem.domain.access import Principal
from hivemem.domain.changing import (
    changed_edge,
    edge_change,
    node_removal,
    relationship_removal,
    require_version,
)
from hivemem.domain.edge import Edge, Hyperedge
from hivemem.domain.graph import GraphId, WriteBatch
from hivemem.domain.keys import normalise_key
from hivemem.domain.text import JsonObject, storable_text
from hivemem.errors import Conflict, InvalidInput, NotFound
from hivemem.ports.clock import Clock
from hivemem.ports.store import GraphStore
from hivemem.service.limits import Limits
from hivemem.service.planned_writes import PlannedWrites
from hivemem.service.store_request import checked_data


@dataclass(frozen=True, slots=True, kw_only=True)
class Forgotten:
    """What was forgotten; `relationships_removed` counts what went with a node."""

    id: str
    relationships_removed: int


class Change:
    """Changes edges, and forgets nodes, edges and hyperedges. The prior state stays in the history."""

    def __init__(self, *, store: GraphStore, clock: Clock, limits: Limits) -> None:
        self._store = store
        self._clock = clock
        self._limits = limits
        self._writes = PlannedWrites(store)

    async def update_edge(
        self,
        principal: Principal,
        edge_id: str,
        *,
        expected: int | None = None,
        description: str | None = None,
        data: JsonObject | None = None,
    ) -> Edge:
        """Change an edge's description, and members of its data; the edge afterwards.

        Raises:
            Forbidden: The credential is read-only.
            NotFound: There is no such edge.
            Conflict: It is at another version than `expected` (`version_conflict`), is a hyperedge
                (`hyperedge_immutable`), or the new label exists between the same nodes (`already_exists`).
            InvalidInput: No field to change, or one that breaks a rule.
            LimitExceeded: A field is larger than a limit.
            Unavailable: The store is busy or down; nothing was written.
        """
        principal.require_write()
        if description is None and data is None:
            raise InvalidInput("/description is missing, and so is /data; send at least one of the two.")
        if description is not None:
            maximum = self._limits.max_description_characters
            storable_text(description, "/description", max_characters=maximum)
        if data is not None:
            data = checked_data(data, "/data", self._limits)

        async def plan() -> tuple[WriteBatch | None, Edge]:
            edge = await self._present(principal.graph_id, edge_id)
            if isinstance(edge, Hyperedge):
                raise Conflict(
                    f"{edge_id!r} is a hyperedge, which never changes; store it anew, then forget this one.",
                    code="hyperedge_immutable",
                )
            require_version(edge, expected)
            changed = changed_edge(edge, description=description, data=data, at=self._clock.now())
            maximum = self._limits.max_label_characters
            storable_text(changed.relationship, "/data/semantic_relationship", max_characters=maximum)
            if data is not None:
                checked_data(changed.data, "/data", self._limits)
            if changed.identity != edge.identity:
                await self._require_free(principal.graph_id, changed)
            return edge_change(edge, changed), changed

        return await self._writes.run(principal.graph_id, f"edge {edge_id!r} was not changed", plan)

    async def forget_node(self, principal: Principal, key: str) -> Forgotten:
        """Forget a node with its edges and memberships; a hyperedge left with two nodes goes as well.

        Raises:
            Forbidden: The credential is read-only.
            NotFound: There is no such node.
            Conflict: It is the profile of the graph's owner.
            Unavailable: The store is busy or down; nothing was forgotten.
        """
        principal.require_write()
        normal, graph_id = normalise_key(key), principal.graph_id

        async def plan() -> tuple[WriteBatch | None, Forgotten]:
            node = (await self._store.nodes(graph_id, [normal])).get(normal)
            if node is None:
                raise NotFound(f"node {normal!r} does not exist; nothing was forgotten.")
            related = await self._store.relationships(graph_id, [normal], edge_limit=1, hyperedge_limit=1)
            removed = related[normal].edge_total + related[normal].hyperedge_total
            return node_removal(node, self._clock.now()), Forgotten(id=normal, relationships_removed=removed)

        return await self._writes.run(graph_id, f"node {normal!r} was not forgotten", plan)

    async def forget_relationship(
        self, principal: Principal, edge_id: str, *, expected: int | None = None
    ) -> Forgotten:
        """Forget an edge or a hyperedge; its nodes stay.

        Raises:
            Forbidden: The credential is read-only.
            NotFound: There is no such edge or hyperedge.
            Conflict: It is at another version than `expected`.
            Unavailable: The store is busy or down; nothing was forgotten.
        """
        principal.require_write()

        async def plan() -> tuple[WriteBatch | None, Forgotten]:
            present = await self._present(principal.graph_id, edge_id)
            require_version(present, expected)
            removal = relationship_removal(present, self._clock.now())
            return removal, Forgotten(id=edge_id, relationships_removed=0)

        return await self._writes.run(principal.graph_id, f"{edge_id!r} was not forgotten", plan)

    async def _present(self, graph_id: GraphId, edge_id: str) -> Edge | Hyperedge:
        edge = (await self._store.edges(graph_id, [edge_id])).get(edge_id)
        if edge is not None:
            return edge
        hyperedge = (await self._store.hyperedges(graph_id, [edge_id])).get(edge_id)
        if hyperedge is not None:
            return hyperedge
        raise NotFound(
            f"there is no edge or hyperedge {edge_id[:200]!r}; hm_get_nodes lists those of a node."
        )

    async def _require_free(self, graph_id: GraphId, edge: Edge) -> None:
        """The label of an edge can be taken by another edge between the same nodes."""
        taken = (await self._store.snapshot(graph_id, (), [edge.identity])).edges.get(edge.identity)
        if taken is not None:
            raise Conflict(
                f"the edge {taken.edge_id!r} already says {edge.relationship!r} between the same nodes; "
                "forget one of the two.",
                code="already_exists",
                edge_id=taken.edge_id,
            )
