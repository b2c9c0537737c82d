"""What is relevant comes, what is not does not, and a score means the same in any company."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from hivemem.errors import InvalidInput
from hivemem.service.recall import RecallResult
from tests.cases.memory import Memory, keys_of
from tests.cases.reports import Report, play, store_requests

pytestmark = pytest.mark.models


def assert_scores_are_sound(result: RecallResult) -> None:
    scores = [hit.score for hit in result.hits]
    assert scores == sorted(scores, reverse=True)
    for hit in result.hits:
        assert all(math.isfinite(value) for value in (hit.score, *hit.scores.values()))
        assert 0.0 <= hit.score <= 1.0
        assert 0.0 <= hit.scores["relevance"] <= 1.0
        assert hit.scores.get("bm25", 0.0) >= 0.0


@pytest.mark.shared
async def test_reported_long_description(memory: Memory, report: Callable[[str], Report]) -> None:
    case = report("C06")
    await play(memory, case.setup)
    await memory.settled()
    about_hint, by_phrase, long_question, whole = await play(memory, case.sequence)
    assert keys_of(about_hint)[0] == "weekly_log"
    assert keys_of(by_phrase)[0] == "weekly_log"
    assert keys_of(long_question)[0] == "weekly_log"
    assert long_question.warnings
    [stored] = store_requests(case.setup[0]["store"])[:1]
    assert whole.found["weekly_log"].node.description == stored.description


@pytest.mark.parametrize("place", ["head", "middle", "tail"])
async def test_every_part_of_a_long_text_is_found(memory: Memory, place: str) -> None:
    filler = "Minutes of the allotment club: seats were counted, the treasurer spoke, tea was served. "
    fact = "The spare gate key is taped under the third beehive. "
    before, after = {"head": (0, 90), "middle": (45, 45), "tail": (90, 0)}[place]
    await memory.notes(
        {
            "club_minutes": filler * before + fact + filler * after,
            "bee_book": "A book about bees and their hives, borrowed from the library.",
            "gate_paint": "The garden gate was painted green.",
        }
    )
    await memory.settled()
    assert (await memory.keys("where is the spare key for the gate hidden?"))[0] == "club_minutes"
    assert (await memory.keys("taped under the third beehive"))[0] == "club_minutes"


@pytest.mark.shared
async def test_reported_relevance_floor(memory: Memory, report: Callable[[str], Report]) -> None:
    case = report("C14")
    await play(memory, case.setup)
    nonsense, unrelated, relay, login, sitter = await play(memory, case.sequence)
    for result in (nonsense, unrelated):
        assert keys_of(result) == []
        assert result.meta["below_floor"] >= 1
    assert keys_of(relay)[0] == "heron_relay"
    assert keys_of(login)[0] == "heron_relay"
    assert keys_of(sitter)[0] == "cat_sitter"
    for result in (relay, login, sitter):
        assert len(result.hits) <= 3


HOUSE = {
    "door_code": "Osprey gate: the side entrance opens with the code on the back of the meter cupboard.",
    "boiler": "The boiler is serviced every October by the same fitter.",
    "plants": "Ines waters the plants while everybody is on holiday.",
    "bins": "Paper is collected on the first Thursday of the month.",
    "piano": "The piano was tuned in spring and keeps its pitch.",
    "attic": "Winter tyres and the tent are stored in the attic.",
}


@pytest.mark.parametrize(
    "query",
    [
        "frumious bandersnatch wabe",
        "what is the speed of light in water?",
        "who won the chess championship in 1972?",
        "how do I reverse a linked list in place?",
        "wie hoch ist der Mont Blanc?",
    ],
)
async def test_a_question_that_nothing_answers_gets_nothing(memory: Memory, query: str) -> None:
    await memory.notes(HOUSE)
    result = await memory.recall(query)
    assert keys_of(result) == []
    assert result.meta["below_floor"] >= 1


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("osprey gate", "door_code"),
        ("piano", "piano"),
        ("who takes care of the flowers when we travel?", "plants"),
        ("when does somebody check the heating?", "boiler"),
        ("where do we keep the camping things?", "attic"),
        ("which day is the cardboard picked up?", "bins"),
    ],
)
async def test_a_question_that_one_memory_answers_gets_that_one(
    memory: Memory, query: str, expected: str
) -> None:
    await memory.notes(HOUSE)
    keys = await memory.keys(query)
    assert keys[:1] == [expected]
    assert len(keys) <= 3


PASTED = {
    "one sentence again and again": "Background pasted by the user about an unrelated meeting. " * 60,
    "a log": "\n".join(
        f"2026-03-0{n % 9 + 1} 12:0{n % 10} INFO worker {n} finished job {n * 7}" for n in range(90)
    ),
    "a letter": "Dear team, thank you for the warm welcome last week. The hotel was lovely and the talks "
    "were well prepared. Please find the slides and the list of participants attached. " * 12,
}


@pytest.mark.parametrize("pasted", PASTED.values(), ids=PASTED.keys())
async def test_the_question_at_the_end_of_a_pasted_text_is_the_question(memory: Memory, pasted: str) -> None:
    await memory.notes(HOUSE)
    assert (await memory.keys(f"{pasted}\n\nWho waters the plants during the holidays?"))[:1] == ["plants"]
    assert (await memory.keys(f"{pasted}\n\nWhen is the boiler serviced?"))[:1] == ["boiler"]
    assert await memory.keys(f"{pasted}\n\nWhat is the boiling point of mercury in kelvin?") == []


@pytest.mark.shared
async def test_reported_scale_of_scores(memory: Memory, report: Callable[[str], Report]) -> None:
    case = report("C15")
    await play(memory, case.setup)
    alone_step, store_step, wait_step, crowd_step = case.sequence
    [alone] = await play(memory, [alone_step["capture"]["op"]])
    [stored, _] = await play(memory, [store_step, wait_step])
    # A text without a visible character may be refused; a dot may not be lost silently either.
    assert [isinstance(outcome, InvalidInput) for outcome in stored][:2] == [False, False]
    [crowd] = await play(memory, [crowd_step["capture"]["op"]])
    assert keys_of(alone)[0] == keys_of(crowd)[0] == "wifi"
    assert abs(alone.hits[0].scores["relevance"] - crowd.hits[0].scores["relevance"]) < 0.02
    for result in (alone, crowd):
        assert result.hits[0].score >= result.meta["relevance_floor"]
        assert_scores_are_sound(result)
    scores = [hit.score for hit in crowd.hits]
    assert len(scores) == 1 or len(set(scores)) > 1


@pytest.mark.parametrize(
    ("query", "key"),
    [
        ("how often is the lift inspected?", "lift"),
        ("lift inspection", "lift"),
        ("who has the key of the server room?", "server_room"),
    ],
)
async def test_a_score_belongs_to_its_memory_not_to_the_company(memory: Memory, query: str, key: str) -> None:
    texts = {
        "lift": "The lift is inspected every March by the same engineer.",
        "server_room": "Noor keeps the key of the server room in her desk.",
    }
    await memory.notes({key: texts[key]})
    alone = (await memory.recall(query)).hits[0]
    await memory.notes(
        {
            "canteen": "The canteen is closed in August.",
            "stairs": "The stairs are cleaned on Fridays.",
            "lift_paint": "The lift doors were painted grey.",
            "bike_room": "The bike room has a new lock; the key is at the reception.",
        }
    )
    crowd = await memory.recall(query)
    assert keys_of(crowd)[0] == key
    assert abs(crowd.hits[0].scores["relevance"] - alone.scores["relevance"]) < 0.02
    assert_scores_are_sound(crowd)


async def test_scores_are_sound_for_odd_texts(memory: Memory) -> None:
    await memory.notes(
        {
            "dot": ".",
            "emoji": "🎉🎉🎉",
            "dashes": "-- - --",
            "number": "42",
            "word": "harbour",
            "long": "x" * 5_000,
        }
    )
    for query in ("harbour", "42", "🎉", ".", "what is there?", "x" * 4_000):
        assert_scores_are_sound(await memory.recall(query, max_results=50))
