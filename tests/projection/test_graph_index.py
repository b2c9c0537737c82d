"""The index of a graph follows any sequence of writes and equals one built from the final state."""

from __future__ import annotations

import asyncio
import struct
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hivemem.domain.graph import ChangedNode, ChangePage, Kind, NodeWrite, Removal
from hivemem.domain.node import EnrichmentStatus
from hivemem.errors import Corruption
from hivemem.projection import GraphIndex, inverted_index
from hivemem.projection import vectors as vectors_module
from hivemem.projection.postings import Postings
from hivemem.retrieval.analyse import analyse_query
from hivemem.storage.memory import MemoryStore
from tests.support.builders import (
    MODEL,
    batch,
    delete,
    edge,
    graph,
    hyperedge,
    minutes,
    node,
    passage,
    placeholder,
    update,
    user,
    vectors,
)

GRAPH = "graph_one"
KEYS = ["alpha", "beta", "gamma", "delta", "epsilon"]
TEXTS = ["", "garden pump", "tax filing in May", "garden gate and garden door", "pump"]
LABELS = ["feeds", "owned by Maria", "blocks the garden", "chat_default"]
QUERIES = ["garden pump", "who is maria", "alpha tax", "blocks", "feeds chat_default"]

key = st.sampled_from(KEYS)
describe = st.tuples(
    st.just("describe"), key, st.sampled_from(TEXTS), st.lists(st.integers(0, 3), max_size=2)
)
relate = st.tuples(
    st.just("relate"), st.lists(key, min_size=2, max_size=4, unique=True), st.sampled_from(LABELS)
)
forget = st.tuples(st.just("forget"), key)
unrelate = st.tuples(st.just("unrelate"), st.integers(0, 9))
embed = st.tuples(st.just("embed"), key, st.lists(st.integers(0, 3), max_size=2))
catch_up = st.tuples(st.just("catch up"), st.sampled_from([1, 3, 1000]))
operations = st.lists(st.one_of(describe, relate, forget, unrelate, embed, catch_up), max_size=40)


def passages_of(numbers: list[int]) -> list[Any]:
    return [passage(*np.eye(3)[n % 3] * (1 if n < 3 else -1), start=at) for at, n in enumerate(numbers)]


async def play(store: MemoryStore, operation: tuple[Any, ...], number: int) -> None:
    """One write, at a time that rises with `number`."""
    state = await store.snapshot(GRAPH, KEYS)
    at = {"created_at": minutes(number % 4), "updated_at": minutes(number)}
    match operation:
        case ("describe", name, text, chosen):
            status = EnrichmentStatus.PENDING if text else EnrichmentStatus.PLACEHOLDER
            found = vectors(*(passages_of(chosen) if text else []))
            old = state.nodes.get(name)
            if old is None:
                write: Any = node(name, text, enrichment_status=status, search_text="also " * bool(text))
                write = NodeWrite(node=write, expected=0, vectors=found)
            else:
                write = update(old, found, description=text, enrichment_status=status)
            await store.apply(GRAPH, batch(write))
        case ("relate", names, label):
            missing = [placeholder(name) for name in names if name not in state.nodes]
            thing: Any = (
                edge(*names, label, edge_id=f"r{number}", **at)
                if len(names) == 2
                else hyperedge(*names, relationship=label, hyperedge_id=f"r{number}", **at)
            )
            stored = await store.snapshot(GRAPH, (), [thing.identity], [thing.identity])
            if not (stored.edges or stored.hyperedges):
                await store.apply(GRAPH, batch(*missing, thing))
        case ("forget", name) if name in state.nodes:
            await store.apply(GRAPH, batch(delete(state.nodes[name])))
        case ("unrelate", which):
            relations = await store.relationships(GRAPH, KEYS, edge_limit=99, hyperedge_limit=99)
            things = {t.edge_id: t for r in relations.values() for t in r.edges}
            things |= {t.hyperedge_id: t for r in relations.values() for t in r.hyperedges}  # type: ignore[misc]
            if things:
                await store.apply(GRAPH, batch(delete(things[sorted(things)[which % len(things)]])))
        case ("embed", name, chosen) if name in state.nodes and not state.nodes[name].placeholder:
            version = state.nodes[name].write_version
            await store.put_vectors(
                GRAPH, name, version, vectors(*passages_of(chosen)), EnrichmentStatus.ENRICHED
            )
        case _:
            pass


