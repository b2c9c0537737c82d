"""The vectors of the texts that a write needs, or the reason why a text has none."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from hivemem.domain.graph import NodeVectors
from hivemem.domain.node import Node
from hivemem.domain.writing import NodeDraft, NodeText
from hivemem.errors import HivememError, Unavailable
from hivemem.service.passages import PassageEmbedding


class TextVectors:
    """What has been embedded for one write so far. A model that fails never loses a write.

    Args:
        embedding: Makes the vectors.
        patient: Wait for a busy model, as an import does.
        max_passages: Texts of more passages are left to the background; None when nothing works there.
            An import leaves none.
    """

    def __init__(self, embedding: PassageEmbedding, *, patient: bool, max_passages: int | None) -> None:
        self._embedding = embedding
        self._patient = patient
        self._max_passages = None if patient else max_passages
        self._vectors: dict[NodeText, NodeVectors] = {}
        self._notes: dict[NodeText, str] = {}

    @property
    def vectors(self) -> Mapping[NodeText, NodeVectors]:
        """Of every text that was added; without passages where the model failed or the text waits."""
        return self._vectors

    def note(self, node: Node) -> str | None:
        """Why the text of `node` has no vectors, as a warning to the caller; None when it has some."""
        return self._notes.get(NodeText.of(node)) if self._notes else None

    def missing(self, drafts: Iterable[NodeDraft], present: Mapping[str, Node]) -> list[NodeText]:
        """The texts that a plan on `present` needs and that were not added yet, each once."""
        texts = (draft.missing_text(present.get(draft.key)) for draft in drafts)
        needed = dict.fromkeys(text for text in texts if text is not None)
        return [text for text in needed if text not in self._vectors]

    async def add(self, texts: Sequence[NodeText]) -> None:
        """Embed `texts`; those that cannot be embedded now get empty vectors and a note."""
        if not texts:
            return
        try:
            cut = await self._embedding.cut(texts)
            now = [one for one in cut if not self._is_deferred(len(one.passages))]
            self._vectors.update(await self._embedding.embed(now, patient=self._patient))
            reason = "the text is long, so it is embedded in the background"
        except Unavailable as error:
            reason = error.message
        except HivememError as error:
            if len(texts) > 1:
                # The model fails on one of them: the others shall have their vectors.
                for text in texts:
                    await self.add([text])
                return
            reason = error.message
        for text in texts:
            if text not in self._vectors:
                self._vectors[text] = self._embedding.no_vectors()
                self._notes[text] = (
                    f"stored without vectors (enrichment_status pending): {reason.rstrip('.')}; until "
                    "it is embedded, it is found by its words, not by its meaning"
                )

    def _is_deferred(self, passages: int) -> bool:
        return self._max_passages is not None and passages > self._max_passages
