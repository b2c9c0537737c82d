"""Why a hit was returned, in words."""

from __future__ import annotations

from hivemem.retrieval.analyse import AnalysedQuery

_MAX_WORDS = 6


def holds_every_word(query: AnalysedQuery, held: tuple[bool, ...]) -> bool:
    """Whether a node holds each informative word of the query; False for a query without any."""
    found = False
    for word, hold in zip(query.words, held, strict=True):
        if word.informative:
            if not hold:
                return False
            found = True
    return found


def holds_identifier(query: AnalysedQuery, held: tuple[bool, ...]) -> bool:
    """Whether a node holds an identifier of the query, such as an error code, in one of its forms."""
    return any(hold and word.identifier for word, hold in zip(query.words, held, strict=True))


def reasons(
    query: AnalysedQuery,
    held: tuple[bool, ...],
    *,
    is_key: bool,
    cosine: float | None,
    logit: float | None,
    context_logit: float | None,
    supported_by: str | None,
    touched: bool,
) -> tuple[str, ...]:
    """Short sentences, strongest reason first; the numbers are those of `scores`."""
    found: list[str] = []
    if is_key:
        found.append("the query is its key")
    words = [word.surface for word, hold in zip(query.words, held, strict=True) if word.informative and hold]
    if holds_every_word(query, held):
        found.append("holds every word of the query")
    elif words:
        shown = ", ".join(words[:_MAX_WORDS])
        more = len(words) - _MAX_WORDS
        found.append(f"holds {shown}" + (f" and {more} more words" if more > 0 else ""))
    if logit is not None:
        found.append(f"read by the cross-encoder: {logit:+.1f}")
    if context_logit is not None:
        found.append(f"read with its neighbours: {context_logit:+.1f}")
    if cosine is not None:
        found.append(f"nearness in meaning: {cosine:.2f}")
    if supported_by is not None:
        found.append(f"beside {supported_by!r}, which also matches")
    if touched:
        found.append("part of this conversation")
    return tuple(found)
