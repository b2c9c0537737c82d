"""Adding one table to a TOML text, and taking it out again, without touching any other byte.

A table with a header can stand anywhere, so it is added at the end of the file. Every edit is checked by
reading the result: it must hold what was there before, and the table or not the table, and nothing else.
"""

from __future__ import annotations

import copy
import json
import re
import tomllib
from collections.abc import Iterator
from typing import Any

from hivemem.errors import Conflict, InvalidInput
from hivemem.surfaces.setup.entry import Added, Entry
from hivemem.surfaces.setup.jsonc import JsonValue, newline_of

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_HEADER = re.compile(r"[ \t]*\[")


def find_entry(text: str, entry: Entry) -> JsonValue:
    """What stands at the entry's place: its value, another one, or None.

    Raises:
        InvalidInput: The text is not TOML.
        Conflict: Something on the path is not a table.
    """
    found: Any = _parse(text)
    for depth, key in enumerate(entry.path):
        if not isinstance(found, dict):
            raise Conflict(f"{'.'.join(entry.path[:depth])} is not a table; mend it by hand first.")
        found = found.get(key)
        if found is None:
            return None
    if not entry.in_array:
        return found
    if not isinstance(found, list):
        raise Conflict(f"{entry.name} is not an array of tables; mend it by hand first.")
    return entry.value if entry.value in found else None


def add_entry(text: str, entry: Entry) -> tuple[str, Added]:
    """The text with the entry's table at its end; the entry must not be in it.

    Raises:
        InvalidInput: The text is not TOML.
        Conflict: The place is written inline, where no table can be added.
    """
    before, newline = _parse(text), newline_of(text)
    chunk = _table(entry)
    if text.removeprefix("\ufeff"):
        lines_end = "" if text.endswith("\n") else "\n"
        blank = "" if text.endswith(("\n\n", "\n\r\n")) else "\n"
        chunk = lines_end + blank + chunk
    chunk = chunk.replace("\n", newline)
    try:
        after = _parse(text + chunk)
    except InvalidInput as error:
        raise Conflict(
            f"{entry.path[0]} is written inline, so no table can be added to it; write it as tables, or add "
            f"this by hand:\n{_table(entry)}"
        ) from error
    if before not in _without(after, entry):
        raise Conflict(
            f"{entry.name} cannot be added at the end of the file; add it by hand:\n{_table(entry)}"
        )
    return text + chunk, Added(text=chunk)


def remove_entry(text: str, entry: Entry, added: Added) -> str | None:
    """The text without the entry; None when it is not in the text with this value.

    Raises:
        InvalidInput: The text is not TOML.
        Conflict: The table holds comments or lines that were not added with it.
    """
    if find_entry(text, entry) != entry.value:
        return None
    wanted = _without(_parse(text), entry)
    for chunk in dict.fromkeys(_spellings(added.text)):
        at = text.find(chunk) if chunk else -1
        while at >= 0:
            rest = text[:at] + text[at + len(chunk) :]
            if _reads_as(rest, wanted):
                return rest
            at = text.find(chunk, at + 1)
    raise Conflict(f"the table {entry.name} was rewritten by hand.")


def remove_section(text: str, entry: Entry) -> str:
    """The text without the lines from the table's header to the next header, whatever they hold.

    Raises:
        Conflict: No such lines can be found.
    """
    wanted = _without(_parse(text), entry)
    lines = text.splitlines(keepends=True)
    heads = [number for number, line in enumerate(lines) if _HEADER.match(line)]
    for first in heads:
        for last in [*(number for number in heads if number > first), len(lines)]:
            rest = "".join(lines[:first] + lines[last:])
            if _reads_as(rest, wanted):
                return rest
    raise Conflict(f"the lines of {entry.name} are not together; take them out by hand.")


def _parse(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text.removeprefix("\ufeff"))
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise InvalidInput(f"{error}.") from error


def _reads_as(text: str, wanted: list[Any]) -> bool:
    try:
        return _parse(text) in wanted
    except InvalidInput:
        return False


def _without(data: dict[str, Any], entry: Entry) -> list[dict[str, Any]]:
    """The data without the entry: with tables around it that are empty then, and without them."""
    root = copy.deepcopy(data)
    chain: list[Any] = [root]
    for key in entry.path if entry.in_array else entry.path[:-1]:
        chain.append(chain[-1][key])
    if entry.in_array:
        chain[-1].remove(entry.value)
    else:
        del chain[-1][entry.path[-1]]
    found = [copy.deepcopy(root)]
    while len(chain) > 1 and not chain[-1]:
        chain.pop()
        del chain[-1][entry.path[len(chain) - 1]]
        found.append(copy.deepcopy(root))
    return found


def _spellings(chunk: str) -> Iterator[str]:
    """The chunk as it was added, and as editors leave it: other line ends, other space around it."""
    for text in (chunk, chunk.lstrip("\r\n"), chunk.strip("\r\n")):
        yield text
        plain = text.replace("\r\n", "\n")
        yield plain
        yield plain.replace("\n", "\r\n")


def _table(entry: Entry) -> str:
    name = ".".join(_key(key) for key in entry.path)
    assert isinstance(entry.value, dict)
    lines = [f"[[{name}]]" if entry.in_array else f"[{name}]"]
    lines += [f"{_key(key)} = {_value(value)}" for key, value in entry.value.items()]
    return "\n".join(lines) + "\n"


def _key(key: str) -> str:
    return key if _BARE_KEY.fullmatch(key) else _text(key)


def _value(value: JsonValue) -> str:
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{_key(key)} = {_value(one)}" for key, one in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(_value(one) for one in value) + "]"
    assert isinstance(value, bool | int | float)
    return json.dumps(value)


def _text(text: str) -> str:
    """A basic string; its escapes are those of JSON, and DEL has to be one too."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
