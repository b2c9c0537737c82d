"""Text and JSON that can be stored and sent everywhere: no NUL, no lone surrogates, finite numbers.

PostgreSQL refuses NUL in text, UTF-8 has no encoding for a lone surrogate, and JSON has no NaN. One
check where values enter keeps every later layer free of such cases.
"""

from __future__ import annotations

import math
import re
from typing import TypeAlias, cast

from hivemem.errors import InvalidInput, LimitExceeded

JsonValue: TypeAlias = "None | bool | int | float | str | list[JsonValue] | dict[str, JsonValue]"
JsonObject: TypeAlias = "dict[str, JsonValue]"

JsonPlace: TypeAlias = "tuple[str | int, ...]"
"""Where a value stands in a JSON text: names and positions, outermost first."""

MAX_JSON_DEPTH = 32
_SHOWN_OF_A_NAME = 100
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


def empty_object() -> JsonObject:
    """A new `{}`, typed: the default of every `data` field."""
    return {}


def storable_text(value: str, field: str, *, max_characters: int | None = None) -> str:
    """Return `value` unchanged if every store and protocol can carry it.

    Args:
        value: Any Python string.
        field: Name used in the message, with a leading slash as in a JSON pointer.
        max_characters: Upper limit in code points, None for no limit.

    Raises:
        InvalidInput: `value` holds NUL or a lone surrogate.
        LimitExceeded: `value` is longer than `max_characters`.
    """
    if max_characters is not None and len(value) > max_characters:
        raise LimitExceeded(
            f"{field} has {len(value)} characters; at most {max_characters} are stored. "
            "Split it into several nodes, or raise the limit in the settings.",
            limit=max_characters,
        )
    found = _UNSTORABLE.search(value)
    if found:
        raise InvalidInput(
            f"{field} holds the character U+{ord(found.group()):04X} at position {found.start()}, "
            "which cannot be stored. Remove it and send the text again."
        )
    return value


def storable_json(value: object, field: str) -> JsonObject:
    """Return `value` as a JSON object that every store can carry.

    Raises:
        InvalidInput: Not an object, a non-finite number, a key that is not a string, an unstorable
            character, a value that JSON does not have, or more than `MAX_JSON_DEPTH` levels.
    """
    if not isinstance(value, dict):
        raise InvalidInput(f'{field} is not of type "object"; send a JSON object such as {{}}.')
    _check_json(cast("dict[object, object]", value), (field.lstrip("/"),))
    return cast("JsonObject", value)


def shown_place(place: JsonPlace) -> str:
    """A place as errors name it; of long names their beginning.

    Example:
        >>> shown_place(("data", "tags", 0))
        '/data/tags/0'
    """
    return "".join(f"/{str(part)[:_SHOWN_OF_A_NAME]}" for part in place)


def require_storable(text: str, place: JsonPlace, what: str = "") -> None:
    """Let a string of a JSON text pass; see `storable_text`. `what` of the place it is, such as " key".

    Its place is spelled out for the error alone: a long name would be copied for each value below it.
    """
    if _UNSTORABLE.search(text):
        storable_text(text, f"{shown_place(place) or '/'}{what}")


def _check_json(value: object, place: JsonPlace) -> None:
    if len(place) > MAX_JSON_DEPTH:
        raise InvalidInput(f"{shown_place(place)} is nested deeper than {MAX_JSON_DEPTH} levels; flatten it.")
    if value is None or isinstance(value, bool | int):
        return
    if isinstance(value, str):
        require_storable(value, place)
    elif isinstance(value, float):
        if not math.isfinite(value):
            raise InvalidInput(f"{shown_place(place)} is {value!r}; JSON has finite numbers only.")
    elif isinstance(value, list):
        for position, item in enumerate(cast("list[object]", value)):
            _check_json(item, (*place, position))
    elif isinstance(value, dict):
        for name, item in cast("dict[object, object]", value).items():
            if not isinstance(name, str):
                raise InvalidInput(f"{shown_place(place)} has the key {name!r}; JSON keys are strings.")
            require_storable(name, place, " key")
            _check_json(item, (*place, name))
    else:
        raise InvalidInput(f"{shown_place(place)} is a {type(value).__name__}, which JSON does not have.")


def string_values(value: JsonValue) -> list[str]:
    """All strings inside a JSON value, in document order: the searchable text of a node's `data`.

    Example:
        >>> string_values({"city": "Oslo", "tags": ["ferry", 3], "open": True})
        ['Oslo', 'ferry']
    """
    if isinstance(value, str):
        return [value]
    if isinstance(value, list):
        return [text for item in value for text in string_values(item)]
    if isinstance(value, dict):
        return [text for item in value.values() for text in string_values(item)]
    return []
