"""hm_find_related: what lies around a node, nearest and strongest first.

A walk from the start node, hop by hop over the projection. Each node is reached on its best way:

    score = 0.7 ** hop * product of strengths along the way, each to the power 1/4
    (times 1 + match with the question, times 2 for the node types of the lens)

Strengths come from `Adjacency.neighbours`: rare labels count more, hubs less. The fourth root keeps
nodes at the same distance together and lets strength order them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hivemem.domain.access import Principal
from hivemem.domain.edge import Edge, Hyperedge
from hivemem.domain.graph import GraphId, Kind
from hivemem.domain.keys import normalise_key
from hivemem.domain.node import Node
from hivemem.domain.node_types import canonical_type
from hivemem.domain.text import storable_text
from hivemem.errors import HivememError, InvalidInput, NotFound
from hivemem.models.executor import ModelExecutor
from hivemem.ports.store import GraphStore
from hivemem.projection.graph_index import GraphIndex
from hivemem.projection.hits import Neighbour
from hivemem.projection.hot_graphs import HotGraphs
from hivemem.retrieval.analyse import AnalysedQuery, analyse_query
from hivemem.service.label_pattern import LabelTest, label_test
from hivemem.service.limits import DEFAULT_SESSION, Limits, checked_session_id
from hivemem.service.session_touches import SessionTouches

MAX_NODES = 500
DEFAULT_DEPTH = 2
MAX_DEPTH = 5

_HOP_DECAY = 0.7
_LENS_FACTOR = 2.0
_LENS_CHOICE = 4
_STRENGTH_POWER = 0.25
_FAN_OUT = 500
"""Relationships followed from one node, strongest first."""
_FAN_OUT_WITH_PATTERN = 10_000
"""A pattern drops most of them, so more are looked at."""
_LOOKED_UP = 32
"""Nodes whose relationships are looked up at once; the index is locked that long."""
_MAX_FOLLOWED = 20_000
"""Relationships followed in one call; a denser neighbourhood is cut there, and `truncated` says so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FindRelatedRequest:
    """Where to start, how far to go, and what to prefer.

    `relationship_pattern` drops relationships; `query` and `lens` only change the order.
    """

    start_node: str
    query: str | None = None
    max_nodes: int = 50
    max_depth: int = DEFAULT_DEPTH
    relationship_pattern: str | None = None
    lens: str | None = None
    session_id: str = DEFAULT_SESSION


@dataclass(frozen=True, slots=True, kw_only=True)
class RelatedNode:
    """A node on the walk, and the relationship that reached it. `hop` is 1 for a neighbour."""

    node: Node
    hop: int
    relationship: str
    direction: str
    edge_id: str
    edge_kind: str
    write_version: int
    score: float


@dataclass(frozen=True, slots=True, kw_only=True)
class FindRelatedResult:
    """Nodes around `start_node`, best first; the start node is not among them.

    `strategy` is `chain` with a relationship pattern, `type_boosted` with a lens, else `decay`.
    `truncated` says that more nodes could be reached.
    """

    start_node: str
    found: tuple[RelatedNode, ...]
    strategy: str
    truncated: bool
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Reached:
    neighbour: Neighbour
    hop: int
    way: float
    """Product of decay and strengths up to here."""
    score: float


@dataclass(frozen=True, slots=True, kw_only=True)
class _Preference:
    """What a caller would rather see."""

    query: AnalysedQuery | None
    vector: NDArray[np.float32] | None
    types: frozenset[str]


class FindRelated:
    """Walks along the relationships of one graph."""

    def __init__(
        self,
        *,
        store: GraphStore,
        hot: HotGraphs,
        executor: ModelExecutor,
        limits: Limits,
        touches: SessionTouches,
    ) -> None:
        self._store = store
        self._hot = hot
        self._executor = executor
        self._limits = limits
        self._touches = touches

    async def find_related(self, principal: Principal, request: FindRelatedRequest) -> FindRelatedResult:
        """The nodes around a node.

        Raises:
            NotFound: There is no node with the key `start_node`.
            InvalidInput: A value out of its range.
            Unavailable: The store is busy or down.
        """
        start = normalise_key(request.start_node, "/start_node")
        session_id = checked_session_id(request.session_id)
        if not 1 <= request.max_nodes <= MAX_NODES:
            raise InvalidInput(f"/max_nodes is {request.max_nodes}; use 1 to {MAX_NODES}.")
        if request.max_depth < 1:
            raise InvalidInput(f"/max_depth is {request.max_depth}; it is at least 1.")
        matches = label_test(request.relationship_pattern, "/relationship_pattern")
        warnings: list[str] = []
        if request.max_depth > MAX_DEPTH:
            warnings.append(f"max_depth {request.max_depth} was taken as {MAX_DEPTH}, the deepest walk")
        graph_id = principal.graph_id
        if start not in await self._store.nodes(graph_id, [start]):
            raise NotFound(f"/start_node {start!r} does not exist; hm_recall finds keys.")
        preference = await self._preference(request, warnings)
        index = await self._hot.fresh(graph_id)
        # The lens sees types, which the projection does not hold: it chooses among more.
        collected = request.max_nodes * (_LENS_CHOICE if preference.types else 1)
        walk = _Walk(index, preference, matches, depth=min(request.max_depth, MAX_DEPTH), limit=collected)
        reached = await asyncio.to_thread(walk.around, start)
        described = await self._described(graph_id, reached, preference)
        found = tuple(described[: request.max_nodes])
        if principal.keeps_conversations:
            self._touches.record(graph_id, session_id, [start, *(one.node.key for one in found)])
        return FindRelatedResult(
            start_node=start,
            found=found,
            strategy="chain" if matches else "type_boosted" if preference.types else "decay",
            truncated=walk.truncated or len(described) > len(found),
            warnings=tuple(warnings),
        )

    async def _preference(self, request: FindRelatedRequest, warnings: list[str]) -> _Preference:
        query, vector = None, None
        if request.query is not None and request.query.strip():
            text = storable_text(request.query, "/query", max_characters=self._limits.max_query_characters)
            query = analyse_query(text)
            try:
                vector = None if self._executor.embedder is None else await self._executor.embed_query(text)
            except HivememError as error:
                warnings.append(f"the order goes by the words of the question alone: {error.message}")
        types: set[str] = set()
        if request.lens is not None and request.lens.strip():
            named = map(canonical_type, request.lens.replace(",", " ").split())
            types.update(name for name in named if name is not None)
            if not types:
                warnings.append(f"lens {request.lens[:100]!r} names no node type, so it was ignored")
        return _Preference(query=query, vector=vector, types=frozenset(types))

    async def _described(
        self, graph_id: GraphId, reached: list[_Reached], preference: _Preference
    ) -> list[RelatedNode]:
        keys = [one.neighbour.key for one in reached]
        ids = {
            kind: [one.neighbour.edge_id for one in reached if one.neighbour.kind is kind] for kind in Kind
        }
        nodes, edges, hyperedges = await asyncio.gather(
            self._store.nodes(graph_id, keys),
            self._store.edges(graph_id, ids[Kind.EDGE]),
            self._store.hyperedges(graph_id, ids[Kind.HYPEREDGE]),
        )
        joins: Mapping[str, Edge | Hyperedge] = {**edges, **hyperedges}
        described = [
            RelatedNode(
                node=nodes[one.neighbour.key],
                hop=one.hop,
                relationship=one.neighbour.relationship,
                direction=one.neighbour.direction,
                edge_id=one.neighbour.edge_id,
                edge_kind=one.neighbour.kind.value,
                write_version=joins[one.neighbour.edge_id].write_version,
                score=one.score
                * (_LENS_FACTOR if nodes[one.neighbour.key].node_type in preference.types else 1.0),
            )
            for one in reached
            # Either may be forgotten between the walk and this read.
            if one.neighbour.key in nodes and one.neighbour.edge_id in joins
        ]
        described.sort(key=lambda related: (-related.score, related.node.key))
        return described


