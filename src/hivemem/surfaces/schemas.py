"""JSON schemas as the surfaces publish them."""

from __future__ import annotations

from typing import Any, cast


def slim_schema(schema: object) -> Any:
    """A JSON schema without what only costs an agent tokens: titles, null alternatives and null defaults.

    A property that is itself called `title` stays, since its schema is an object and not a text.
    """
    if isinstance(schema, list):
        return [slim_schema(item) for item in cast("list[object]", schema)]
    if not isinstance(schema, dict):
        return schema
    given = cast("dict[str, object]", schema)
    optional = "default" in given and given["default"] is None
    slim = {
        name: slim_schema(value)
        for name, value in given.items()
        if not (name == "title" and isinstance(value, str)) and not (name == "default" and optional)
    }
    choices = slim.get("anyOf")
    if optional and isinstance(choices, list):
        rest = [choice for choice in cast("list[object]", choices) if choice != {"type": "null"}]
        if len(rest) == 1 and isinstance(rest[0], dict):
            del slim["anyOf"]
            slim = {**cast("dict[str, object]", rest[0]), **slim}
    return slim
