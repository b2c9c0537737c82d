"""Nothing that was stored is lost, and nothing that was changed or removed answers any more."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hivemem.errors import InvalidInput
from hivemem.service.remember import StoreResult
from tests.cases.memory import Memory, keys_of
from tests.cases.reports import Report, play, store_requests

pytestmark = pytest.mark.models


@pytest.mark.shared
async def test_reported_look_alikes_stay_apart(memory: Memory, report: Callable[[str], Report]) -> None:
    case = report("C10")
    stored = [outcome for outcomes in await play(memory, case.setup) for outcome in outcomes]
    assert [outcome.status for outcome in stored] == ["created"] * 6
    got, overview, meter, paint = await play(memory, case.sequence)
    sent = {one.key: one.description for step in case.setup for one in store_requests(step["store"])}
    assert {key: detail.node.description for key, detail in got.found.items()} == sent
    assert overview.counts.nodes == 6
    assert keys_of(meter)[0] == "meter_tue"
    assert keys_of(paint)[0] == "dec_paint"


async def test_near_copies_are_separate_memories(memory: Memory) -> None:
    texts = {
        "fact_door_left": "The left door opens with the code 4417.",
        "fact_door_right": "The right door opens with the code 4471.",
        "decision_cache_on": "We decided to use the cache for search results.",
        "decision_cache_off": "We decided not to use the cache for search results.",
        "fact_copy_one": "Deliveries go to gate three.",
        "fact_copy_two": "Deliveries go to gate three.",
    }
    for key, text in texts.items():
        assert (await memory.store(key, text)).status == "created"
    found = (await memory.nodes(*texts)).found
    assert {key: detail.node.description for key, detail in found.items()} == texts
    assert (await memory.keys("code 4471"))[0] == "fact_door_right"
    assert (await memory.keys("code 4417"))[0] == "fact_door_left"
    assert {"fact_copy_one", "fact_copy_two"} <= set(await memory.keys("gate three deliveries"))


@pytest.mark.shared
async def test_reported_update_forgets_the_old_text(memory: Memory, report: Callable[[str], Report]) -> None:
    case = report("C11")
    outcomes = await play(memory, case.setup)
    assert outcomes[2].status == "updated"
    dog, name, tax, pattern, _, dog_again, tax_again = await play(memory, case.sequence)
    for result in (dog, name, pattern, dog_again):
        assert "desk_note" not in keys_of(result)
    assert keys_of(tax)[0] == keys_of(tax_again)[0] == "desk_note"


@pytest.mark.parametrize(
    ("old", "new", "old_query", "new_query"),
    [
        (
            "The choir meets in the old fire station.",
            "Snow chains are mandatory on the pass road from November.",
            "in which building does the choir rehearse?",
            "from which month are snow chains needed on the pass?",
        ),
        (
            "仓库每周五盘点。",
            "新打印机在三楼走廊尽头。",
            "盘点",
            "打印机",
        ),
    ],
)
async def test_an_updated_memory_answers_for_its_new_text_alone(
    memory: Memory, old: str, new: str, old_query: str, new_query: str
) -> None:
    await memory.store("note_changing", old, search_text="violet marmalade")
    assert await memory.keys(old_query) == ["note_changing"]
    assert await memory.keys("violet marmalade") == ["note_changing"]
    assert (await memory.store("note_changing", new, search_text="")).status == "updated"
    assert await memory.keys(old_query) == []
    assert await memory.keys("violet marmalade") == []
    assert await memory.keys(new_query) == ["note_changing"]
    await memory.restart()
    assert await memory.keys(old_query) == []
    assert await memory.keys(new_query) == ["note_changing"]


@pytest.mark.shared
async def test_reported_ghosts_after_deletion(memory: Memory, report: Callable[[str], Report]) -> None:
    case = report("C13")
    await play(memory, case.setup)
    two, by_number, pattern, timeline, overview, _, _, again = await play(memory, case.sequence)
    alive = {"shed_11", "shed_12"}
    assert set(keys_of(two)) == alive
    assert set(keys_of(by_number)) <= alive
    assert set(keys_of(pattern)) == alive
    assert {event.entry.node_key for event in timeline} <= {*alive, None}
    assert not any("shed_1 " in event.entry.summary + " " for event in timeline)
    assert all(one.key in alive for hit in (*two.hits, *pattern.hits) for one in hit.expansion)
    assert (overview.counts.nodes, overview.counts.edges, overview.counts.hyperedges) == (2, 0, 0)
    assert set(keys_of(again)) == alive
    found = (await memory.nodes("shed_1", include_enrichment_history=True)).found["shed_1"]
    assert found.node.description == "Office plants are watered on Mondays."
    assert found.node.write_version == 1
    assert found.relationships is not None and found.relationships.edge_total == 0
    states = [version.state for version in found.history]
    assert [getattr(state, "description", None) for state in states if state] == [
        "Office plants are watered on Mondays."
    ]


async def test_a_deleted_hub_leaves_no_trace_in_its_neighbours(memory: Memory) -> None:
    hub = {"to_key": "project_kestrel", "relationship": "is a task of the kestrel project"}
    await memory.store("project_kestrel", "Kestrel: the new booking page.")
    for number in range(4):
        await memory.store(f"task_{number}", f"Task {number}: review the wording of step {number}.", hub)
    assert (await memory.keys("kestrel"))[0] == "project_kestrel"
    await memory.delete("project_kestrel")
    result = await memory.recall("kestrel")
    assert keys_of(result) == []
    assert (await memory.recall("kestrel", force_regex=True)).hits == ()
    task = (await memory.recall("review the wording of step 2")).hits[0]
    assert task.node.key == "task_2"
    assert task.expansion == ()
    assert "kestrel" not in " ".join(task.reasons)
    assert (await memory.overview()).counts.edges == 0


@pytest.mark.shared
async def test_reported_spellings_of_one_key(memory: Memory, report: Callable[[str], Report]) -> None:
    case = report("C22")
    [first], [second, invisible] = await play(memory, case.setup)
    assert (first.status, second.status) == ("created", "updated")
    assert isinstance(invisible, InvalidInput) and "U+200B" in invisible.message
    composed, decomposed, overview, linked, found, pattern, _, gone = await play(memory, case.sequence)
    [key] = composed.found
    assert list(decomposed.found) == [key]
    assert composed.found[key].node.description == "Knife block plan, second version."
    assert overview.counts.nodes == 1
    assert [outcome.keys for outcome in linked[0].created] == [("workshop", key)]
    assert keys_of(found).count(key) == 1 and keys_of(found)[0] == key
    assert keys_of(pattern).count(key) == 1
    assert gone.found == {} and len(gone.missing) == 1


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("place_caf\u00e9", "place_cafe\u0301"),
        ("name_\u1e69", "name_s\u0307\u0323"),
        ("unit_\uac00", "unit_\u1100\u1161"),
    ],
)
async def test_composed_and_decomposed_keys_are_one_memory(memory: Memory, one: str, other: str) -> None:
    assert (await memory.store(other, "First text about the lantern.")).status == "created"
    assert (await memory.store(one, "Second text about the lantern.")).status == "updated"
    assert (await memory.overview()).counts.nodes == 1
    assert await memory.keys("lantern") == [one]
    assert await memory.keys(other) == [one]
    assert await memory.keys(other, force_regex=True) == [one]


async def test_keys_that_differ_in_case_are_two_memories(memory: Memory) -> None:
    for key in ("team_Blue", "team_blue"):
        outcome = await memory.store(key, f"About {key}.")
        assert isinstance(outcome, StoreResult) and outcome.status == "created"
    assert (await memory.overview()).counts.nodes == 2
    assert (await memory.keys("team_Blue"))[0] == "team_Blue"
    assert (await memory.keys("team_blue"))[0] == "team_blue"
