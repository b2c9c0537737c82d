"""Store memories: one from a call, or many from an import.

A write goes: check -> snapshot -> embed, outside any transaction -> plan (pure) -> apply. When
somebody else wrote between snapshot and apply, the plan is made again on what is there now; vectors
are made again only if the text changed. A model that is missing, busy or failing never loses a
write (`TextVectors`). The batch also carries what the conversation touched, so that one transaction
holds all of a call.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass

from hivemem.domain.access import Principal
from hivemem.domain.edge import EdgeIdentity, HyperedgeIdentity
from hivemem.domain.graph import GraphId, SessionCall, Snapshot, WriteBatch
from hivemem.domain.keys import USER_PROFILE_KEY
from hivemem.domain.node import Node
from hivemem.domain.writing import (
    STORE_TOOL,
    IfExists,
    NodeText,
    PlannedStore,
    RelationshipOutcome,
    RelationshipRefusal,
    WritePlanner,
    identities,
)
from hivemem.errors import HivememError, Unavailable
from hivemem.models.executor import ModelExecutor
from hivemem.ports.clock import Clock
from hivemem.ports.store import GraphStore
from hivemem.service.limits import Limits
from hivemem.service.passages import PassageEmbedding
from hivemem.service.planned_writes import MAX_ATTEMPTS, PlannedWrites, outrun
from hivemem.service.store_request import (
    CheckedStore,
    StoreRequest,
    UpdateRequest,
    check_store,
    check_update,
)
from hivemem.service.text_vectors import TextVectors

__all__ = [
    "IfExists",
    "RelationshipOutcome",
    "RelationshipRefusal",
    "Remember",
    "StoreRequest",
    "StoreResult",
    "UpdateRequest",
]

_BATCHES_UNDER_WAY = 3
"""Of an import: one is prepared while another is embedded, so that the model never waits, and one written."""

_IN_A_ROW = 16
"""Requests of an import that are checked or planned without a pause: 2 ms."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreResult:
    """What a store call did. `node` is the record afterwards; `status` created, updated or kept.

    `created`, `replayed` and `errors` tell of each relationship by its index in the request.
    `possible_duplicates` are keys of similar nodes, a hint only: nothing is ever merged.
    """

    status: str
    node: Node
    created: tuple[RelationshipOutcome, ...]
    replayed: tuple[RelationshipOutcome, ...]
    errors: tuple[RelationshipRefusal, ...]
    possible_duplicates: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


class _TextChanged(Exception):
    """A plan needs vectors of texts that were not read ahead: somebody else changed a node meanwhile."""

    def __init__(self, texts: list[NodeText]) -> None:
        super().__init__(texts)
        self.texts = texts


