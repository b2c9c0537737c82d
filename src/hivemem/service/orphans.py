"""hm_list_orphans: nodes that no relationship joins to anything."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from dataclasses import dataclass

from hivemem.domain.access import Principal
from hivemem.domain.keys import USER_PROFILE_KEY
from hivemem.domain.node import Node
from hivemem.errors import InvalidInput
from hivemem.ports.store import GraphStore
from hivemem.projection.hot_graphs import HotGraphs

MAX_ORPHANS = 200
_PAGE = 1_000
_MAX_SCANNED = 20_000
"""Nodes looked at in one call. A page of a large, well connected graph may therefore be short or empty."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OrphansResult:
    """Orphans in key order; `next_cursor` is None on the last page."""

    orphans: tuple[Node, ...]
    next_cursor: str | None


class Orphans:
    """Finds nodes without relationships; those that group a conversation do not count."""

    def __init__(self, *, store: GraphStore, hot: HotGraphs) -> None:
        self._store = store
        self._hot = hot

    async def orphans(
        self, principal: Principal, *, limit: int = 50, cursor: str | None = None
    ) -> OrphansResult:
        """One page of orphans.

        Args:
            principal: The caller.
            limit: At most this many, 1 to 200.
            cursor: `next_cursor` of the page before.

        Raises:
            InvalidInput: A limit out of range, or a cursor that no page returned.
            Unavailable: The store is busy or down.
        """
        if not 1 <= limit <= MAX_ORPHANS:
            raise InvalidInput(f"/limit is {limit}; use 1 to {MAX_ORPHANS}.")
        graph_id, after = principal.graph_id, None if cursor is None else _key_of(cursor)
        index = await self._hot.fresh(graph_id)
        found: list[Node] = []
        for _ in range(0, _MAX_SCANNED, _PAGE):
            nodes: Sequence[Node] = await self._store.scan(graph_id, after=after, limit=_PAGE)
            for node in nodes:
                if len(found) == limit:
                    return OrphansResult(orphans=tuple(found), next_cursor=cursor_after(after))
                after = node.key
                if node.key != USER_PROFILE_KEY and not index.degree(node.key):
                    found.append(node)
            if len(nodes) < _PAGE:
                return OrphansResult(orphans=tuple(found), next_cursor=None)
        return OrphansResult(orphans=tuple(found), next_cursor=cursor_after(after))


def cursor_after(key: str | None) -> str:
    """The cursor of a page that follows the node `key`; None for the first page."""
    return base64.urlsafe_b64encode((key or "").encode()).decode().rstrip("=")


def _key_of(cursor: str) -> str:
    try:
        return base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True).decode()
    except (binascii.Error, ValueError) as error:
        raise InvalidInput(
            f"/cursor {cursor[:100]!r} is not one that a page returned; leave it out to start again."
        ) from error
