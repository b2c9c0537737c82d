"""Store memories: one from a call, or many from an import.

A write goes: check -> snapshot -> embed, outside any transaction -> plan (pure) -> apply. When
somebody else wrote between snapshot and apply, the plan is made again on what is there now; vectors
are made again only if the text changed. A model that is missing, busy or failing never loses a
write: the node is stored without vectors, waits as `pending`, and the answer says so. The batch also
carries what the conversation touched, so that one transaction holds all of a call.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from weakref import WeakValueDictionary

from hivemem.domain.access import Principal
from hivemem.domain.edge import EdgeIdentity, HyperedgeIdentity
from hivemem.domain.graph import GraphId, NodeVectors, SessionCall, Snapshot, WriteBatch
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
from hivemem.errors import HivememError, StaleWrite, Unavailable
from hivemem.models.executor import ModelExecutor
from hivemem.ports.clock import Clock
from hivemem.ports.store import GraphStore
from hivemem.service.limits import Limits
from hivemem.service.passages import CutText, PassageEmbedding
from hivemem.service.store_request import (
    CheckedStore,
    StoreRequest,
    UpdateRequest,
    check_store,
    check_update,
)

__all__ = [
    "IfExists",
    "RelationshipOutcome",
    "RelationshipRefusal",
    "Remember",
    "StoreRequest",
    "StoreResult",
    "UpdateRequest",
]

_MAX_ATTEMPTS = 20
_JITTER_SECONDS = 0.002


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


@dataclass(slots=True)
class _Embedded:
    """The vectors made for one write so far, and why a text has none."""

    vectors: dict[NodeText, NodeVectors] = field(default_factory=dict[NodeText, NodeVectors])
    notes: dict[NodeText, str] = field(default_factory=dict[NodeText, str])


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
        # Most writes do not touch each other's nodes, and a store commits them in groups. One that
        # lost a race takes turns with the other losers of its graph, so that callers of this process
        # do not use up each other's attempts.
        self._turns: WeakValueDictionary[GraphId, asyncio.Lock] = WeakValueDictionary()

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
        embedded, early = await self._read_and_embed(graph_id, work)
        [outcome] = await self._write(graph_id, [work], embedded, patient=False, early=early)
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

        While a batch is written the next one is embedded. A request that fails leaves the others
        alone; each batch is one transaction. A relationship to a node that comes later in the list
        makes a placeholder, which that node then fills.

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
        writing: asyncio.Task[None] | None = None
        try:
            for batch in self._batches(requests, outcomes, tool):
                try:
                    works = list(batch.values())
                    embedded = await self._embed_ahead(graph_id, works, patient=True)
                except HivememError as error:
                    outcomes.update(dict.fromkeys(batch, error))
                    continue
                if writing is not None:
                    await writing
                    _report(on_progress, len(outcomes), len(requests))
                writing = asyncio.create_task(self._write_batch(graph_id, batch, embedded, outcomes))
        finally:
            if writing is not None:
                await writing
        _report(on_progress, len(outcomes), len(requests))
        return [outcomes[index] for index in range(len(requests))]

    def _batches(
        self, requests: Sequence[StoreRequest], outcomes: dict[int, StoreResult | HivememError], tool: str
    ) -> Iterator[dict[int, CheckedStore]]:
        """Checked requests by index, in batches that describe no key twice; errors go to `outcomes`."""
        batch: dict[int, CheckedStore] = {}
        keys: set[str] = set()
        for index, request in enumerate(requests):
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

    async def _write_batch(
        self,
        graph_id: GraphId,
        batch: dict[int, CheckedStore],
        embedded: _Embedded,
        outcomes: dict[int, StoreResult | HivememError],
    ) -> None:
        works = list(batch.values())
        try:
            written = await self._write(graph_id, works, embedded, patient=True)
        except Unavailable as error:
            outcomes.update(dict.fromkeys(batch, error))
            return
        except HivememError:
            # One of them cannot be stored: find out which, and keep the others.
            written = [await self._write_alone(graph_id, work, embedded) for work in works]
        outcomes.update(zip(batch, written, strict=True))

    async def _write_alone(
        self, graph_id: GraphId, work: CheckedStore, embedded: _Embedded
    ) -> StoreResult | HivememError:
        try:
            [outcome] = await self._write(graph_id, [work], embedded, patient=True)
        except HivememError as error:
            return error
        return outcome

    async def _embed_ahead(
        self, graph_id: GraphId, works: Sequence[CheckedStore], *, patient: bool
    ) -> _Embedded:
        """Embed what will most likely be needed, before any lock or snapshot is taken."""
        embedded = _Embedded()
        present = await self._store.nodes(graph_id, [work.draft.key for work in works])
        await self._embed(_missing(works, present, embedded), embedded, patient=patient)
        return embedded

    async def _read_and_embed(
        self, graph_id: GraphId, work: CheckedStore
    ) -> tuple[_Embedded, Snapshot | None]:
        """Embed what the store will most likely need, and what it may be planned on, read before.

        The snapshot is as old as the embedding took. `apply` refuses what has changed since, but for
        one thing: a relationship that exists already is answered from the snapshot alone. With one of
        those None is given, and the plan is made on a fresh snapshot.
        """
        embedded = _Embedded()
        reading = asyncio.ensure_future(self._store.snapshot(graph_id, *_named([work])))
        # The store's thread reads while this one cuts: a new text, the usual case, needs it in any case.
        await asyncio.sleep(0)
        cut = None if work.draft.text is None else self._embedding.cut_ahead(work.draft.text)
        snapshot = await reading
        missing = _missing([work], snapshot.nodes, embedded)
        await self._embed(
            missing, embedded, patient=False, cut=[cut] if cut and missing == [cut.text] else None
        )
        reliable = not missing or not (snapshot.edges or snapshot.hyperedges)
        return embedded, snapshot if reliable else None

    async def _embed(
        self,
        texts: Sequence[NodeText],
        embedded: _Embedded,
        *,
        patient: bool,
        cut: Sequence[CutText] | None = None,
    ) -> None:
        """Add the vectors of `texts`, or empty vectors with the reason; `cut` holds them when cut already."""
        if not texts:
            return
        try:
            if cut is None:
                cut = await self._embedding.cut(texts)
            now = [one for one in cut if patient or not self._is_deferred(len(one.passages))]
            embedded.vectors.update(await self._embedding.embed(now, patient=patient))
            reason = "the text is long, so it is embedded in the background"
        except Unavailable as error:
            reason = error.message
        except HivememError as error:
            if len(texts) > 1:
                # The model fails on one of them: the others shall have their vectors.
                for text in texts:
                    await self._embed([text], embedded, patient=patient)
                return
            reason = error.message
        for text in texts:
            if text not in embedded.vectors:
                embedded.vectors[text] = self._embedding.no_vectors()
                embedded.notes[text] = (
                    f"stored without vectors (enrichment_status pending): {reason.rstrip('.')}; until "
                    "it is embedded, it is found by its words, not by its meaning"
                )

    def _is_deferred(self, passages: int) -> bool:
        return self._on_pending is not None and passages > self._limits.max_passages_in_request

    async def _write(
        self,
        graph_id: GraphId,
        works: Sequence[CheckedStore],
        embedded: _Embedded,
        *,
        patient: bool,
        early: Snapshot | None = None,
    ) -> list[StoreResult | HivememError]:
        """Plan and apply until no other writer was faster; all works in one transaction.

        The first plan stands on `early` when it is given.

        Raises:
            Unavailable: Others were faster every time, or the store is down.
        """
        keys, edges, hyperedges = _named(works)
        turn = self._turns.setdefault(graph_id, asyncio.Lock())
        for attempt in range(_MAX_ATTEMPTS):
            async with turn if attempt else nullcontext():
                snapshot, early = early, None
                if snapshot is None:
                    snapshot = await self._store.snapshot(graph_id, keys, edges, hyperedges)
                missing = _missing(works, snapshot.nodes, embedded)
                if not missing:
                    planner = WritePlanner(snapshot, at=self._clock.now(), new_id=self._clock.new_id)
                    planned = [_plan(planner, work, embedded) for work in works]
                    batch = planner.batch(_calls(works, planned))
                    if not batch.timeline:  # every request was refused
                        return [one for one in planned if isinstance(one, HivememError)]
                    try:
                        revision = await self._store.apply(graph_id, batch)
                    except StaleWrite:
                        pass
                    else:
                        self._tell_calls(graph_id, batch)
                        changed = {write.node.key for write in batch.nodes}
                        return self._results(graph_id, works, planned, embedded, changed, revision)
            if missing:
                # The text differs from what was read ahead: embed it, but not while others wait.
                await self._embed(missing, embedded, patient=patient)
            else:
                await asyncio.sleep(random.uniform(0, _JITTER_SECONDS * (attempt + 1)))
        raise Unavailable(
            f"{works[0].draft.key!r} was not stored: other writers changed the same nodes "
            f"{_MAX_ATTEMPTS} times in a row. Send it again."
        )

    def _tell_calls(self, graph_id: GraphId, batch: WriteBatch) -> None:
        if self._on_call is not None:
            for call in batch.calls:
                self._on_call(graph_id, call.session_id)

    def _results(
        self,
        graph_id: GraphId,
        works: Sequence[CheckedStore],
        planned: Sequence[PlannedStore | HivememError],
        embedded: _Embedded,
        changed: set[str],
        revision: int,
    ) -> list[StoreResult | HivememError]:
        results: list[StoreResult | HivememError] = []
        waits = False
        for work, plan in zip(works, planned, strict=True):
            if isinstance(plan, HivememError):
                results.append(plan)
                continue
            node, note = plan.node, None
            if node.key in changed and plan.status != "kept":
                node = replace(node, revision=revision)
                note = embedded.notes.get(NodeText.of(node))
                waits = waits or note is not None
            results.append(_result(work, plan, node, note))
        if waits and self._on_pending is not None:
            self._on_pending(graph_id)
        return results


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


def _missing(
    works: Sequence[CheckedStore], present: Mapping[str, Node], embedded: _Embedded
) -> list[NodeText]:
    """The texts that a plan on `present` needs and that are not embedded yet, each once."""
    texts = (work.draft.missing_text(present.get(work.draft.key)) for work in works)
    needed = dict.fromkeys(text for text in texts if text is not None)
    return [text for text in needed if text not in embedded.vectors]


def _plan(planner: WritePlanner, work: CheckedStore, embedded: _Embedded) -> PlannedStore | HivememError:
    try:
        return planner.store(work.draft, work.relationships, embedded.vectors)
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


def _report(on_progress: Callable[[int, int], None] | None, done: int, total: int) -> None:
    if on_progress is not None:
        on_progress(done, total)
