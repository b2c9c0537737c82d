"""The analyser: agreement of documents and queries, stop words, limits, hostile text."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hivemem.retrieval.analyse import (
    MAX_QUERY_TOKENS,
    MAX_TERM_CHARACTERS,
    PLAIN_SPELLING_WEIGHT,
    AnalysedQuery,
    analyse_query,
    document_terms,
)
from hivemem.retrieval.scripts import spelling, without_accents
from hivemem.retrieval.words import tokens

BLOCKS = [
    (0x20, 0x7E), (0xA0, 0x24F), (0x250, 0x2FF), (0x300, 0x36F), (0x370, 0x3FF), (0x400, 0x52F),
    (0x590, 0x5F4), (0x600, 0x6FF), (0x900, 0x97F), (0xB80, 0xBFF), (0xE00, 0xEFF), (0x1000, 0x109F),
    (0x1100, 0x11FF), (0x1780, 0x17FF), (0x1E00, 0x1EFF), (0x2000, 0x206F), (0x2460, 0x24FF),
    (0x3040, 0x30FF), (0x4E00, 0x4EFF), (0xAC00, 0xACFF), (0xFB00, 0xFDFF), (0xFF00, 0xFFEF),
    (0x1D400, 0x1D7FF), (0x1F300, 0x1F64F), (0x20000, 0x200FF),
]  # fmt: skip
SEPARATORS = " \t\n_-.@'’&+\\/:,#\u200b\u00ad"
character = st.one_of(
    st.sampled_from("aAbBzZ019"),
    st.sampled_from(SEPARATORS),
    *(st.integers(first, last).map(chr) for first, last in BLOCKS),
)
texts = st.text(character, max_size=60)
anything = st.text(st.characters(codec=None), max_size=200)  # lone surrogates and NUL too


def surfaces(query: AnalysedQuery, *, informative: bool = True) -> list[str]:
    return [word.surface for word in query.words if word.informative is informative]


@settings(max_examples=100)
@given(texts)
def test_every_word_of_a_document_finds_it(text: str) -> None:
    document = document_terms(text)
    for piece in text.split():
        for word in analyse_query(piece).words:
            assert word.terms[0].text in document.frequencies, (piece, word)
            assert word.terms[0].weight == 1.0


@settings(max_examples=100)
@given(texts)
def test_a_text_as_a_query_holds_all_its_words(text: str) -> None:
    document = document_terms(text)
    query = analyse_query(text)
    assert all(word.terms[0].text in document.frequencies for word in query.words)
    assert bool(query.words) == bool(document.frequencies)


@settings(max_examples=50)
@given(texts)
def test_case_of_plain_words_does_not_matter(text: str) -> None:
    found = document_terms(text).frequencies
    for token in tokens(text):
        if token.isascii() and token.isalpha() and token.islower():
            assert analyse_query(token.upper()).words[0].terms[0].text in found


@settings(max_examples=100)
@given(anything)
def test_any_string_is_data(text: str) -> None:
    document = document_terms(text)
    query = analyse_query(text)
    assert all(count >= 1 for count in document.frequencies.values())
    assert all(0 < term.weight <= 1 for word in query.words for term in word.terms)
    assert all(word.terms for word in query.words)
    assert not query.words or any(word.informative for word in query.words)


@pytest.mark.soak
@settings(max_examples=5000)
@given(st.one_of(texts, anything))
def test_agreement_over_many_texts(text: str) -> None:
    document = document_terms(text)
    for piece in [text, *text.split()]:
        assert all(word.terms[0].text in document.frequencies for word in analyse_query(piece).words)


@settings(max_examples=50)
@given(st.lists(texts, max_size=4))
def test_fields_are_added(fields: list[str]) -> None:
    together = document_terms(*fields)
    assert together.length == sum(document_terms(field).length for field in fields)
    for field in fields:
        for term in document_terms(field).frequencies:
            assert term in together.frequencies or term.startswith("^")


@settings(max_examples=50)
@given(texts)
def test_spelling_and_folding_are_stable(text: str) -> None:
    for token in tokens(text):
        once = spelling(token)
        assert once and spelling(once) == once
        assert without_accents(without_accents(once)) == without_accents(once)


@pytest.mark.parametrize("text", ["", " ", "?!", "\x00", "\ud800", "☕ 🎉", "()\"'*^:", "_" * 9])
def test_text_without_words_has_no_terms(text: str) -> None:
    assert document_terms(text).frequencies == {}
    assert document_terms(text).length == 0
    assert analyse_query(text) == AnalysedQuery(words=(), shortened=False)


def test_stop_words_are_marked_and_kept_when_alone() -> None:
    question = analyse_query("What is the name of her dog?")
    assert surfaces(question) == ["name", "dog"]
    assert surfaces(question, informative=False) == ["What", "is", "the", "of", "her"]
    assert surfaces(analyse_query("Who are you?")) == ["Who", "are", "you"]
    assert surfaces(analyse_query("¿Quién es el?")) == ["Quién", "es", "el"]


def test_stop_words_of_other_languages_stay_in_english_questions() -> None:
    assert surfaces(analyse_query("who is Los")) == ["Los"]
    assert surfaces(analyse_query("wann wurde der Turm gebaut")) == ["Turm", "gebaut"]


def test_contractions_are_one_word() -> None:
    assert surfaces(analyse_query("doesn't Caroline's sister know?"), informative=False) == ["doesn't"]
    assert document_terms("Caroline’s").frequencies == document_terms("Caroline").frequencies


def test_length_counts_words_and_not_their_variants() -> None:
    assert document_terms("Reunião de planejamento").length == 3
    assert document_terms("rotateSigningKey").length == 3
    assert document_terms("盘点").length == 2
    assert document_terms("the dog", "a cat").length == 4


def test_frequencies_count_occurrences() -> None:
    assert document_terms("dog dogs Dog cat").frequencies == {"dog": 3, "cat": 1}


def test_typing_without_accents_widens_the_match_more_than_typing_them() -> None:
    plain = {term.text: term.weight for term in analyse_query("nam").words[0].terms}
    exact = {term.text: term.weight for term in analyse_query("năm").words[0].terms}
    assert plain == {"nam": 1.0, "~nam": PLAIN_SPELLING_WEIGHT}
    assert exact["năm"] == 1.0
    assert exact["nam"] == exact["~nam"] < plain["~nam"]


def test_prefixes_are_indexed_outside_english_only() -> None:
    assert "^kitap" in document_terms("kitaplarımızdan biri").frequencies
    assert "^organ" not in document_terms("the organization of the archive").frequencies
    english = analyse_query("what is the organization?")
    assert not any(term.text.startswith("^") for word in english.words for term in word.terms)


def test_identifier_comes_whole_and_in_parts() -> None:
    query = analyse_query("dropStaleLeases")
    assert surfaces(query) == ["dropStaleLeases", "drop", "Stale", "Leases"]
    assert [word.identifier for word in query.words] == [True, False, False, False]


def test_long_query_keeps_its_tail() -> None:
    query = analyse_query(" ".join(f"word{chr(97 + n)}" for n in range(26)), max_words=3)
    assert surfaces(query) == ["wordx", "wordy", "wordz"]
    assert query.shortened
    assert not analyse_query("wordx wordy wordz wordx", max_words=3).shortened


def test_repeated_preamble_leaves_room_for_the_question() -> None:
    preamble = "Background pasted by the user about an unrelated meeting. " * 250
    query = analyse_query(preamble + "What is the vault recovery hint?")
    assert query.shortened
    assert surfaces(query)[-3:] == ["vault", "recovery", "hint"]


def test_query_of_many_stop_words_is_bounded() -> None:
    assert len(analyse_query("who are you and what is it", max_words=2).words) == 2


def test_enormous_word_is_cut_and_found() -> None:
    word = "x" * 100_000
    terms = document_terms(word).frequencies
    assert max(map(len, terms)) <= MAX_TERM_CHARACTERS + 1
    assert analyse_query(word).words[0].terms[0].text in terms
    assert analyse_query("x" * 100).words[0].terms[0].text in terms
    mixed = "".join(f"part{n}_" for n in range(20_000))
    assert analyse_query(mixed).words[0].terms[0].text in document_terms(mixed).frequencies


@pytest.mark.parametrize(
    "unit",
    ["a", "aB", "a-", "a.b-c/", "1,000,", "_", "a:", "仓", "ภ", "\u0301", "e\u0301", "다", "\ud800",
     "\x00", "1a", "a'", "#1 ", "a@", "ﷺ", "İ", "\u0640", "a\u200d", "\u1100", "v1."],
    ids=ascii,
)  # fmt: skip
def test_hundred_kilobytes_of_anything_stay_bounded(unit: str) -> None:
    text = unit * (100_000 // len(unit))
    document = document_terms(text)
    query = analyse_query(text)
    assert sum(document.frequencies.values()) < 40 * len(text)
    assert len(query.words) <= 64 + MAX_QUERY_TOKENS
    assert not query.words or any(word.terms[0].text in document.frequencies for word in query.words)
