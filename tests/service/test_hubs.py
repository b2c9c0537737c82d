"""A hub of 10,000 relationships and a ring of 50: answers keep to their size, and work to what it needs.

Work is counted, not timed: calls of the store, and what came back from them.
"""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping, Sized
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from hivemem.app import OpenServices, open_services
from hivemem.domain.graph import ChangePage, Relationships, Snapshot
from hivemem.service.remember import StoreRequest, StoreResult
from hivemem.settings import load_settings
from hivemem.storage.sqlite import SqliteStore
from hivemem.surfaces.operations import BY_NAME
from hivemem.surfaces.wire_json import json_size

HUB_EDGES = 10_000
RING = 50
HUB = "person_maria"
LABEL = "mentions who leads the harbour"

pytestmark = pytest.mark.asyncio(loop_scope="module")


class Counted:
    """What the store was asked since the counting began: calls, and things that it returned, by method."""

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()
        self.things: Counter[str] = Counter()

    def count(self, method: str, result: object) -> None:
        self.calls[method] += 1
        self.things[method] += _things(result)


def _things(result: object) -> int:
    match result:
        case ChangePage():
            return len(result.nodes) + len(result.edges) + len(result.hyperedges) + len(result.removals)
        case Snapshot():
            return len(result.nodes) + len(result.edges) + len(result.hyperedges)
        case Relationships():
            return len(result.edges) + len(result.hyperedges)
        case Mapping():
            return sum(_things(value) if isinstance(value, Relationships) else 1 for value in result.values())
        case str() | bytes():
            return 1
        case Sized():
            return len(result)
        case _:
            return 1


class World:
    def __init__(self, services: OpenServices, owner: Any) -> None:
        self.services = services
        self.owner = owner

    async def answer(self, name: str, **arguments: Any) -> dict[str, Any]:
        """The answer of an operation, which must keep to the size that answers have."""
        answer = await BY_NAME[name].run(self.services, self.owner, arguments)
        assert json_size(answer) <= self.services.settings.max_answer_bytes, (name, arguments)
        return answer

    @contextmanager
    def counting(self, monkeypatch: pytest.MonkeyPatch) -> Iterator[Counted]:
        counted = Counted()
        with monkeypatch.context() as patched:
            for name, method in inspect.getmembers(SqliteStore, inspect.iscoroutinefunction):
                if not name.startswith("_"):
                    patched.setattr(SqliteStore, name, _counting(name, method, counted))
            yield counted


def _counting(name: str, method: Any, counted: Counted) -> Any:
    async def asked(*arguments: Any, **named: Any) -> Any:
        result = await method(*arguments, **named)
        counted.count(name, result)
        return result

    return asked


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[World]:
    folder: Path = tmp_path_factory.mktemp("hub")
    loaded = load_settings({"data_dir": str(folder), "embedder": "hashing", "reranker": "none"}, {})
    services = await open_services(loaded.settings)
    try:
        owner = await services.access.local_principal()
        to_hub = {"to_key": HUB, "relationship": LABEL}
        requests = [StoreRequest(key=HUB, description="Maria leads the harbour.")]
        requests += [
            StoreRequest(
                key=f"log_{number:05}",
                description=f"Daily log {number}: routine checks done.",
                relationships=(to_hub,),
            )
            for number in range(HUB_EDGES)
        ]
        requests += [
            StoreRequest(
                key=f"ring_{number}",
                description=f"Station {number} of the ring road.",
                relationships=(
                    {"to_key": f"ring_{(number + 1) % RING}", "relationship": f"leads on from stop {number}"},
                ),
            )
            for number in range(RING)
        ]
        outcomes = await services.remember.store_many(owner, requests)
        assert all(isinstance(one, StoreResult) and not one.errors for one in outcomes)
        world = World(services, owner)
        await world.answer("hm_recall", query="Maria")  # loads the index
        yield world
    finally:
        await services.close()


