"""An index that follows one file through many servers, beside one that is built from zero."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hivemem.domain.graph import GraphId
from hivemem.models.hashing import HashingEmbedder
from hivemem.projection.graph_index import GraphIndex
from hivemem.projection.hot_graphs import HotGraphs
from hivemem.retrieval.analyse import analyse_query
from hivemem.storage.sqlite import SqliteStore
from tests.durability.load import HUB, Acknowledged

_EMBEDDER = HashingEmbedder()
_QUERIES = ("when does the ferry leave the harbour", "turn 7 tells of word7", "note", "project hub")
_BYTES = 1 << 30


@dataclass(frozen=True, slots=True)
class Observed:
    """What an index tells of a graph: counters, and the answers to some questions with their scores."""

    counters: tuple[int, int, int]
    words: tuple[object, ...]
    vectors: tuple[object, ...]
    degrees: tuple[tuple[str, int], ...]
    neighbours: tuple[object, ...]


class Follower:
    """Looks at the file between two servers, always through the same index."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._store = _Exchangeable()
        self._hot = _hot(self._store)

    async def check(self, acknowledged: Acknowledged, *, absent: Collection[str] = ()) -> None:
        """Hold that the file has what was acknowledged, and that the index equals one built from zero.

        Args:
            acknowledged: What servers said.
            absent: Keys that must not be there.
        """
        store = await SqliteStore.open(self._path)
        try:
            self._store.current = store
            [user] = await store.users()
            [graph] = await store.graphs(user.user_id)
            await _check_nodes(store, graph.graph_id, acknowledged)
            assert await store.nodes(graph.graph_id, absent) == {}
            followed = _observed(await self._hot.fresh(graph.graph_id))
            rebuilt_index = await _hot(store).fresh(graph.graph_id)
            assert followed == _observed(rebuilt_index)
            await _check_counters(store, graph.graph_id, rebuilt_index)
        finally:
            await store.close()


def check_integrity(path: Path) -> None:
    """Hold that SQLite finds nothing wrong with the file."""
    with contextlib.closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []


async def _check_nodes(store: SqliteStore, graph_id: GraphId, acknowledged: Acknowledged) -> None:
    nodes = await store.nodes(graph_id, acknowledged.nodes)
    unanswered = acknowledged.unanswered
    for key, told in acknowledged.nodes.items():
        found = nodes.get(key)
        state = (None, 0) if found is None else (found.description, found.write_version)
        if state != (told.description, told.write_version):
            # The last request about it may have been stored without the answer getting out.
            assert key in unanswered, f"{key}: {told} was acknowledged, {state} is stored"
            assert state[0] == unanswered[key]


async def _check_counters(store: SqliteStore, graph_id: GraphId, index: GraphIndex) -> None:
    described, edges, after = 0, 0, None
    while page := await store.scan(graph_id, after=after):
        described += sum(not node.placeholder for node in page)
        after = page[-1].key
    counts = await store.counts(graph_id)
    for key, degree in index.top_degree(1_000_000):
        own = (await store.relationships(graph_id, [key], edge_limit=0, hyperedge_limit=0))[key]
        assert own.edge_total + own.hyperedge_total == degree, key
        edges += degree
    assert (index.node_count, index.embedded_count) == (described, described)
    # Every edge has two ends, and nothing here stores an edge from a node to itself, or a hyperedge.
    assert edges == 2 * counts.edges


def _observed(index: GraphIndex) -> Observed:
    analysed = [analyse_query(query) for query in _QUERIES]
    vectors = [_EMBEDDER.embed_query(query) for query in _QUERIES]
    return Observed(
        counters=(index.revision, index.node_count, index.embedded_count),
        words=tuple(tuple(index.search_terms(query, 50)) for query in analysed),
        vectors=tuple(tuple(index.search_vectors(vector, 50)) for vector in vectors),
        degrees=tuple(index.top_degree(200)),
        neighbours=tuple(index.neighbours(HUB, 200)),
    )


def _hot(store: Any) -> HotGraphs:
    return HotGraphs(store, _EMBEDDER.model_id, _EMBEDDER.dimension, _BYTES)


class _Exchangeable:
    """Whichever store has the file open at the moment."""

    def __init__(self) -> None:
        self.current: SqliteStore | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self.current, name)
