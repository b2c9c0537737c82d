"""hm_add_relationships: join nodes that exist."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hivemem.domain.access import Principal
from hivemem.domain.graph import WriteBatch
from hivemem.domain.writing import (
    PlannedRelationships,
    RelationshipOutcome,
    RelationshipRefusal,
    WritePlanner,
    identities,
)
from hivemem.errors import InvalidInput
from hivemem.ports.clock import Clock
from hivemem.ports.store import GraphStore
from hivemem.service.limits import Limits
from hivemem.service.planned_writes import PlannedWrites
from hivemem.service.store_request import check_relationships


@dataclass(frozen=True, slots=True, kw_only=True)
class RelateResult:
    """What became of each relationship, by its index in the request."""

    created: tuple[RelationshipOutcome, ...]
    replayed: tuple[RelationshipOutcome, ...]
    errors: tuple[RelationshipRefusal, ...]
    warnings: tuple[str, ...]


class Relate:
    """Adds edges and hyperedges."""

    def __init__(self, *, store: GraphStore, clock: Clock, limits: Limits) -> None:
        self._store = store
        self._clock = clock
        self._limits = limits
        self._writes = PlannedWrites(store)

    async def relate(
        self, principal: Principal, relationships: Sequence[Mapping[str, object]]
    ) -> RelateResult:
        """Add relationships; one that breaks a rule or names no existing node is refused by itself.

        Raises:
            Forbidden: The credential is read-only.
            InvalidInput: The list is empty.
            LimitExceeded: More items than one call may carry.
            Unavailable: The store is busy or down; nothing was written.
        """
        principal.require_write()
        if not relationships:
            raise InvalidInput("/relationships is empty; name at least one relationship.")
        wishes, refusals = check_relationships(relationships, self._limits)
        keys, edges, hyperedges = identities(wishes)

        async def plan() -> tuple[WriteBatch | None, PlannedRelationships]:
            snapshot = await self._store.snapshot(principal.graph_id, keys, edges, hyperedges)
            planner = WritePlanner(snapshot, at=self._clock.now(), new_id=self._clock.new_id)
            planned = planner.relate(wishes)
            return planner.batch() if planned.created else None, planned

        planned = await self._writes.run(principal.graph_id, "no relationship was added", plan)
        errors = sorted((*refusals, *planned.errors), key=lambda refusal: refusal.index)
        return RelateResult(
            created=tuple(planned.created),
            replayed=tuple(planned.replayed),
            errors=tuple(errors),
            warnings=tuple(planned.warnings),
        )
