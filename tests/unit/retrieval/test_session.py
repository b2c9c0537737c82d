"""The boost of a conversation's own memories."""

from __future__ import annotations

import doctest

from hypothesis import given, settings
from hypothesis import strategies as st

from hivemem.retrieval import session
from hivemem.retrieval.session import MAX_BOOST, session_boost


def test_the_example_in_the_docstring() -> None:
    outcome = doctest.testmod(session)
    assert (outcome.failed, outcome.attempted > 0) == (0, True)


@given(st.integers(0, 10**9), st.integers(0, 10**9))
@settings(max_examples=60)
def test_the_boost_is_bounded_and_rises_with_the_touches(a: int, b: int) -> None:
    low, high = sorted((a, b))
    assert 0.0 <= session_boost(low) <= session_boost(high) <= MAX_BOOST
    assert session_boost(0) == 0.0
    assert session_boost(1) > 0.0


def test_the_boost_cannot_decide_between_clearly_different_memories() -> None:
    assert MAX_BOOST < 0.05
