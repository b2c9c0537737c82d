"""What one server has acknowledged, the other answers with in the very next call."""

from __future__ import annotations

import pytest

from tests.replicas.conftest import Pair
from tests.replicas.replica import Refused

ROUNDS = 5


async def test_store_update_forget_store_again_and_restore(pair: Pair) -> None:
    for number in range(ROUNDS):
        writer, reader = pair[number % 2], pair[1 - number % 2]
        key, word = f"fact_life_{number}", f"zqlife{number}xw"
        await writer.post("store", key=key, description=f"The word {word} is here.")
        assert (await reader.recalled(word))[key] == f"The word {word} is here."
        await writer.post("update", key=key, description=f"The word {word} has moved.")
        assert (await reader.recalled(word))[key] == f"The word {word} has moved."
        await writer.post("forget", key=key)
        assert key not in await reader.recalled(word)
        with pytest.raises(Refused, match="404"):
            await reader.post("update", key=key, description="Nothing to update.")
        # The one that only read writes now, on what the other has just removed.
        await reader.post("store", key=key, description=f"The word {word} is back.")
        assert (await writer.recalled(word))[key] == f"The word {word} is back."
        await writer.post("update", key=key, description=f"The word {word} is wrong.")
        await reader.post("restore", key=key)
        assert (await writer.recalled(word))[key] == f"The word {word} is back."


async def test_a_forgotten_node_comes_back_by_restore(pair: Pair) -> None:
    one, other = pair
    await one.post("store", key="fact_kept", description="The zqkeptxw lamp is green.")
    await other.post("forget", key="fact_kept")
    assert "fact_kept" not in await one.recalled("zqkeptxw")
    assert (await one.post("restore", key="fact_kept"))["status"] == "restored"
    assert (await other.recalled("zqkeptxw"))["fact_kept"] == "The zqkeptxw lamp is green."


async def test_relationships_lead_the_other_to_a_node_without_the_word(pair: Pair) -> None:
    one, other = pair
    await one.post("store", key="event_launch", description="The zqlaunchxw happened in Bergen.")
    await one.post("store", key="person_liv", description="Liv keeps bees.")
    before = await other.post("recall", query="zqlaunchxw")
    assert "person_liv" not in [edge["out_node"] for hit in before["results"] for edge in _edges(hit)]
    await one.post(
        "relationships",
        relationships=[
            {"from_key": "event_launch", "to_key": "person_liv", "relationship": "was opened by"},
        ],
    )
    listed = await other.get("relationships/event_launch")
    assert [edge["out_node"] for edge in listed["binary_edges"]] == ["person_liv"]
    assert "person_liv" in await other.recalled("zqlaunchxw")
    await other.post("forget", edge_id=listed["binary_edges"][0]["edge_id"])
    assert (await one.get("relationships/event_launch"))["binary_edges"] == []


def _edges(hit: dict) -> list[dict]:
    return hit.get("binary_edges") or []


async def test_a_conversation_is_read_through_the_other(pair: Pair) -> None:
    one, other = pair
    for number in range(6):
        await pair[number % 2].post(
            "store",
            key=f"fact_talk_{number}",
            description=f"Sentence {number} of the talk.",
            session_id="talk",
        )
    for caller in pair:
        context = await caller.tool("hm_get_chat_context", session_id="talk")
        assert {node["key"] for node in context["nodes"]} == {f"fact_talk_{number}" for number in range(6)}
    counted = [(await caller.tool("hm_get_chat_context", session_id="talk"))["tool_calls"] for caller in pair]
    assert counted[1] >= counted[0] >= 6
    await other.post("recall", query="Sentence 3 of the talk", session_id="talk")
    assert (await one.tool("hm_get_chat_context", session_id="talk"))["tool_calls"] > counted[0]


async def test_the_diary_is_one(pair: Pair) -> None:
    one, other = pair
    written = await one.post("timeline/write", summary="The zqdiaryxw door was painted.")
    found = await other.post("timeline", query="zqdiaryxw")
    assert [(line["id"], line["summary"]) for line in found["events"]] == [
        (written["id"], "The zqdiaryxw door was painted.")
    ]
    second = await other.post("timeline/write", summary="The zqdiaryxw door was closed.")
    assert second["id"] > written["id"]
    assert [line["id"] for line in (await one.post("timeline", query="zqdiaryxw"))["events"]] == [
        second["id"],
        written["id"],
    ]


async def test_a_file_is_found_listed_and_asked_about_through_the_other(pair: Pair) -> None:
    one, other = pair
    sheet = "harbour,boats\nBergen,12\nBodo,30\n"
    uploaded = await one.upload("zqharboursxw.csv", sheet.encode())
    (entry,) = (await other.get("files", search="zqharboursxw"))["files"]
    assert entry["file_id"] == uploaded["file_id"]
    assert uploaded["node_key"] in await other.recalled("zqharboursxw boats in Bodo")
    # The cells are read from the bytes, which came in through the other server.
    answer = await other.post("tabular/search", file_id=uploaded["file_id"], query="Bodo")
    assert answer["count"] == 1
