"""The analyser on a readable table of texts and queries: tests/golden/analyser.json."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hivemem.retrieval.analyse import analyse_query, document_terms

GOLDEN: dict[str, Any] = json.loads(
    (Path(__file__).parents[2] / "golden" / "analyser.json").read_text(encoding="utf-8")
)


def held(query: str, text: str) -> list[bool]:
    """For each informative word of the query, whether the text holds it."""
    found = document_terms(text).frequencies
    words = [word for word in analyse_query(query).words if word.informative]
    return [any(term.text in found for term in word.terms) for word in words]


def weight(query: str, text: str) -> float:
    """What BM25 would give if all terms were equally rare: the weights of the held terms."""
    found = document_terms(text).frequencies
    weights = {term.text: term.weight for word in analyse_query(query).words for term in word.terms}
    return sum(value for term, value in weights.items() if term in found)


@pytest.mark.parametrize("case", GOLDEN["cases"], ids=lambda case: case["name"])
def test_finds_and_misses(case: dict[str, Any]) -> None:
    for query in case["finds"]:
        words = held(query, case["text"])
        assert words and all(words), f"{query!r} does not find {case['text']!r}"
    for query in case["misses"]:
        assert not any(held(query, case["text"])), f"{query!r} finds {case['text']!r}"


@pytest.mark.parametrize("case", GOLDEN["better"], ids=lambda case: f"{case['query']} {case['then']}")
def test_exact_form_outweighs_its_parts_and_other_spellings(case: dict[str, str]) -> None:
    best, other = weight(case["query"], case["first"]), weight(case["query"], case["then"])
    assert best > other > 0


@pytest.mark.parametrize("token", GOLDEN["identifiers"]["yes"])
def test_identifier_is_one_word_beside_its_parts(token: str) -> None:
    names = [word.surface for word in analyse_query(f"what is {token}").words if word.identifier]
    assert names == [token]
    assert all(held(token, f"see {token} there"))


@pytest.mark.parametrize("token", GOLDEN["identifiers"]["no"])
def test_ordinary_word_is_no_identifier(token: str) -> None:
    assert not any(word.identifier for word in analyse_query(token).words)
