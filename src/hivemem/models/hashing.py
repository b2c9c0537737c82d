"""A deterministic embedder without weights, for tests and for speed benchmarks.

It knows words and parts of words, and nothing of meaning. Same text, same vector, on every machine.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from hivemem.errors import InvalidInput
from hivemem.models.passages import PassageLimits, estimated_token_starts, split_passages
from hivemem.ports.models import Span

_WORD = re.compile(r"\w+")

# A word counts more than any one of its parts.
_WORD_WEIGHT = 1.0
_TRIGRAM_WEIGHT = 0.3


class HashingEmbedder:
    """Unit vectors by signed feature hashing of words and their character trigrams.

    Each feature adds its weight, with a sign from its hash, to one entry chosen by its hash.
    A text without any word points along the first axis.

    Args:
        dimension: Length of the vectors, at least 8.
        passages: How texts are cut.
        immediate: See `hivemem.ports.models.is_immediate`: a sentence takes a tenth of a millisecond.

    Source: Weinberger et al., "Feature Hashing for Large Scale Multitask Learning", ICML 2009.
    """

    def __init__(
        self, dimension: int = 384, *, passages: PassageLimits | None = None, immediate: bool = False
    ) -> None:
        if dimension < 8:
            raise InvalidInput(f"dimension={dimension} must be at least 8")
        self._dimension = dimension
        self._limits = passages or PassageLimits()
        self._immediate = immediate
        self._features = lru_cache(maxsize=50_000)(self._word_features)

    @property
    def model_id(self) -> str:
        """`hashing:`, the dimension and the version of the feature set."""
        return f"hashing:{self._dimension}:v1"

    @property
    def dimension(self) -> int:
        """Length of every vector."""
        return self._dimension

    @property
    def immediate(self) -> bool:
        """See `hivemem.ports.models.is_immediate`."""
        return self._immediate

    def passages(self, text: str) -> list[Span]:
        """Stretches of about the wanted number of tokens, as a tokenizer would count them."""
        return split_passages(text, estimated_token_starts, self._limits)

    def embed_passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Unit vectors of the texts, shape (len(texts), dimension)."""
        vectors = np.zeros((len(texts), self._dimension), np.float32)
        for row, text in enumerate(texts):
            vectors[row] = self.embed_query(text)
        return vectors

    def embed_query(self, text: str) -> NDArray[np.float32]:
        """Unit vector of the text; questions and stored texts are treated alike."""
        found = [
            self._features(word) for word in _WORD.findall(unicodedata.normalize("NFKC", text).casefold())
        ]
        vector = np.zeros(self._dimension)
        if found:
            entries = np.concatenate([entries for entries, _ in found])
            weights = np.concatenate([weights for _, weights in found])
            vector = np.bincount(entries, weights, minlength=self._dimension)
        norm = float(np.linalg.norm(vector))
        if norm == 0.0:  # no word, or features that cancel out
            vector[0] = norm = 1.0
        return (vector / norm).astype(np.float32)

    def _word_features(self, word: str) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        marked = f"<{word}>"
        features = [(marked, _WORD_WEIGHT)]
        features += [(marked[i : i + 3], _TRIGRAM_WEIGHT) for i in range(len(marked) - 2)]
        # crc32 and not hash(): Python salts the latter anew in every process.
        hashes = [crc32(feature.encode("utf-8", "surrogatepass")) for feature, _ in features]
        entries = np.array([(value >> 1) % self._dimension for value in hashes], np.int64)
        signs = np.array([1.0 if value & 1 else -1.0 for value in hashes])
        return entries, signs * np.array([weight for _, weight in features])
