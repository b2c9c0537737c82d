"""Exports: a whole graph as one document, made in the background."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from datetime import datetime

EXPORT_CHUNK_BYTES = 1 << 18
"""Size of the pieces of a document, but for the last one."""


class ExportStatus(enum.StrEnum):
    """How far an export is."""

    QUEUED = "queued"
    RUNNING = "running"
    PUBLISHED = "published"
    FAILED = "failed"
    EXPIRED = "expired"
    """The document is gone."""

    @property
    def unfinished(self) -> bool:
        """Whether there is still work to do."""
        return self in (ExportStatus.QUEUED, ExportStatus.RUNNING)


@dataclass(frozen=True, slots=True, kw_only=True)
class Export:
    """One order for a document. Times are aware UTC.

    Attributes:
        user_id: Who ordered it.
        request: What makes a second order the same; unique in a graph.
        secret: Signs the links to the document.
        expires_at: From then on it is expired, finished or not.
        document: Which of the documents in the store is the export's; two workers may each have begun one.
        size_bytes: Of the document; like `sha256` and `node_count` None until it is published.
        error_code: Why it failed.
    """

    export_id: str
    user_id: str
    request: str
    secret: str
    status: ExportStatus = ExportStatus.QUEUED
    created_at: datetime
    expires_at: datetime
    document: str | None = None
    size_bytes: int | None = None
    sha256: str | None = None
    node_count: int | None = None
    error_code: str | None = None
