"""Group commit: writes of one graph that wait in this process share a transaction.

A transaction costs round trips, statements and the server's fsync, whatever is in it. A group is as many
of the waiting batches as do not depend on each other; each is accepted or refused for itself, and the rest
wait for the next group.
"""

from __future__ import annotations

import asyncio
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from hivemem.domain.graph import GraphId, Kind, WriteBatch
from hivemem.errors import Unavailable
from hivemem.storage.postgres import batches
from hivemem.storage.postgres.batches import Applied, Outcome
from hivemem.storage.postgres.pool import Pool

_GROUP_ROWS = 500
"""With more than this a group takes no further batch: its first ones should not wait for long."""


@dataclass(frozen=True, slots=True)
class Claims:
    """What a batch changes, and the nodes that have to exist for it."""

    changed: frozenset[Hashable]
    needed: frozenset[Hashable]

    @classmethod
    def of(cls, batch: WriteBatch) -> Claims | None:
        """The claims of a batch; None when it deletes, since what goes along is only known later."""
        if batch.deletions:
            return None
        changed: set[Hashable] = {(Kind.NODE, write.node.key) for write in batch.nodes}
        needed: set[Hashable] = set()
        for write in batch.edges:
            # Ids are unique among edges and hyperedges together.
            changed |= {write.edge.edge_id, (Kind.EDGE, write.edge.identity)}
            needed |= {(Kind.NODE, write.edge.from_key), (Kind.NODE, write.edge.to_key)}
        for write in batch.hyperedges:
            changed |= {write.hyperedge.hyperedge_id, (Kind.HYPEREDGE, write.hyperedge.identity)}
            needed |= {(Kind.NODE, key) for key in write.hyperedge.keys}
        return cls(frozenset(changed), frozenset(needed))

    def allow(self, other: Claims) -> bool:
        """Whether the outcome of neither batch depends on the other's."""
        return self.changed.isdisjoint(other.changed | other.needed) and self.needed.isdisjoint(other.changed)

    def __or__(self, other: Claims) -> Claims:
        return Claims(self.changed | other.changed, self.needed | other.needed)


@dataclass(slots=True, eq=False)
class _Job:
    """A batch that waits. Its caller may be gone: then it is stored all the same, and nobody told."""

    batch: WriteBatch
    claims: Claims | None
    deadline: float
    outcome: asyncio.Future[Applied]

    def settle(self, outcome: Outcome | Exception) -> None:
        if self.outcome.done():
            return
        if isinstance(outcome, Applied):
            self.outcome.set_result(outcome)
        else:
            self.outcome.set_exception(outcome)


_Waiting: TypeAlias = "dict[_Job, None]"
"""The jobs of a graph that wait, first come first."""


class GroupCommit:
    """Stores batches, those that wait together in one transaction."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._waiting: dict[GraphId, _Waiting] = {}
        """Of each graph that a task is writing to: one at a time, as the graph's lock would have it."""

    async def apply(self, graph_id: GraphId, batch: WriteBatch) -> Applied:
        """Where `batch` is in the history, once it is durable.

        A caller that is cancelled leaves it to be stored.

        Raises:
            StaleWrite: It was planned on something that has changed.
            Unavailable: As `Pool.write`.
        """
        self._pool.check_open()
        loop = asyncio.get_running_loop()
        job = _Job(batch, Claims.of(batch), self._pool.deadline(), loop.create_future())
        waiting = self._waiting.get(graph_id)
        if waiting is None:
            waiting = self._waiting[graph_id] = {}
            self._pool.start(self._run(graph_id, waiting))
        waiting[job] = None
        too_late = loop.call_at(job.deadline, self._give_up, waiting, job)
        try:
            return await job.outcome
        finally:
            too_late.cancel()

    async def _run(self, graph_id: GraphId, waiting: _Waiting) -> None:
        try:
            while waiting:
                await self._commit(graph_id, _next_group(waiting))
        finally:
            del self._waiting[graph_id]

    async def _commit(self, graph_id: GraphId, group: Sequence[_Job]) -> None:
        wanted = [job.batch for job in group]
        outcomes: Sequence[Outcome | Exception]
        try:
            outcomes = await self._pool.commit(
                lambda transaction: batches.apply(transaction, graph_id, wanted),
                happened=lambda transaction, found: batches.happened(transaction, graph_id, wanted, found),
                deadline=group[0].deadline,
            )
        except batches.AllRefused as error:
            outcomes = error.outcomes
        except Exception as error:
            if len(group) > 1 and not isinstance(error, Unavailable):
                # The server refuses a value of one of them; each alone, the others are stored.
                for job in group:
                    await self._commit(graph_id, [job])
                return
            outcomes = [error] * len(group)
        for job, outcome in zip(group, outcomes, strict=True):
            job.settle(outcome)

    def _give_up(self, waiting: _Waiting, job: _Job) -> None:
        if job in waiting:
            del waiting[job]
            job.settle(self._pool.waited_too_long())


def _next_group(waiting: _Waiting) -> list[_Job]:
    """Take the first job and those behind it that can go with it."""
    first = next(iter(waiting))
    group, claims, rows = [first], first.claims, _rows(first.batch)
    for job in [*waiting][1:]:
        if claims is None or rows > _GROUP_ROWS:
            break
        if job.claims is not None and claims.allow(job.claims):
            group.append(job)
            claims |= job.claims
            rows += _rows(job.batch)
    for job in group:
        del waiting[job]
    return group


def _rows(batch: WriteBatch) -> int:
    return len(batch.nodes) + len(batch.edges) + len(batch.hyperedges) + len(batch.timeline)
