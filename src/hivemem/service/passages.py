"""From the text of nodes to their vectors, through the bounded model executor."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hivemem.domain.graph import NodeVectors, Passage
from hivemem.domain.writing import NodeText
from hivemem.errors import Overloaded, Unavailable
from hivemem.models.executor import ModelExecutor
from hivemem.ports.models import Embedder, Span

_SLICE_TEXTS = 256
"""Texts handed to the executor at once: far below its queue limit, so that recalls get in between."""

_CUT_IN_THREAD_CHARACTERS = 20_000
"""Cutting needs the model's tokenizer; above this size it would hold up the event loop."""

_OVERLOADED_TRIES = 60
_OVERLOADED_WAIT_SECONDS = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class CutText:
    """A node's text and the stretches of it that get a vector each: (source, text, span)."""

    text: NodeText
    passages: tuple[tuple[str, str, Span], ...]


class PassageEmbedding:
    """Embeds node texts. Without an embedder every call raises `Unavailable`."""

    def __init__(self, executor: ModelExecutor) -> None:
        self._executor = executor

    @property
    def model_id(self) -> str:
        """The vector space of the present model, `none` without one."""
        embedder = self._executor.embedder
        return "none" if embedder is None else embedder.model_id

    def no_vectors(self) -> NodeVectors:
        """What clears the vectors of a node, so that an old text never answers for a new one."""
        return NodeVectors(model_id=self.model_id, passages=())

    async def cut(self, texts: Sequence[NodeText]) -> list[CutText]:
        """The passages of each text, description first.

        Raises:
            Unavailable: There is no embedder.
        """
        embedder = self._executor.embedder
        if embedder is None:
            raise Unavailable(self._executor.embedder_problem or "no embedding model is configured")

        def cut_all() -> list[CutText]:
            return [CutText(text=text, passages=_passages(embedder, text)) for text in texts]

        in_thread = sum(map(_characters, texts)) > _CUT_IN_THREAD_CHARACTERS
        return await asyncio.to_thread(cut_all) if in_thread else cut_all()

    async def embed(self, texts: Sequence[CutText], *, patient: bool) -> dict[NodeText, NodeVectors]:
        """Vectors of all texts.

        Args:
            texts: Any number; they are handed over in slices.
            patient: Wait and try again for a while when the queue is full, as an import does.

        Raises:
            Unavailable: There is no embedder, it was exchanged, or (`Overloaded`) its queue is full.
            HivememError: The model failed on one of the texts.
        """
        embedder = self._executor.embedder
        flat = [passage for text in texts for _, passage, _ in text.passages]
        vectors: list[bytes] = []
        for start in range(0, len(flat), _SLICE_TEXTS):
            if self._executor.embedder is not embedder:
                raise Unavailable("the embedding model was changed meanwhile; embed again.")
            matrix = await self._embed_slice(flat[start : start + _SLICE_TEXTS], patient)
            vectors.extend(vector.astype("<f4", copy=False).tobytes() for vector in matrix)
        model_id = "none" if embedder is None else embedder.model_id
        embedded: dict[NodeText, NodeVectors] = {}
        position = 0
        for text in texts:
            passages: list[Passage] = []
            for source, _, span in text.passages:
                passages.append(
                    Passage(source=source, start=span.start, end=span.end, vector=vectors[position])
                )
                position += 1
            embedded[text.text] = NodeVectors(model_id=model_id, passages=tuple(passages))
        return embedded

    async def _embed_slice(self, texts: Sequence[str], patient: bool) -> NDArray[np.float32]:
        # The executor takes its embedder before it first waits, so a slice has one model throughout.
        for _ in range(_OVERLOADED_TRIES if patient else 0):
            try:
                return await self._executor.embed_passages(texts)
            except Overloaded:
                await asyncio.sleep(_OVERLOADED_WAIT_SECONDS)
        return await self._executor.embed_passages(texts)


def _characters(text: NodeText) -> int:
    return len(text.description) + len(text.search_text or "")


def _passages(embedder: Embedder, text: NodeText) -> tuple[tuple[str, str, Span], ...]:
    fields = (("description", text.description), ("search_text", text.search_text))
    return tuple(
        (source, field[span.start : span.end], span)
        for source, field in fields
        if field
        for span in embedder.passages(field)
    )
