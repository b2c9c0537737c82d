"""The rules of changing and forgetting what is stored: pure, from the present state to a batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from hivemem.domain.edge import Edge, Hyperedge
from hivemem.domain.graph import Deletion, EdgeWrite, Kind, TimelineEntry, WriteBatch
from hivemem.domain.keys import USER_PROFILE_KEY
from hivemem.domain.node import Node
from hivemem.domain.text import JsonObject
from hivemem.domain.writing import LABEL_FIELD, UPDATE_TOOL
from hivemem.errors import Conflict, InvalidInput

FORGET_TOOL = "hm_forget"


def require_version(present: Edge | Hyperedge, expected: int | None) -> None:
    """Refuse a change that was planned on another version.

    Raises:
        Conflict: `expected` is given and is not the present `write_version`.
    """
    if expected is not None and expected != present.write_version:
        id = present.edge_id if isinstance(present, Edge) else present.hyperedge_id
        raise Conflict(
            f"/edge_version is {expected}, but {id!r} is at version {present.write_version}; read it again.",
            code="version_conflict",
            current_version=present.write_version,
        )


def changed_edge(edge: Edge, *, description: str | None, data: JsonObject | None, at: datetime) -> Edge:
    """`edge` with a new description, and `data` merged into its data member by member.

    The label that readers see is the member `semantic_relationship`: with it the edge's label changes.

    Raises:
        InvalidInput: That member is not a text, or is blank.
    """
    merged = edge.data if data is None else {**edge.data, **data}
    label = edge.relationship
    if data is not None and LABEL_FIELD in data:
        sent = data[LABEL_FIELD]
        if not isinstance(sent, str) or not sent.strip():
            raise InvalidInput(f"/data/{LABEL_FIELD} is {sent!r}; the label of an edge is a sentence.")
        label = sent.strip()
    return replace(
        edge,
        relationship=label,
        description=edge.description if description is None else description,
        data=merged,
        write_version=edge.write_version + 1,
        updated_at=at,
    )


def edge_change(before: Edge, after: Edge) -> WriteBatch:
    """The batch that stores a changed edge."""
    return WriteBatch(
        at=after.updated_at,
        edges=(EdgeWrite(edge=after, expected=before.write_version),),
        timeline=(_line(after.updated_at, UPDATE_TOOL, f"Updated edge {after.edge_id}", after.from_key),),
    )


def node_removal(node: Node, at: datetime) -> WriteBatch:
    """The batch that forgets a node with its edges and memberships.

    Raises:
        Conflict: It is the profile of the graph's owner, which every graph keeps.
    """
    if node.key == USER_PROFILE_KEY:
        raise Conflict(
            f"{USER_PROFILE_KEY!r} stands for the owner of the graph and cannot be forgotten; "
            "change its description instead.",
        )
    return WriteBatch(
        at=at,
        deletions=(Deletion(kind=Kind.NODE, id=node.key, expected=node.write_version),),
        # It stands in the diary of a node that is gone, and says no more than that it is gone.
        timeline=(_line(at, FORGET_TOOL, f"Forgot {node.key}", node.key),),
    )


def relationship_removal(present: Edge | Hyperedge, at: datetime) -> WriteBatch:
    """The batch that forgets an edge or a hyperedge."""
    if isinstance(present, Edge):
        deletion = Deletion(kind=Kind.EDGE, id=present.edge_id, expected=present.write_version)
        keys: Sequence[str] = (present.from_key, present.to_key)
    else:
        deletion = Deletion(kind=Kind.HYPEREDGE, id=present.hyperedge_id, expected=present.write_version)
        keys = present.keys
    summary = f"Forgot {deletion.kind.value} {deletion.id}"
    return WriteBatch(at=at, deletions=(deletion,), timeline=(_line(at, FORGET_TOOL, summary, keys[0]),))


def _line(at: datetime, tool: str, summary: str, node_key: str) -> TimelineEntry:
    return TimelineEntry(at=at, summary=summary, source="agent", tool=tool, node_key=node_key)