async def follow(store: MemoryStore, index: GraphIndex, limit: int) -> None:
    more = True
    while more:
        page = await store.changes(GRAPH, index.revision, model_id=MODEL, limit=limit)
        index.apply(page)
        index.apply(page)
        more = page.more


def answers(index: GraphIndex) -> dict[str, Any]:
    queries = [analyse_query(text) for text in QUERIES]
    query_vectors = [np.array(v, dtype=np.float32) for v in ((1, 0, 0), (0, 0.6, 0.8))]
    return {
        "nodes": index.node_count,
        "terms": [index.search_terms(query, 4) for query in queries],
        "scores": [index.score_terms(query, [*KEYS, "absent"]) for query in queries],
        "vectors": [index.search_vectors(vector, 4) for vector in query_vectors],
        "cosine": [index.cosine(vector, [*KEYS, "absent"]) for vector in query_vectors],
        "neighbours": [index.neighbours(name, limit) for name in KEYS for limit in (1, 50)],
        "degree": [index.degree(name) for name in KEYS],
        "top": index.top_degree(3),
    }


@settings(max_examples=80, deadline=None)
@given(changes=operations)
def test_following_equals_building_anew(changes: list[tuple[Any, ...]]) -> None:
    async def run() -> None:
        store = MemoryStore()
        await store.add_user(user(), graph())
        await store.apply(
            GRAPH, batch(*(node(name, text) for name, text in zip(KEYS, TEXTS[1:], strict=False)))
        )
        index = GraphIndex(3)
        await follow(store, index, 1000)
        for number, operation in enumerate(changes):
            if operation[0] == "catch up":
                await follow(store, index, operation[1])
            else:
                await play(store, operation, number)
        await follow(store, index, 1000)
        fresh = GraphIndex(3)
        await follow(store, fresh, 1000)
        assert answers(index) == answers(fresh)
        described = {n.key: n for n in await store.scan(GRAPH) if not n.placeholder}
        assert index.node_count == len(described)
        for query in QUERIES:
            assert {hit.key for hit in index.search_terms(analyse_query(query), 50)} <= set(described)
        assert index.revision == await store.revision(GRAPH)

    asyncio.run(run())


def page(revision: int, *nodes: Any, **parts: Any) -> ChangePage:
    changed = tuple(
        thing if isinstance(thing, ChangedNode) else ChangedNode(node=thing, passages=()) for thing in nodes
    )
    return ChangePage(revision=revision, nodes=changed, **parts)


def found(index: GraphIndex, text: str) -> list[str]:
    return [hit.key for hit in index.search_terms(analyse_query(text), 10)]


def test_every_text_of_a_node_is_searchable() -> None:
    index = GraphIndex(0)
    described = node(
        "svc_kumo",
        "Runs the billing jobs.",
        search_text="invoice",
        data={"city": "Oslo", "tags": [["ferry"], 3]},
    )
    index.apply(
        page(
            1, described, node("team_blue", "Six people."), edges=(edge("svc_kumo", "team_blue", "paged by"),)
        )
    )
    for word in ("kumo", "billing", "invoice", "oslo", "ferry"):
        assert found(index, word) == ["svc_kumo"]
    assert sorted(found(index, "paged")) == ["svc_kumo", "team_blue"]


def test_the_words_of_relationships_come_and_go_with_them() -> None:
    index = GraphIndex(0)
    index.apply(page(1, node("alpha", "garden pump"), node("beta", "garden gate")))
    own = index.search_terms(analyse_query("pump"), 5)
    index.apply(page(2, edges=(edge("alpha", "beta", "feeds water", edge_id="e1"),)))
    assert sorted(found(index, "water")) == ["alpha", "beta"]
    index.apply(page(3, edges=(edge("alpha", "beta", "blocks light", edge_id="e1"),)))
    assert (found(index, "water"), sorted(found(index, "light"))) == ([], ["alpha", "beta"])
    index.apply(page(4, removals=(Removal(kind=Kind.EDGE, id="e1", revision=4),)))
    assert found(index, "light") == []
    assert index.search_terms(analyse_query("pump"), 5) == own


