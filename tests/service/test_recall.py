"""Recall from question to answer: candidates, order, floor, expansion, and what `_search_meta` says."""

from __future__ import annotations

import asyncio
import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hivemem.domain.access import Principal, Scope
from hivemem.errors import InvalidInput
from hivemem.models.hashing import HashingEmbedder
from hivemem.retrieval.fuse import RRF_K
from hivemem.service.first_stage import HUB_DEGREE
from hivemem.service.limits import Limits
from hivemem.service.recall import MAX_EXPANSIONS, MAX_RESULTS, RecallResult
from hivemem.storage.memory import MemoryStore
from tests.service.conftest import READER
from tests.service.recall_world import (
    CALIBRATION,
    HARBOUR,
    READS,
    Build,
    OverlapReranker,
    RecallWorld,
    build,
    keys_of,
    to,
)

__all__ = ["build"]


def assert_sound(result: RecallResult) -> None:
    scores = [hit.score for hit in result.hits]
    assert scores == sorted(scores, reverse=True)
    assert len(set(keys_of(result))) == len(result.hits)
    for hit in result.hits:
        assert 0.0 <= hit.score <= 1.0
        assert all(math.isfinite(score) for score in hit.scores.values())


def without_times(meta: Any) -> Any:
    if not isinstance(meta, dict):
        return meta
    return {
        name: without_times(value)
        for name, value in meta.items()
        if name != "ms" and not name.endswith("_ms")
    }


async def test_every_step_is_told(build: Build) -> None:
    world = build()
    await world.put_all(HARBOUR)
    result = await world.recall("Who repairs motors at the harbour?")
    assert keys_of(result)[0] == "person_ola"
    assert_sound(result)
    assert without_times(result.meta) == {
        "search_source": "hybrid",
        "legs": {"dense": {"ran": True, "hits": 6}, "bm25": {"ran": True, "hits": 2}},
        "fusion": {"method": "rrf", "k": RRF_K, "candidates": 6},
        "rerank": {"ran": True, "model": "overlap", "candidates": 6, "in_context": 0},
        "relevance_floor": pytest.approx(CALIBRATION.floor),
        "below_floor": 6 - len(result.hits),
    }
    times = [result.meta["total_ms"], result.meta["first_stage_ms"], result.meta["rerank"]["ms"]]
    times += [leg["ms"] for leg in result.meta["legs"].values()]
    assert all(isinstance(time, float) and time >= 0 for time in times)
    assert result.warnings == ()


async def test_a_hit_has_the_score_of_each_leg_that_found_it(build: Build) -> None:
    world = build()
    await world.put_all(HARBOUR)
    hit = (await world.recall("Ola repairs outboard motors")).hits[0]
    assert set(hit.scores) == {"relevance", "dense", "bm25", "rrf"}
    assert hit.scores["rrf"] == pytest.approx(2 / (RRF_K + 1))
    assert 0.4 < hit.scores["dense"] <= 1.0
    assert hit.scores["bm25"] > 0
    assert hit.score == hit.scores["relevance"]
    assert hit.reasons[0] == "holds every word of the query"


async def test_an_empty_graph_answers_with_nothing(build: Build) -> None:
    result = await build().recall("anything at all?")
    assert result.hits == ()
    assert result.meta["fusion"]["candidates"] == 0
    assert result.meta["below_floor"] == 0
    assert "degraded" not in result.meta


async def test_an_unrelated_question_gets_an_empty_list_and_the_count(build: Build) -> None:
    world = build()
    await world.put_all(HARBOUR)
    result = await world.recall("boiling point of mercury in kelvin")
    assert result.hits == ()
    assert result.meta["below_floor"] == len(HARBOUR)
    assert sorted(result.dropped) == sorted(HARBOUR)


async def test_exact_hits_pass_any_floor(build: Build) -> None:
    world = build(calibration=replace(CALIBRATION, floor=1.0), reranker=None)
    await world.put_all({**HARBOUR, "fn_moor": "moorBoatAt() throws EROPE_77 when no rope is left."})
    assert await world.keys("fact_tide") == ["fact_tide"]
    assert await world.keys(" fact_tide ") == ["fact_tide"]
    assert await world.keys("what does erope_77 mean in this context?") == ["fn_moor"]
    assert await world.keys("blue anchor rope") == ["fact_rope"]
    assert await world.keys("blue anchor chain") == []


