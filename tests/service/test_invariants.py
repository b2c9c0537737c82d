"""Whatever is stored in whatever order, the graph stays whole."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hivemem.domain.edge import MIN_PARTICIPANTS
from hivemem.domain.graph import Kind
from hivemem.errors import Conflict, HivememError
from hivemem.models.executor import ModelExecutor
from hivemem.models.hashing import HashingEmbedder
from hivemem.ports.store import Store
from hivemem.service.limits import Limits
from hivemem.service.remember import IfExists, Remember, StoreRequest, StoreResult
from tests.service.conftest import GRAPH, LONG, OWNER, STORES, open_store
from tests.support.builders import FixedClock

KEYS = st.sampled_from(["fact_a", "person_b", "c", "Nóż", "user_profile"])
EDGES = st.fixed_dictionaries(
    {"to_key": KEYS, "relationship": st.sampled_from(["explains", "blocks", "chat_x", " "])},
    optional={"from_key": KEYS, "description": st.sampled_from(["Why.", "Because."])},
)
HYPEREDGES = st.fixed_dictionaries(
    {
        "participant_keys": st.lists(KEYS, max_size=5),
        "relationship": st.sampled_from(["were joined at last", "linked", "short"]),
        "description": st.sampled_from([LONG, LONG + "!", "short"]),
    }
)
REQUESTS = st.builds(
    StoreRequest,
    key=KEYS,
    description=st.sampled_from(["One.", "Two.", "Three."]),
    if_exists=st.sampled_from(IfExists),
    data=st.sampled_from([None, {}, {"n": 1}]),
    relationships=st.lists(st.one_of(EDGES, HYPEREDGES), max_size=3),
)
CALLS = st.lists(st.one_of(REQUESTS, st.lists(REQUESTS, min_size=1, max_size=4)), max_size=6)


async def check_graph_is_whole(store: Store) -> None:
    page = await store.changes(GRAPH, 0, model_id="none", limit=1_000_000)
    assert not page.more
    keys = {changed.node.key for changed in page.nodes}
    for edge in page.edges:
        assert {edge.from_key, edge.to_key} <= keys
        assert edge.data["semantic_relationship"] == edge.relationship
    for hyperedge in page.hyperedges:
        assert set(hyperedge.keys) <= keys
        assert len(set(hyperedge.keys)) >= MIN_PARTICIPANTS
    assert len({edge.identity for edge in page.edges}) == len(page.edges)
    assert len({hyperedge.identity for hyperedge in page.hyperedges}) == len(page.hyperedges)
    for key in keys:
        versions = await store.versions(GRAPH, Kind.NODE, key)
        numbers = [version.state.write_version for version in reversed(versions) if version.state]
        assert numbers == list(range(1, len(numbers) + 1))


async def play(store: Store, calls: list[StoreRequest | list[StoreRequest]]) -> None:
    executor = ModelExecutor(HashingEmbedder(16), None)
    remember = Remember(store=store, executor=executor, clock=FixedClock(), limits=Limits(max_import_batch=3))
    revision = 0
    described: dict[str, int] = {}
    try:
        for call in calls:
            outcomes: list[StoreResult | HivememError]
            if isinstance(call, StoreRequest):
                try:
                    outcomes = [await remember.store(OWNER, call)]
                except Conflict as error:
                    outcomes = [error]
            else:
                outcomes = await remember.store_many(OWNER, call)
            now = await store.revision(GRAPH)
            wrote = any(
                isinstance(one, StoreResult) and (one.status != "kept" or one.created) for one in outcomes
            )
            assert (now > revision) is wrote
            revision = now
            for one in outcomes:
                if isinstance(one, HivememError):
                    assert one.code == "already_exists"
                elif one.status != "kept":
                    assert one.node.write_version > described.get(one.node.key, 0)
                    described[one.node.key] = one.node.write_version
        await check_graph_is_whole(store)
        nodes = await store.nodes(GRAPH, list(described))
        assert {key: node.write_version for key, node in nodes.items()} == described
    finally:
        executor.close()


async def play_on(kind: str, calls: list[Any]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = await open_store(kind, Path(folder))
        try:
            await play(store, calls)
        finally:
            await store.close()


@given(CALLS)
@settings(max_examples=60, deadline=None)
def test_any_sequence_of_stores_keeps_the_graph_whole_in_memory(calls: list[Any]) -> None:
    asyncio.run(play_on("memory", calls))


@given(CALLS)
@settings(max_examples=15, deadline=None)
def test_any_sequence_of_stores_keeps_the_graph_whole_in_sqlite(calls: list[Any]) -> None:
    asyncio.run(play_on("sqlite", calls))


@pytest.mark.soak
@pytest.mark.parametrize("kind", STORES)
@given(calls=CALLS)
@settings(max_examples=500, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_many_more_sequences_keep_the_graph_whole(kind: str, calls: list[Any]) -> None:
    asyncio.run(play_on(kind, calls))