def test_an_updated_text_leaves_no_word_and_no_vector_behind() -> None:
    index = GraphIndex(2)
    old = node("desk_note", "Our office dog Biscuit likes the red rubber ball.")
    index.apply(page(1, ChangedNode(node=old, passages=(passage(1, 0),))))
    assert [hit.key for hit in index.search_vectors(np.array([1, 0], dtype=np.float32), 5)] == ["desk_note"]
    index.apply(page(2, replace(old, description="The quarterly tax filing moved to 14 May.")))
    assert found(index, "dog biscuit ball") == []
    assert found(index, "tax") == ["desk_note"]
    assert index.search_vectors(np.array([1, 0], dtype=np.float32), 5) == []


def test_a_removed_node_is_gone_until_it_is_stored_again() -> None:
    index = GraphIndex(2)
    shed = node("shed_1", "The padlock code changes every quarter.")
    other = node("shed_11", "The newer note.")
    relation = edge("shed_11", "shed_1", "replaces the older note")
    index.apply(page(1, ChangedNode(node=shed, passages=(passage(1, 0),)), other, edges=(relation,)))
    gone = (
        Removal(kind=Kind.NODE, id="shed_1", revision=2),
        Removal(kind=Kind.EDGE, id=relation.edge_id, revision=2),
    )
    index.apply(page(2, removals=gone))
    assert found(index, "padlock") == []
    assert index.search_vectors(np.array([1, 0], dtype=np.float32), 5) == []
    assert (index.degree("shed_11"), found(index, "replaces")) == (0, [])
    again = replace(shed, description="Office plants are watered on Mondays.")
    index.apply(page(3, again, removals=(Removal(kind=Kind.NODE, id="shed_1", revision=3),)))
    assert (found(index, "padlock"), found(index, "plants")) == ([], ["shed_1"])


def test_a_placeholder_is_a_neighbour_but_never_a_hit() -> None:
    index = GraphIndex(0)
    index.apply(page(1, node("alpha"), placeholder("beta_two"), edges=(edge("alpha", "beta_two", "feeds"),)))
    assert found(index, "beta") == []
    assert found(index, "feeds") == ["alpha"]
    assert [n.key for n in index.neighbours("alpha", 5)] == ["beta_two"]
    index.apply(page(2, node("beta_two", "Now described.")))
    assert sorted(found(index, "feeds")) == ["alpha", "beta_two"]
    assert found(index, "described") == ["beta_two"]


def test_a_page_that_is_not_newer_changes_nothing() -> None:
    index = GraphIndex(0)
    index.apply(page(5, node("alpha", "new text")))
    index.apply(page(5, node("alpha", "another")))
    index.apply(page(4, node("alpha", "old text")))
    assert (index.revision, found(index, "new"), found(index, "old")) == (5, ["alpha"], [])


def test_a_broken_vector_is_reported() -> None:
    index = GraphIndex(2)
    bad = ChangedNode(node=node("alpha"), passages=(replace(passage(1, 0), vector=struct.pack("<f", 1.0)),))
    with pytest.raises(Corruption, match="'alpha' has 4 bytes, not 8"):
        index.apply(page(1, bad))


def test_the_size_grows_with_what_is_stored_and_shrinks_again() -> None:
    index = GraphIndex(64)
    vector = passage(*([0.125] * 64))
    nodes = [ChangedNode(node=node(f"key_{n}", f"word{n} " * 20), passages=(vector,)) for n in range(200)]
    index.apply(page(1, *nodes))
    full = index.size_bytes
    assert full > 200 * (64 * 4 + 100)
    index.apply(
        page(2, removals=tuple(Removal(kind=Kind.NODE, id=f"key_{n}", revision=2) for n in range(200)))
    )
    assert index.size_bytes < full / 4


def test_a_search_in_another_thread_sees_whole_pages_only() -> None:
    index = GraphIndex(0)
    names = [f"key_{number:02d}" for number in range(30)]
    rounds = 60
    finished = threading.Event()

    def watch() -> set[int]:
        sizes: set[int] = set()
        while not finished.is_set():
            sizes.update(len(index.search_terms(analyse_query(f"round{n}"), 100)) for n in range(rounds))
        return sizes

    with ThreadPoolExecutor(2) as pool:
        watchers = [pool.submit(watch) for _ in range(2)]
        try:
            for number in range(rounds):
                index.apply(page(number + 1, *(node(name, f"text of round{number}") for name in names)))
        finally:
            finished.set()
        assert set[int]().union(*(watcher.result() for watcher in watchers)) <= {0, len(names)}
    assert found(index, f"round{rounds - 1}")[:1] == ["key_00"]


