"""Operations on either a node or a relationship."""

from __future__ import annotations

from typing import Literal

from hivemem.errors import InvalidInput


def one_target(key: str | None, edge_id: str | None, edge_version: int | None) -> Literal["key", "edge_id"]:
    """Which of the two was named.

    Raises:
        InvalidInput: Both or none, or the version of an edge for a node.
    """
    if key is not None and edge_id is not None:
        raise InvalidInput("/key and /edge_id are both given; send one of them.")
    if key is None and edge_id is None:
        raise InvalidInput("/key is required, unless /edge_id names an edge.")
    if key is not None and edge_version is not None:
        raise InvalidInput("/edge_version belongs to /edge_id; a node is changed whatever its version.")
    return "key" if key is not None else "edge_id"
