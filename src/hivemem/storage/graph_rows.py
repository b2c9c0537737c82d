"""Rows of a graph's tables as values, alike in every database: the columns have one order and one form."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any

from hivemem.domain.edge import Edge, Hyperedge, HyperedgeIdentity, Participant
from hivemem.domain.files import StoredFile
from hivemem.domain.graph import GraphId, Kind
from hivemem.domain.node import EnrichmentStatus, Node
from hivemem.errors import Corruption, InvalidInput
from hivemem.storage.states import ascii_folded, from_json, to_json
from hivemem.storage.times import from_microseconds, to_microseconds

_STATUSES = {status.value: status for status in EnrichmentStatus}


def node_from_row(row: Sequence[Any]) -> Node:
    """The node of a row with the columns that every reading statement of nodes names, in its order.

    Raises:
        Corruption: The row was damaged.
    """
    key, node_type, description, data, search_text, assets, status, *numbers = row
    write_version, revision, created_at, updated_at = numbers
    try:
        return Node.stored(
            key,
            node_type,
            description,
            from_json(data),
            search_text,
            () if assets == "[]" else tuple(json.loads(assets)),
            # Looking it up in a dict takes a fifth of the time of the enum's own call.
            _STATUSES.get(status) or EnrichmentStatus(status),
            write_version,
            revision,
            created := from_microseconds(created_at),
            created if updated_at == created_at else from_microseconds(updated_at),
        )
    except (InvalidInput, ValueError) as error:
        raise damaged_row(Kind.NODE, key, error) from error


def edge_from_row(row: Sequence[Any]) -> Edge:
    """The edge of a row with the columns that every reading statement of edges names, in its order.

    Raises:
        Corruption: The row was damaged.
    """
    edge_id, from_key, to_key, relationship, description, data, *numbers = row
    write_version, revision, created_at, updated_at = numbers
    try:
        return Edge(
            edge_id=edge_id,
            from_key=from_key,
            to_key=to_key,
            relationship=relationship,
            description=description,
            data=from_json(data),
            write_version=write_version,
            revision=revision,
            created_at=from_microseconds(created_at),
            updated_at=from_microseconds(updated_at),
        )
    except (InvalidInput, ValueError) as error:
        raise damaged_row(Kind.EDGE, edge_id, error) from error


def hyperedge_from_row(row: Sequence[Any], participants: tuple[Participant, ...]) -> Hyperedge:
    """The hyperedge of a row with the columns that every reading statement of hyperedges names.

    Raises:
        Corruption: The row was damaged.
    """
    hyperedge_id, relationship, description, data, *numbers = row
    write_version, revision, created_at, updated_at = numbers
    try:
        return Hyperedge(
            hyperedge_id=hyperedge_id,
            relationship=relationship,
            participants=participants,
            description=description,
            data=from_json(data),
            write_version=write_version,
            revision=revision,
            created_at=from_microseconds(created_at),
            updated_at=from_microseconds(updated_at),
        )
    except (InvalidInput, ValueError) as error:
        raise damaged_row(Kind.HYPEREDGE, hyperedge_id, error) from error


def identity_digest(identity: HyperedgeIdentity) -> str:
    """SHA-256 in hexadecimal of label and participants, whatever their order."""
    relationship, keys = identity
    return hashlib.sha256(to_json([relationship, *sorted(keys)]).encode()).hexdigest()


def file_columns(graph_id: GraphId, file: StoredFile) -> dict[str, Any]:
    """The columns of a file, by the names that statements use."""
    return {
        "graph_id": graph_id,
        "file_id": file.file_id,
        "filename": file.filename,
        "filename_folded": ascii_folded(file.filename),
        "file_type": file.file_type,
        "content_type": file.content_type,
        "size_bytes": file.size_bytes,
        "content_hash": file.sha256,
        "node_key": file.node_key,
        "summary": file.summary,
        "created_at": to_microseconds(file.created_at),
    }


def file_from_row(row: Sequence[Any]) -> StoredFile:
    """The file of a row with the columns that every reading statement of files names."""
    file_id, filename, file_type, content_type, size_bytes, sha256, node_key, summary, created_at = row
    return StoredFile(
        file_id=file_id,
        filename=filename,
        file_type=file_type,
        content_type=content_type,
        size_bytes=size_bytes,
        sha256=sha256,
        node_key=node_key,
        summary=summary,
        created_at=from_microseconds(created_at),
    )


def damaged_row(kind: str, id: str, error: Exception) -> Corruption:
    """The error of a row that breaks the rules its values were checked by before they were stored."""
    return Corruption(f"the stored {kind} {id!r} is damaged: {error} Restore a backup, or repair the row.")
