"""What a memory said before, and how to get it back."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from hivemem.domain.access import Principal
from hivemem.domain.edge import Edge, Hyperedge
from hivemem.domain.graph import (
    EdgeWrite,
    GraphId,
    HyperedgeWrite,
    Kind,
    NodeVectors,
    NodeWrite,
    TimelineEntry,
    Version,
    WriteBatch,
)
from hivemem.domain.keys import normalise_key
from hivemem.domain.node import EnrichmentStatus, Node
from hivemem.domain.writing import NodeText
from hivemem.errors import Conflict, HivememError, NotFound
from hivemem.models.executor import ModelExecutor
from hivemem.ports.clock import Clock
from hivemem.ports.store import GraphStore
from hivemem.service.passages import PassageEmbedding
from hivemem.service.planned_writes import PlannedWrites

RESTORE_TOOL = "restore"


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoreResult:
    """The node as it is again, the version that was taken, and how many relationships came back."""

    node: Node
    restored_version: int
    relationships: int
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Lost:
    """What went with a forgotten node, and can come back: its other ends exist."""

    edges: tuple[Edge, ...] = ()
    hyperedges: tuple[tuple[Hyperedge, Hyperedge | None], ...] = ()
    """Each with what is left of it, None when it is gone."""


class History:
    """Reads and restores versions of nodes."""

    def __init__(self, *, store: GraphStore, executor: ModelExecutor, clock: Clock) -> None:
        self._store = store
        self._embedding = PassageEmbedding(executor)
        self._clock = clock
        self._writes = PlannedWrites(store)

    async def versions(self, principal: Principal, key: str) -> Sequence[Version]:
        """All states of a node, newest first, removals included.

        Raises:
            NotFound: There never was such a node.
            Unavailable: The store is busy or down.
        """
        normal = normalise_key(key)
        versions = await self._store.versions(principal.graph_id, Kind.NODE, normal)
        if not versions:
            raise NotFound(f"there never was a node {normal!r}; hm_recall finds keys.")
        return versions

    async def restore(self, principal: Principal, key: str, version: int | None = None) -> RestoreResult:
        """Store an earlier state of a node again, as a new version.

        Without `version`: the state before the present one, or the last one of a forgotten node. With a
        forgotten node come the relationships that went with it, where their other ends exist.

        Raises:
            Forbidden: The credential is read-only.
            NotFound: There never was such a node, or not that version of it.
            Conflict: The node has no earlier state.
            Unavailable: The store is busy or down; nothing was restored.
        """
        principal.require_write()
        graph_id, normal = principal.graph_id, normalise_key(key)

        async def plan() -> tuple[WriteBatch, RestoreResult]:
            versions = await self.versions(principal, normal)
            present = (await self._store.nodes(graph_id, [normal])).get(normal)
            wanted = _chosen(normal, versions, present, version)
            lost = _Lost() if present is not None else await self._lost(graph_id, normal, versions[0])
            at = self._clock.now()
            vectors, warnings = await self._vectors(wanted)
            node = replace(
                wanted,
                write_version=1 if present is None else present.write_version + 1,
                created_at=wanted.created_at if present is None else present.created_at,
                updated_at=at,
                enrichment_status=EnrichmentStatus.SKIPPED if vectors.passages else EnrichmentStatus.PENDING,
            )
            result = RestoreResult(
                node=node,
                restored_version=wanted.write_version,
                relationships=len(lost.edges) + len(lost.hyperedges),
                warnings=warnings,
            )
            return _batch(node, node.write_version - 1, vectors, lost, wanted.write_version, at), result

        return await self._writes.run(graph_id, f"{normal!r} was not restored", plan)

    async def _vectors(self, node: Node) -> tuple[NodeVectors, tuple[str, ...]]:
        text = NodeText.of(node)
        try:
            cut = await self._embedding.cut([text])
            return (await self._embedding.embed(cut, patient=False))[text], ()
        except HivememError as error:
            note = f"restored without vectors (enrichment_status pending): {error.message}"
            return self._embedding.no_vectors(), (note,)

    async def _lost(self, graph_id: GraphId, key: str, removal: Version) -> _Lost:
        """The relationships that the removal of the node took along."""
        if removal.state is not None:
            return _Lost()
        page = await self._store.changes(graph_id, removal.revision - 1, model_id="", limit=1)
        gone = [one for one in page.removals if one.revision == removal.revision]
        # Hyperedges that lost the node and nothing since, still with three others or more.
        smaller = {one.hyperedge_id: one for one in page.hyperedges if one.revision == removal.revision}
        edge_ids = [one.id for one in gone if one.kind is Kind.EDGE]
        hyperedge_ids = [*(one.id for one in gone if one.kind is Kind.HYPEREDGE), *smaller]
        before = await asyncio.gather(
            self._store.versions_before(graph_id, Kind.EDGE, edge_ids, removal.revision),
            self._store.versions_before(graph_id, Kind.HYPEREDGE, hyperedge_ids, removal.revision),
        )
        states = [version.state for versions in before for version in versions.values()]
        edges = [state for state in states if isinstance(state, Edge)]
        hyperedges = [state for state in states if isinstance(state, Hyperedge) and key in state.keys]
        ends = {end for edge in edges for end in (edge.from_key, edge.to_key)}
        ends.update(end for hyperedge in hyperedges for end in hyperedge.keys)
        snapshot = await self._store.snapshot(
            graph_id, ends, [edge.identity for edge in edges], [one.identity for one in hyperedges]
        )
        exists: Mapping[str, object] = {**snapshot.nodes, key: None}
        # Two hyperedges can have become the same by losing participants; only one of them can come back.
        once = {one.identity: one for one in reversed(hyperedges)}
        return _Lost(
            edges=tuple(
                edge
                for edge in edges
                if edge.identity not in snapshot.edges and {edge.from_key, edge.to_key} <= exists.keys()
            ),
            hyperedges=tuple(
                (one, smaller.get(one.hyperedge_id))
                for one in once.values()
                if one.identity not in snapshot.hyperedges and set(one.keys) <= exists.keys()
            ),
        )


def _chosen(key: str, versions: Sequence[Version], present: Node | None, version: int | None) -> Node:
    """The state to restore; of several with one number, as after forgetting, the newest."""
    described = [one.state for one in versions if isinstance(one.state, Node) and not one.state.placeholder]
    if version is not None:
        for state in described:
            if state.write_version == version:
                return state
        known = ", ".join(str(state.write_version) for state in described[:20]) or "none"
        raise NotFound(f"node {key!r} has no version {version}; it has {known}.")
    earlier = [state for state in described if present is None or state.revision < present.revision]
    if present is not None:
        earlier = [state for state in earlier if not _same(state, present)]
    if not earlier:
        raise Conflict(f"node {key!r} has no earlier state to restore.", code="nothing_to_restore")
    return earlier[0]


def _same(one: Node, other: Node) -> bool:
    return _content(one) == _content(other)


def _content(node: Node) -> tuple[object, ...]:
    return (node.node_type, node.description, node.data, node.search_text, node.assets)


def _batch(
    node: Node, expected: int, vectors: NodeVectors, lost: _Lost, version: int, at: datetime
) -> WriteBatch:
    return WriteBatch(
        at=at,
        nodes=(NodeWrite(node=node, expected=expected, vectors=vectors),),
        edges=tuple(
            EdgeWrite(edge=replace(edge, write_version=edge.write_version + 1, updated_at=at), expected=0)
            for edge in lost.edges
        ),
        hyperedges=tuple(
            HyperedgeWrite(
                hyperedge=replace(one, write_version=(left or one).write_version + 1, updated_at=at),
                expected=0 if left is None else left.write_version,
            )
            for one, left in lost.hyperedges
        ),
        timeline=(
            TimelineEntry(
                at=at,
                summary=f"Restored {node.key} to version {version}",
                source="agent",
                tool=RESTORE_TOOL,
                node_key=node.key,
            ),
        ),
    )
