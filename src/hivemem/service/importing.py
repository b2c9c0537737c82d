"""Imports: an archive into an empty graph, exactly; anything else through the rules of every write."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import TypeVar

from hivemem.domain.access import Principal
from hivemem.domain.edge import MIN_PARTICIPANTS, SESSION_LABEL_PREFIX
from hivemem.domain.graph import GraphId, NodeWrite, WriteBatch
from hivemem.domain.node import Node
from hivemem.domain.node_types import resolve_node_type
from hivemem.domain.relationships import HyperedgeRequest
from hivemem.domain.text import storable_json, storable_text
from hivemem.domain.writing import (
    IfExists,
    NumberedRelationship,
    PlannedRelationships,
    RelationshipRefusal,
    WritePlanner,
    identities,
    placeholder,
)
from hivemem.errors import Conflict, Corruption, HivememError
from hivemem.ports.clock import Clock
from hivemem.ports.files import Files
from hivemem.ports.store import GraphStore
from hivemem.service.archive import ArchiveReader
from hivemem.service.importing_formats import ImportSource, NodeItem, Problem, RelationshipItem
from hivemem.service.limits import Limits
from hivemem.service.planned_writes import PlannedWrites
from hivemem.service.remember import Remember
from hivemem.service.store_request import StoreRequest, check_relationships, checked_data
from hivemem.storage.rows import FillGraph, Row
from hivemem.storage.tables import Table

Fail = Callable[[str, HivememError], None]
"""Told where in the file something was refused, and why."""

OnDone = Callable[[int], None]
"""Told how many nodes and relationships, or rows, are done."""

_RELATIONSHIPS_AT_ONCE = 200
ItemT = TypeVar("ItemT")


class Importing:
    """Takes in what other programs, or this one elsewhere, wrote."""

    def __init__(
        self,
        *,
        store: GraphStore,
        remember: Remember,
        fill: FillGraph,
        files_of: Callable[[GraphId], Files],
        clock: Clock,
        limits: Limits,
    ) -> None:
        self._store = store
        self._remember = remember
        self._fill = fill
        self._files_of = files_of
        self._clock = clock
        self._limits = limits
        self._writes = PlannedWrites(store)

    async def restore(self, principal: Principal, archive: ArchiveReader, on_done: OnDone) -> int:
        """Make an empty graph the one of an archive: history, diary, conversations and all. Its rows.

        The rows are written in one transaction, after the bytes of files, which nothing refers to before.

        Raises:
            Forbidden: The credential is read-only.
            Conflict: The graph is not empty (`graph_not_empty`).
            Corruption: The archive is damaged; nothing that can be seen was written.
            Unavailable: The database is busy, down or full.
        """
        principal.require_write()
        files = self._files_of(principal.graph_id)
        for sha256 in archive.file_hashes():
            if not await files.exists(sha256):
                blob = await files.put(b"".join(archive.file(sha256)))
                if blob.sha256 != sha256:
                    await files.delete(blob.sha256)
                    raise Corruption(f"the file {sha256} in the archive is damaged; use another copy.")
        done = 0

        def rows(table: Table) -> Iterator[Row]:
            nonlocal done
            for row in archive.rows_of(table, principal.graph_id):
                done += 1
                on_done(done)
                yield row

        await asyncio.to_thread(self._fill, principal.graph_id, rows)
        return done

    async def merge(
        self,
        principal: Principal,
        source: ImportSource,
        *,
        if_exists: IfExists = IfExists.UPDATE,
        trusted: bool = False,
        fail: Fail,
        on_done: OnDone,
    ) -> Counter[str]:
        """Store what a file says, nodes first; what breaks a rule is told and left out.

        Args:
            principal: The caller.
            source: The file.
            if_exists: What to do with keys that exist.
            trusted: Whether the relationships were accepted by a hivemem before: those over several nodes
                are not held to the rules for new ones, since they may have lost participants.
            fail: Told of each refusal.
            on_done: Told after every batch.

        Returns:
            Numbers of created, updated, kept and failed nodes, and of relationships and refused ones.

        Raises:
            Forbidden: The credential is read-only.
            Unavailable: The database is busy, down or full.
        """
        principal.require_write()
        counts: Counter[str] = Counter()

        def refuse(where: str, error: HivememError, kind: str) -> None:
            counts[kind] += 1
            fail(where, error)

        done = 0
        for nodes in _batches(source.nodes(), self._limits.max_import_batch):
            good: list[NodeItem] = []
            for node in nodes:
                if isinstance(node, Problem):
                    refuse(node.where, node.error, "failed")
                else:
                    good.append(node)
            named = [node for node in good if not node.description.strip()]
            described = [node for node in good if node.description.strip()]
            requests = [_request(node, if_exists) for node in described]
            outcomes = await self._remember.store_many(principal, requests)
            for node, outcome in zip(described, outcomes, strict=True):
                if isinstance(outcome, HivememError):
                    refuse(node.where, outcome, "failed")
                else:
                    counts[outcome.status] += 1
            for node in named:
                try:
                    made = await self._add_placeholders(principal.graph_id, {node.key: node})
                    counts["created" if made else "kept"] += 1
                except HivememError as error:
                    refuse(node.where, error, "failed")
            done += len(nodes)
            on_done(done)
        for relationships in _batches(source.relationships(), _RELATIONSHIPS_AT_ONCE):
            items: list[RelationshipItem] = []
            for item in relationships:
                if isinstance(item, Problem):
                    refuse(item.where, item.error, "relationships_refused")
                else:
                    items.append(item)
            planned, refusals = await self._relate(principal.graph_id, items, trusted)
            counts["relationships"] += len(planned.created)
            for refusal in (*refusals, *planned.errors):
                error = Conflict(refusal.detail, code=refusal.code)
                refuse(items[refusal.index].where, error, "relationships_refused")
            done += len(relationships)
            on_done(done)
        return counts

    async def _relate(
        self, graph_id: GraphId, items: Sequence[RelationshipItem], trusted: bool
    ) -> tuple[PlannedRelationships, Sequence[RelationshipRefusal]]:
        wishes, refusals = check_relationships([item.fields for item in items], self._limits)
        if trusted:
            accepted = {refusal.index: self._accepted(items[refusal.index].fields) for refusal in refusals}
            wishes += tuple(
                NumberedRelationship(index=index, request=request)
                for index, request in accepted.items()
                if request is not None
            )
            refusals = tuple(one for one in refusals if accepted[one.index] is None)
        keys, edges, hyperedges = identities(wishes)
        await self._add_placeholders(graph_id, dict.fromkeys(keys))

        async def plan() -> tuple[WriteBatch | None, PlannedRelationships]:
            snapshot = await self._store.snapshot(graph_id, keys, edges, hyperedges)
            planner = WritePlanner(snapshot, at=self._clock.now(), new_id=self._clock.new_id)
            planned = planner.relate(wishes)
            return planner.batch() if planned.created else None, planned

        return await self._writes.run(graph_id, "no relationship was imported", plan), refusals

    def _accepted(self, fields: Mapping[str, object]) -> HyperedgeRequest | None:
        """The hyperedge of a refused item that was one in another graph; None when it can be none."""
        keys, label, description = (
            fields.get(name) for name in ("participant_keys", "relationship", "description")
        )
        if (
            not isinstance(keys, list)
            or not isinstance(label, str)
            or not isinstance(description, str | None)
        ):
            return None
        distinct = tuple(dict.fromkeys(key for key in keys if isinstance(key, str)))
        usable = label.strip() and not label.lower().startswith(SESSION_LABEL_PREFIX)
        if not usable or len(distinct) < MIN_PARTICIPANTS:
            return None
        try:
            storable_text(label, "/relationship", max_characters=self._limits.max_label_characters)
            data = checked_data(storable_json(fields.get("data") or {}, "/data"), "/data", self._limits)
        except HivememError:
            return None
        return HyperedgeRequest(keys=distinct, relationship=label, description=description, data=data)

    async def _add_placeholders(self, graph_id: GraphId, wanted: Mapping[str, NodeItem | None]) -> bool:
        """Make the nodes that do not exist, without a description; whether there were any."""

        async def plan() -> tuple[WriteBatch | None, bool]:
            present = await self._store.nodes(graph_id, wanted)
            now = self._clock.now()
            writes = tuple(
                NodeWrite(node=_named(placeholder(key, at=now), item), expected=0)
                for key, item in wanted.items()
                if key not in present
            )
            return WriteBatch(at=now, nodes=writes) if writes else None, bool(writes)

        return await self._writes.run(graph_id, "no node was imported", plan)


def _named(node: Node, item: NodeItem | None) -> Node:
    if item is None:
        return node
    return replace(
        node,
        node_type=resolve_node_type(item.node_type, node.key).node_type,
        data=item.data or {},
        assets=tuple(item.assets or ()),
        search_text=item.search_text,
    )


def _request(node: NodeItem, if_exists: IfExists) -> StoreRequest:
    return StoreRequest(
        key=node.key,
        description=node.description,
        node_type=node.node_type,
        data=node.data,
        assets=node.assets,
        search_text=node.search_text,
        if_exists=if_exists,
    )


def _batches(items: Iterator[ItemT], size: int) -> Iterator[list[ItemT]]:
    while batch := list(islice(items, size)):
        yield batch
