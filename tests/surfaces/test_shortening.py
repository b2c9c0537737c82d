"""Shortening: nothing short is cut, sizes are kept, and every cut says what is missing."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hivemem.surfaces.shortening import (
    fit_items,
    fit_node_entry,
    fit_recall_item,
    shorten_data,
    shorten_text,
    take_fitting,
    water_level,
)
from hivemem.surfaces.wire_json import json_size

MARK = re.compile(r"… \[shortened: ([\d,]+) of ([\d,]+) characters left out; [^\]]+\]$")


@given(st.lists(st.integers(0, 5_000), max_size=20), st.integers(0, 20_000))
@settings(max_examples=100)
def test_the_water_level_is_the_highest_that_fits(sizes: list[int], budget: int) -> None:
    level = water_level(sizes, budget)
    assert sum(min(size, level) for size in sizes) <= budget
    if sizes and level < max(sizes):
        assert sum(min(size, level + 1) for size in sizes) > budget


@given(st.text(st.characters(exclude_categories=("Cs",)), max_size=400), st.integers(-5, 600))
@settings(max_examples=100)
def test_text_is_whole_or_marked_and_fits(text: str, size: int) -> None:
    short = shorten_text(text, size)
    if short == text and not MARK.search(text):
        assert json_size(text) - 2 <= max(size, 0)
        return
    mark = MARK.search(short)
    assert mark is not None
    beginning = short[: mark.start()]
    left_out, total = (int(number.replace(",", "")) for number in mark.groups())
    assert total == len(text)
    assert text[: total - left_out].rstrip() == beginning
    assert not beginning or json_size(short) - 2 <= size


def test_the_cut_does_not_tear_characters() -> None:
    for size in range(90, 160):
        assert not shorten_text("e\u0301" * 300, size).startswith("e…")
        short = shorten_text("👩\u200d🚀" * 300, size)
        assert not MARK.sub("", short).rstrip().endswith("\u200d")


def test_data_keeps_the_fields_that_fit() -> None:
    data = {"city": "Oslo", "notes": "x" * 5_000, "open": True}
    short = shorten_data(data, 200, "ask for it")
    assert short == {"city": "Oslo", "open": True, "_shortened": "1 of 3 fields left out; ask for it"}
    assert shorten_data(data, 10_000, "ask for it") == data


def test_items_are_taken_in_order_while_they_fit() -> None:
    items = [{"n": number} for number in range(100)]
    taken = take_fitting(items, 100)
    assert taken == items[: len(taken)]
    assert json_size(taken) <= 100 < json_size(items[: len(taken) + 1])
    assert take_fitting(items, 0) == []


def recall_item(
    number: int, text: str, relationships: int = 5, label: str = "is needed by"
) -> dict[str, Any]:
    return {
        "key": f"app_{number}",
        "node_type": "fact",
        "description": text,
        "data": {"stage": "open"},
        "score": 0.91,
        "scores": {"dense": 0.8, "bm25": 11.5, "rrf": 0.0317, "relevance": 0.91},
        "enrichment_status": "skipped",
        "expansion_context": [
            {"direction": "outgoing", "key": f"person_{n}", "relationship": label}
            for n in range(relationships)
        ],
        "reasons": ["every word of the query is in it"],
    }


@pytest.mark.parametrize("text", ["interview notes. " * 400, "面接の記録。" * 400, '"\\\n' * 2_000])
@pytest.mark.parametrize("label", ["is needed by", "a very long sentence " * 40])
def test_fifty_long_results_fit(text: str, label: str) -> None:
    items = [recall_item(number, text, label=label) for number in range(50)]
    kept, left_out = fit_items(items, 23_000, 320, fit_recall_item)
    assert json_size(kept) <= 23_000
    assert len(kept) + left_out == 50
    assert [item["key"] for item in kept] == [f"app_{number}" for number in range(len(kept))]
    assert all(MARK.search(item["description"]) for item in kept)


def test_short_results_among_long_ones_stay_whole() -> None:
    items = [recall_item(0, "Short."), recall_item(1, "long " * 9_000), recall_item(2, "Also short.")]
    kept, left_out = fit_items(items, 8_000, 320, fit_recall_item)
    assert left_out == 0
    assert kept[0] == items[0]
    assert kept[2] == items[2]
    assert json_size(kept) > 7_000


def test_small_items_fill_the_budget_before_the_rest_is_left_out() -> None:
    items = [recall_item(number, "Short.", relationships=0) for number in range(500)]
    size = json_size(items[0]) + 1
    kept, left_out = fit_items(items, 23_000, 10 * size, fit_recall_item)
    assert len(kept) + left_out == 500
    assert json_size(kept) <= 23_000 < json_size(items[: len(kept) + 2])
    assert kept == items[: len(kept)]


def test_relationships_left_out_are_counted() -> None:
    item = recall_item(0, "long " * 2_000, relationships=30)
    short = fit_recall_item(item, 1_500)
    assert json_size(short) <= 1_500
    assert len(short["expansion_context"]) + short["expansion_omitted"] == 30


def test_a_node_entry_fits_and_stays_json() -> None:
    edges = [{"id": f"edge_{n}", "relationship": "because of the harbour " * 5} for n in range(300)]
    node = {"key": "k", "description": "ä" * 50_000, "data": {"a": "b" * 9_000}, "search_text": "s" * 9_000}
    entry = {"node": node, "binary_edges": edges, "hyperedges": [], "edge_total": 300}
    short = fit_node_entry(entry, 3_000, "ask for this key alone")
    assert json_size(short) <= 3_000
    assert 0 < len(short["binary_edges"]) < 300
    assert MARK.search(short["node"]["description"])
    assert json.loads(json.dumps(short)) == short
