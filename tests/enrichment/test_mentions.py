"""What a statement names."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hivemem.domain.keys import normalise_key
from hivemem.domain.node_types import CANONICAL_TYPES
from hivemem.enrichment.mentions import mentions


def keys(text: str) -> set[str]:
    return {mention.key for mention in mentions([text])[0]}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Yesterday Alice Müller told us.", {"person_alice_muller"}),
        ("We asked Dr. Bob Stone.", {"person_bob_stone"}),
        ("The keys rotate weekly.", set()),
        ("It runs on the Acme Gateway now.", {"concept_acme_gateway"}),
        ("He works for Blue Harbor GmbH since then.", {"organization_blue_harbor_gmbh"}),
        ("She studied at the University of Graz in spring.", {"concept_university_of_graz"}),
        ("Der Schlüssel liegt im Schrank neben der Tür im Flur bei Petra Klein.", {"concept_petra_klein"}),
        ("See https://docs.acme.example/keys?x=1.", {"artifact_docs_acme_example_751856fe"}),
        ("Write to ops.team@acme.example!", {"person_ops_team"}),
        ("Due 2026-03-03, moved to May 4th, 2026.", {"event_2026_03_03", "event_2026_05_04"}),
        ("On 31 Feb 2026 nothing happens.", set()),
    ],
)
def test_names_dates_links_and_addresses(text: str, expected: set[str]) -> None:
    assert keys(text) == expected


def test_a_word_at_the_beginning_counts_when_it_is_a_name_elsewhere() -> None:
    alone, with_other = mentions(["Harper sails."]), mentions(["Harper sails.", "We like Harper a lot."])
    assert alone[0] == []
    assert [mention.key for mention in with_other[0]] == ["concept_harper"]
    assert "person_harper" in with_other[0][0].names


@given(st.lists(st.text(max_size=120), max_size=4))
def test_any_text_gives_storable_nodes(texts: list[str]) -> None:
    found = mentions(texts)
    assert len(found) == len(texts)
    for mention in (one for named in found for one in named):
        assert mention.node_type in CANONICAL_TYPES
        assert mention.description.strip() and mention.label.strip()
        for key in (mention.key, *mention.names):
            assert normalise_key(key) == key