async def test_a_weak_hit_comes_along_with_a_good_one_alone(build: Build) -> None:
    world = build(calibration=replace(CALIBRATION, floor=0.9, tail=20.0), embedder=None)
    await world.put_all(HARBOUR)
    both = await world.recall("harbour office day tickets")
    assert keys_of(both)[:2] == ["place_harbour", "person_ola"]
    assert both.hits[1].score < 0.9
    assert await world.keys("harbour master's boat and dinghy and oars") == []


async def test_the_floor_follows_the_size_of_the_graph(build: Build) -> None:
    world = build(calibration=replace(CALIBRATION, floor_growth=1.0))
    floors: list[float] = []
    for count in (1, 4, 12):
        for number in range(count):
            await world.put(f"log_{number}", f"Harbour log {number}.")
        floors.append((await world.recall("harbour log")).meta["relevance_floor"])
    assert floors == sorted(set(floors))
    await world.delete(*(f"log_{number}" for number in range(1, 12)))
    assert (await world.recall("harbour log")).meta["relevance_floor"] == floors[0]


async def test_what_was_stored_is_found_at_once(build: Build) -> None:
    world = build()
    for number, word in enumerate(("quince", "medlar", "sorb")):
        await world.put(f"tree_{word}", f"The {word} stands in row {number}.")
        assert await world.keys(word) == [f"tree_{word}"]


async def test_a_changed_or_removed_memory_leaves_no_ghost(build: Build) -> None:
    world = build()
    await world.put("note_dog", "Biscuit likes the red ball.", search_text="terrier", data={"age": "nine"})
    for query in ("Biscuit", "terrier", "nine"):
        assert await world.keys(query) == ["note_dog"]
    await world.put("note_dog", "The tax filing moved to May.", search_text="", data={})
    for query in ("Biscuit", "terrier", "nine", "red ball"):
        assert await world.keys(query) == []
    assert await world.keys("tax filing") == ["note_dog"]
    await world.delete("note_dog")
    assert await world.keys("tax filing") == []
    await world.put("note_dog", "Plants are watered on Mondays.")
    assert await world.keys("tax filing") == []
    assert await world.keys("plants") == ["note_dog"]


async def test_a_removed_node_frees_its_place_in_a_short_list(build: Build) -> None:
    world = build()
    for number in range(6):
        await world.put(f"shed_{number}", f"Shed note {number}: the padlock code changes.")
    await world.delete("shed_0", "shed_1", "shed_2")
    found = await world.keys("padlock code", max_results=2)
    assert len(found) == 2 and set(found) <= {"shed_3", "shed_4", "shed_5"}


async def test_a_placeholder_is_never_returned(build: Build) -> None:
    world = build(calibration=replace(CALIBRATION, floor=0.0))
    await world.put("bird_heron", "A heron stands in the reeds.", to("heron_nest", "guards the heron nest"))
    for query in ("heron_nest", "heron nest", "guards the heron nest"):
        result = await world.recall(query)
        assert keys_of(result) == ["bird_heron"]
        assert [link.key for link in result.hits[0].expansion] == ["heron_nest"]
    assert await world.keys("heron", force_regex=True) == ["bird_heron"]


async def test_relationships_are_part_of_the_words_of_a_node(build: Build) -> None:
    world = build(embedder=None)
    await world.put("system_one", "A billing system.", to("system_two", "sends nightly parcels to"))
    assert await world.keys("nightly parcels") == ["system_one"]


@pytest.mark.parametrize("direction", ["outgoing", "incoming"])
async def test_the_answer_stands_beside_the_words_of_the_question(build: Build, direction: str) -> None:
    world = build(embedder=None)
    if direction == "outgoing":
        await world.put("turn_1", "Which train do we take to the fair?", to("turn_2", "is followed by"))
        await world.put("turn_2", "The one at seven, from platform nine.")
    else:
        await world.put("turn_1", "Which train do we take to the fair?")
        await world.put("turn_2", "The one at seven, from platform nine.", to("turn_1", "answers"))
    await world.put("turn_9", "The soup was cold.")
    result = await world.recall("train to the fair")
    assert keys_of(result) == ["turn_1", "turn_2"]
    answer = result.hits[1]
    assert set(answer.scores) == {"relevance"}
    assert "beside 'turn_1', which also matches" in answer.reasons
    assert any(reason.startswith("read with its neighbours") for reason in answer.reasons)
    assert result.meta["rerank"]["in_context"] == 2
    assert isinstance(world.reranker, OverlapReranker)
    together = "Which train do we take to the fair? The one at seven, from platform nine."
    before_or_after = {together, "The one at seven, from platform nine. Which train do we take to the fair?"}
    assert before_or_after & set(world.reranker.read)


