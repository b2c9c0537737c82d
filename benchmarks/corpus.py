"""Memories and questions to measure with: from a data set, or generated, so that anybody can run it.

Beyond the size of a data set, texts are mixed: the first half of one and the second half of another, so
that word frequencies stay those of real text. Without a data set, sentences are made of words whose
frequencies follow Zipf's law: common English ones, which models know as one token, then invented ones.
Documents that follow each other are related like the turns of a conversation, 20 to a session.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from measuring import texts_hash

from hivemem.service.remember import StoreRequest
from hivemem.surfaces.cli.evaluate import DataSet, requests

_VOCABULARY = 20_000
_COMMON_WORDS = """
the to and of we a in it is that for you i was with on this have but are be so at as they not my what
about can from just had like there will your all when me she he were or one them if up out been how would
more time do has get people new our some know good really team now work last year week day also which
after her his then other think make two go into than first back only could over see who way next need
want use plan meeting project update release server deploy error database customer review budget design
decision moved started finished changed agreed asked told kept sent built found tested before because
while still again another early late morning evening friday monday march april june home office family
friend sister brother mother trip book music game photo dinner coffee dog garden school class number
report issue version system service request answer question reason problem result change list
"""
_SESSION_TURNS = 20
_STARTS = ("What did", "When was", "Who told us about", "Why did we choose", "Where is")


@dataclass(frozen=True, slots=True, kw_only=True)
class Corpus:
    """One graph of memories, and questions to it."""

    source: str
    documents: tuple[Mapping[str, Any], ...]
    questions: tuple[str, ...]
    mixed: int

    @property
    def texts(self) -> list[str]:
        """The descriptions, in order."""
        return [document["text"] for document in self.documents]

    def requests(self) -> list[StoreRequest]:
        """The memories with their relationships, to be stored in order."""
        return requests(self.documents)

    def facts(self) -> dict[str, Any]:
        """What a result file says of the corpus."""
        characters = sum(len(text) for text in self.texts)
        return {
            "source": self.source,
            "documents": len(self.documents),
            "mixtures": self.mixed,
            "mean_characters": round(characters / len(self.documents), 1),
            "sha256": texts_hash(self.texts),
            "questions": len(self.questions),
            "questions_sha256": texts_hash(self.questions),
        }


def read_corpus(folder: Path | None, size: int, questions: int, seed: int) -> Corpus:
    """`size` memories in one graph and `questions` questions: of the data set in `folder`, or generated."""
    if folder is None:
        return _generated(size, questions, seed)
    data = DataSet.read(folder)
    documents = [document for rows in data.documents.values() for document in rows]
    asked = [query.text for query in data.queries]
    generator = random.Random(seed)
    generator.shuffle(asked)
    asked = list(itertools.islice(itertools.cycle(asked), questions))
    mixed = max(0, size - len(documents))
    grown = documents[:size] + _mixtures([document["text"] for document in documents], mixed, generator)
    return Corpus(source=data.name, documents=tuple(grown), questions=tuple(asked), mixed=mixed)


def _mixtures(texts: list[str], count: int, generator: random.Random) -> list[Mapping[str, Any]]:
    mixed: list[Mapping[str, Any]] = []
    for number in range(count):
        first, second = (generator.choice(texts).split() for _ in range(2))
        text = " ".join((*first[: (len(first) + 1) // 2], *second[len(second) // 2 :]))
        mixed.append(_document(f"mixture_{number}", number, text))
    return mixed


def _document(key: str, number: int, text: str) -> Mapping[str, Any]:
    session = number // _SESSION_TURNS
    return {"id": key, "text": text, "meta": {"conversation": session // 10, "session": session}}


def _generated(size: int, questions: int, seed: int) -> Corpus:
    words = _Words(seed)
    documents = [
        _document(f"memory_{number}", number, words.sentences(words.random.randint(1, 3)))
        for number in range(size)
    ]
    asked: list[str] = []
    while len(asked) < questions:
        text = words.random.choice(documents)["text"].rstrip(".").lower().split()
        start = words.random.randrange(max(1, len(text) - 6))
        asked.append(f"{words.random.choice(_STARTS)} {' '.join(text[start : start + 6])}?")
    return Corpus(
        source=f"generated, Zipf, {_VOCABULARY} words, seed {seed}",
        documents=tuple(documents),
        questions=tuple(asked),
        mixed=0,
    )


class _Words:
    """Words, the r-th of them with a weight of 1 / r, and sentences of them."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self._vocabulary = list(
            itertools.islice(itertools.chain(_COMMON_WORDS.split(), self._invented()), _VOCABULARY)
        )
        self._weights = list(itertools.accumulate(1.0 / rank for rank in range(1, _VOCABULARY + 1)))

    def sentences(self, count: int) -> str:
        """`count` sentences of 5 to 18 words."""
        return " ".join(self._sentence() for _ in range(count))

    def _sentence(self) -> str:
        length = self.random.randint(5, 18)
        words = self.random.choices(self._vocabulary, cum_weights=self._weights, k=length)
        return f"{' '.join(words).capitalize()}."

    def _invented(self) -> Iterator[str]:
        """Different words of two to four syllables."""
        seen = set(_COMMON_WORDS.split())
        while True:
            word = "".join(
                self.random.choice("bcdfghjklmnprstvwz") + self.random.choice("aeiou")
                for _ in range(self.random.randint(2, 4))
            )
            if word not in seen:
                seen.add(word)
                yield word
