"""The words by which a line of the diary is found, alike in every store."""

from __future__ import annotations

from hivemem.domain.graph import TimelineEntry
from hivemem.retrieval.analyse import document_terms


def diary_terms(entry: TimelineEntry) -> str:
    """The index terms of a line's summary, each once, with a blank around each; terms hold none."""
    return f" {' '.join(document_terms(entry.summary).frequencies)} "
