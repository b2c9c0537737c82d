"""Any type sent, or none, settles on a canonical one; a replaced value is reported."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hivemem.domain.node_types import CANONICAL_TYPES, PROTECTED_TYPES, resolve_node_type


@pytest.mark.parametrize("name", CANONICAL_TYPES)
def test_a_canonical_type_is_taken_as_sent(name: str) -> None:
    resolved = resolve_node_type(name, "whatever_key")
    assert (resolved.node_type, resolved.warning) == (name, None)


@pytest.mark.parametrize(
    ("alias", "canonical"),
    [
        ("tool", "technology"),
        ("tech", "technology"),
        ("pref", "preference"),
        ("style", "preference"),
        ("org", "organization"),
        ("group", "organization"),
        ("document", "artifact"),
        ("file", "artifact"),
        ("URL", "artifact"),
        ("asset", "artifact"),
        ("product", "project"),
        ("location", "concept"),
        ("research", "concept"),
        (" Decision ", "decision"),
    ],
)
def test_an_alias_is_replaced_and_the_replacement_reported(alias: str, canonical: str) -> None:
    resolved = resolve_node_type(alias, "fact_x")
    assert resolved.node_type == canonical
    assert resolved.warning is not None
    assert repr(alias) in resolved.warning
    assert repr(canonical) in resolved.warning


def test_a_missing_type_follows_the_prefix_of_the_key_silently() -> None:
    assert resolve_node_type(None, "person_alice").node_type == "person"
    assert resolve_node_type(None, "tech_sqlite").node_type == "technology"
    assert resolve_node_type(None, "person_alice").warning is None


def test_an_unknown_type_follows_the_prefix_and_is_reported() -> None:
    resolved = resolve_node_type("measurement", "event_launch")
    assert resolved.node_type == "event"
    assert resolved.warning is not None
    assert "'measurement'" in resolved.warning


def test_without_type_and_prefix_it_is_a_fact() -> None:
    assert resolve_node_type(None, "greeting").node_type == "fact"
    assert resolve_node_type(None, "person").node_type == "fact"


@given(st.one_of(st.none(), st.text(max_size=12)), st.text(min_size=1, max_size=20))
def test_every_input_gives_a_canonical_type(requested: str | None, key: str) -> None:
    assert resolve_node_type(requested, key).node_type in CANONICAL_TYPES


def test_protected_types_are_the_nine_of_the_older_ontology() -> None:
    assert len(PROTECTED_TYPES) == 9
    assert {"user", "URL", "location"} <= PROTECTED_TYPES