class _Walk:
    """One walk over the projection.

    `truncated` says afterwards that a limit ended it somewhere.
    """

    def __init__(
        self, index: GraphIndex, preference: _Preference, matches: LabelTest | None, *, depth: int, limit: int
    ) -> None:
        self._index = index
        self._preference = preference
        self._matches = matches
        self._depth = depth
        self._limit = limit
        self._followed = 0
        self.truncated = False

    def around(self, start: str) -> list[_Reached]:
        """The best `limit` nodes within `depth` hops of `start`, each once, by its shortest way."""
        found: list[_Reached] = []
        seen = {start}
        border = {start: 1.0}
        for hop in range(1, self._depth + 1):
            ways = self._step(border, seen)
            if not ways:
                break
            seen.update(ways)
            matching = self._matching(ways)
            level = [
                _Reached(neighbour, hop, way, way * (1.0 + matching.get(key, 0.0)))
                for key, (way, neighbour) in ways.items()
            ]
            level.sort(key=lambda one: (-one.score, one.neighbour.key))
            room = self._limit - len(found)
            self.truncated |= len(level) > room
            found += level[:room]
            if len(level) >= room:
                # Nodes at the next distance may exist; that is not looked up for a flag alone.
                self.truncated |= hop < self._depth
                break
            border = {one.neighbour.key: one.way for one in level}
        return found

    def _step(self, border: Mapping[str, float], seen: Collection[str]) -> dict[str, tuple[float, Neighbour]]:
        """The new nodes one hop beyond `border`, each by its strongest way."""
        fan_out = _FAN_OUT_WITH_PATTERN if self._matches else _FAN_OUT
        ways: dict[str, tuple[float, Neighbour]] = {}
        ordered = sorted(border, key=lambda key: (-border[key], key))
        for key, neighbours in self._neighbours(ordered, fan_out):
            if self._followed >= _MAX_FOLLOWED:
                self.truncated = True
                break
            self._followed += len(neighbours)
            self.truncated |= len(neighbours) == fan_out
            for neighbour in neighbours:
                if neighbour.key in seen or (self._matches and not self._matches(neighbour.relationship)):
                    continue
                way = border[key] * _HOP_DECAY * neighbour.strength**_STRENGTH_POWER
                if neighbour.key not in ways or way > ways[neighbour.key][0]:
                    ways[neighbour.key] = (way, neighbour)
        return ways

    def _neighbours(self, keys: Sequence[str], fan_out: int) -> Iterator[tuple[str, list[Neighbour]]]:
        """Each key and its neighbours, looked up some at a time: most keys have few."""
        for start in range(0, len(keys), _LOOKED_UP):
            part = keys[start : start + _LOOKED_UP]
            for key, (neighbours, _) in zip(part, self._index.neighbours_of(part, fan_out), strict=True):
                yield key, neighbours

    def _matching(self, keys: Collection[str]) -> dict[str, float]:
        """How well each node matches the question, in [0, 1]; nothing without a question."""
        query, vector = self._preference.query, self._preference.vector
        if query is None:
            return {}
        terms = self._index.score_terms(query, keys)
        passages = {} if vector is None else self._index.cosine(vector, keys)
        matching: dict[str, float] = {}
        for key in keys:
            words = terms[key].bm25 / terms[key].ideal if key in terms and terms[key].ideal > 0 else 0.0
            meaning = max(0.0, passages[key].score) if key in passages else 0.0
            matching[key] = (words + meaning) / 2 if vector is not None else words
        return matching
