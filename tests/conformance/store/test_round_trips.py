"""Every value comes back as it went in: text of all scripts, numbers of all kinds, exact times."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest

from hivemem.domain.edge import Participant
from hivemem.domain.graph import Kind
from hivemem.domain.node import EnrichmentStatus
from hivemem.domain.node_types import CANONICAL_TYPES
from hivemem.ports.store import Store
from tests.conformance.store.observe import GRAPH
from tests.support.builders import batch, create, edge, entry, hyperedge, node, passage, placeholder, vectors

TEXTS = [
    "Grüße aus Łódź; tomorrow's 'quote' and \"quote\"; -- no comment",
    "日本語と한국어と中文とไทย",
    "👩‍👩‍👧‍👦 👍🏽 🏳️‍🌈",
    "e\u0301 is not \u00e9; \u200f right to left \u202e",
    "line one\r\nline two\ttab\x01\x1f\x7f\ufeff\ufffe\uffff\U0010ffff",
    "  spaces around  ",
    "%_*?[]{}:name?1$1\\",
    "x" * 300_000 + "é" * 300_000 + "😀" * 100_000,
]

NUMBERS = {
    "int": 1,
    "float": 1.0,
    "negative zero": -0.0,
    "big": 2**200 + 1,
    "bigger than 64 bits": -(2**64),
    "huge": 10**4000,
    "small": 5e-324,
    "large": 1.7976931348623157e308,
    "third": 0.1 + 0.2,
    "true": True,
    "false": False,
    "null": None,
}


def spelling(value: object) -> str:
    """JSON text, in which 1, 1.0 and true differ, and the order of names shows."""
    return json.dumps(value)


@pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
async def test_texts(store: Store, text: str) -> None:
    one = node("a_1", text, search_text=text, assets=(text, ""), data={text: [text, {text: text}]})
    line = edge("a_1", "b_1", text, edge_id="edge_1", description=text, data={text: text})
    many = hyperedge("a_1", "b_1", "c_1", relationship=text, hyperedge_id="h_1", description=text)
    many = replace(
        many, participants=tuple(replace(participant, role=text) for participant in many.participants)
    )
    diary = entry(text, source=text, tool=text, node_key=text, meta={text: text})
    await store.apply(GRAPH, batch(one, node("b_1"), node("c_1"), line, many, diary))
    assert await store.nodes(GRAPH, ["a_1"]) == {"a_1": replace(one, revision=1)}
    assert await store.edges(GRAPH, ["edge_1"]) == {"edge_1": replace(line, revision=1)}
    assert await store.hyperedges(GRAPH, ["h_1"]) == {"h_1": replace(many, revision=1)}
    snapshot = await store.snapshot(GRAPH, (), [line.identity], [many.identity])
    assert (set(snapshot.edges), set(snapshot.hyperedges)) == ({line.identity}, {many.identity})
    assert [event.entry for event in await store.timeline(GRAPH, node_key=text)] == [diary]
    for kind, id, state in (
        (Kind.NODE, "a_1", one),
        (Kind.EDGE, "edge_1", line),
        (Kind.HYPEREDGE, "h_1", many),
    ):
        (version,) = await store.versions(GRAPH, kind, id)
        assert version.state == replace(state, revision=1)


@pytest.mark.parametrize(
    "key", ["日本語_メモ", "👍_1", "نمی‌خواهم_1", "a b", "a'b\"c", "[1]", '{"a":1}', "1", "null", "x" * 256]
)
async def test_keys(store: Store, key: str) -> None:
    one = node(key)
    line, many = edge(key, "b_1"), hyperedge(key, "b_1", "c_1")
    await store.apply(
        GRAPH,
        batch(create(one, vectors(passage(1.0))), node("b_1"), node("c_1"), line, many, entry(node_key=key)),
    )
    await store.touch(GRAPH, key, [key], one.created_at)
    assert list(await store.nodes(GRAPH, [key])) == [key]
    found = await store.relationships(GRAPH, [key], edge_limit=1, hyperedge_limit=1)
    assert found[key].edges == (replace(line, revision=1),)
    assert found[key].hyperedges == (replace(many, revision=1),)
    assert [touch.key for touch in await store.touched(GRAPH, key)] == [key]
    assert len(await store.timeline(GRAPH, node_key=key)) == 1


async def test_kinds_of_numbers_and_the_order_of_names(store: Store) -> None:
    data = {"z": NUMBERS, "a": [NUMBERS, [], {}, [[1, 1.0, True]]], "": ""}
    one = node("a_1", data=data)
    await store.apply(GRAPH, batch(one, node("b_1"), edge("a_1", "b_1", data=data), entry(meta=data)))
    stored = (await store.nodes(GRAPH, ["a_1"]))["a_1"]
    (version,) = await store.versions(GRAPH, Kind.NODE, "a_1")
    (stored_edge,) = (await store.relationships(GRAPH, ["a_1"], edge_limit=1, hyperedge_limit=1))["a_1"].edges
    (event,) = await store.timeline(GRAPH)
    for found in (stored.data, version.state.data, stored_edge.data, event.entry.meta):
        assert spelling(found) == spelling(data)


async def test_absent_and_empty_are_different(store: Store) -> None:
    without = node("a_1", search_text=None)
    blank = node("b_1", search_text="", assets=("",), data={"": None})
    lines = (edge("a_1", "b_1", edge_id="e_1"), edge("b_1", "a_1", edge_id="e_2", description=""))
    diary = (entry("", tool=None, node_key=None), entry(" ", tool="", node_key="", source=""))
    await store.apply(GRAPH, batch(without, blank, *lines, *diary))
    found = await store.nodes(GRAPH, ["a_1", "b_1"])
    assert found == {"a_1": replace(without, revision=1), "b_1": replace(blank, revision=1)}
    edges = await store.edges(GRAPH, ["e_1", "e_2"])
    assert [edges[id].description for id in ("e_1", "e_2")] == [None, ""]
    assert [event.entry for event in reversed(await store.timeline(GRAPH))] == list(diary)


async def test_every_type_and_status(store: Store) -> None:
    nodes = [node(f"n_{node_type}", node_type=node_type) for node_type in CANONICAL_TYPES]
    nodes += [
        node(f"s_{status}", enrichment_status=status)
        for status in EnrichmentStatus
        if status is not EnrichmentStatus.PLACEHOLDER
    ]
    nodes.append(placeholder("s_placeholder"))
    await store.apply(GRAPH, batch(*nodes))
    found = await store.nodes(GRAPH, [one.key for one in nodes])
    assert list(found.values()) == [replace(one, revision=1) for one in nodes]
    assert all(isinstance(one.enrichment_status, EnrichmentStatus) for one in found.values())


@pytest.mark.parametrize(
    "moment",
    [
        datetime(1970, 1, 1, tzinfo=UTC),
        datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
        datetime(1, 1, 1, tzinfo=UTC),
        datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
        datetime(2026, 3, 29, 1, 30, 0, 1, tzinfo=ZoneInfo("UTC")),
        datetime(2026, 3, 29, 1, 30, 0, 123_457, tzinfo=timezone(timedelta(0), "GMT")),
    ],
    ids=str,
)
async def test_moments_to_the_microsecond(store: Store, moment: datetime) -> None:
    one = node("a_1", created_at=moment, updated_at=moment)
    await store.apply(GRAPH, batch(one, entry(at=moment), at=moment))
    await store.touch(GRAPH, "s", ["a_1"], moment)
    stored = (await store.nodes(GRAPH, ["a_1"]))["a_1"]
    assert (stored.created_at, stored.updated_at) == (moment, moment)
    assert stored.created_at.utcoffset() == timedelta(0)
    (version,) = await store.versions(GRAPH, Kind.NODE, "a_1")
    assert version.recorded_at == moment
    assert [event.entry.at for event in await store.timeline(GRAPH)] == [moment]
    (touch,) = await store.touched(GRAPH, "s")
    assert (touch.first_touched_at, touch.last_touched_at) == (moment, moment)


async def test_large_versions_and_wide_hyperedges(store: Store) -> None:
    nodes = [node(f"n_{i:04d}", write_version=2**40) for i in range(400)]
    wide = hyperedge(*(one.key for one in nodes), hyperedge_id="h_1")
    assert wide.participants[399] == Participant(node_key="n_0399", ordinal=399)
    await store.apply(GRAPH, batch(*nodes, wide))
    assert (await store.hyperedges(GRAPH, ["h_1"]))["h_1"] == replace(wide, revision=1)
    assert (await store.nodes(GRAPH, ["n_0000"]))["n_0000"].write_version == 2**40