async def test_recall_of_the_hub_reads_the_hub_and_what_it_shows(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    with world.counting(monkeypatch) as counted:
        answer = await world.answer("hm_recall", query="who leads the harbour, Maria?", max_results=5)
    first = answer["results"][0]
    assert first["key"] == HUB
    assert len(first["expansion_context"]) + first["expansion_omitted"] == HUB_EDGES
    assert sum(counted.things.values()) <= 500, counted.things
    assert sum(counted.calls.values()) <= 12, counted.calls


async def test_the_hub_by_key_comes_with_a_page_of_its_edges(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    with world.counting(monkeypatch) as counted:
        answer = await world.answer(
            "hm_get_nodes", keys=[HUB], relationship_detail="full", include_enrichment_history=True
        )
    entry = answer["nodes"][HUB]
    assert entry["edge_total"] == HUB_EDGES
    assert entry["binary_edges"]
    assert sum(counted.things.values()) <= 510, counted.things


async def test_the_list_of_relationships_is_cut_and_says_so(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    with world.counting(monkeypatch) as counted:
        plain = await world.answer("list_relationships", key=HUB)
    assert plain["truncated"] is True
    assert plain["binary_edges"]
    assert sum(counted.things.values()) <= 1_000, counted.things
    none = await world.answer("list_relationships", key=HUB, pattern="no such label")
    assert (none["binary_edges"], none["truncated"]) == ([], False)


@pytest.mark.parametrize("start", [HUB, "log_00005"])
@pytest.mark.parametrize("pattern", [None, "harbour"])
async def test_walks_around_the_hub_fill_their_answer_and_stop(
    world: World, monkeypatch: pytest.MonkeyPatch, start: str, pattern: str | None
) -> None:
    with world.counting(monkeypatch) as counted:
        answer = await world.answer(
            "hm_find_related", start_node=start, max_nodes=500, max_depth=5, relationship_pattern=pattern
        )
    assert answer["truncated"] is True
    assert len(answer["results"]) > 50, "as many as fit are told"
    assert answer["count"] + answer["results_omitted"] == 500
    assert counted.things["nodes"] <= 501
    assert sum(counted.calls.values()) <= 20, counted.calls


async def test_a_walk_along_the_ring_meets_itself_and_ends(world: World) -> None:
    answer = await world.answer("hm_find_related", start_node="ring_0", max_nodes=500, max_depth=5)
    hops = {item["key"]: item["hop"] for item in answer["results"]}
    assert hops == {f"ring_{n % RING}": abs(n) for n in range(-5, 6) if n}
    assert answer["truncated"] is False


async def test_forgetting_and_restoring_the_hub(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """In this order, since each step stands on the one before."""
    with world.counting(monkeypatch) as counted:
        forgotten = await world.answer("hm_forget", key=HUB)
    assert forgotten["edges_removed"] == HUB_EDGES
    assert counted.calls["apply"] == 1
    assert sum(counted.things.values()) <= 20, "what is removed is not read first"

    found = await world.answer("hm_recall", query="who leads the harbour, Maria?")
    assert HUB not in [item["key"] for item in found["results"]]

    orphans: list[str] = []
    cursor: str | None = None
    pages = 0
    with world.counting(monkeypatch) as counted:
        while cursor is not None or not pages:
            page = await world.answer("hm_list_orphans", limit=200, cursor=cursor)
            orphans += [item["key"] for item in page["orphans"]]
            cursor, pages = page["next_cursor"], pages + 1
            if pages == 5:
                break
    assert orphans == [f"log_{number:05}" for number in range(len(orphans))], "nothing is passed over"
    assert len(orphans) > 500
    assert counted.things["scan"] <= pages * 5_000, counted.things

    with world.counting(monkeypatch) as counted:
        restored = await world.answer("restore_node", key=HUB)
    assert restored["relationships"] == HUB_EDGES
    assert counted.calls["apply"] == 1
    assert sum(counted.calls.values()) <= 10, counted.calls

    found = await world.answer("hm_recall", query="who leads the harbour, Maria?")
    first = found["results"][0]
    assert len(first["expansion_context"]) + first["expansion_omitted"] == HUB_EDGES


async def test_pages_of_orphans_are_bounded_where_nearly_every_node_is_related(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    with world.counting(monkeypatch) as counted:
        page = await world.answer("hm_list_orphans")
    assert page["count"] <= 1
    assert counted.calls["scan"] <= 50, counted.calls
