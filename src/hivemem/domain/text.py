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

MAX_JSON_DEPTH = 32
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
    _check_json(cast("dict[object, object]", value), field, 1)
    return cast("JsonObject", value)


def _check_json(value: object, where: str, depth: int) -> None:
    if depth > MAX_JSON_DEPTH:
        raise InvalidInput(f"{where} is nested deeper than {MAX_JSON_DEPTH} levels; flatten it.")
    if value is None or isinstance(value, bool | int):
        return
    if isinstance(value, str):
        storable_text(value, where)
    elif isinstance(value, float):
        if not math.isfinite(value):
            raise InvalidInput(f"{where} is {value!r}; JSON has finite numbers only.")
    elif isinstance(value, list):
        for position, item in enumerate(cast("list[object]", value)):
            _check_json(item, f"{where}/{position}", depth + 1)
    elif isinstance(value, dict):
        for name, item in cast("dict[object, object]", value).items():
            if not isinstance(name, str):
                raise InvalidInput(f"{where} has the key {name!r}; JSON keys are strings.")
            storable_text(name, f"{where} key")
            _check_json(item, f"{where}/{name}", depth + 1)
    else:
        raise InvalidInput(f"{where} is a {type(value).__name__}, which JSON does not have.")


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
