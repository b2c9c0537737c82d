"""At which revision of the graph each node was last changed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hivemem.projection.arrays import with_room
from hivemem.projection.numbers import NodeNumbers


class RevisionTable:
    """For each described node the graph's revision at its last change."""

    def __init__(self, numbers: NodeNumbers) -> None:
        self._numbers = numbers
        self._revisions = np.zeros(0, dtype=np.int64)

    @property
    def size_bytes(self) -> int:
        """Memory held."""
        return self._revisions.nbytes

    def put(self, key: str, revision: int) -> None:
        """Note the revision of a node that another part of the index holds."""
        number = self._numbers.find(key)
        assert number is not None
        self._revisions = with_room(self._revisions, number + 1)
        self._revisions[number] = revision

    def of(self, nodes: Sequence[int]) -> list[int]:
        """The revision of each node, 0 for one that is not described."""
        self._revisions = with_room(self._revisions, self._numbers.room)
        return self._revisions[list(nodes)].tolist()
