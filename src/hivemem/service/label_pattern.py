"""Relationship labels that match a pattern."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable

from hivemem.domain.text import storable_text
from hivemem.errors import InvalidInput
from hivemem.service.pattern_search import MAX_PATTERN_CHARACTERS, compile_pattern

LabelTest = Callable[[str], bool]


def label_test(pattern: str | None, where: str) -> LabelTest | None:
    """Whether a label matches: a case-insensitive regular expression, or text when it is none.

    None when there is no pattern. Time is linear in the label, whatever the pattern.

    Raises:
        InvalidInput: The pattern is longer than 1,000 characters.
    """
    if pattern is None or not storable_text(pattern, where).strip():
        return None
    if len(pattern) > MAX_PATTERN_CHARACTERS:
        raise InvalidInput(
            f"{where} has {len(pattern)} characters; a pattern has at most {MAX_PATTERN_CHARACTERS}."
        )
    try:
        compiled = compile_pattern(pattern)
    except InvalidInput:
        # "C++ (old" is what somebody remembers of a label, not a mistake.
        text = _folded(pattern)
        return lambda label: text in _folded(label)
    return lambda label: compiled.search(unicodedata.normalize("NFC", label)) is not None


def _folded(text: str) -> str:
    return unicodedata.normalize("NFC", text).casefold()
