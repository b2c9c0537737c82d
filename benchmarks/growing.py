"""More texts than there are: mixtures of two, as many as are wanted, without holding them all."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import numpy as np

_DRAWN = 10_000


def pairs(texts: int, seed: int) -> Iterator[tuple[int, int]]:
    """Endless pairs of positions below `texts`; the same seed gives the same pairs."""
    drawn = np.random.default_rng(seed)
    while True:
        yield from (tuple(pair) for pair in drawn.integers(texts, size=(_DRAWN, 2)).tolist())


def mixture(first: str, second: str) -> str:
    """The first half of the words of one text and the second half of the other's.

    Frequencies of words stay those of the texts; that there are no new words keeps the lists of the known
    ones long, which is hard on a keyword index rather than kind to it.
    """
    head, tail = first.split(), second.split()
    return " ".join((*head[: (len(head) + 1) // 2], *tail[len(tail) // 2 :]))


def grown(texts: Sequence[str], size: int, seed: int) -> Iterator[str]:
    """`size` texts: the given ones in order, then mixtures of them."""
    yield from texts[:size]
    for first, second in itertools.islice(pairs(len(texts), seed), max(0, size - len(texts))):
        yield mixture(texts[first], texts[second])