async def test_a_hub_hands_nothing_on(build: Build) -> None:
    world = build(embedder=None, calibration=replace(CALIBRATION, floor=0.0))
    await world.put("project_x", "Everything about the zeppelin.")
    for number in range(HUB_DEGREE + 1):
        await world.put(f"log_{number}", "Checks done.", to("project_x", "mentions"))
    assert await world.keys("zeppelin") == ["project_x"]


async def test_expansion_is_capped_with_the_particular_first_and_the_rest_counted(build: Build) -> None:
    world = build()
    await world.put("person_maria", "Maria leads operations.")
    await world.put("project_x", "Move the printer.", to("person_maria", "owned by"))
    for number in range(12):
        await world.put(f"log_{number}", "Checks done.", to("person_maria", "mentions"))
    hit = (await world.recall("Maria")).hits[0]
    assert hit.node.key == "person_maria"
    first = hit.expansion[0]
    assert (first.direction, first.key, first.relationship) == ("incoming", "project_x", "owned by")
    assert len(hit.expansion) == MAX_EXPANSIONS
    assert hit.expansion_omitted == 13 - MAX_EXPANSIONS
    other = (await world.recall("move the printer")).hits[0]
    assert [(link.direction, link.key) for link in other.expansion] == [("outgoing", "person_maria")]
    assert other.expansion_omitted == 0


@pytest.mark.parametrize(
    "query", ["harbour", "rope for the anchor", "who repairs motors?", "tide", "summer", "x"]
)
async def test_the_same_question_gets_the_same_answer(build: Build, query: str) -> None:
    world = build(calibration=replace(CALIBRATION, floor=0.0))
    await world.put_all(HARBOUR)
    await world.put("fact_copy", HARBOUR["fact_rope"], to("fact_rope", "repeats"))
    first = await world.recall(query)
    assert_sound(first)
    rebuilt = build(calibration=replace(CALIBRATION, floor=0.0))
    for again in (await world.recall(query), await rebuilt.recall(query)):
        assert again.hits == first.hits
        assert without_times(again.meta) == without_times(first.meta)


async def test_equal_memories_are_ordered_by_key(build: Build) -> None:
    world = build()
    for key in ("fact_c", "fact_a", "fact_b"):
        await world.put(key, "The ferry leaves at nine.")
    assert await world.keys("ferry at nine") == ["fact_a", "fact_b", "fact_c"]


async def test_fewer_results_are_the_first_of_more(build: Build) -> None:
    world = build(calibration=replace(CALIBRATION, floor=0.0))
    await world.put_all(HARBOUR)
    everything = await world.keys("the harbour", max_results=MAX_RESULTS)
    assert len(everything) == len(HARBOUR)
    for count in (1, 3, 5):
        assert await world.keys("the harbour", max_results=count) == everything[:count]


async def test_long_texts_are_read_in_the_passage_that_holds_the_answer(build: Build) -> None:
    world = build(reads=replace(READS, passage_characters=200))
    filler = "The weekly report says that all is well and that nothing happened. " * 60
    await world.put("report_long", filler + "The copper lighthouse opens the vault. " + filler)
    await world.put("fact_short", "A lighthouse near the coast.")
    result = await world.recall("copper lighthouse vault")
    assert keys_of(result)[0] == "report_long"
    assert isinstance(world.reranker, OverlapReranker)
    assert any("copper lighthouse opens the vault" in text for text in world.reranker.read)
    assert max(map(len, world.reranker.read)) <= 400


async def test_a_text_beside_the_description_is_read_where_it_matches(build: Build) -> None:
    world = build(reads=replace(READS, passage_characters=100))
    await world.put(
        "file_scan", "A scanned letter. " * 20, search_text="The zeppelin lands on Friday at noon."
    )
    result = await world.recall("zeppelin lands Friday noon")
    assert keys_of(result) == ["file_scan"]
    assert isinstance(world.reranker, OverlapReranker)
    assert "The zeppelin lands on Friday at noon." in world.reranker.read


async def test_long_texts_are_fewer_texts_but_at_least_five(build: Build) -> None:
    world = build(reads=replace(READS, tokens=100))
    for number in range(9):
        await world.put(f"log_{number}", f"Harbour log {number}: " + "all is well, " * 40)
    result = await world.recall("harbour log")
    assert result.meta["rerank"]["candidates"] == 5
    assert len(result.hits) == 9
    assert "degraded" not in result.meta


