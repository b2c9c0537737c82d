"""What an exact vector search finds, and how much of it an engine found. Needs nothing but numpy."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float32]
K = 10
_TIE = 1e-5
"""Cosines in float32 differ by less than this when they mean the same."""
_BLOCK = 50_000


def vectors_of(folder: Path, size: int, dimension: int) -> Vectors:
    """The vectors of a set's texts, read from its file as they are needed."""
    return np.memmap(folder / "texts.f32", np.float32, "r", shape=(size, dimension))


def exact_borders(vectors: Vectors, questions: Vectors) -> NDArray[np.float32]:
    """For each question the cosine of its tenth nearest text."""
    best = np.full((len(questions), K), -2.0, np.float32)
    for start in range(0, len(vectors), _BLOCK):
        cosines = questions @ np.ascontiguousarray(vectors[start : start + _BLOCK]).T
        both = np.concatenate((best, cosines), axis=1)
        best = -np.partition(-both, K - 1, axis=1)[:, :K]
    return best.min(axis=1)


def recall_at_10(
    found: Sequence[Sequence[str]], questions: Vectors, vectors: Vectors, borders: NDArray[np.float32]
) -> float:
    """The share of the returned that are as near as the exact tenth; equal cosines are equally right."""
    right = 0
    for ids, question, border in zip(found, questions, borders, strict=False):
        rows = [int(id.removeprefix("memory_")) for id in dict.fromkeys(ids[:K])]
        right += int((vectors[rows] @ question >= border - _TIE).sum()) if rows else 0
    return right / (K * max(1, len(found)))
