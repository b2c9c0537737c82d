"""Models: text to vector, and query with text to relevance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of a text in code points, `start <= end`."""

    start: int
    end: int


class Embedder(Protocol):
    """Maps texts to unit vectors. Blocking and CPU-bound: call it through the model executor.

    The same text gives the same vector, alone or in any batch, within 1e-3 for quantised models.
    """

    @property
    def model_id(self) -> str:
        """Names the vector space: two embedders with one id may be compared, others never."""
        ...

    @property
    def dimension(self) -> int:
        """Length of every vector."""
        ...

    def passages(self, text: str) -> list[Span]:
        """Cut a text into stretches that each fit the model's window, in reading order.

        Together they cover every non-blank character; a short text is one span; a blank one is none.
        """
        ...

    def embed_passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Unit vectors of stored texts, shape (len(texts), dimension), finite.

        Raises:
            Unavailable: A remote model does not answer.
            Corruption: The model gave a vector of another length or a non-finite number.
        """
        ...

    def embed_query(self, text: str) -> NDArray[np.float32]:
        """Unit vector of a question, shape (dimension,), with the model's own query prefix.

        Longer than the window: the tail is used, since a prompt ends with the question.
        """
        ...


class Reranker(Protocol):
    """Scores (query, text) pairs. Blocking and CPU-bound: call it through the model executor."""

    @property
    def model_id(self) -> str:
        """Names the model; calibration of relevance belongs to one id."""
        ...

    @property
    def window_characters(self) -> int:
        """Characters of a text that the model sees, about; longer texts are cut by the caller."""
        ...

    def score(self, query: str, texts: Sequence[str]) -> NDArray[np.float32]:
        """One logit a text, shape (len(texts),), finite, larger is more relevant.

        A pair's logit depends on that pair alone, within 1e-2 for quantised models.

        Raises:
            Unavailable: A remote model does not answer.
        """
        ...


def is_immediate(embedder: Embedder) -> bool:
    """Whether a short text takes it less time than handing it to another thread, which it bears.

    An embedder says so with an attribute `immediate`; most do not.
    """
    return getattr(embedder, "immediate", False) is True
