"""What models for English can be expected to understand."""

from __future__ import annotations

import doctest

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hivemem.retrieval import language
from hivemem.retrieval.language import ends_with_question, is_foreign, merely_asks, readable_share

GERMAN = (
    "Der Verein spendete im letzten Jahr dreihundert Bücher an die Schule und zwei Computer an das Archiv."
)
ENGLISH = "The club gave three hundred books to the school last year, and two computers to the archive."
ROMANIAN = (
    "Clubul a donat anul trecut trei sute de cărți școlii și două calculatoare arhivei orașului nostru."
)


def test_the_examples_in_the_docstrings() -> None:
    outcome = doctest.testmod(language)
    assert (outcome.failed, outcome.attempted > 0) == (0, True)


@pytest.mark.parametrize("query", ["Wie viele Bücher hat der Verein gespendet?", "Bücher Verein", "Bücher"])
def test_a_german_question_to_a_german_text_is_foreign(query: str) -> None:
    assert is_foreign(query, GERMAN)


def test_a_language_without_a_word_list_is_known_by_its_text() -> None:
    assert is_foreign("Câte cărți a donat clubul?", ROMANIAN)


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("how many books did the club give?", GERMAN),
        ("books club", ENGLISH),
        ("smtp login", "Heron relay: SMTP login in the safe."),
        ("Rio de Janeiro hotel", "Hotel in Rio de Janeiro, second floor."),
        ("", ""),
    ],
)
def test_english_questions_and_bare_names_are_not_foreign(query: str, text: str) -> None:
    assert not is_foreign(query, text)


@given(st.text(), st.text())
def test_any_text_has_a_share_and_an_answer(query: str, text: str) -> None:
    assert 0.0 <= readable_share(text) <= 1.0
    assert is_foreign(query, text) in (True, False)


@pytest.mark.parametrize(
    ("text", "ends", "merely"),
    [
        ("Emi: Where are you going?", True, True),
        ("你要去哪里？ ", True, True),
        ("إلى أين؟", True, True),
        ("Is it? It is.", False, False),
        ("", False, False),
        ("We bought the blue car at the end of June. " * 5 + "Which tyres fit?", True, False),
    ],
)
def test_a_short_text_with_a_question_at_its_end_merely_asks(text: str, ends: bool, merely: bool) -> None:
    assert (ends_with_question(text), merely_asks(text)) == (ends, merely)
