"""Whole write batches in one transaction, in two round trips unless something is deleted.

The first round trip locks the graph and reads all that the batches were planned on; the second sends the
changes and the commit. A deletion, which has to see what its batch changed before, takes one more.

Batches that share a transaction touch different things, so that each can be checked against what was
stored before all of them: one that was planned on something that has changed is refused, and leaves the
others alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from hivemem.domain.edge import Edge, EdgeIdentity, Hyperedge, HyperedgeIdentity
from hivemem.domain.graph import Deletion, GraphId, Kind, WriteBatch
from hivemem.domain.node import Node
from hivemem.errors import StaleWrite
from hivemem.storage.postgres import edges, history, hyperedges, nodes, purging, sessions
from hivemem.storage.postgres.history import Change
from hivemem.storage.postgres.transaction import Query, Transaction


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    """Where a batch is in the history of its graph."""

    revision: int
    last_event: int


Outcome: TypeAlias = "Applied | StaleWrite"


class AllRefused(Exception):
    """No batch of a group can be stored, so that there is nothing to commit.

    Attributes:
        outcomes: The refusal of each batch.
    """

    def __init__(self, outcomes: Sequence[Outcome]) -> None:
        super().__init__()
        self.outcomes = outcomes


async def apply(
    transaction: Transaction, graph_id: GraphId, batches: Sequence[WriteBatch]
) -> Sequence[Outcome]:
    """Store all of each batch, or nothing of it, and return what became of each.

    Args:
        transaction: Just begun.
        graph_id: The graph of all of them.
        batches: One, or several whose claims allow each other.

    Raises:
        AllRefused: Every batch was planned on something that has changed; the caller rolls back.
    """
    await purging.hold_graph(transaction, graph_id)
    revisions = sum(batch.changes_graph for batch in batches)
    events = sum(len(batch.timeline) for batch in batches)
    advance = history.advance(graph_id, revisions=revisions, events=events)
    (last_revision, last_event), stored = await _look(transaction, graph_id, batches, advance)
    refusals = [stored.refusal(batch) for batch in batches]
    if None not in refusals:
        raise AllRefused([refusal for refusal in refusals if refusal is not None])
    revision, event = last_revision - revisions, last_event - events
    outcomes: list[Outcome] = []
    accepted: list[tuple[Change, WriteBatch]] = []
    for batch, refusal in zip(batches, refusals, strict=True):
        if refusal is not None:
            outcomes.append(refusal)
            continue
        revision += batch.changes_graph
        event += len(batch.timeline)
        accepted.append((Change(graph_id=graph_id, revision=revision, at=batch.at), batch))
        outcomes.append(Applied(revision=revision, last_event=event))
    if (revision, event) != (last_revision, last_event):
        # Numbers that were taken for refused batches are given back: none may be missing.
        await history.give_back(transaction, graph_id, last_revision - revision, last_event - event)
    try:
        await _put(transaction, graph_id, accepted, event)
    except StaleWrite as refusal:
        # A deletion, which is alone in its transaction.
        raise AllRefused([refusal]) from None
    return outcomes


async def happened(
    transaction: Transaction, graph_id: GraphId, batches: Sequence[WriteBatch], outcomes: Sequence[Outcome]
) -> bool:
    """Whether `apply` was committed with these outcomes; waits for its end, if need be.

    One batch speaks for all, since a transaction happens as a whole.
    """
    for batch, applied in zip(batches, outcomes, strict=True):
        if isinstance(applied, StaleWrite):
            continue
        change = Change(graph_id=graph_id, revision=applied.revision, at=batch.at)
        trace = _last_change(batch)
        if trace is not None:
            query = history.was_kept(change, *trace)
        elif batch.timeline:
            query = sessions.was_added(graph_id, applied.last_event, batch.timeline[-1])
        else:
            continue
        _, found = await transaction.ask_two(history.wait_for_writes(graph_id), query)
        return found
    return False


@dataclass(frozen=True, slots=True, kw_only=True)
class _Stored:
    """What is stored of the things that batches name."""

    versions: Mapping[str, int]
    edges: Mapping[str, Edge]
    same_edges: Mapping[EdgeIdentity, Edge]
    hyperedges: Mapping[str, Hyperedge]
    same_hyperedges: Mapping[HyperedgeIdentity, Sequence[Hyperedge]]

    def refusal(self, batch: WriteBatch) -> StaleWrite | None:
        """Why a batch cannot be stored, if so; deletions are looked at when their turn comes."""
        existing = self.versions.keys() | {write.node.key for write in batch.nodes}
        try:
            nodes.check_nodes(self.versions, batch.nodes)
            edges.check_edges(
                batch.edges,
                stored=self.edges,
                same=self.same_edges,
                existing=existing,
                taken=self.hyperedges.keys(),
            )
            hyperedges.check_hyperedges(
                batch.hyperedges,
                stored=self.hyperedges,
                same=self.same_hyperedges,
                existing=existing,
                taken=self.edges.keys() | {write.edge.edge_id for write in batch.edges},
            )
        except StaleWrite as refusal:
            return refusal
        return None


async def _look(
    transaction: Transaction,
    graph_id: GraphId,
    batches: Sequence[WriteBatch],
    advance: Query[tuple[int, int]],
) -> tuple[tuple[int, int], _Stored]:
    """Lock the graph; its counters, and what is stored of all that the batches name."""
    edge_writes = [write.edge for batch in batches for write in batch.edges]
    hyperedge_writes = [write.hyperedge for batch in batches for write in batch.hyperedges]
    keys = {write.node.key for batch in batches for write in batch.nodes}
    keys |= {key for edge in edge_writes for key in (edge.from_key, edge.to_key)}
    keys |= {key for hyperedge in hyperedge_writes for key in hyperedge.keys}
    ids = sorted({*(e.edge_id for e in edge_writes), *(h.hyperedge_id for h in hyperedge_writes)})
    counters, versions, own_edges, same_edges, own_hyperedges, same_hyperedges = await transaction.ask_six(
        advance,
        nodes.write_versions(graph_id, sorted(keys)),
        edges.edges(graph_id, ids),
        edges.edges_by_identity(graph_id, [edge.identity for edge in edge_writes]),
        hyperedges.hyperedges(graph_id, ids),
        hyperedges.hyperedges_by_identity(graph_id, [h.identity for h in hyperedge_writes]),
    )
    return counters, _Stored(
        versions=versions,
        edges=own_edges,
        same_edges=same_edges,
        hyperedges=own_hyperedges,
        same_hyperedges=same_hyperedges,
    )


async def _put(
    transaction: Transaction,
    graph_id: GraphId,
    accepted: Sequence[tuple[Change, WriteBatch]],
    last_event: int,
) -> None:
    """Send the changes of checked batches."""
    await nodes.put_nodes(
        transaction, graph_id, [(change, write) for change, batch in accepted for write in batch.nodes]
    )
    await edges.put_edges(
        transaction, graph_id, [(change, write.edge) for change, batch in accepted for write in batch.edges]
    )
    await hyperedges.put_hyperedges(
        transaction,
        graph_id,
        [(change, write.hyperedge) for change, batch in accepted for write in batch.hyperedges],
    )
    for change, batch in accepted:
        for deletion in batch.deletions:
            await _delete(transaction, change, deletion)
    entries = [entry for _, batch in accepted for entry in batch.timeline]
    await sessions.add_events(transaction, graph_id, entries, last_event)
    for _, batch in accepted:
        for call in batch.calls:
            await sessions.touch(transaction, graph_id, call.session_id, call.keys, batch.at)


async def _delete(transaction: Transaction, change: Change, deletion: Deletion) -> None:
    id, graph_id = deletion.id, change.graph_id
    edge_ids: list[str] = []
    memberships: tuple[Hyperedge, ...] = ()
    match deletion.kind:
        case Kind.NODE:
            versions, edge_ids, found = await transaction.ask_three(
                nodes.write_versions(graph_id, (id,)),
                edges.edge_ids_of_node(graph_id, id),
                hyperedges.memberships(graph_id, id),
            )
            stored, memberships = versions.get(id), found.get(id, ())
        case Kind.EDGE:
            edge = (await transaction.ask(edges.edges(graph_id, (id,)))).get(id)
            stored = None if edge is None else edge.write_version
        case Kind.HYPEREDGE:
            hyperedge = (await transaction.ask(hyperedges.hyperedges(graph_id, (id,)))).get(id)
            stored = None if hyperedge is None else hyperedge.write_version
    if stored is None:
        raise StaleWrite(f"{deletion.kind} {id!r} is not there any more.", current_version=0)
    nodes.check_version(deletion.kind, id, stored, deletion.expected)
    match deletion.kind:
        case Kind.NODE:
            await edges.delete_edges(transaction, change, edge_ids)
            await hyperedges.forget_participant(transaction, change, id, memberships)
            await sessions.forget_events(transaction, graph_id, id)
            await nodes.delete_node(transaction, change, id)
        case Kind.EDGE:
            await edges.delete_edges(transaction, change, (id,))
        case Kind.HYPEREDGE:
            await hyperedges.delete_hyperedges(transaction, change, (id,))


def _last_change(batch: WriteBatch) -> tuple[Kind, str, Node | Edge | Hyperedge | None] | None:
    """Something that the batch leaves in the history, and the state that it has there."""
    if batch.deletions:
        return batch.deletions[-1].kind, batch.deletions[-1].id, None
    if batch.hyperedges:
        hyperedge = batch.hyperedges[-1].hyperedge
        return Kind.HYPEREDGE, hyperedge.hyperedge_id, hyperedge
    if batch.edges:
        edge = batch.edges[-1].edge
        return Kind.EDGE, edge.edge_id, edge
    if batch.nodes:
        node = batch.nodes[-1].node
        return Kind.NODE, node.key, node
    return None
