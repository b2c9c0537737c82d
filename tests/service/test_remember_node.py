"""Storing a node: its fields, what exists already, its type, its vectors, its traces."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hivemem.domain.graph import Kind
from hivemem.domain.node import EnrichmentStatus
from hivemem.errors import Conflict, Forbidden, HivememError, InvalidInput, LimitExceeded
from hivemem.models.executor import ModelExecutor
from hivemem.service.limits import Limits
from hivemem.service.remember import IfExists, Remember, StoreRequest
from tests.service.conftest import GRAPH, OWNER, READER, World


async def test_a_new_node_is_created_with_version_one(world: World) -> None:
    result = await world.put("decision_jwt_auth", "We sign tokens with EdDSA.", data={"since": 2024})
    assert (result.status, result.warnings, result.errors) == ("created", (), ())
    stored = await world.node("decision_jwt_auth")
    assert stored == result.node
    assert (stored.node_type, stored.write_version, stored.data) == ("decision", 1, {"since": 2024})
    assert stored.revision == await world.store.revision(GRAPH)
    assert stored.enrichment_status is EnrichmentStatus.SKIPPED


async def test_a_second_store_updates_and_counts_up(world: World) -> None:
    await world.put("fact_a", "Old.", data={"a": 1}, search_text="ferry", assets=["f"], node_type="event")
    result = await world.put("fact_a", "New.")
    assert (result.status, result.node.write_version) == ("updated", 2)
    stored = await world.node("fact_a")
    assert (stored.description, stored.data, stored.search_text) == ("New.", {"a": 1}, "ferry")
    assert (stored.assets, stored.node_type) == (("f",), "event")


async def test_data_replaces_the_stored_object_whole(world: World) -> None:
    await world.put("fact_a", data={"a": 1, "b": 2})
    await world.put("fact_a", data={"b": 3})
    assert (await world.node("fact_a")).data == {"b": 3}
    await world.put("fact_a", data={})
    assert (await world.node("fact_a")).data == {}


async def test_every_state_is_in_the_history(world: World) -> None:
    for description in ("One.", "Two.", "Three."):
        await world.put("fact_a", description)
    versions = await world.store.versions(GRAPH, Kind.NODE, "fact_a")
    assert [version.state.description for version in versions if version.state] == ["Three.", "Two.", "One."]


async def test_keep_leaves_a_described_node_untouched_and_adds_relationships(world: World) -> None:
    first = await world.put("fact_a", "Old.")
    item = {"to_key": "fact_b", "relationship": "explains the delay"}
    result = await world.put("fact_a", "New.", item, if_exists=IfExists.KEEP, node_type="event")
    assert result.status == "kept"
    assert result.node == await world.node("fact_a") == first.node
    assert len(result.created) == 1
    assert (await world.store.counts(GRAPH)).edges == 1


async def test_keep_creates_a_node_that_does_not_exist(world: World) -> None:
    assert (await world.put("fact_a", if_exists=IfExists.KEEP)).status == "created"


async def test_error_writes_nothing_when_the_node_exists(world: World) -> None:
    await world.put("fact_a", "Old.")
    before = await world.store.revision(GRAPH)
    with pytest.raises(Conflict) as refusal:
        await world.put(
            "fact_a", "New.", {"to_key": "fact_b", "relationship": "explains"}, if_exists=IfExists.ERROR
        )
    assert refusal.value.code == "already_exists"
    assert await world.store.revision(GRAPH) == before
    assert await world.store.nodes(GRAPH, ["fact_b"]) == {}
    assert (await world.node("fact_a")).description == "Old."


@pytest.mark.parametrize("if_exists", IfExists)
async def test_a_placeholder_is_filled_whatever_if_exists_says(world: World, if_exists: IfExists) -> None:
    await world.put("fact_a", "A.", {"to_key": "person_bob", "relationship": "was told by"})
    result = await world.put("person_bob", "Bob drives the ferry.", if_exists=if_exists)
    assert result.status == "created"
    assert not (await world.node("person_bob")).placeholder
    assert await world.passages("person_bob") == ["description"]


async def test_the_user_profile_exists_after_the_first_store(world: World) -> None:
    await world.put("fact_a")
    profile = await world.node("user_profile")
    assert (profile.placeholder, profile.node_type) == (True, "user")
    assert (await world.store.counts(GRAPH)).nodes == 1
    result = await world.put("user_profile", "The owner likes short answers.")
    assert (result.status, result.warnings) == ("created", ())


async def test_a_type_is_resolved_and_never_refused(world: World) -> None:
    assert (await world.put("tool_rg", node_type="tool")).node.node_type == "technology"
    result = await world.put("event_launch", node_type="measurement")
    assert result.node.node_type == "event"
    assert any("'measurement'" in warning for warning in result.warnings)


async def test_a_type_is_unchanged_when_an_update_does_not_name_one(world: World) -> None:
    await world.put("person_alice", node_type="decision")
    assert (await world.put("person_alice", "Again.", node_type="  ")).node.node_type == "decision"


async def test_a_key_off_the_convention_is_stored_with_a_warning(world: World) -> None:
    result = await world.put("fact/with space")
    assert result.node.key == "fact/with space"
    assert any("'fact/with space'" in warning for warning in result.warnings)


async def test_two_spellings_of_a_key_are_one_node(world: World) -> None:
    await world.put("No\u0301z\u0307_plan", "First version.")
    result = await world.put("Nóż_plan", "Second version.")
    assert (result.status, result.node.write_version) == ("updated", 2)
    assert (await world.store.counts(GRAPH)).nodes == 1


async def test_a_key_that_was_cleaned_is_reported(world: World) -> None:
    result = await world.put(" fact_a ")
    assert result.node.key == "fact_a"
    assert any("' fact_a '" in warning for warning in result.warnings)


async def test_similar_nodes_are_never_merged(world: World) -> None:
    first = await world.put("meter_mon", "Meter reading in the annex: 48,182 kWh.")
    second = await world.put("meter_tue", "Meter reading in the annex: 48,281 kWh.")
    assert (first.status, second.status) == ("created", "created")
    assert (await world.node("meter_mon")).description == "Meter reading in the annex: 48,182 kWh."
    assert (await world.node("meter_tue")).description == "Meter reading in the annex: 48,281 kWh."


@pytest.mark.parametrize(
    ("fields", "pointer"),
    [
        ({"key": "zwj\u200bkey"}, "/key "),
        ({"key": " "}, "/key "),
        ({"key": "k" * 300}, "/key "),
        ({"description": ""}, "/description "),
        ({"description": " \n\t"}, "/description "),
        ({"description": "\u200b\u200b"}, "/description "),
        ({"description": "nul\x00"}, "/description "),
        ({"search_text": "\ud800"}, "/search_text "),
        ({"data": {"x": float("nan")}}, "/data/x "),
        ({"data": {"x": 10**5000}}, "/data "),
        ({"assets": [" "]}, "/assets/0 "),
        ({"session_id": " "}, "/session_id "),
        ({"session_id": "s" * 257}, "/session_id "),
        ({"node_type": "nul\x00"}, "/node_type "),
    ],
)
async def test_a_broken_field_is_refused_with_its_pointer(
    world: World, fields: dict[str, Any], pointer: str
) -> None:
    request = StoreRequest(**{"key": "fact_a", "description": "A.", **fields})
    with pytest.raises(InvalidInput) as refusal:
        await world.remember.store(OWNER, request)
    assert refusal.value.message.startswith(pointer)
    assert await world.store.revision(GRAPH) == 0


@pytest.mark.parametrize(
    "fields",
    [
        {"description": "d" * 11},
        {"search_text": "s" * 11},
        {"data": {"x": "d" * 11}},
        {"assets": ["a", "b", "c"]},
        {"relationships": [{"to_key": f"fact_{n}", "relationship": "lists"} for n in range(4)]},
    ],
)
async def test_a_field_over_its_limit_is_refused(world: World, fields: dict[str, Any]) -> None:
    limits = Limits(
        max_description_characters=10,
        max_search_text_characters=10,
        max_data_characters=10,
        max_assets=2,
        max_relationships_per_call=3,
    )
    remember = Remember(store=world.store, executor=world.executor, clock=world.clock, limits=limits)
    with pytest.raises(LimitExceeded) as refusal:
        await remember.store(OWNER, StoreRequest(**{"key": "fact_a", "description": "A.", **fields}))
    assert refusal.value.facts["limit"] in (2, 3, 10)
    assert await world.store.revision(GRAPH) == 0


async def test_a_read_only_credential_cannot_store(world: World) -> None:
    request = StoreRequest(key="fact_a", description="A.")
    with pytest.raises(Forbidden):
        await world.remember.store(READER, request)
    with pytest.raises(Forbidden):
        await world.remember.store_many(READER, [request])
    assert await world.store.revision(GRAPH) == 0


async def test_both_texts_are_embedded_with_their_offsets(world: World) -> None:
    text = "A short sentence about ferries. " * 60
    await world.put("fact_a", text, search_text="harbour timetable")
    page = await world.store.changes(GRAPH, 0, model_id=world.embedder.model_id)
    [found] = [changed for changed in page.nodes if changed.node.key == "fact_a"]
    sources = [passage.source for passage in found.passages]
    assert sources == sorted(sources) and set(sources) == {"description", "search_text"}
    assert sources.count("description") > 1
    for passage in found.passages:
        source = text if passage.source == "description" else "harbour timetable"
        vector = np.frombuffer(passage.vector, "<f4")
        expected = world.embedder.embed_query(source[passage.start : passage.end])
        assert np.allclose(vector, expected)


async def test_unchanged_text_is_not_embedded_again(world: World) -> None:
    await world.put("fact_a", "The ferry leaves at nine.")
    world.embedder.embedded.clear()
    result = await world.put("fact_a", "The ferry leaves at nine.", data={"pier": 3})
    assert world.embedder.embedded == []
    assert result.node.enrichment_status is EnrichmentStatus.SKIPPED
    assert await world.passages("fact_a") == ["description"]


async def test_a_changed_text_replaces_the_vectors(world: World) -> None:
    await world.put("fact_a", "Our office dog likes the red ball.")
    await world.put("fact_a", "The tax filing moved to May.")
    page = await world.store.changes(GRAPH, 0, model_id=world.embedder.model_id)
    [found] = [changed for changed in page.nodes if changed.node.key == "fact_a"]
    [passage] = found.passages
    expected = world.embedder.embed_query("The tax filing moved to May.")
    assert np.allclose(np.frombuffer(passage.vector, "<f4"), expected)


async def test_without_a_model_the_node_is_stored_and_waits(world: World) -> None:
    executor = ModelExecutor(None, None)
    remember = Remember(store=world.store, executor=executor, clock=world.clock, limits=Limits())
    result = await remember.store(OWNER, StoreRequest(key="fact_a", description="A."))
    executor.close()
    assert result.status == "created"
    assert result.node.enrichment_status is EnrichmentStatus.PENDING
    assert any("pending" in warning for warning in result.warnings)
    assert await world.node("fact_a") == result.node


async def test_a_failing_model_clears_the_old_vector_and_loses_no_text(world: World) -> None:
    await world.put("fact_a", "Our office dog likes the red ball.")
    world.embedder.fails = True
    result = await world.put("fact_a", "The tax filing moved to May.")
    assert (result.status, result.node.enrichment_status) == ("updated", EnrichmentStatus.PENDING)
    assert any("does not answer" in warning for warning in result.warnings)
    assert await world.passages("fact_a") == []
    world.embedder.fails = False
    again = await world.put("fact_a", "The tax filing moved to May.")
    assert again.node.enrichment_status is EnrichmentStatus.SKIPPED
    assert await world.passages("fact_a") == ["description"]


async def test_a_very_long_text_is_left_to_the_background_where_that_runs(world: World) -> None:
    woken: list[str] = []
    limits = Limits(max_passages_in_request=2)
    remember = Remember(
        store=world.store,
        executor=world.executor,
        clock=world.clock,
        limits=limits,
        on_pending=woken.append,
    )
    long = "A short sentence about ferries. " * 200
    result = await remember.store(OWNER, StoreRequest(key="fact_a", description=long))
    assert result.node.enrichment_status is EnrichmentStatus.PENDING
    assert any("background" in warning for warning in result.warnings)
    assert (woken, world.embedder.embedded) == ([GRAPH], [])
    short = await remember.store(OWNER, StoreRequest(key="fact_b", description="Short."))
    assert short.node.enrichment_status is EnrichmentStatus.SKIPPED
    assert woken == [GRAPH]


async def test_each_store_writes_one_diary_line(world: World) -> None:
    await world.put("fact_a", "The ferry leaves at nine.", {"to_key": "place_b", "relationship": "concerns"})
    await world.put("fact_a", "Other.", if_exists=IfExists.KEEP)
    kept, created = await world.store.timeline(GRAPH)
    assert created.entry.summary == "Created fact_a: The ferry leaves at nine. (+1 relationship)"
    assert (created.entry.tool, created.entry.node_key, created.entry.source) == (
        "hm_store",
        "fact_a",
        "agent",
    )
    assert kept.entry.summary == "Kept fact_a"


async def test_the_session_records_the_stored_node(world: World) -> None:
    remember = world.remember
    related = ({"to_key": "fact_b", "relationship": "explains"},)
    await remember.store(
        OWNER, StoreRequest(key="fact_a", description="A.", relationships=related, session_id=" s1 ")
    )
    await remember.store(OWNER, StoreRequest(key="fact_c", description="C."))
    assert [touch.key for touch in await world.store.touched(GRAPH, "s1")] == ["fact_a"]
    assert [touch.key for touch in await world.store.touched(GRAPH, "default")] == ["fact_c"]


async def test_a_kept_node_is_touched_and_a_refused_store_touches_nothing(world: World) -> None:
    await world.put("fact_a")
    await world.put("fact_a", if_exists=IfExists.KEEP, session_id="s1")
    with pytest.raises(Conflict):
        await world.put("fact_a", if_exists=IfExists.ERROR, session_id="s2")
    assert [touch.key for touch in await world.store.touched(GRAPH, "s1")] == ["fact_a"]
    assert await world.store.touched(GRAPH, "s2") == []


async def test_graphs_do_not_see_each_other(world: World) -> None:
    await world.put("fact_a")
    assert await world.store.nodes("graph_two", ["fact_a"]) == {}


async def test_every_refusal_is_an_error_of_the_project(world: World) -> None:
    with pytest.raises(HivememError):
        await world.put("fact_a", "")
