"""Adding one value to a JSON text, and taking it out again, without touching any other byte."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

from hivemem.errors import Conflict, InvalidInput
from hivemem.surfaces.setup.entry import Added, Entry
from hivemem.surfaces.setup.jsonc import (
    JsonValue,
    Member,
    Node,
    is_blank,
    line_start,
    newline_of,
    parse_jsonc,
)


def find_entry(text: str, entry: Entry) -> JsonValue:
    """What stands at the entry's place: its value, another one, or None.

    Raises:
        InvalidInput: The text is not JSON.
        Conflict: Something on the path is not a container.
    """
    if is_blank(text):
        return None
    place = _place(parse_jsonc(text), entry)
    if place is None:
        return None
    if not entry.in_array:
        return place.value
    return entry.value if any(one.node.value == entry.value for one in place.members) else None


def add_entry(text: str, entry: Entry) -> tuple[str, Added]:
    """The text with the entry, which must not be in it.

    Raises:
        InvalidInput: The text is not JSON.
        Conflict: Something on the path is not a container.
    """
    newline = newline_of(text)
    if is_blank(text):
        document = _nested(entry, 0)
        chunk = json.dumps(document, indent=2, ensure_ascii=False).replace("\n", newline) + newline
        if text and not text.endswith(("\n", "\ufeff")):
            chunk = newline + chunk
        return text + chunk, Added(text=chunk, made=len(entry.path) + entry.in_array)
    node, depth = parse_jsonc(text), 0
    _require(node, is_array=False, path=())
    for depth, key in enumerate(entry.path):
        is_last = depth == len(entry.path) - 1
        found = node.member(key)
        if found is None:
            value = _nested(entry, depth + 1)
            made = len(entry.path) - depth - 1 + entry.in_array
            return _insert(text, node, key, value, newline, made)
        node = found.node
        if not is_last or entry.in_array:
            _require(node, is_array=is_last, path=entry.path[: depth + 1])
    if not entry.in_array:
        raise Conflict(f"{entry.name} is there already.")
    return _insert(text, node, None, entry.value, newline, 0)


def remove_entry(text: str, entry: Entry, added: Added) -> str | None:
    """The text without the entry; None when it is not in the text with this value.

    Where the insertion still stands as it was made, exactly its characters go. Where others wrote around it,
    the entry and one comma go, and containers that the insertion made and that are empty now.
    """
    if is_blank(text):
        return None
    node = parse_jsonc(text)
    place = _place(node, entry)
    if place is None or find_entry(text, entry) != entry.value:
        return None
    start, end = place.start, place.end
    if entry.in_array:
        start, end = next((m.node.start, m.node.end) for m in place.members if m.node.value == entry.value)
    wanted = _without(node.value, entry, added.made)
    at = text.find(added.text)
    while at >= 0:
        # The same characters may stand in a comment or a string as well.
        if at < end and start < at + len(added.text):
            rest = text[:at] + text[at + len(added.text) :]
            if _reads_as(rest, wanted):
                return rest
        at = text.find(added.text, at + 1)
    for rest in _removed(text, entry, added.made):
        if _reads_as(rest, wanted):
            return rest
    raise Conflict(f"{entry.name} cannot be taken out without touching what stands around it; do it by hand.")


def _place(root: Node, entry: Entry) -> Node | None:
    node = root
    for depth, key in enumerate(entry.path):
        _require(node, is_array=False, path=entry.path[:depth])
        found = node.member(key)
        if found is None:
            return None
        node = found.node
    if entry.in_array:
        _require(node, is_array=True, path=entry.path)
    return node


def _require(node: Node, *, is_array: bool, path: tuple[str, ...]) -> None:
    if not isinstance(node.value, list if is_array else dict):
        where = ".".join(path) or "the document"
        raise Conflict(f"{where} is not {'an array' if is_array else 'an object'}; mend it by hand first.")


def _nested(entry: Entry, depth: int) -> JsonValue:
    """The value to insert when the containers from `depth` on are missing."""
    value: JsonValue = [entry.value] if entry.in_array else entry.value
    for key in reversed(entry.path[depth:]):
        value = {key: value}
    return value


def _insert(
    text: str, container: Node, key: str | None, value: JsonValue, newline: str, made: int
) -> tuple[str, Added]:
    """Insert a member as the last one, or as the first where a comment follows the last.

    A comment belongs to what stands before it on its line, so nothing may come between the two.
    """
    last = container.members[-1] if container.members else None
    inner, outer, unit = _indentation(text, container)
    is_wide = _is_wide(text, container)
    body = json.dumps(value, indent=unit if is_wide else None, ensure_ascii=False)
    body = body.replace("\n", newline + inner)
    member = body if key is None else f"{json.dumps(key, ensure_ascii=False)}: {body}"
    lead = newline + inner if is_wide else " "
    close = container.end - 1
    if last is None:
        before = text[line_start(text, close) : close]
        own_line = is_wide and not before.strip() and line_start(text, close) > container.start
        if own_line:
            # A comment is all that is inside; the bracket already has its line.
            chunk = f"{inner.removeprefix(before)}{member}{newline}{before}"
        else:
            chunk = f"{newline}{inner}{member}{newline}{outer}"
            if text[container.start + 1 : close].strip() and "\n" not in text[container.start : close]:
                chunk = f" {member} "
        return _spliced(text, close, chunk, made)
    end = last.node.end if last.comma is None else last.comma + 1
    if not _comment_follows(text, end, close):
        chunk = f",{lead}{member}" if last.comma is None else f"{lead}{member},"
        return _spliced(text, end, chunk, made)
    return _spliced(text, container.start + 1, f"{lead}{member},", made)


def _spliced(text: str, at: int, chunk: str, made: int) -> tuple[str, Added]:
    return text[:at] + chunk + text[at:], Added(text=chunk, made=made)


def _comment_follows(text: str, end: int, close: int) -> bool:
    """Whether anything but space stands between `end` and the end of its line or the bracket."""
    line_end = text.find("\n", end, close)
    return bool(text[end : close if line_end < 0 else line_end].strip())


def _is_wide(text: str, container: Node) -> bool:
    """Whether the container has its entries on lines of their own; empty ones will."""
    if not container.members:
        return True
    return "\n" in text[container.start : container.members[0].start]


def _indentation(text: str, container: Node) -> tuple[str, str, str]:
    """(indentation of its members, of its closing bracket, one step), read off the text where it can be."""
    begin = line_start(text, container.start)
    line = text[begin : container.start]
    outer = line[: len(line) - len(line.lstrip(" \t"))].lstrip("\ufeff")
    for one in container.members:
        before = text[line_start(text, one.start) : one.start]
        if not before.strip():
            unit = before.removeprefix(outer)
            return before, outer, unit if before.startswith(outer) and unit else "  "
    unit = _first_indentation(text)
    return outer + unit, outer, unit


def _first_indentation(text: str) -> str:
    for line in text.splitlines():
        stripped = line.lstrip(" \t")
        if stripped[:1] in ('"', "{", "[") and stripped != line:
            return line[: len(line) - len(stripped)]
    return "  "


def _without(value: JsonValue, entry: Entry, made: int) -> JsonValue:
    """The document's value without the entry; None when nothing of the document is left."""
    root: Any = copy.deepcopy(value)
    chain = [root]
    for key in entry.path if entry.in_array else entry.path[:-1]:
        chain.append(chain[-1][key])
    if entry.in_array:
        chain[-1].remove(entry.value)
    else:
        del chain[-1][entry.path[-1]]
    for _ in range(made):
        if chain.pop():
            break
        if not chain:
            return None
        del chain[-1][entry.path[len(chain) - 1]]
    return root


