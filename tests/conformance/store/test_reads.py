"""Look-ups, listings, counts and histories."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from hivemem.domain.graph import GraphCounts, Kind, Relationships
from hivemem.domain.keys import USER_PROFILE_KEY
from hivemem.ports.store import Store
from tests.conformance.store.observe import GRAPH, OTHER_GRAPH
from tests.support.builders import batch, delete, edge, hyperedge, minutes, node, placeholder, update

ABC = tuple(node(key) for key in ("a_1", "b_1", "c_1"))


async def test_nodes_come_in_the_order_asked_for_and_once(store: Store) -> None:
    await store.apply(GRAPH, batch(*ABC))
    found = await store.nodes(GRAPH, ["c_1", "nobody_1", "a_1", "c_1"])
    assert list(found) == ["c_1", "a_1"]
    assert await store.nodes(OTHER_GRAPH, ["a_1"]) == {}


async def test_asking_for_nothing_finds_nothing(store: Store) -> None:
    await store.apply(GRAPH, batch(*ABC))
    assert await store.nodes(GRAPH, []) == {}
    assert await store.edges(GRAPH, []) == {}
    assert await store.hyperedges(GRAPH, []) == {}
    assert await store.relationships(GRAPH, [], edge_limit=5, hyperedge_limit=5) == {}
    snapshot = await store.snapshot(GRAPH)
    assert (snapshot.nodes, snapshot.edges, snapshot.hyperedges) == ({}, {}, {})


async def test_keys_are_compared_byte_by_byte(store: Store) -> None:
    await store.apply(GRAPH, batch(node("Case_1"), node("straße_1"), node("ab")))
    assert await store.nodes(GRAPH, ["case_1", "CASE_1", "strasse_1", "a_", "a%", "ab\0c", "", "ab "]) == {}
    assert list(await store.nodes(GRAPH, ["Case_1", "straße_1", "ab"])) == ["Case_1", "straße_1", "ab"]


async def test_more_than_a_thousand_names_in_one_call(store: Store) -> None:
    nodes = [node(f"n_{i:05d}") for i in range(2500)]
    hub = node("hub_1")
    edges = [edge("hub_1", one.key) for one in nodes]
    triples = [
        hyperedge(*(one.key for one in nodes[i : i + 3]), hyperedge_id=f"hyper_{i}")
        for i in range(0, 2498, 2)
    ]
    await store.apply(GRAPH, batch(hub, *nodes, *edges, *triples))
    keys = [one.key for one in nodes]
    assert list(await store.nodes(GRAPH, keys)) == keys
    assert len(await store.edges(GRAPH, [one.edge_id for one in edges])) == 2500
    assert len(await store.hyperedges(GRAPH, [one.hyperedge_id for one in triples])) == len(triples)
    snapshot = await store.snapshot(
        GRAPH, keys, [one.identity for one in edges], [one.identity for one in triples]
    )
    assert (len(snapshot.nodes), len(snapshot.edges), len(snapshot.hyperedges)) == (2500, 2500, 1249)
    await store.touch(GRAPH, "s", keys, minutes(1))
    assert len(await store.touched(GRAPH, "s", limit=5000)) == 2500
    await store.apply(GRAPH, batch(delete(hub)))
    assert (await store.counts(GRAPH)).edges == 0


async def test_a_snapshot_leaves_out_what_does_not_exist(store: Store) -> None:
    one, three = edge("a_1", "b_1"), hyperedge("a_1", "b_1", "c_1")
    await store.apply(GRAPH, batch(*ABC, one, three))
    snapshot = await store.snapshot(
        GRAPH,
        ["a_1", "nobody_1"],
        [one.identity, ("b_1", "a_1", one.relationship), ("a_1", "b_1", "another sentence")],
        [three.identity, (three.relationship, frozenset(("a_1", "b_1"))), ("other", three.identity[1])],
    )
    assert snapshot.nodes == {"a_1": replace(ABC[0], revision=1)}
    assert snapshot.edges == {one.identity: replace(one, revision=1)}
    assert snapshot.hyperedges == {three.identity: replace(three, revision=1)}


async def test_relationships_are_the_newest_by_creation_then_id(store: Store) -> None:
    random_order = list(range(8))
    random.Random(7).shuffle(random_order)
    edges = [
        edge("a_1", "b_1", f"label {i}", edge_id=f"edge_{i}", created_at=minutes(i // 2)) for i in range(8)
    ]
    edges[3] = edge("c_1", "a_1", "comes in", edge_id="edge_3", created_at=minutes(1))
    hypers = [
        hyperedge("a_1", "b_1", "c_1", relationship=f"met {i}", hyperedge_id=f"h_{i}", created_at=minutes(i))
        for i in range(4)
    ]
    await store.apply(GRAPH, batch(*ABC, node("d_1"), *(edges[i] for i in random_order), *hypers))
    found = await store.relationships(GRAPH, ["a_1", "d_1", "nobody_1"], edge_limit=6, hyperedge_limit=2)
    assert [one.edge_id for one in found["a_1"].edges] == [f"edge_{i}" for i in (7, 6, 5, 4, 3, 2)]
    assert [one.hyperedge_id for one in found["a_1"].hyperedges] == ["h_3", "h_2"]
    assert (found["a_1"].edge_total, found["a_1"].hyperedge_total) == (8, 4)
    nothing = Relationships(edges=(), hyperedges=(), edge_total=0, hyperedge_total=0)
    assert found["d_1"] == found["nobody_1"] == nothing


async def test_relationships_with_limit_zero_are_only_counted(store: Store) -> None:
    await store.apply(GRAPH, batch(*ABC, edge("a_1", "b_1"), hyperedge("a_1", "b_1", "c_1")))
    found = await store.relationships(GRAPH, ["b_1"], edge_limit=0, hyperedge_limit=0)
    assert found["b_1"] == Relationships(edges=(), hyperedges=(), edge_total=1, hyperedge_total=1)


async def test_counts_by_kind_and_type(store: Store) -> None:
    assert await store.counts(GRAPH) == GraphCounts(nodes=0, edges=0, hyperedges=0, types={})
    session = hyperedge("a_1", "b_1", "c_1", relationship="chat_2026")
    talk = hyperedge("a_1", "b_1", "c_1", relationship="Chat_about ferries")
    await store.apply(
        GRAPH,
        batch(
            *ABC,
            node("person_1", node_type="person"),
            placeholder("person_2", node_type="person"),
            placeholder(USER_PROFILE_KEY, node_type="user"),
            edge("a_1", "b_1"),
            session,
            talk,
        ),
    )
    assert await store.counts(GRAPH) == GraphCounts(
        nodes=5, edges=1, hyperedges=1, types={"fact": 3, "person": 2}
    )
    described = node(USER_PROFILE_KEY, "Likes ferries.", node_type="user")
    await store.apply(GRAPH, batch(delete(placeholder(USER_PROFILE_KEY)), delete(ABC[0])))
    await store.apply(GRAPH, batch(described))
    assert (await store.counts(GRAPH)).types == {"fact": 2, "person": 2, "user": 1}


async def test_a_described_profile_is_counted(store: Store) -> None:
    await store.apply(GRAPH, batch(placeholder(USER_PROFILE_KEY, node_type="user")))
    assert (await store.counts(GRAPH)).nodes == 0
    described = node(USER_PROFILE_KEY, "Likes ferries.", node_type="user")
    await store.apply(GRAPH, batch(update(described)))
    assert await store.counts(GRAPH) == GraphCounts(nodes=1, edges=0, hyperedges=0, types={"user": 1})


async def test_a_scan_walks_all_nodes_in_code_point_order(store: Store) -> None:
    keys = ["Z_1", "a_1", "a_10", "a_2", "é_1", "日本_1", "\U0001f600_1", "￿_1", "_1", "B-1"]
    shuffled = random.Random(3).sample(keys, len(keys))
    await store.apply(GRAPH, batch(*(node(key) for key in shuffled)))
    walked: list[str] = []
    after = None
    while page := await store.scan(GRAPH, after=after, limit=3):
        assert len(page) <= 3
        walked += [one.key for one in page]
        after = page[-1].key
    assert walked == sorted(keys)
    assert [one.key for one in await store.scan(GRAPH)] == sorted(keys)
    assert [one.key for one in await store.scan(GRAPH, after="a_100", limit=1)] == ["a_2"]
    assert await store.scan(GRAPH, limit=0) == []
    assert await store.scan(OTHER_GRAPH) == []


async def test_versions_hold_every_state_newest_first(store: Store) -> None:
    first = node("a_1", "First.", data={"n": 1}, assets=("file_1",))
    second = replace(first, description="Second.", data={"n": 1.0}, write_version=2, updated_at=minutes(5))
    await store.apply(GRAPH, batch(first, *ABC[1:], at=minutes(0)))
    await store.apply(
        GRAPH,
        batch(update(first, description="Second.", data={"n": 1.0}, updated_at=minutes(5)), at=minutes(5)),
    )
    await store.apply(GRAPH, batch(delete(second), at=minutes(9)))
    history = await store.versions(GRAPH, Kind.NODE, "a_1")
    assert [(v.kind, v.id, v.revision, v.recorded_at, v.state) for v in history] == [
        (Kind.NODE, "a_1", 3, minutes(9), None),
        (Kind.NODE, "a_1", 2, minutes(5), replace(second, revision=2)),
        (Kind.NODE, "a_1", 1, minutes(0), replace(first, revision=1)),
    ]
    assert await store.versions(GRAPH, Kind.EDGE, "a_1") == []
    assert await store.versions(GRAPH, Kind.NODE, "nobody_1") == []
    assert await store.versions(OTHER_GRAPH, Kind.NODE, "a_1") == []


async def test_the_newest_versions_before_a_revision(store: Store) -> None:
    first = node("a_1", "First.")
    await store.apply(GRAPH, batch(first, node("b_1")))
    await store.apply(GRAPH, batch(update(first, description="Second.")))
    await store.apply(GRAPH, batch(delete(replace(first, write_version=2))))
    await store.apply(GRAPH, batch(node("a_1", "Again."), edge("a_1", "b_1")))
    histories = {key: await store.versions(GRAPH, Kind.NODE, key) for key in ("a_1", "b_1")}
    for revision in range(6):
        expected = {
            key: next(one for one in history if one.revision < revision)
            for key, history in histories.items()
            if any(one.revision < revision for one in history)
        }
        asked = ["a_1", "b_1", "nobody_1", "a\x00", "日"]
        assert await store.versions_before(GRAPH, Kind.NODE, asked, revision) == expected
    assert (await store.versions_before(GRAPH, Kind.NODE, ["a_1"], 4))["a_1"].state is None
    assert await store.versions_before(GRAPH, Kind.EDGE, ["a_1"], 9) == {}
    assert await store.versions_before(OTHER_GRAPH, Kind.NODE, ["a_1"], 9) == {}
    assert await store.versions_before(GRAPH, Kind.NODE, [], 9) == {}


async def test_versions_of_relationships(store: Store) -> None:
    one, three = edge("a_1", "b_1", data={"x": [1]}), hyperedge("c_1", "a_1", "b_1", description="Text.")
    await store.apply(GRAPH, batch(*ABC, one, three))
    await store.apply(GRAPH, batch(update(one, description="Now described.")))
    newest, oldest = await store.versions(GRAPH, Kind.EDGE, one.edge_id)
    assert newest.state == replace(one, description="Now described.", write_version=2, revision=2)
    assert oldest.state == replace(one, revision=1)
    (only,) = await store.versions(GRAPH, Kind.HYPEREDGE, three.hyperedge_id)
    assert only.state == replace(three, revision=1)


@pytest.mark.parametrize("limit", [0, -1])
async def test_a_limit_of_nothing_lists_nothing(store: Store, limit: int) -> None:
    await store.apply(GRAPH, batch(*ABC, edge("a_1", "b_1")))
    await store.touch(GRAPH, "s", ["a_1"], minutes(1))
    assert await store.scan(GRAPH, limit=limit) == []
    assert await store.touched(GRAPH, "s", limit=limit) == []
    assert await store.timeline(GRAPH, limit=limit) == []
    assert await store.without_vectors(GRAPH, "m", limit=limit) == []
