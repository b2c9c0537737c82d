"""The full records of named nodes, with their relationships."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Literal

from hivemem.domain.access import Principal
from hivemem.domain.graph import Kind, Relationships, Version
from hivemem.domain.keys import normalise_key
from hivemem.domain.node import Node
from hivemem.errors import InvalidInput, LimitExceeded
from hivemem.ports.store import GraphStore
from hivemem.service.limits import Limits

_SHOWN = {"summary": (50, 20), "full": (500, 200)}
"""Edges and hyperedges listed per node."""

_SUMMARY_PARTICIPANTS = 5
_MAX_PARTICIPANTS = 100
_MAX_HISTORY = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class NodesRequest:
    """Which nodes to read, and how much of their surroundings.

    `participant_limit` (0 to 100) is how many participants of a hyperedge a surface shows with
    `full`; `summary` shows at most five. The result always holds all of them.
    """

    keys: Sequence[str]
    include_relationships: bool = True
    relationship_detail: Literal["summary", "full"] = "summary"
    participant_limit: int = 20
    include_enrichment_history: bool = False
    include_session_relationships: bool = False

    @property
    def shown_participants(self) -> int:
        """How many participants of each hyperedge belong into an answer."""
        if self.relationship_detail == "full":
            return self.participant_limit
        return min(_SUMMARY_PARTICIPANTS, self.participant_limit)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeDetail:
    """A node. `relationships` is None when not asked for; `history` is newest first, at most 50."""

    node: Node
    relationships: Relationships | None
    history: tuple[Version, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class NodesResult:
    """Found nodes by key, and the keys that name none; both in the order of the request, each once."""

    found: dict[str, NodeDetail]
    missing: tuple[str, ...]


class Nodes:
    """Reads nodes by key."""

    def __init__(self, *, store: GraphStore, limits: Limits) -> None:
        self._store = store
        self._limits = limits

    async def nodes(self, principal: Principal, request: NodesRequest) -> NodesResult:
        """Read the named nodes; a key that names none, or that no node could have, is `missing`.

        At most 50 edges and 20 hyperedges come with each node, newest first (`full`: 500 and 200);
        the totals count all, but session hyperedges seen and left out.

        Raises:
            InvalidInput: No keys, or a value out of its range.
            LimitExceeded: More keys than one call may name.
            Unavailable: The store is busy or down.
        """
        wanted, missing = self._wanted(request)
        graph_id = principal.graph_id
        nodes = await self._store.nodes(graph_id, list(wanted.values()))
        related: dict[str, Relationships] = {}
        if request.include_relationships and nodes:
            edge_limit, hyperedge_limit = _SHOWN[request.relationship_detail]
            related = await self._store.relationships(
                graph_id, list(nodes), edge_limit=edge_limit, hyperedge_limit=hyperedge_limit
            )
        found: dict[str, NodeDetail] = {}
        for sent, key in wanted.items():
            node = nodes.get(key)
            if node is None:
                missing[sent] = None
                continue
            history: list[Version] = []
            if request.include_enrichment_history:
                versions = await self._store.versions(graph_id, Kind.NODE, key)
                # A key that was forgotten and stored again starts clean.
                history = list(takewhile(lambda version: version.state is not None, versions))
            found[key] = NodeDetail(
                node=node,
                relationships=_visible(related.get(key), request),
                history=tuple(history[:_MAX_HISTORY]),
            )
        in_order = tuple(key for key in dict.fromkeys(request.keys) if key in missing)
        return NodesResult(found=found, missing=in_order)

    def _wanted(self, request: NodesRequest) -> tuple[dict[str, str], dict[str, None]]:
        """Keys as sent -> normalised keys, each node once; and the keys that no node can have."""
        distinct = list(dict.fromkeys(request.keys))
        if not distinct:
            raise InvalidInput("/keys is empty; name at least one node.")
        if len(distinct) > self._limits.max_keys_per_call:
            raise LimitExceeded(
                f"/keys names {len(distinct)} nodes; one call reads at most "
                f"{self._limits.max_keys_per_call}. Ask for the rest in further calls.",
                limit=self._limits.max_keys_per_call,
            )
        if not 0 <= request.participant_limit <= _MAX_PARTICIPANTS:
            raise InvalidInput(
                f"/participant_limit is {request.participant_limit}; use 0 to {_MAX_PARTICIPANTS}."
            )
        if request.relationship_detail not in _SHOWN:
            raise InvalidInput(
                f"/relationship_detail is {request.relationship_detail!r}; use 'summary' or 'full'."
            )
        wanted: dict[str, str] = {}
        missing: dict[str, None] = {}
        for sent in distinct:
            try:
                key = normalise_key(sent)
            except InvalidInput:
                missing[sent] = None
                continue
            if key not in wanted.values():
                wanted[sent] = key
        return wanted, missing


def _visible(related: Relationships | None, request: NodesRequest) -> Relationships | None:
    if not request.include_relationships:
        return None
    if related is None:
        return Relationships(edges=(), hyperedges=(), edge_total=0, hyperedge_total=0)
    if request.include_session_relationships:
        return related
    shown = tuple(hyperedge for hyperedge in related.hyperedges if not hyperedge.is_session)
    hidden = len(related.hyperedges) - len(shown)
    return replace(related, hyperedges=shown, hyperedge_total=related.hyperedge_total - hidden)
