"""The reasons of a hit, and which hits are exact."""

from __future__ import annotations

from typing import Any

import pytest

from hivemem.retrieval.analyse import AnalysedQuery, analyse_query, document_terms
from hivemem.retrieval.explain import holds_every_word, holds_identifier, reasons


def held(query: AnalysedQuery, text: str) -> tuple[bool, ...]:
    found = document_terms(text).frequencies
    return tuple(any(term.text in found for term in word.terms) for word in query.words)


def why(query: str, text: str, **facts: Any) -> tuple[str, ...]:
    analysed = analyse_query(query)
    nothing: dict[str, Any] = {
        "is_key": False,
        "cosine": None,
        "logit": None,
        "context_logit": None,
        "supported_by": None,
        "touched": False,
    }
    return reasons(analysed, held(analysed, text), **{**nothing, **facts})


@pytest.mark.parametrize(
    ("query", "text", "expected"),
    [
        ("heron relay", "the heron relay is here", True),
        ("heron relay", "the heron is here", False),
        ("where is the heron?", "a heron", True),
        ("", "anything", False),
        ("?!", "anything", False),
        ("to be or not to be", "to be or not to be", True),
    ],
)
def test_holding_every_informative_word(query: str, text: str, expected: bool) -> None:
    analysed = analyse_query(query)
    assert holds_every_word(analysed, held(analysed, text)) is expected


@pytest.mark.parametrize(
    ("query", "text", "expected"),
    [
        ("what does EBADLEASE_7731 mean?", "see ebadlease_7731 above", True),
        ("what does EBADLEASE_7731 mean?", "7731 leases were bad", False),
        ("what does lease mean?", "a lease", False),
        ("call dropStaleLeases", "drop_stale_leases runs hourly", True),
    ],
)
def test_holding_an_identifier(query: str, text: str, expected: bool) -> None:
    analysed = analyse_query(query)
    assert holds_identifier(analysed, held(analysed, text)) is expected


def test_a_hit_without_any_fact_has_no_reason() -> None:
    assert why("heron", "a stork") == ()


def test_reasons_come_strongest_first() -> None:
    assert why(
        "heron relay",
        "heron relay",
        is_key=True,
        cosine=0.7134,
        logit=3.25,
        context_logit=-1.04,
        supported_by="place_safe",
        touched=True,
    ) == (
        "the query is its key",
        "holds every word of the query",
        "read by the cross-encoder: +3.2",
        "read with its neighbours: -1.0",
        "nearness in meaning: 0.71",
        "beside 'place_safe', which also matches",
        "part of this conversation",
    )


def test_some_of_the_words_are_named_as_the_query_spells_them() -> None:
    assert why("Heron relays and storks", "one heron, one relay") == ("holds Heron, relays",)


def test_many_words_are_counted() -> None:
    words = "ash beech cedar damson elder fir gorse hazel"
    assert why(f"{words} ivy", words) == ("holds ash, beech, cedar, damson, elder, fir and 2 more words",)
