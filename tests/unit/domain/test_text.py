"""Text and JSON that every store and protocol can carry."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hivemem.domain.text import (
    MAX_JSON_DEPTH,
    JsonObject,
    JsonValue,
    storable_json,
    storable_text,
    string_values,
)
from hivemem.errors import InvalidInput, LimitExceeded

SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=10,
)


@pytest.mark.parametrize("character", ["\x00", "\ud800", "\udfff"])
def test_text_that_no_store_can_hold_is_refused_with_its_position(character: str) -> None:
    with pytest.raises(InvalidInput, match="position 2"):
        storable_text(f"ab{character}", "/description")


def test_text_over_the_limit_names_both_numbers() -> None:
    assert storable_text("abc", "/x", max_characters=3) == "abc"
    with pytest.raises(LimitExceeded, match=r"4 characters; at most 3"):
        storable_text("abcd", "/x", max_characters=3)


@given(st.dictionaries(st.text(max_size=4), VALUES, max_size=4))
def test_accepted_json_goes_through_utf8_unchanged(value: dict[str, object]) -> None:
    try:
        accepted = storable_json(value, "/data")
    except InvalidInput as refusal:
        assert refusal.message.startswith("/data")
        return
    assert json.loads(json.dumps(accepted, ensure_ascii=False).encode()) == value


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_json_has_finite_numbers_only(value: float) -> None:
    with pytest.raises(InvalidInput, match=r"^/data/deep/0 is"):
        storable_json({"deep": [value]}, "/data")


@pytest.mark.parametrize("value", [[], "text", 3, None])
def test_only_objects_are_data(value: object) -> None:
    with pytest.raises(InvalidInput, match='not of type "object"'):
        storable_json(value, "/data")


def test_a_value_that_json_lacks_is_refused() -> None:
    with pytest.raises(InvalidInput, match="is a set"):
        storable_json({"tags": {1}}, "/data")
    with pytest.raises(InvalidInput, match="keys are strings"):
        storable_json({1: "one"}, "/data")


def test_nesting_is_bounded() -> None:
    def nested(levels: int) -> JsonObject:
        value: JsonValue = "leaf"
        for _ in range(levels - 2):
            value = [value]
        return {"x": value}

    assert storable_json(nested(MAX_JSON_DEPTH), "/data")
    with pytest.raises(InvalidInput, match="nested deeper"):
        storable_json(nested(MAX_JSON_DEPTH + 1), "/data")


@given(VALUES)
def test_string_values_are_those_of_a_plain_walk(value: JsonValue) -> None:
    def walk(part: JsonValue) -> list[str]:
        match part:
            case str():
                return [part]
            case list():
                return [text for item in part for text in walk(item)]
            case dict():
                return [text for item in part.values() for text in walk(item)]
            case _:
                return []

    assert string_values(value) == walk(value)
