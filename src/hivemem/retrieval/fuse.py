"""Joining the ranked lists of several retrievers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hivemem.errors import InvalidInput

RRF_K = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class FusedHit:
    """One node of the joined list; `ranks` maps each leg that found it to its rank there, from 1."""

    key: str
    score: float
    ranks: Mapping[str, int]


def reciprocal_rank_fusion(rankings: Mapping[str, Sequence[str]], *, k: int = RRF_K) -> list[FusedHit]:
    """Merge ranked lists by rank alone, so legs need not share a scale of scores.

    A leg gives `1 / (k + rank)` to each key it returned and nothing to the others. Equal totals are
    ordered by key: the same input always gives the same output.

    Args:
        rankings: Leg name -> keys, best first, each key once. R lists of any length, n keys in all.
        k: Damping in ranks, positive. Larger values flatten the difference between top and tail.

    Returns:
        One hit per distinct key, best first. Scores lie in (0, R / (k + 1)], have no unit, and must
        not be compared between queries.

    Raises:
        InvalidInput: `k` is not positive, or a list names a key twice.

    Cost: O(n log n), no I/O.
    Source: Cormack, Clarke, Buettcher, SIGIR 2009, doi:10.1145/1571941.1572114 (k = 60 is theirs).

    Example:
        >>> hits = reciprocal_rank_fusion({"bm25": ["a", "b"], "dense": ["b", "c"]})
        >>> [hit.key for hit in hits]
        ['b', 'a', 'c']
    """
    if k <= 0:
        raise InvalidInput(f"the fusion constant k is {k}; it must be positive.")
    ranks: dict[str, dict[str, int]] = {}
    for leg, keys in rankings.items():
        for rank, key in enumerate(keys, start=1):
            seen = ranks.setdefault(key, {})
            if leg in seen:
                raise InvalidInput(f"the leg {leg!r} returned {key!r} twice.")
            seen[leg] = rank
    # fsum, not sum: the total must not depend on the order of the legs.
    hits = [
        FusedHit(key=key, score=math.fsum(1 / (k + rank) for rank in seen.values()), ranks=seen)
        for key, seen in ranks.items()
    ]
    return sorted(hits, key=lambda hit: (-hit.score, hit.key))
