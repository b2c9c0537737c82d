"""Recall on the written memory gives the answers that were last read and kept."""

from __future__ import annotations

import json
from typing import Any

import pytest
import pytest_asyncio

from tests.golden.corpus import MEMORIES, QUESTIONS, RELATIONSHIPS
from tests.golden.recall import FILE, answers

TOLERANCE = 1e-6
GOLDEN: list[dict[str, Any]] = json.loads(FILE.read_text(encoding="utf-8"))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def present() -> dict[str, dict[str, Any]]:
    return {answer["question"]: answer for answer in await answers()}


def test_the_golden_file_is_about_these_questions() -> None:
    assert [answer["question"] for answer in GOLDEN] == QUESTIONS
    assert {key for ends in RELATIONSHIPS for key in ends[:2]} <= set(MEMORIES)


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("kept", GOLDEN, ids=lambda answer: answer["question"])
async def test_the_answer_is_the_kept_one(kept: dict[str, Any], present: dict[str, dict[str, Any]]) -> None:
    answer = present[kept["question"]]
    assert [hit["key"] for hit in answer["hits"]] == [hit["key"] for hit in kept["hits"]]
    assert answer["below_floor"] == kept["below_floor"]
    for hit, expected in zip(answer["hits"], kept["hits"], strict=True):
        assert hit["score"] == pytest.approx(expected["score"], abs=TOLERANCE)
        assert hit["scores"] == pytest.approx(expected["scores"], abs=TOLERANCE)
        for name in ("reasons", "expansion", "expansion_omitted"):
            assert hit[name] == expected[name]
