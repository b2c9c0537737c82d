"""What the comparison asks of an engine."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float32]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """Some texts with their ids and unit vectors, shape (texts, dimension), float32."""

    ids: Sequence[str]
    texts: Sequence[str]
    vectors: Vector


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is the same for all engines.

    `leg` hits of each leg go to the fusion, whose constant is `rrf_k`; engines that do not let this be said
    choose for themselves. `mean_words` of the texts is what a BM25 with a fixed mean length is told.
    """

    dimension: int
    leg: int
    rrf_k: int
    mean_words: float
    threads: int
    measure: str
    """`speed` or `quality`."""


class Engine:
    """A store of texts with search by word and by meaning, in a folder of its own.

    Searches return ids, best first: reading the texts of ten hits costs every engine about the same.
    """

    what = ""
    """The retrieval that is driven, for the report."""
    durability = ""
    """What holds when `insert` has returned."""
    version = ""
    efforts: Sequence[int] = (0,)
    """How much an approximate vector leg may look at, least first; more than one where it can be said."""

    effort = 0
    """The one of `efforts` that searches use: the least with which the vector leg finds enough."""

    def __init__(self, folder: Path, plan: Plan) -> None:
        raise NotImplementedError

    def add(self, batches: Iterable[Rows]) -> None:
        """Store many."""
        raise NotImplementedError

    def ready(self) -> None:
        """Build what indexes are wanted, and wait for them."""

    def hybrid(self, text: str, vector: Vector, k: int) -> list[str]:
        """The best `k` by both legs and their fusion."""
        raise NotImplementedError

    def dense(self, vector: Vector, k: int) -> list[str]:
        """The nearest `k` by the vector leg alone."""
        raise NotImplementedError

    def insert(self, id: str, text: str, vector: Vector) -> None:
        """Store one."""
        self.add([Rows(ids=[id], texts=[text], vectors=vector[None])])

    def settle(self) -> None:
        """Finish what an answer left to do; called between searches, outside the time taken."""

    def close(self) -> None:
        """Release files and processes."""


def reciprocal_ranks(rankings: Iterable[Sequence[int]], k: int, rrf_k: int) -> list[int]:
    """The best `k` of several rankings by the sum of 1 / (rrf_k + rank), for engines without a fusion."""
    totals: defaultdict[int, float] = defaultdict(float)
    for ranking in rankings:
        for rank, item in enumerate(ranking, start=1):
            totals[item] += 1.0 / (rrf_k + rank)
    return sorted(totals, key=lambda item: (-totals[item], item))[:k]
