"""Regular expressions of users: hard ones end, broken ones are explained, nobody else waits."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from hivemem.errors import InvalidInput
from tests.cases.memory import Memory, keys_of
from tests.cases.reports import Report, play

pytestmark = pytest.mark.models


@pytest.mark.shared
async def test_reported_hard_patterns(memory: Memory, report: Callable[[str], Report]) -> None:
    case = report("C29")
    await play(memory, case.setup)
    *hard, late = case.action["parallel"]
    assert len(hard) == 3
    *patterns, plain = await asyncio.gather(*(play(memory, [step]) for step in (*hard, late["op"])))
    # All three have an answer: RE2 needs no time limit for them. The first two match nothing at an end.
    assert [keys_of(result) for [result] in patterns] == [[], [], []]
    assert all("degraded" not in result.meta for [result] in patterns)
    assert keys_of(plain[0])[0] == "plain"

    *broken, good = [step for step in case.action["then"] if "recall" in step]
    assert len(broken) == 3
    for step in broken:
        with pytest.raises(InvalidInput, match=r"^/query ") as caught:
            await play(memory, [step])
        assert len(caught.value.message) < 500
    [found] = await play(memory, [good])
    assert keys_of(found) == ["plain"]


@pytest.mark.parametrize(
    "pattern",
    [
        r"(x+x+)+y",
        r"(.*)*z{3}",
        r"^(([a-z])+.)+[A-Z]([a-z])+$",
        r"(?:a?){60}a{60}b",
        r"(\w+\s?)*!",
    ],
)
async def test_a_pattern_that_backtracks_elsewhere_ends(memory: Memory, pattern: str) -> None:
    await memory.notes({"letters": "x" * 20_000 + "z", "words": "word " * 4_000, "lift": "The lift is old."})
    hard, easy = await asyncio.gather(memory.recall(pattern, force_regex=True), memory.recall("old lift"))
    assert "degraded" not in hard.meta
    assert keys_of(easy) == ["lift"]


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("[a-", "missing"),
        ("(unclosed", "missing"),
        ("a{2,1}", "repetition"),
        ("*start", "repetition"),
        (r"(a)\1", "escape"),
        ("(?=ahead)", "perl operator"),
        ("(?<!behind)", "perl operator|capture group"),
        ("x{9999}", "repetition"),
        ("\\", r"\\"),
    ],
)
async def test_a_broken_pattern_is_refused_with_the_reason(memory: Memory, pattern: str, reason: str) -> None:
    with pytest.raises(InvalidInput, match=rf"^/query is not a valid regular expression: .*({reason})"):
        await memory.recall(pattern, force_regex=True)
