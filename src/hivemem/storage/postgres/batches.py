"""A whole write batch in one transaction, in two round trips unless it deletes.

The first round trip locks the graph and reads all that the batch was planned on; the second sends the
changes and the commit. A deletion, which has to see what the batch changed before, takes one more.
"""

from __future__ import annotations

from dataclasses import dataclass

from hivemem.domain.edge import Edge, Hyperedge
from hivemem.domain.graph import Deletion, GraphId, Kind, WriteBatch
from hivemem.domain.node import Node
from hivemem.errors import StaleWrite
from hivemem.storage.postgres import edges, history, hyperedges, nodes, sessions
from hivemem.storage.postgres.history import Change
from hivemem.storage.postgres.transaction import Query, Transaction


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    """Where a batch is in the history of its graph."""

    revision: int
    last_event: int


async def apply(transaction: Transaction, graph_id: GraphId, batch: WriteBatch) -> Applied:
    """Store all of `batch`.

    Raises:
        StaleWrite: The batch was planned on something that has changed; the caller rolls back.
    """
    advance = history.advance(graph_id, changes=batch.changes_graph, events=len(batch.timeline))
    if batch.changes_graph:
        revision, last_event = await _change(transaction, graph_id, batch, advance)
    else:
        revision, last_event = await transaction.ask(advance)
    await sessions.add_events(transaction, graph_id, batch.timeline, last_event)
    for call in batch.calls:
        await sessions.touch(transaction, graph_id, call.session_id, call.keys, batch.at)
    return Applied(revision=revision, last_event=last_event)


async def happened(transaction: Transaction, graph_id: GraphId, batch: WriteBatch, applied: Applied) -> bool:
    """Whether `apply` of this batch was committed with this result; waits for its end, if need be."""
    change = Change(graph_id=graph_id, revision=applied.revision, at=batch.at)
    trace = _last_change(batch)
    if trace is not None:
        query = history.was_kept(change, *trace)
    elif batch.timeline:
        query = sessions.was_added(graph_id, applied.last_event, batch.timeline[-1])
    else:
        return False
    _, found = await transaction.ask_two(history.wait_for_writes(graph_id), query)
    return found


async def _change(
    transaction: Transaction, graph_id: GraphId, batch: WriteBatch, advance: Query[tuple[int, int]]
) -> tuple[int, int]:
    """Store nodes, edges, hyperedges and deletions."""
    keys = {write.node.key for write in batch.nodes}
    ends = {key for write in batch.edges for key in (write.edge.from_key, write.edge.to_key)}
    ends |= {key for write in batch.hyperedges for key in write.hyperedge.keys}
    edge_ids = {write.edge.edge_id for write in batch.edges}
    hyperedge_ids = {write.hyperedge.hyperedge_id for write in batch.hyperedges}
    relationship_ids = sorted(edge_ids | hyperedge_ids)
    (
        (revision, last_event),
        versions,
        stored_edges,
        same_edges,
        stored_hyperedges,
        same_hyperedges,
    ) = await transaction.ask_six(
        advance,
        nodes.write_versions(graph_id, sorted(keys | ends)),
        edges.edges(graph_id, relationship_ids),
        edges.edges_by_identity(graph_id, [write.edge.identity for write in batch.edges]),
        hyperedges.hyperedges(graph_id, relationship_ids),
        hyperedges.hyperedges_by_identity(graph_id, [w.hyperedge.identity for w in batch.hyperedges]),
    )
    change = Change(graph_id=graph_id, revision=revision, at=batch.at)
    existing = versions.keys() | keys
    nodes.check_nodes(versions, batch.nodes)
    edges.check_edges(
        batch.edges,
        stored=stored_edges,
        same=same_edges,
        existing=existing,
        taken=stored_hyperedges.keys(),
    )
    hyperedges.check_hyperedges(
        batch.hyperedges,
        stored=stored_hyperedges,
        same=same_hyperedges,
        existing=existing,
        taken=stored_edges.keys() | edge_ids,
    )
    await nodes.put_nodes(transaction, change, batch.nodes)
    await edges.put_edges(transaction, change, batch.edges)
    await hyperedges.put_hyperedges(transaction, change, [write.hyperedge for write in batch.hyperedges])
    for deletion in batch.deletions:
        await _delete(transaction, change, deletion)
    return revision, last_event


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