class Remember:
    """Stores nodes with their relationships.

    Args:
        store: The truth.
        executor: Embeds passages.
        clock: Times and ids.
        limits: Sizes of one call.
        on_pending: Told the graph in which a node was left without vectors, to wake the background
            work that embeds it (`Reembed`). Without it, every text is embedded in the call itself.
        on_call: Told graph and session of each stored call.
    """

    def __init__(
        self,
        *,
        store: GraphStore,
        executor: ModelExecutor,
        clock: Clock,
        limits: Limits,
        on_pending: Callable[[GraphId], None] | None = None,
        on_call: Callable[[GraphId, str], None] | None = None,
    ) -> None:
        self._store = store
        self._embedding = PassageEmbedding(executor)
        self._clock = clock
        self._limits = limits
        self._on_pending = on_pending
        self._on_call = on_call
        self._writes = PlannedWrites(store)

    async def store(
        self, principal: Principal, request: StoreRequest, *, tool: str = STORE_TOOL
    ) -> StoreResult:
        """Store one memory and its relationships, in one transaction; the diary names `tool`.

        Raises:
            Forbidden: The credential is read-only.
            InvalidInput: A field breaks a rule; the message starts with a JSON pointer.
            LimitExceeded: A field is larger than a limit.
            Conflict: `if_exists` is `error` and the key is described (`already_exists`); nothing,
                no relationship either, was written.
            Unavailable: The store is busy or down; nothing was written.
        """
        principal.require_write()
        return await self._store_one(principal.graph_id, check_store(request, self._limits, tool))

    async def update(self, principal: Principal, request: UpdateRequest) -> StoreResult:
        """Change the given fields of one node, and leave the others as they are.

        Raises:
            Forbidden: The credential is read-only.
            NotFound: There is no such node.
            InvalidInput: No field to change, or one that breaks a rule.
            LimitExceeded: A field is larger than a limit.
            Unavailable: The store is busy or down; nothing was written.
        """
        principal.require_write()
        return await self._store_one(principal.graph_id, check_update(request, self._limits))

    async def _store_one(self, graph_id: GraphId, work: CheckedStore) -> StoreResult:
        texts = self._texts(patient=False)
        snapshot = await self._store.snapshot(graph_id, *_named([work]))
        missing = texts.missing([work.draft], snapshot.nodes)
        await texts.add(missing)
        # The snapshot is now as old as the embedding took. `apply` refuses what has changed since, but for
        # one thing: a relationship that exists already is answered from the snapshot alone.
        reliable = not missing or not (snapshot.edges or snapshot.hyperedges)
        [outcome] = await self._write(graph_id, [work], texts, early=snapshot if reliable else None)
        if isinstance(outcome, HivememError):
            raise outcome
        return outcome

    async def store_many(
        self,
        principal: Principal,
        requests: Sequence[StoreRequest],
        *,
        tool: str = STORE_TOOL,
        on_progress: Callable[[int, int], None] | None = None,
    ) -> list[StoreResult | HivememError]:
        """Store many memories as if one after the other, embedding and writing them in batches.

        While a batch is written the next one is embedded, and the one after it prepared. A request that
        fails leaves the others alone; each batch is one transaction. A relationship to a node that comes
        later in the list makes a placeholder, which that node then fills.

        Args:
            principal: The caller.
            requests: Any number, in order.
            tool: What the diary names.
            on_progress: Called after every batch with (done, total).

        Returns:
            One result or error per request, in the same order.

        Raises:
            Forbidden: The credential is read-only.
        """
        principal.require_write()
        graph_id = principal.graph_id
        outcomes: dict[int, StoreResult | HivememError] = {}
        under_way: deque[asyncio.Task[None]] = deque()

        async def store(batch: dict[int, CheckedStore], before: asyncio.Task[None] | None) -> None:
            works = [*batch.values()]
            done: Sequence[StoreResult | HivememError] = ()
            texts: TextVectors | None = None
            try:
                texts = await self._embed_ahead(graph_id, works)
            except HivememError as error:
                done = [error] * len(works)
            # Also behind a batch that failed, the order of the others is kept.
            if before is not None:
                await before
            if texts is not None:
                done = await self._write_batch(graph_id, works, texts)
            outcomes.update(zip(batch, done, strict=True))
            if on_progress is not None:
                on_progress(len(outcomes), len(requests))

        async with asyncio.TaskGroup() as group:
            async for batch in self._batches(requests, outcomes, tool):
                before = under_way[-1] if under_way else None
                under_way.append(group.create_task(store(batch, before)))
                if len(under_way) == _BATCHES_UNDER_WAY:
                    await under_way.popleft()
        if on_progress is not None and not under_way:  # nothing could be stored
            on_progress(len(outcomes), len(requests))
        return [outcomes[index] for index in range(len(requests))]

    async def _batches(
        self, requests: Sequence[StoreRequest], outcomes: dict[int, StoreResult | HivememError], tool: str
    ) -> AsyncIterator[dict[int, CheckedStore]]:
        """Checked requests by index, in batches that describe no key twice; errors go to `outcomes`."""
        batch: dict[int, CheckedStore] = {}
        keys: set[str] = set()
        for index, request in enumerate(requests):
            await _let_others(index)
            try:
                work = check_store(request, self._limits, tool)
            except HivememError as error:
                outcomes[index] = error
                continue
            # One transaction keeps one version of a node, so a key's second store opens a new batch.
            if work.draft.key in keys or len(batch) == self._limits.max_import_batch:
                yield batch
                batch, keys = {}, set()
            batch[index] = work
            keys.add(work.draft.key)
        if batch:
            yield batch

    async def _embed_ahead(self, graph_id: GraphId, works: Sequence[CheckedStore]) -> TextVectors:
        """Embed what will most likely be needed, before anything is planned."""
        texts = self._texts(patient=True)
        present = await self._store.nodes(graph_id, [work.draft.key for work in works])
        await texts.add(texts.missing((work.draft for work in works), present))
        return texts

    def _texts(self, *, patient: bool) -> TextVectors:
        deferred = None if self._on_pending is None else self._limits.max_passages_in_request
        return TextVectors(self._embedding, patient=patient, max_passages=deferred)

    async def _write_batch(
        self, graph_id: GraphId, works: Sequence[CheckedStore], texts: TextVectors
    ) -> Sequence[StoreResult | HivememError]:
        try:
            return await self._write(graph_id, works, texts)
        except HivememError as error:
            if isinstance(error, Unavailable) or len(works) == 1:
                return [error] * len(works)
        # One of them cannot be stored: find out which, and keep the others.
        return [one for work in works for one in await self._write_batch(graph_id, [work], texts)]

    async def _write(
        self,
        graph_id: GraphId,
        works: Sequence[CheckedStore],
        texts: TextVectors,
        *,
        early: Snapshot | None = None,
    ) -> list[StoreResult | HivememError]:
        """Plan and apply until no other writer was faster; all works in one transaction.

        The first plan stands on `early` when it is given.

        Raises:
            Unavailable: Others were faster every time, or the store is down.
        """
        named = _named(works)
        drafts = [work.draft for work in works]

        async def plan() -> tuple[WriteBatch | None, tuple[WriteBatch, list[PlannedStore | HivememError]]]:
            nonlocal early
            snapshot, early = early, None
            if snapshot is None:
                snapshot = await self._store.snapshot(graph_id, *named)
            missing = texts.missing(drafts, snapshot.nodes)
            if missing:
                raise _TextChanged(missing)
            planner = WritePlanner(snapshot, at=self._clock.now(), new_id=self._clock.new_id)
            planned: list[PlannedStore | HivememError] = []
            for number, work in enumerate(works):
                await _let_others(number)
                planned.append(_plan(planner, work, texts))
            batch = planner.batch(_calls(works, planned))
            # Without a line for the diary, every request was refused.
            return batch if batch.timeline else None, (batch, planned)

        what = f"{drafts[0].key!r} was not stored"
        for _ in range(MAX_ATTEMPTS):
            try:
                (batch, planned), revision = await self._writes.apply(graph_id, what, plan)
            except _TextChanged as changed:
                # Outside `apply`, so that nobody waits for the model.
                await texts.add(changed.texts)
            else:
                self._tell_calls(graph_id, batch)
                return self._results(graph_id, works, planned, texts, batch, revision or 0)
        raise outrun(what)

    def _tell_calls(self, graph_id: GraphId, batch: WriteBatch) -> None:
        if self._on_call is not None:
            for call in batch.calls:
                self._on_call(graph_id, call.session_id)

    def _results(
        self,
        graph_id: GraphId,
        works: Sequence[CheckedStore],
        planned: Sequence[PlannedStore | HivememError],
        texts: TextVectors,
        batch: WriteBatch,
        revision: int,
    ) -> list[StoreResult | HivememError]:
        changed = {write.node.key for write in batch.nodes}
        results: list[StoreResult | HivememError] = []
        waits = False
        for work, plan in zip(works, planned, strict=True):
            if isinstance(plan, HivememError):
                results.append(plan)
                continue
            node, note = plan.node, None
            if node.key in changed and plan.status != "kept":
                node = node.at_revision(revision)
                note = texts.note(node)
                waits = waits or note is not None
            results.append(_result(work, plan, node, note))
        if waits and self._on_pending is not None:
            self._on_pending(graph_id)
        return results


