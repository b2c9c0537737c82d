"""What the cross-encoder is given: the right stretch of a text, of bounded size."""

from __future__ import annotations

import doctest

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hivemem.retrieval import reading
from hivemem.retrieval.analyse import analyse_query
from hivemem.retrieval.reading import among_neighbours, best_window, closing_question, shortened_head

FILLER = "The weekly report says that all is well and nothing happened. "


@pytest.mark.parametrize("before", [0, 3, 17, 40])
def test_the_window_holds_the_words_of_the_question(before: int) -> None:
    fact = "The copper lighthouse opens the vault. "
    text = FILLER * before + fact + FILLER * (40 - before)
    start, end = best_window(text, analyse_query("what opens the copper vault?"), width=200)
    assert fact.strip() in text[start:end]


def test_the_window_with_more_of_the_words_wins() -> None:
    text = FILLER * 5 + "A vault was built. " + FILLER * 20 + "The vault hint is copper. " + FILLER * 5
    start, end = best_window(text, analyse_query("copper hint of the vault"), width=160)
    assert "vault hint is copper" in text[start:end]


def test_a_repeated_word_counts_once() -> None:
    text = "vault " * 60 + FILLER * 5 + "the copper vault " + FILLER * 5
    start, end = best_window(text, analyse_query("copper vault"), width=200)
    assert "copper vault" in text[start:end]


def test_without_any_word_the_first_window_is_taken() -> None:
    assert best_window(FILLER * 20, analyse_query("zeppelin"), width=100) == (0, 100)
    assert best_window("short", analyse_query("zeppelin"), width=100) == (0, 5)
    assert best_window("", analyse_query("zeppelin"), width=100) == (0, 0)


@given(st.text("ab cd\n漢字é", max_size=300), st.text("abcd 漢é", max_size=20), st.integers(1, 120))
@settings(max_examples=60)
def test_a_window_lies_in_the_text_and_is_bounded(text: str, query: str, width: int) -> None:
    start, end = best_window(text, analyse_query(query), width=width)
    assert 0 <= start <= end <= len(text)
    assert end - start <= width
    assert end > start or not text


@given(st.text("ab. ", min_size=101, max_size=400), st.integers(2, 100))
@settings(max_examples=60)
def test_windows_can_reach_every_word(text: str, width: int) -> None:
    """Put one rare word anywhere: if it fits twice in a window, it is found whole."""
    word = "zq"
    for position in (0, len(text) // 3, len(text)):
        changed = f"{text[:position]} {word} {text[position:]}"
        start, end = best_window(changed, analyse_query(word), width=max(width, 2 * len(word) + 4))
        assert word in changed[start:end]


def test_a_head_is_cut_at_a_space() -> None:
    assert shortened_head("one two  three\nfour", 100) == "one two three four"
    assert shortened_head("one two three", 9) == "one two"
    assert shortened_head("unbreakable", 4) == "unbr"
    assert shortened_head("   ", 4) == ""


@given(st.text("ab \n\t漢", max_size=200), st.integers(1, 60))
@settings(max_examples=60)
def test_a_head_is_a_bounded_start_of_the_text(text: str, limit: int) -> None:
    head = shortened_head(text, limit)
    whole = " ".join(text.split())
    assert len(head) <= limit
    assert whole.startswith(head)
    assert head or not whole


def test_neighbours_stand_around_the_text_and_blanks_leave_no_gap() -> None:
    assert among_neighbours("before", "text", "after") == "before text after"
    assert among_neighbours("", "text", "after") == "text after"
    assert among_neighbours("", "text", "") == "text"


def test_the_example_in_the_docstring() -> None:
    outcome = doctest.testmod(reading)
    assert (outcome.failed, outcome.attempted > 0) == (0, True)


@pytest.mark.parametrize("query", ["", "  ", "who?", "One thing. Another thing. What now?", "x" * 240])
def test_a_short_query_is_the_question(query: str) -> None:
    assert closing_question(query) == query


@pytest.mark.parametrize(
    ("end", "question"),
    [
        ("Who waters the plants?", "Who waters the plants?"),
        ("Who waters the plants?\n", "Who waters the plants?"),
        ("Who waters the plants? Answer in one line. Thank you!", "Who waters the plants?"),
        ("Find out who waters the plants", "Find out who waters the plants"),
        ("Ines has the plants. Does she?", "Ines has the plants. Does she?"),
        ("谁给植物浇水？请简短回答。", "happened. 谁给植物浇水？"),
        (
            "办公室里的植物每个星期到底由哪一位同事来负责浇水？",
            "办公室里的植物每个星期到底由哪一位同事来负责浇水？",
        ),
    ],
)
def test_of_a_long_query_the_question_at_its_end_is_left(end: str, question: str) -> None:
    found = closing_question(FILLER * 10 + end)
    assert found.endswith(question.removeprefix("happened. "))
    if not question.startswith("happened. "):
        assert found == question


def test_a_long_sentence_is_cut_to_its_end_at_a_space() -> None:
    found = closing_question("word " * 200 + "and who waters the plants?")
    assert found.endswith("word and who waters the plants?")
    assert len(found) <= 400
    assert closing_question("x" * 500) == "x" * 400


@given(st.text("ab.?! \n。", max_size=900), st.integers(1, 60))
@settings(max_examples=60)
def test_a_question_is_bounded_and_comes_from_the_query(query: str, limit: int) -> None:
    found = closing_question(query, limit=limit)
    assert len(found) <= limit
    assert found or not query.strip() or len(query) > limit
    assert set(found) <= {*query, " "}
