"""Models behind HTTP: OpenAI-compatible `/v1/embeddings`, and `/rerank` in three shapes.

Answers are checked before they are used: their number, order, length and finiteness.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from enum import StrEnum
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from hivemem.errors import Corruption, InvalidInput
from hivemem.models.endpoint import JsonEndpoint
from hivemem.models.passages import PassageLimits, estimated_token_starts, split_passages
from hivemem.ports.models import Span

# Passages for a tokenizer that is not known: room is left for one that makes more tokens than estimated.
_PASSAGES = PassageLimits(target=128, window=384)

# Probabilities are kept this far from 0 and 1: a float32 score of exactly 1 has no finite logit.
_SMALLEST_PROBABILITY = 1e-7


class HttpEmbedder:
    """Vectors from an OpenAI-compatible endpoint. See `hivemem.ports.models.Embedder`.

    Args:
        base_url: As OpenAI clients take it, such as `http://localhost:8080/v1`; `/embeddings` is added.
        model: The model's name, part of `model_id`. Another model behind the same name would mix
            vector spaces: give it another name.
        dimension: Length of the vectors; when None, one request is made now to learn it.
        api_key: Sent as a bearer token.
        query_prefix: Put before every question, for models that want it.
        passage_prefix: Put before every stored text, for models that want it.
        query_characters: A longer question is cut to its tail.
        passages: How `passages` cuts, in estimated tokens.
        batch_texts: Texts in one request.
        timeout_seconds: For connecting, and for each wait for bytes.
        wait: Called with seconds before the one retry of a busy server; replaced in tests.

    Raises:
        Unavailable: `dimension` is None and the endpoint does not answer.
    """

    def __init__(
        self,
        base_url: str,
        model: str,
        *,
        dimension: int | None = None,
        api_key: str | None = None,
        query_prefix: str = "",
        passage_prefix: str = "",
        query_characters: int = 1_500,
        passages: PassageLimits = _PASSAGES,
        batch_texts: int = 32,
        timeout_seconds: float = 10.0,
        wait: Callable[[float], None] = time.sleep,
    ) -> None:
        if batch_texts < 1 or query_characters < 1 or (dimension is not None and dimension < 1):
            raise InvalidInput(f"{batch_texts=}, {query_characters=} and {dimension=} must be positive")
        url = _with_path(base_url, "embeddings", "/embeddings")
        self._endpoint = JsonEndpoint(url, api_key=api_key, timeout_seconds=timeout_seconds, wait=wait)
        self._model = model
        self._query_prefix, self._passage_prefix = query_prefix, passage_prefix
        self._query_characters = query_characters
        self._limits = passages
        self._batch_texts = batch_texts
        self._dimension = dimension
        if dimension is None:
            self._dimension = self._request(["dimension"]).shape[1]

    @property
    def model_id(self) -> str:
        """`http:` and the model's name; not its address, which may change while the space stays."""
        return f"http:{self._model}"

    @property
    def dimension(self) -> int:
        """Length of every vector."""
        return cast("int", self._dimension)

    def close(self) -> None:
        """Close the kept connections."""
        self._endpoint.close()

    def passages(self, text: str) -> list[Span]:
        """Stretches of about the wanted number of tokens; the remote tokenizer is not known here."""
        return split_passages(text, estimated_token_starts, self._limits)

    def embed_passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Unit vectors of stored texts."""
        return self._embed([self._passage_prefix + text for text in texts])

    def embed_query(self, text: str) -> NDArray[np.float32]:
        """Unit vector of a question."""
        return self._embed([self._query_prefix + text[-self._query_characters :]])[0]

    def _embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        vectors = np.zeros((len(texts), self.dimension), np.float32)
        for start, some in _in_batches(texts, self._batch_texts):
            vectors[start : start + len(some)] = self._request(some)
        return vectors

    def _request(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Unit vectors of one batch, in the order of the texts, whatever the order of the answer."""
        answer = self._endpoint.post({"model": self._model, "input": texts, "encoding_format": "float"})
        rows = _by_index(self._endpoint.name, answer, "data", "embedding", len(texts))
        try:
            vectors = np.array(rows, np.float64)
        except (TypeError, ValueError) as error:
            raise Corruption(f"{self._endpoint.name} gave a vector that is not numbers: {error}") from error
        expected = (len(texts), self._dimension or vectors.shape[-1])
        if vectors.shape != expected:
            raise Corruption(
                f"{self._endpoint.name} gave vectors of shape {vectors.shape}, expected {expected}: "
                f"is {self._model!r} the model that this memory was built with?"
            )
        norms = np.linalg.norm(vectors, axis=1, keepdims=True)
        if not (np.isfinite(norms) & (norms > 0)).all():
            raise Corruption(
                f"{self._endpoint.name} gave a vector of zeros or with a number that is not finite"
            )
        return (vectors / norms).astype(np.float32)


class RerankShape(StrEnum):
    """How a server wants a re-ranking request, and where its scores are.

    `tei` is Text Embeddings Inference; `cohere` and `jina` are spoken by many other servers too.
    """

    TEI = "tei"
    COHERE = "cohere"
    JINA = "jina"


