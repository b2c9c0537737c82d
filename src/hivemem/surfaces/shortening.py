"""Fit answers into a size, so that a memory with long texts does not fill an agent's context.

Sizes are bytes of compact UTF-8 JSON. What is short stays whole: a common level is found below which nothing
is cut, and only longer values are cut down to it. Every cut says how much is missing and how to get it.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from hivemem.surfaces.wire_json import json_size

WHOLE_TEXT_HINT = "hm_get_nodes returns the whole text"
_LABEL_CHARACTERS = 160
_COUNT_BYTES = len(',"expansion_omitted":99999')
_JOINER = "\u200d"

Item = dict[str, Any]


def water_level(sizes: Sequence[int], budget: int) -> int:
    """The largest level L for which `sum(min(size, L))` is at most `budget`; at least 0.

    Example:
        >>> water_level([10, 100, 100], 110)
        50
        >>> water_level([10, 20], 1000)
        20
    """
    rest = budget
    for position, size in enumerate(sorted(sizes)):
        share = rest // (len(sizes) - position)
        if size > share:
            return max(share, 0)
        rest -= size
    return max(sizes, default=0)


def shorten_text(text: str, max_bytes: int, hint: str = WHOLE_TEXT_HINT) -> str:
    """`text` if it fits into `max_bytes` (without quotes), else its beginning and a mark.

    The cut is between code points and never in front of a combining mark. When not even the mark fits,
    the mark alone is returned.
    """
    if len(text) <= max_bytes and json_size(text) - 2 <= max_bytes:
        return text
    room = max_bytes - json_size(_mark(len(text), len(text), hint)) + 2
    # A code point takes at least a byte, so the cut lies below `room`.
    low, high = 0, max(min(room, len(text)), 0)
    while low < high:
        middle = (low + high + 1) // 2
        if json_size(text[:middle]) - 2 <= room:
            low = middle
        else:
            high = middle - 1
    while low > 0 and _continues(text, low):
        low -= 1
    return text[:low].rstrip() + _mark(len(text) - low, len(text), hint)


def shorten_data(data: Mapping[str, Any], max_bytes: int, hint: str) -> dict[str, Any]:
    """`data` if it fits, else those of its fields that do, in order, and a note under `_shortened`."""
    if json_size(data) <= max_bytes:
        return dict(data)
    note = f"{{}} of {len(data)} fields left out; {hint}"
    room = max_bytes - json_size({"_shortened": note})
    kept: dict[str, Any] = {}
    for name, value in data.items():
        size = json_size({name: value})
        if size <= room:
            kept[name] = value
            room -= size
    kept["_shortened"] = note.format(len(data) - len(kept))
    return kept


def take_fitting(items: Sequence[Item], max_bytes: int) -> list[Item]:
    """The first items that fit together into `max_bytes`."""
    taken: list[Item] = []
    room = max_bytes - 2
    for item in items:
        room -= json_size(item) + 1
        if room < 0:
            break
        taken.append(item)
    return taken


def fit_items(
    items: Sequence[Item], budget: int, minimum: int, fit: Callable[[Item, int], Item]
) -> tuple[list[Item], int]:
    """Shorten items to a common level so that all fit, dropping from the end when that is not enough.

    Args:
        items: Most important first.
        budget: For all of them together.
        minimum: Size below which an item says too little; then fewer items are kept instead.
        fit: (item, size) -> the item in about that size.

    Returns:
        The items kept, at least the first, and the number left out.
    """
    sizes = [json_size(item) + 1 for item in items]
    if sum(sizes) <= budget or not items:
        return list(items), 0
    kept = len(items)
    level = water_level(sizes, budget)
    # Small items are whole below the minimum, and enough of them are left out when the rest fits.
    while level < minimum and kept > 1 and sum(sizes[:kept]) > budget:
        kept -= 1
        level = water_level(sizes[:kept], budget)
    fitted = [
        item if size <= level else fit(item, level - 1)
        for item, size in zip(items[:kept], sizes[:kept], strict=True)
    ]
    while len(fitted) > 1 and sum(json_size(item) + 1 for item in fitted) > budget:
        fitted.pop()
    return fitted, len(items) - len(fitted)


def fit_recall_item(item: Item, max_bytes: int) -> Item:
    """A recall result in about `max_bytes`: relationships get a third of the room, or what texts leave."""
    base = {**item, "description": "", "data": {}, "expansion_context": []}
    room = max_bytes - json_size(base)
    if room < _LABEL_CHARACTERS and "reasons" in base:
        del base["reasons"]
        room = max_bytes - json_size(base)
    texts = json_size(item["description"]) + json_size(item["data"])
    related: list[Item] = item["expansion_context"]
    if json_size(related) > room - texts:
        room -= _COUNT_BYTES
        related = [{**entry, "relationship": shorten_label(entry["relationship"])} for entry in related]
        related = take_fitting(related, max(room // 3, room - texts))
    omitted = item.get("expansion_omitted", 0) + len(item["expansion_context"]) - len(related)
    if omitted:
        base["expansion_omitted"] = omitted
    base["expansion_context"] = related
    description, data = _fit_texts(item["description"], item["data"], room - json_size(related) + 2)
    return {**base, "description": description, "data": data}


def fit_node_entry(entry: Item, max_bytes: int, hint: str) -> Item:
    """An entry of hm_get_nodes in about `max_bytes`, texts and relationships each at least half the room."""
    node: Item = entry["node"]
    bare_node = {**node, "description": "", "data": {}, "search_text": None}
    lists = [name for name in ("binary_edges", "hyperedges", "enrichment_history") if name in entry]
    bare = {**entry, "node": bare_node, **{name: [] for name in lists}}
    room = max_bytes - json_size(bare)
    pieces = [json_size(node["description"]), json_size(node["data"]), json_size(node["search_text"])]
    listed = sum(json_size(entry[name]) for name in lists)
    list_room = max(room // 2, room - sum(pieces))
    result = {**bare}
    if listed > list_room:
        level = water_level([json_size(entry[name]) for name in lists], list_room)
        for name in lists:
            result[name] = take_fitting(entry[name], level)
        listed = sum(json_size(result[name]) for name in lists)
    else:
        result.update({name: entry[name] for name in lists})
    level = water_level(pieces, room - listed)
    search_text: str | None = node["search_text"]
    result["node"] = {
        **node,
        "description": shorten_text(node["description"], level - 2, hint),
        "data": shorten_data(node["data"], level, hint),
        "search_text": None if search_text is None else shorten_text(search_text, level - 2, hint),
    }
    return result


def shorten_label(label: str) -> str:
    """A relationship label of at most 160 characters."""
    return label if len(label) <= _LABEL_CHARACTERS else label[: _LABEL_CHARACTERS - 1].rstrip() + "…"


def _fit_texts(description: str, data: Mapping[str, Any], room: int) -> tuple[str, dict[str, Any]]:
    level = water_level([json_size(description), json_size(data)], room)
    return shorten_text(description, level - 2), shorten_data(data, level, "hm_get_nodes returns all")


def _mark(left_out: int, total: int, hint: str) -> str:
    return f"… [shortened: {left_out:,} of {total:,} characters left out; {hint}]"


def _continues(text: str, position: int) -> bool:
    """Whether cutting before `position` would tear a visible character apart."""
    if position >= len(text):
        return False
    character = text[position]
    return unicodedata.category(character)[0] == "M" or character == _JOINER or text[position - 1] == _JOINER
