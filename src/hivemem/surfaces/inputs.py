"""The base of what callers send, and validation errors as JSON pointers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, cast

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from hivemem.domain.text import JsonPlace, require_storable, shown_place
from hivemem.errors import InvalidInput

MAX_INPUT_DEPTH = 64
"""Levels of JSON in one request; `data` itself may have 32."""

_MAX_REPORTED = 5
_TOLERATED = frozenset(("response_format", "cascade"))
"""Sent by existing clients for other servers; ignored without a warning."""

_JSON_TYPES = {
    "string_type": "string",
    "int_type": "integer",
    "int_parsing": "integer",
    "int_from_float": "integer",
    "bool_type": "boolean",
    "bool_parsing": "boolean",
    "dict_type": "object",
    "list_type": "array",
}


class Input(BaseModel):
    """Base of all inputs: unknown properties are ignored, and named in a warning."""


InputT = TypeVar("InputT", bound=Input)


@dataclass(frozen=True, slots=True)
class Parsed(Generic[InputT]):
    """A valid input, and the names of the properties that nobody read."""

    value: InputT
    unknown: tuple[str, ...]


def parse_input(
    model: type[InputT], arguments: Mapping[str, object], *, strict: bool = True
) -> Parsed[InputT]:
    """Read the arguments of an operation; an explicit null counts as not given.

    Args:
        model: What is expected.
        arguments: A JSON object as parsed.
        strict: Refuse "5" for a number. False for query strings, which carry text only.

    Raises:
        InvalidInput: A property is missing, mistyped, out of range, nested too deeply or not storable.
            The message begins with its JSON pointer, such as `/max_results`.
    """
    given = {
        name: _whole(value, model.model_fields.get(name))
        for name, value in arguments.items()
        if value is not None
    }
    _check_storable(given, ())
    unknown = tuple(sorted(set(given) - set(model.model_fields) - _TOLERATED))
    try:
        return Parsed(model.model_validate(given, strict=strict), unknown)
    except ValidationError as error:
        details = error.errors(include_url=False, include_input=False)
        sentences = [_sentence(cast("Mapping[str, Any]", item)) for item in details[:_MAX_REPORTED]]
        raise InvalidInput(" ".join(sentences)) from error


def pointer(location: tuple[str | int, ...]) -> str:
    """The JSON pointer (RFC 6901) of a location.

    Example:
        >>> pointer(("relationships", 0, "a/b"))
        '/relationships/0/a~1b'
    """
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in location)


def _whole(value: object, field: FieldInfo | None) -> object:
    """5.0 is an integer in JSON, and stands for 5 where one is expected."""
    if not isinstance(value, float) or not value.is_integer() or field is None:
        return value
    expected: Any = field.annotation
    return int(value) if expected in (int, int | None) else value


def _sentence(item: Mapping[str, Any]) -> str:
    where = pointer(tuple(item["loc"]))
    kind, context = str(item["type"]), cast("Mapping[str, Any]", item.get("ctx") or {})
    if kind == "missing":
        return f"{where} is required."
    if kind in _JSON_TYPES:
        return f'{where} is not of type "{_JSON_TYPES[kind]}".'
    if kind == "greater_than_equal":
        return f"{where} must be at least {context['ge']}."
    if kind == "less_than_equal":
        return f"{where} must be at most {context['le']}."
    if kind == "too_short":
        return f"{where} must have at least {context['min_length']} item."
    if kind == "literal_error":
        return f"{where} must be {context['expected']}."
    return f"{where}: {item['msg']}."


def _check_storable(value: object, place: JsonPlace) -> None:
    if isinstance(value, str):
        require_storable(value, place)
        return
    if not isinstance(value, dict | list):
        return
    if len(place) >= MAX_INPUT_DEPTH:
        where = shown_place(place)[:100]
        raise InvalidInput(f"{where} is nested deeper than {MAX_INPUT_DEPTH} levels; flatten it.")
    if isinstance(value, list):
        for position, item in enumerate(cast("list[object]", value)):
            _check_storable(item, (*place, position))
        return
    for name, item in cast("dict[str, object]", value).items():
        require_storable(name, place, " (a property name)")
        _check_storable(item, (*place, name))