def _reads_as(text: str, wanted: JsonValue) -> bool:
    if is_blank(text):
        return wanted is None
    try:
        found = parse_jsonc(text).value
    except InvalidInput:
        return False
    return found == (wanted if wanted is not None else {})


def _removed(text: str, entry: Entry, made: int) -> Iterator[str]:
    """Ways to take out the entry, the one that leaves less behind first."""
    chain = [parse_jsonc(text)]
    for key in entry.path if entry.in_array else entry.path[:-1]:
        found = chain[-1].member(key)
        assert found is not None
        chain.append(found.node)
    holder = chain[-1]
    if entry.in_array:
        member = next(one for one in holder.members if one.node.value == entry.value)
    else:
        member = next(one for one in holder.members if one.key == entry.path[-1])
    # Containers that were made for the entry alone go with it.
    while made and len(holder.members) == 1 and len(chain) > 1 and not _has_comment(text, holder):
        chain.pop()
        made -= 1
        holder = chain[-1]
        member = next(one for one in holder.members if one.key == entry.path[len(chain) - 1])
    yield _cut(text, holder, member, space=True)
    yield _cut(text, holder, member, space=False)


def _has_comment(text: str, container: Node) -> bool:
    only = container.members[0]
    after = (only.node.end if only.comma is None else only.comma + 1, container.end - 1)
    return bool(text[container.start + 1 : only.start].strip() or text[after[0] : after[1]].strip())


def _cut(text: str, holder: Node, member: Member, *, space: bool) -> str:
    """Take out a member, the comma that is needed no more, and with `space` the white space before it."""
    position = holder.members.index(member)
    start, end = member.start, member.node.end
    before = holder.members[position - 1] if position else None
    first = holder.start + 1 if before is None or before.comma is None else before.comma + 1
    # Comments before the member stay.
    while space and start > first and text[start - 1] in " \t\r\n":
        start -= 1
    if member.comma is not None:
        return text[:start] + text[end : member.comma] + text[member.comma + 1 :]
    if before is not None and before.comma is not None:
        return text[: before.comma] + text[before.comma + 1 : start] + text[end:]
    return text[:start] + text[end:]