def test_searches_go_on_while_the_index_clears_up(monkeypatch: pytest.MonkeyPatch) -> None:
    index = GraphIndex(0)
    index.apply(page(1, *(node(f"key_{number}", "a garden") for number in range(20))))
    compacted, meanwhile = Postings.compacted, list[object]()

    def watched(postings: Postings) -> object:
        # None where a lock is held.
        meanwhile.append(index.neighbours_at_once(["key_1"], 5, at_most=10))
        meanwhile.append(found(index, "garden"))
        return compacted(postings)

    monkeypatch.setattr(Postings, "compacted", watched)
    removals = tuple(Removal(kind=Kind.NODE, id=f"key_{n}", revision=2) for n in range(2, 20))
    index.apply(page(2, removals=removals))
    assert meanwhile == [[([], 0)], ["key_0", "key_1"]]
    assert found(index, "garden") == ["key_0", "key_1"]
    index.apply(page(3, node("key_9", "a pump in the garden")))
    assert found(index, "pump") == ["key_9"]


@pytest.fixture
def late_compaction(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (inverted_index, vectors_module):
        monkeypatch.setattr(module, "_COMPACT_MINIMUM", 64)


@pytest.mark.usefixtures("late_compaction")
def test_a_small_page_is_applied_at_once_and_like_any_other() -> None:
    prompt, patient = GraphIndex(2), GraphIndex(2)
    first = page(1, *(node(f"key_{number}", f"garden text {number}") for number in range(5)))
    changed = ChangedNode(node=node("key_3", "the pump at the gate"), passages=(passage(0, 1),))
    second = page(2, changed, node("key_9", "a gate"), edges=(edge("key_3", "key_9", "opens"),))
    for each in (first, second):
        assert prompt.apply_at_once(each)
        patient.apply(each)
    assert prompt.revision == patient.revision == 2
    for text in ("garden", "gate", "opens pump"):
        query = analyse_query(text)
        assert prompt.search_terms(query, 10) == patient.search_terms(query, 10) != []
    vector = np.array([0, 1], dtype=np.float32)
    assert [hit.key for hit in prompt.search_vectors(vector, 3)] == ["key_3"]
    assert prompt.apply_at_once(page(1, node("key_0", "older")))
    assert prompt.revision == 2


@pytest.mark.usefixtures("late_compaction")
def test_a_large_page_and_a_busy_index_are_left_to_a_thread() -> None:
    index = GraphIndex(0)
    assert not index.apply_at_once(page(1, *(node(f"key_{number}", "garden") for number in range(50))))
    assert not index.apply_at_once(page(1, node("long", "garden gate " * 1000)))
    small = page(1, node("alpha", "garden"))
    with index.reading():
        assert not index.apply_at_once(small)
        assert index.neighbours_at_once(["alpha"], 3, at_most=10) is None
    assert index.revision == 0
    assert index.apply_at_once(small)


def test_relationships_of_several_nodes_are_those_of_each_one() -> None:
    index = GraphIndex(0)
    spokes = [edge("hub", f"leaf_{number:02d}", f"label {number % 4}") for number in range(90)]
    index.apply(page(1, node("hub"), edges=(*spokes, edge("leaf_00", "leaf_01", "beside"))))
    keys = ["leaf_00", "hub", "absent", "leaf_07"]
    found = index.neighbours_of(keys, 5)
    assert [neighbours for neighbours, _ in found] == [index.neighbours(key, 5) for key in keys]
    assert [degree for _, degree in found] == [2, 90, 0, 1]
    assert index.neighbours_at_once(keys, 5, at_most=93) == found
    assert index.neighbours_at_once(keys, 5, at_most=92) is None


def test_a_number_given_away_again_brings_nothing_of_its_former_key() -> None:
    index = GraphIndex(2)
    index.apply(page(1, ChangedNode(node=node("old", "garden"), passages=(passage(1, 0),))))
    index.apply(page(2, removals=(Removal(kind=Kind.NODE, id="old", revision=2),)))
    index.apply(page(3, node("fresh", "pump")))
    assert (found(index, "garden"), found(index, "pump")) == ([], ["fresh"])
    assert index.cosine(np.array([1, 0], dtype=np.float32), ["old", "fresh"]) == {}
    assert (index.node_count, index.embedded_count) == (1, 0)