async def test_a_depth_of_zero_reads_nothing_and_is_no_failure(build: Build) -> None:
    world = build(reads=replace(READS, depth=0, context_depth=0))
    await world.put_all(HARBOUR)
    result = await world.recall("blue rope for the anchor")
    assert keys_of(result)[0] == "fact_rope"
    assert result.meta["rerank"]["ran"] is False
    assert "degraded" not in result.meta


@pytest.mark.parametrize(
    ("fields", "where"),
    [
        ({"query": ""}, "/query is blank"),
        ({"query": " \n\t "}, "/query is blank"),
        ({"query": "x" * 201}, "/query has 201 characters; at most 200"),
        ({"query": "a\x00b"}, "/query"),
        ({"query": "a\ud800b"}, "/query"),
        ({"query": "a", "max_results": 0}, "/max_results is 0"),
        ({"query": "a", "max_results": 51}, "/max_results is 51"),
        ({"query": "a", "session_id": "  "}, "/session_id is blank"),
        ({"query": "a", "session_id": "s" * 300}, "/session_id has 300"),
    ],
)
@pytest.mark.parametrize("force_regex", [False, True])
async def test_bad_requests_name_the_field(
    build: Build, fields: dict[str, Any], where: str, force_regex: bool
) -> None:
    world = build(limits=Limits(max_query_characters=200))
    with pytest.raises(InvalidInput, match=where):
        await world.recall(**fields, force_regex=force_regex)


async def test_a_query_as_long_as_allowed_is_answered_by_its_tail(build: Build) -> None:
    world = build(limits=Limits(max_query_characters=20_000))
    await world.put_all(HARBOUR)
    question = "which rope is for the anchor?"
    pasted = "Pasted words about something. " * 1_000
    result = await world.recall(pasted[: 20_000 - len(question)] + question)
    assert result.meta["legs"]["bm25"]["hits"] >= 1
    long = " ".join(f"word{number}" for number in range(1500)) + " anchor rope"
    shortened = await world.recall(long)
    assert any("long" in warning for warning in shortened.warnings)
    assert shortened.meta["legs"]["bm25"]["hits"] == 1


async def test_graphs_do_not_see_each_other(build: Build) -> None:
    world = build()
    await world.put_all(HARBOUR)
    stranger = Principal(user_id="user_two", graph_id="graph_two", scope=Scope.OWNER)
    for force_regex in (False, True):
        result = await world.recall("rope", by=stranger, force_regex=force_regex)
        assert result.hits == ()
        assert await world.recall("rope", force_regex=force_regex) != result


async def test_a_read_only_caller_may_ask(build: Build) -> None:
    world = build()
    await world.put_all(HARBOUR)
    assert keys_of(await world.recall("anchor rope", by=READER)) == ["fact_rope"]


async def test_candidates_can_be_had_without_ranking(build: Build) -> None:
    world: RecallWorld = build()
    await world.put_all(HARBOUR)
    reads = (await world.service.read_candidates(READER, "anchor rope")).reads
    assert {read.node.key for read in reads} == set(HARBOUR)
    assert all(read.own is not None and 0.0 <= read.trust <= 1.0 for read in reads)


async def test_a_reply_comes_before_the_question_that_it_follows(build: Build) -> None:
    world: RecallWorld = build()
    await world.put("turn_1", "Emi: which engine does the blue boat have?", to("turn_2", "is followed by"))
    await world.put("turn_2", "Kate: the blue boat has an engine from Aarhus.")
    await world.put("turn_3", "Emi: and the blue boat of Ola?")
    found = await world.service.read_candidates(READER, "engine of the blue boat")
    form = {read.node.key: (read.asks, read.follows_question) for read in found.reads}
    assert form == {"turn_1": (True, False), "turn_2": (False, True), "turn_3": (True, False)}
    assert (await world.keys("engine of the blue boat"))[0] == "turn_2"


@given(st.lists(st.text(max_size=60), max_size=6))
@settings(max_examples=50, deadline=None)
def test_no_question_breaks_recall(questions: list[str]) -> None:
    async def ask() -> None:
        world = RecallWorld(MemoryStore(), embedder=HashingEmbedder(16), reranker=OverlapReranker())
        await world.put_all(HARBOUR)
        for question in [*questions, "".join(questions)]:
            try:
                result = await world.recall(question)
            except InvalidInput as error:
                assert error.message.startswith("/query")
            else:
                assert_sound(result)
                assert len(result.hits) + result.meta["below_floor"] == len(HARBOUR)
        await world.close()

    asyncio.run(ask())
