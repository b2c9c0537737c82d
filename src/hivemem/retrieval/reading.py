"""What the cross-encoder is given to read of a node: a passage, alone and among its neighbours."""

from __future__ import annotations

import re

from hivemem.retrieval.analyse import AnalysedQuery, document_terms

_SPACE = re.compile(r"\s+")


def shortened_head(text: str, limit: int) -> str:
    """The start of `text`, at most `limit` characters, cut at a space where there is one."""
    text = _SPACE.sub(" ", text).strip()
    if len(text) <= limit:
        return text
    return text[:limit].rsplit(" ", 1)[0] or text[:limit]


def best_window(text: str, query: AnalysedQuery, *, width: int) -> tuple[int, int]:
    """The stretch of about `width` characters that holds most of the query's words, as offsets.

    Used where no vector tells the best passage. Windows overlap by half; the first of equals wins.
    Cost: one analysis of the text.
    """
    if len(text) <= width:
        return 0, len(text)
    wanted = [{term.text for term in word.terms} for word in query.words if word.informative]
    step = max(1, width // 2)
    best = (-1, 0)
    for start in range(0, max(1, len(text) - step), step):
        held = document_terms(text[start : start + width]).frequencies
        score = sum(1 for terms in wanted if not terms.isdisjoint(held))
        if score > best[0]:
            best = (score, start)
    start = best[1]
    return start, min(len(text), start + width)


def among_neighbours(before: str, text: str, after: str) -> str:
    """A text between what leads to it and what it leads to, as one paragraph; blank parts are left out."""
    return " ".join(part for part in (before, text, after) if part)
