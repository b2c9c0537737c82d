"""Query syntax of other search engines, which means nothing here and must do no harm."""

from __future__ import annotations

import re

_NEAR_CALL = re.compile(r"\bNEAR\(([^()]*?)(?:,\s*\d+)?\s*\)")
_PROXIMITY = re.compile(r"(?<!\S)(?:O?NEAR(?:/\d+)?|(?:ADJ|PRE|W)/\d+|ADJ\d+)(?!\S)")
# Of a word or a quotation; "x^2" and "~5" are something else.
_WEIGHT = re.compile(r"([^\W\d_]{3}|[\"')])[~^]\d+(?:\.\d+)?(?!\w)")


def without_operators(query: str) -> str:
    """The query without operators that a model would read as words, and a score would look for.

    Proximity (`NEAR`, `NEAR/3`, `NEAR(a b, 3)`, `ADJ3`, `W/5`) in capital letters, and a number after `~`
    or `^` behind a word. AND, OR and NOT are stop words anyway and may be meant ("do NOT water it");
    other signs are no part of a word. A query of nothing else stays as it is.

    Example:
        >>> without_operators("NEAR/3 accountant"), without_operators('"tax return"~3 draft^2')
        ('accountant', '"tax return" draft')
        >>> without_operators("what is near x^2?")
        'what is near x^2?'
    """
    bare = _WEIGHT.sub(r"\1", _PROXIMITY.sub(" ", _NEAR_CALL.sub(r"\1", query)))
    if bare == query or not any(map(str.isalnum, bare)):
        return query
    return " ".join(bare.split())
