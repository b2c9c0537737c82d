"""JSON with comments and trailing commas, read with the place of every value in the text.

Agents' configuration files are written by hand: they hold comments, odd indentation and trailing commas,
which a JSON library would drop or refuse. Here a text is only read; edits are insertions and deletions at the
places that this module finds.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from hivemem.errors import InvalidInput

JsonValue = None | bool | int | float | str | list["JsonValue"] | dict[str, "JsonValue"]

_MAX_DEPTH = 200
_SPACE = re.compile(r"(?:[ \t\r\n]+|//[^\r\n]*|/\*.*?\*/)*", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"')
_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?(?![\w.])")
_WORDS: dict[str, None | bool] = {"true": True, "false": False, "null": None}


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One entry of an object, or of an array (with its index as key).

    Attributes:
        start: Where its key begins in an object, its value in an array.
        comma: Index of the comma after it, None when there is none.
    """

    key: str | int
    start: int
    node: Node
    comma: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A value: `text[start:end]`, which for objects and arrays includes the brackets."""

    start: int
    end: int
    value: JsonValue
    members: tuple[Member, ...] = ()

    def member(self, key: str | int) -> Member | None:
        """The entry with this key."""
        return next((one for one in self.members if one.key == key), None)

    def at(self, path: tuple[str | int, ...]) -> Node | None:
        """The value that `path` leads to."""
        node: Node | None = self
        for key in path:
            found = None if node is None else node.member(key)
            node = None if found is None else found.node
        return node


def parse_jsonc(text: str) -> Node:
    """The document in `text`, which may begin with a byte-order mark.

    Raises:
        InvalidInput: Not JSON with comments, an object names a key twice, or deeper than 200 levels. The
            message has line and column.
    """
    start = 1 if text.startswith("\ufeff") else 0
    node, end = _value(text, _skip(text, start), 0)
    end = _skip(text, end)
    if end != len(text):
        raise _problem(text, end, "there is something after the end of the document")
    return node


def is_blank(text: str) -> bool:
    """Whether a text holds no value: nothing but space and comments."""
    start = 1 if text.startswith("\ufeff") else 0
    return _skip(text, start) == len(text)


def _skip(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return at if match is None else match.end()


def _value(text: str, at: int, depth: int) -> tuple[Node, int]:
    if depth > _MAX_DEPTH:
        raise _problem(text, at, f"values are nested deeper than {_MAX_DEPTH} levels")
    first = text[at : at + 1]
    if first in ("{", "["):
        return _container(text, at, depth)
    if first == '"':
        string, end = _string(text, at)
        return Node(start=at, end=end, value=string), end
    number = _NUMBER.match(text, at)
    if number is not None:
        return Node(start=at, end=number.end(), value=json.loads(number.group())), number.end()
    for word, value in _WORDS.items():
        if text.startswith(word, at):
            return Node(start=at, end=at + len(word), value=value), at + len(word)
    raise _problem(text, at, "a value is expected here")


def _container(text: str, start: int, depth: int) -> tuple[Node, int]:
    is_object = text[start] == "{"
    close = "}" if is_object else "]"
    members: list[Member] = []
    names: set[str | int] = set()
    at = _skip(text, start + 1)
    while text[at : at + 1] != close:
        if members and members[-1].comma is None:
            raise _problem(text, at, f"',' or {close!r} is expected here")
        begin, key = at, len(members)
        if is_object:
            name, at = _string(text, at)
            if name in names:
                raise _problem(text, begin, f"the key {name!r} stands twice in one object")
            names.add(name)
            at = _skip(text, at)
            if text[at : at + 1] != ":":
                raise _problem(text, at, "':' is expected here")
            at = _skip(text, at + 1)
        else:
            name = key
        node, at = _value(text, at, depth + 1)
        at = _skip(text, at)
        comma = at if text[at : at + 1] == "," else None
        members.append(Member(key=name, start=begin, node=node, comma=comma))
        if comma is not None:
            at = _skip(text, at + 1)
    value: JsonValue = (
        {str(one.key): one.node.value for one in members}
        if is_object
        else [one.node.value for one in members]
    )
    return Node(start=start, end=at + 1, value=value, members=tuple(members)), at + 1


def _string(text: str, at: int) -> tuple[str, int]:
    match = _STRING.match(text, at)
    if match is None:
        raise _problem(text, at, "a string in double quotes is expected here")
    try:
        return json.loads(match.group()), match.end()
    except ValueError as error:
        raise _problem(text, at, "the string has an escape that JSON does not know") from error


def _problem(text: str, at: int, what: str) -> InvalidInput:
    line = text.count("\n", 0, at) + 1
    column = at - (text.rfind("\n", 0, at) + 1) + 1
    return InvalidInput(f"line {line}, column {column}: {what}.")


def line_start(text: str, at: int) -> int:
    """Index of the first character of the line that `at` is in."""
    return text.rfind("\n", 0, at) + 1


def newline_of(text: str) -> str:
    """How the text ends its first line."""
    end = text.find("\n")
    return "\r\n" if end > 0 and text[end - 1] == "\r" else "\n"