_RERANK_PATHS = {RerankShape.TEI: "/rerank", RerankShape.COHERE: "/v2/rerank", RerankShape.JINA: "/v1/rerank"}


class HttpReranker:
    """Logits from a re-ranking endpoint. See `hivemem.ports.models.Reranker`.

    Args:
        base_url: The server's address; the usual path of the shape is added unless it ends in `rerank`.
        model: The model's name, part of `model_id`; not sent to TEI, which serves one model.
        shape: What the server speaks.
        scores_are_logits: Whether scores are logits already. Usually they are probabilities, which
            are mapped to logits here, so that relevance means the same for every reranker.
        api_key: Sent as a bearer token.
        window_characters: About what the remote model sees of a text.
        query_characters: A longer question is cut to its tail.
        batch_texts: Texts in one request.
        timeout_seconds: For connecting, and for each wait for bytes.
        wait: Called with seconds before the one retry of a busy server; replaced in tests.
    """

    def __init__(
        self,
        base_url: str,
        model: str,
        *,
        shape: RerankShape,
        scores_are_logits: bool = False,
        api_key: str | None = None,
        window_characters: int = 1_500,
        query_characters: int = 500,
        batch_texts: int = 32,
        timeout_seconds: float = 10.0,
        wait: Callable[[float], None] = time.sleep,
    ) -> None:
        if batch_texts < 1 or window_characters < 1 or query_characters < 1:
            raise InvalidInput(f"{batch_texts=}, {window_characters=}, {query_characters=} must be positive")
        url = _with_path(base_url, "rerank", _RERANK_PATHS[shape])
        self._endpoint = JsonEndpoint(url, api_key=api_key, timeout_seconds=timeout_seconds, wait=wait)
        self._model = model
        self._shape = shape
        self._scores_are_logits = scores_are_logits
        self._window_characters = window_characters
        self._query_characters = query_characters
        self._batch_texts = batch_texts

    @property
    def model_id(self) -> str:
        """`http:` and the model's name."""
        return f"http:{self._model}"

    @property
    def window_characters(self) -> int:
        """About what the remote model sees of a text, as configured."""
        return self._window_characters

    def close(self) -> None:
        """Close the kept connections."""
        self._endpoint.close()

    def score(self, query: str, texts: Sequence[str]) -> NDArray[np.float32]:
        """One logit a text, in the order of the texts."""
        asked = query[-self._query_characters :]
        scores = np.zeros(len(texts))
        for start, some in _in_batches(texts, self._batch_texts):
            scores[start : start + len(some)] = self._request(asked, some)
        if self._scores_are_logits:
            return scores.astype(np.float32)
        if ((scores < 0) | (scores > 1)).any():
            raise Corruption(
                f"{self._endpoint.name} gave scores from {scores.min():.3g} to {scores.max():.3g}, which are "
                "no probabilities; configure the reranker's scores as logits"
            )
        clipped = np.clip(scores, _SMALLEST_PROBABILITY, 1 - _SMALLEST_PROBABILITY)
        return np.log(clipped / (1 - clipped)).astype(np.float32)

    def _request(self, query: str, texts: Sequence[str]) -> NDArray[np.float64]:
        match self._shape:
            case RerankShape.TEI:
                payload = {"query": query, "texts": texts, "raw_scores": self._scores_are_logits}
                field, value = None, "score"
            case RerankShape.COHERE | RerankShape.JINA:
                payload = {"model": self._model, "query": query, "documents": texts, "top_n": len(texts)}
                field, value = "results", "relevance_score"
        answer = self._endpoint.post(payload)
        try:
            scores = np.array(_by_index(self._endpoint.name, answer, field, value, len(texts)), np.float64)
        except (TypeError, ValueError) as error:
            raise Corruption(f"{self._endpoint.name} gave a score that is not a number: {error}") from error
        if scores.shape != (len(texts),) or not np.isfinite(scores).all():
            raise Corruption(f"{self._endpoint.name} gave a score that is not a finite number")
        return scores


def _with_path(base_url: str, ending: str, path: str) -> str:
    """The URL itself when it names the operation already, else with the usual path."""
    base = base_url.rstrip("/")
    return base if base.endswith("/" + ending) else base + path


def _in_batches(texts: Sequence[str], size: int) -> Iterator[tuple[int, list[str]]]:
    for start in range(0, len(texts), size):
        yield start, list(texts[start : start + size])


def _by_index(name: str, answer: Any, field: str | None, value: str, count: int) -> list[Any]:
    """The `value` of each row, put in the order of its `index`: servers sort by score, or not at all.

    Raises:
        Corruption: The rows are not exactly one for each of `count` texts.
    """
    try:
        rows = answer if field is None else answer[field]
        found = {int(row["index"]): row[value] for row in rows}
    except (KeyError, TypeError, ValueError) as error:
        where = "a list" if field is None else f"a list {field!r}"
        raise Corruption(
            f"the answer of {name} is not {where} of objects with 'index' and {value!r}"
        ) from error
    if len(rows) != count or found.keys() != set(range(count)):
        raise Corruption(
            f"{name} answered {len(rows)} rows with indexes {sorted(found)[:10]} for {count} texts"
        )
    return [found[position] for position in range(count)]
