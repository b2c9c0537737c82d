"""Recall by regular expression."""

from __future__ import annotations

import itertools
from types import SimpleNamespace
from typing import Any

import pytest

from hivemem.errors import InvalidInput
from hivemem.service import pattern_search
from hivemem.service.pattern_search import MAX_PATTERN_CHARACTERS
from tests.service.conftest import GRAPH
from tests.service.recall_world import HARBOUR, Build, build, keys_of, to
from tests.support.builders import batch, minutes, node

__all__ = ["build"]


async def test_keys_come_before_descriptions_before_data_and_newest_first(build: Build) -> None:
    world = build()
    await world.put("fact_rope_old", "Frayed.")
    await world.put("fact_data", "Something else.", data={"tags": ["ROPE", {"deep": "x"}]})
    await world.put("fact_text", "A rope in the text.")
    await world.put("fact_text_new", "Another rope in the text.")
    await world.put("fact_rope_new", "A new rope.")
    await world.put("fact_none", "Nothing.")
    result = await world.recall("rope", force_regex=True)
    assert [(hit.node.key, hit.score) for hit in result.hits] == [
        ("fact_rope_new", 1.0),
        ("fact_rope_old", 1.0),
        ("fact_text_new", 0.9),
        ("fact_text", 0.9),
        ("fact_data", 0.8),
    ]
    assert [hit.reasons for hit in result.hits[1:4:2]] == [
        ("the pattern matches its key",),
        ("the pattern matches its description",),
    ]
    assert result.meta["search_source"] == "regex"
    assert result.meta["matches"] == 5
    assert result.meta["nodes_searched"] >= 6
    assert "degraded" not in result.meta


async def test_no_match_is_an_empty_answer(build: Build) -> None:
    world = build()
    await world.put_all(HARBOUR)
    result = await world.recall("^zeppelin$", force_regex=True)
    assert (result.hits, result.meta["matches"]) == ((), 0)
    assert (await build().recall("x", force_regex=True)).hits == ()


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("ROPE", True),
        ("(?-i)ROPE", False),
        ("(?-i)rope", True),
        (r"\brop\b", False),
        (r"anchor.*sails", True),
        (r"^the blue", True),
        (r"sails\.$", True),
        (r"r[ou]pe\s+is", True),
        ("größe", True),
        ("GRÖSSE", False),
        ("GRÖßE", True),
    ],
)
async def test_the_syntax_is_that_of_re2_without_case(build: Build, pattern: str, found: bool) -> None:
    world = build()
    await world.put(
        "fact_one", "The blue rope is for the anchor,\nthe white rope (größe 3) for the sails."
    ) if pattern != "anchor.*sails" else await world.put("fact_one", "anchor, then sails.")
    assert bool(await world.keys(pattern, force_regex=True)) is found


@pytest.mark.parametrize(
    ("stored", "pattern"),
    [
        ("caf\u00e9", "cafe\u0301"),
        ("cafe\u0301", "caf\u00e9"),
        ("cafe\u0301", "cafe\u0301$"),
        ("N\u00f3\u017c", "No\u0301z\u0307"),
        ("\u1112\u1161\u11ab", "\ud55c"),
    ],
)
@pytest.mark.parametrize("place", ["key", "description", "data"])
async def test_composed_and_decomposed_spellings_match(
    build: Build, stored: str, pattern: str, place: str
) -> None:
    world = build()
    match place:
        case "key":
            await world.put(f"name_{stored}", "Something.")
        case "description":
            await world.put("fact_one", f"It is called {stored}")
        case _:
            await world.put("fact_one", "Something.", data={"name": stored})
            pattern = pattern.rstrip("$")
    assert len(await world.keys(pattern, force_regex=True)) == 1


async def test_search_text_is_not_part_of_a_pattern_search(build: Build) -> None:
    world = build()
    await world.put("fact_one", "Something.", search_text="zeppelin")
    assert await world.keys("zeppelin") == ["fact_one"]
    assert await world.keys("zeppelin", force_regex=True) == []


async def test_hits_have_their_relationships(build: Build) -> None:
    world = build()
    await world.put("fact_one", "A rope.", to("fact_two", "is tied to"))
    [hit] = (await world.recall("rope", force_regex=True)).hits
    assert [(link.direction, link.key, link.relationship) for link in hit.expansion] == [
        ("outgoing", "fact_two", "is tied to")
    ]
    assert hit.scores == {"relevance": 0.9}


async def test_every_page_of_a_graph_is_searched_and_the_total_is_told(build: Build) -> None:
    world = build(embedder=None)
    things = [
        node(f"log_{number:04}", f"Line {number}.", updated_at=minutes(number)) for number in range(1200)
    ]
    await world.store.apply(GRAPH, batch(*things))
    result = await world.recall("line", force_regex=True, max_results=3)
    assert keys_of(result) == ["log_1199", "log_1198", "log_1197"]
    assert (result.meta["matches"], result.meta["nodes_searched"]) == (1200, 1200)
    assert await world.keys(r"^log_1199$", force_regex=True) == ["log_1199"]


async def test_when_time_is_up_what_was_found_is_returned_and_told(
    build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = build(embedder=None, regex_seconds=10.0)
    await world.put_all({f"log_{number}": "A line." for number in range(8)})
    ticks = itertools.count(0, 3)
    clock: Any = SimpleNamespace(monotonic=lambda: next(ticks))
    monkeypatch.setattr(pattern_search, "time", clock)
    result = await world.recall("line", force_regex=True)
    # The deadline is at 10; nodes are looked at at 3, 6 and 9.
    assert sorted(keys_of(result)) == ["log_0", "log_1", "log_2"]
    assert result.meta["nodes_searched"] == 3
    [note] = result.meta["degraded"]
    assert note.startswith("regex: stopped after 10 s and 3 nodes")


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("([", "missing"),
        ("(?P<x>", "missing"),
        ("a**", "bad repetition"),
        (r"\1", "escape"),
        ("(?=x)", "perl operator"),
        ("(" * 900, "missing|nesting"),
        ("((a{100}){100}){100}", "repetition|large|memory"),
    ],
)
async def test_a_bad_pattern_is_refused_with_the_reason(build: Build, pattern: str, reason: str) -> None:
    with pytest.raises(InvalidInput, match=rf"^/query is not a valid .*({reason})") as caught:
        await build().recall(pattern, force_regex=True)
    assert "leave force_regex out" in caught.value.message


async def test_a_pattern_too_long_is_refused(build: Build) -> None:
    world = build()
    assert await world.keys("a" * MAX_PATTERN_CHARACTERS, force_regex=True) == []
    with pytest.raises(InvalidInput, match=rf"at most {MAX_PATTERN_CHARACTERS}"):
        await world.recall("a" * (MAX_PATTERN_CHARACTERS + 1), force_regex=True)
