"""Keys: one spelling, no invisible twins, free form with a warning."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hivemem.domain.keys import MAX_KEY_CHARACTERS, convention_warning, normalise_key
from hivemem.errors import InvalidInput


@given(st.text(max_size=40))
def test_a_normalised_key_stays_as_it_is(text: str) -> None:
    try:
        key = normalise_key(text)
    except InvalidInput:
        return
    assert normalise_key(key) == key
    assert key == key.strip()
    assert unicodedata.is_normalized("NFC", key)


@given(st.text(st.characters(categories=("Ll", "Lu", "Lo", "Nd")), min_size=1, max_size=20))
def test_composed_and_decomposed_spellings_are_one_key(text: str) -> None:
    assert normalise_key(unicodedata.normalize("NFD", text)) == normalise_key(text)


def test_case_is_kept() -> None:
    assert normalise_key("Person_Alice") != normalise_key("person_alice")


@pytest.mark.parametrize(
    "key",
    [
        "greeting",
        "k",
        "fact/with space",
        ".",
        "..",
        "x%2Fy",
        "x/y",
        "loc:attic:shelf-2",
        "q?x=1#frag",
        "新宿_party",
    ],
)
def test_any_visible_key_is_allowed(key: str) -> None:
    assert normalise_key(key) == key


def test_a_key_has_at_most_256_characters() -> None:
    assert len(normalise_key("k" * MAX_KEY_CHARACTERS)) == 256
    with pytest.raises(InvalidInput, match="257 characters"):
        normalise_key("k" * (MAX_KEY_CHARACTERS + 1))


@pytest.mark.parametrize(
    "key", ["", "  ", "\t", "a\nb", "zwj​key", "a\u200db", "nul\x00", "bom\ufeff", "\ud800"]
)
def test_blank_and_invisible_characters_are_refused(key: str) -> None:
    with pytest.raises(InvalidInput, match=r"^/key "):
        normalise_key(key)


def test_a_joiner_inside_persian_or_emoji_is_part_of_the_spelling() -> None:
    assert normalise_key("می\u200cخواهم") == "می\u200cخواهم"
    assert normalise_key("👩\u200d🚀") == "👩\u200d🚀"


def test_the_field_is_named_in_the_message() -> None:
    with pytest.raises(InvalidInput, match=r"^/relationships/3/to_key "):
        normalise_key(" ", "/relationships/3/to_key")


@pytest.mark.parametrize("key", ["decision_jwt_auth", "person_alice", "tech_python3", "user_profile"])
def test_keys_of_the_convention_earn_no_warning(key: str) -> None:
    assert convention_warning(key) is None


@pytest.mark.parametrize("key", ["greeting", "Person_Alice", "fact/with space", "person__alice", "_x", "a_"])
def test_keys_off_the_convention_earn_a_warning_that_names_them(key: str) -> None:
    warning = convention_warning(key)
    assert warning is not None
    assert repr(key) in warning
