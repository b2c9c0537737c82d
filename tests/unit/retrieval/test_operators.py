"""Operators of other search engines are taken out of a query, and nothing else is."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hivemem.retrieval.operators import without_operators


@pytest.mark.parametrize(
    ("query", "bare"),
    [
        ("NEAR/3 accountant", "accountant"),
        ("accountant NEAR/3 draft", "accountant draft"),
        ("accountant NEAR draft", "accountant draft"),
        ("NEAR(accountant draft, 5)", "accountant draft"),
        ("NEAR(accountant draft)", "accountant draft"),
        ("tax ADJ3 return W/5 draft PRE/2 form", "tax return draft form"),
        ("accountant~2 draft^4.5", "accountant draft"),
        ('"tax return"~10', '"tax return"'),
    ],
)
def test_an_operator_is_taken_out(query: str, bare: str) -> None:
    assert without_operators(query) == bare


@pytest.mark.parametrize(
    "query",
    [
        "which bakery is near the station?",
        "do NOT water the cactus",
        "gearbox AND (clutch OR brake)",
        "10^6 requests",
        "what is x^2?",
        "~5 minutes",
        "svc/3 and NEARBY/3",
        "Linear  NEARLY",
        "NEAR/3",
        "NEAR() ~ ^",
        "",
    ],
)
def test_everything_else_stays_as_it_is(query: str) -> None:
    assert without_operators(query) == query


@given(st.text(alphabet="aNEAR/3() ~^\"',W5\n", max_size=40))
@settings(max_examples=50)
def test_letters_outside_operators_are_never_lost(query: str) -> None:
    bare = without_operators(query)
    assert without_operators(bare) == bare or bare == query or len(bare) < len(query)
    assert bare.count("a") == query.count("a")
    assert bool(bare.strip()) == bool(query.strip())