async def _let_others(number: int) -> None:
    """Let other callers, and the model's threads, get between the many requests of an import."""
    if number % _IN_A_ROW == _IN_A_ROW - 1:
        await asyncio.sleep(0)


def _named(
    works: Sequence[CheckedStore],
) -> tuple[set[str], set[EdgeIdentity], set[HyperedgeIdentity]]:
    keys = {USER_PROFILE_KEY, *(work.draft.key for work in works)}
    edges: set[EdgeIdentity] = set()
    hyperedges: set[HyperedgeIdentity] = set()
    for work in works:
        named = identities(work.relationships)
        keys.update(named[0])
        edges.update(named[1])
        hyperedges.update(named[2])
    return keys, edges, hyperedges


def _plan(planner: WritePlanner, work: CheckedStore, texts: TextVectors) -> PlannedStore | HivememError:
    try:
        return planner.store(work.draft, work.relationships, texts.vectors)
    except HivememError as error:
        return error


def _calls(
    works: Sequence[CheckedStore], planned: Sequence[PlannedStore | HivememError]
) -> list[SessionCall]:
    """What each conversation touches with the works that are stored."""
    sessions: dict[str, list[str]] = {}
    for work, plan in zip(works, planned, strict=True):
        if isinstance(plan, PlannedStore) and work.session_id is not None:
            sessions.setdefault(work.session_id, []).append(work.draft.key)
    return [SessionCall(session_id=session_id, keys=tuple(keys)) for session_id, keys in sessions.items()]


def _result(work: CheckedStore, plan: PlannedStore, node: Node, note: str | None) -> StoreResult:
    errors = sorted((*work.refusals, *plan.errors), key=lambda refusal: refusal.index)
    warnings = [*work.warnings, *plan.warnings]
    if errors:
        total = len(plan.created) + len(plan.replayed) + len(errors)
        warnings.append(
            f"{len(errors)} of {total} relationships were refused, the node was not: {errors[0].detail}"
        )
    if note is not None:
        warnings.append(note)
    return StoreResult(
        status=plan.status,
        node=node,
        created=plan.created,
        replayed=plan.replayed,
        errors=tuple(errors),
        warnings=tuple(warnings),
    )
