"""A text as statements."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hivemem.enrichment.statements import (
    MAX_STATEMENT_CHARACTERS,
    STATEMENT_CHARACTERS,
    sentences,
    statements,
)


def texts(text: str) -> list[str]:
    return [one.text for one in statements(text)]


@pytest.mark.parametrize(
    ("paragraph", "expected"),
    [
        ("One. Two! Three? Four", ["One.", "Two!", "Three?", "Four"]),
        ("Dr. Stone met J. R. Klein, e.g. on Monday. Then left.", None),
        ("Version 3.7.12 is out. Get it.", ["Version 3.7.12 is out.", "Get it."]),
        ("钥匙在铁柜里。谁有钥匙？", ["钥匙在铁柜里。", "谁有钥匙？"]),
        ('He said "Stop." And went.', ['He said "Stop."', "And went."]),
    ],
)
def test_sentences_end_where_they_end(paragraph: str, expected: list[str] | None) -> None:
    if expected is None:
        expected = ["Dr. Stone met J. R. Klein, e.g. on Monday.", "Then left."]
    assert sentences(paragraph) == expected


def test_paragraphs_lists_and_headings_are_told_apart() -> None:
    found = statements("# Keys #\nThey rotate\nweekly.\n\n- One.\n- Two.\n1) Three\n\n## Doors\r\nShut.")
    assert [(one.text, one.heading, one.follows) for one in found] == [
        ("They rotate weekly.", "Keys", False),
        ("One.", "Keys", False),
        ("Two.", "Keys", True),
        ("Three", "Keys", True),
        ("Shut.", "Doors", False),
    ]


def test_short_sentences_are_packed_and_long_ones_cut() -> None:
    packed = texts(" ".join(f"Sentence number {n}." for n in range(40)))
    assert len(packed) > 1 and all(len(text) <= STATEMENT_CHARACTERS for text in packed)
    assert [len(text) <= MAX_STATEMENT_CHARACTERS for text in texts("word " * 3_000)] == [True] * 4
    assert [len(text) for text in texts("x" * 10_000)] == [4_000, 4_000, 2_000]


@given(st.text(max_size=400))
def test_no_visible_character_is_lost(text: str) -> None:
    kept = "".join("".join(one.text.split()) for one in statements(text))
    visible = "".join(text.split())
    # Markers of lists and headings go; everything else stays, in order.
    remaining = iter(visible)
    assert all(character in remaining for character in kept)


@given(st.text(alphabet="abcXYZ .!?。,;'\"\n", max_size=400).filter(lambda text: "\n" not in text))
def test_without_markup_the_text_is_whole(text: str) -> None:
    joined = "".join("".join(one.text.split()) for one in statements(text))
    assert joined == "".join(text.split())
