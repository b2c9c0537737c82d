"""Exports as rows, alike in each database."""

from __future__ import annotations

from typing import Any

from hivemem.domain.exports import Export, ExportStatus
from hivemem.domain.graph import GraphId
from hivemem.storage.times import from_microseconds, to_microseconds


def export_arguments(graph_id: GraphId, export: Export) -> dict[str, Any]:
    """The parameters of statements that write an export."""
    return {
        "graph_id": graph_id,
        "export_id": export.export_id,
        "user_id": export.user_id,
        "request": export.request,
        "secret": export.secret,
        "status": export.status.value,
        "created_at": to_microseconds(export.created_at),
        "expires_at": to_microseconds(export.expires_at),
        "document": export.document,
        "size_bytes": export.size_bytes,
        "content_hash": export.sha256,
        "node_count": export.node_count,
        "error_code": export.error_code,
    }


def export_from_row(row: tuple[Any, ...]) -> Export:
    """The export of a row with the columns that every reading statement names, in its order."""
    export_id, user_id, request, secret, status, created_at, expires_at, *results = row
    document, size_bytes, sha256, node_count, error_code = results
    return Export(
        export_id=export_id,
        user_id=user_id,
        request=request,
        secret=secret,
        status=ExportStatus(status),
        created_at=from_microseconds(created_at),
        expires_at=from_microseconds(expires_at),
        document=document,
        size_bytes=size_bytes,
        sha256=sha256,
        node_count=node_count,
        error_code=error_code,
    )
