"""Uploaded files, as a graph knows them; their bytes are elsewhere (`hivemem.ports.files`)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredFile:
    """A file that belongs to a node.

    `file_type` is `document`, `image`, `audio` or `video`; `sha256` names the bytes. `created_at` is aware
    UTC. A file whose node is forgotten is hidden, and comes back with the node.
    """

    file_id: str
    filename: str
    file_type: str
    content_type: str
    size_bytes: int
    sha256: str
    node_key: str
    summary: str
    created_at: datetime
