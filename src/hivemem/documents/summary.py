"""A summary made of a document's own sentences. Pure, deterministic, without a model."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence

from hivemem.documents.lines import sentences
from hivemem.retrieval.analyse import document_terms

DEFAULT_CHARACTERS = 600
MAX_SENTENCES = 2_000
"""How many sentences are compared, from the beginning of the text."""

_DAMPING = 0.15
_ROUNDS = 60
_PRECISION = 1e-6
_ALIKE = 0.6
"""A sentence this similar to a chosen one says the same again."""

_FEWEST_WORDS = 5
_FEWEST_SENTENCES = 3
_ENDS = (".", "!", "?", "…", "。", "！", "？", "।", "؟")
_CLOSING = "\"'”’»)]"
_CODE_BLOCK = re.compile(r"^```.*?(?:^```|\Z)", re.MULTILINE | re.DOTALL)
_MARKS = re.compile(r"\*\*|`")
_READ_CHARACTERS = 600_000
_SENTENCE_CHARACTERS = 1_000

Vector = Mapping[str, float]


def summarise(text: str, *, title: str | None = None, max_characters: int = DEFAULT_CHARACTERS) -> str:
    """The title and the most central sentences, in the order of the text, at most so many characters.

    Sentences are ranked by continuous LexRank: the stationary distribution of a walk that goes from a
    sentence to others in proportion to the cosine of their tf-idf vectors, and with probability 0.15
    anywhere. A sentence whose cosine with a better one is above 0.6 is passed over. Words are the
    terms of the analyser, so that any language that it knows can be summarised; idf is
    `ln(sentences / sentences with the term)`. Equal ranks keep the order of the text.

    Args:
        text: As `ExtractedText.text`; headings, table rows and fenced code are no candidates, and where
            there are whole sentences, neither are other lines.
        title: Begins the summary, when given.
        max_characters: At least 1. The first sentence is cut when it alone is longer.

    Returns:
        One paragraph; empty when there is neither text nor title.

    Cost: linear in the sentences for each of at most 60 rounds: the matrix of cosines `X Xᵀ` is never
    built, only multiplied with.

    Source: Erkan and Radev, LexRank, JAIR 22 (2004), doi:10.1613/jair.1523: continuous variant, damping
    0.15 as there; passing over of like sentences as in its section 5 (CSIS).
    """
    candidates = _candidates(text)
    head = title.strip() if title else ""
    parts: list[str] = [_cut(_as_sentence(head), max_characters)] if head else []
    room = max_characters - sum(len(part) + 1 for part in parts)
    if not candidates:
        first = next((_plain(sentence) for sentence in sentences(text[:_READ_CHARACTERS])), "")
        rest = " ".join(_plain(line) for line in text[: 4 * max_characters].split("\n") if _plain(line))
        body = rest or first
        if body.startswith(head):
            body = body[len(head) :].strip()
        if body and room > 20:
            parts.append(_cut(body, room))
        return " ".join(parts)
    vectors = _vectors(candidates)
    ranks = central_ranks(vectors)
    chosen: list[int] = []
    for position in sorted(range(len(candidates)), key=lambda at: (-ranks[at], at)):
        sentence = candidates[position]
        if len(sentence) + 1 > room or sentence.rstrip(".") == head:
            continue
        if any(_cosine(vectors[position], vectors[other]) > _ALIKE for other in chosen):
            continue
        chosen.append(position)
        room -= len(sentence) + 1
    if not chosen and room > 20:
        best = min(range(len(candidates)), key=lambda at: (-ranks[at], at))
        parts.append(_cut(candidates[best], room))
    parts += [candidates[position] for position in sorted(chosen)]
    return " ".join(parts)


def central_ranks(vectors: Sequence[Vector]) -> list[float]:
    """Continuous LexRank of unit vectors (or empty ones): positive, their sum is 1.

    With the cosines `S = X Xᵀ` and row sums `D`, the rank vector is the fixed point of
    `p = 0.15 / n + 0.85 S (p / D)`, which is found by repeating it from the uniform one.

    Example:
        >>> ranks = central_ranks([{"a": 1.0}, {"a": 0.6, "b": 0.8}, {"b": 1.0}])
        >>> ranks[1] > ranks[0], round(sum(ranks), 6)
        (True, 1.0)
    """
    count = len(vectors)
    if not count:
        return []
    totals = _products(vectors, [1.0] * count)
    ranks = [1 / count] * count
    for _ in range(_ROUNDS):
        # An empty vector is like no sentence: its walk goes anywhere.
        lost = math.fsum(rank for rank, total in zip(ranks, totals, strict=True) if total <= 0)
        shares = [rank / total if total > 0 else 0.0 for rank, total in zip(ranks, totals, strict=True)]
        base = (_DAMPING + (1 - _DAMPING) * lost) / count
        following = [base + (1 - _DAMPING) * gained for gained in _products(vectors, shares)]
        change = math.fsum(abs(new - old) for new, old in zip(following, ranks, strict=True))
        ranks = following
        if change < _PRECISION:
            break
    return ranks


def _products(vectors: Sequence[Vector], weights: Sequence[float]) -> list[float]:
    """`X (Xᵀ w)`: for each vector the sum of its cosines with all, each times the other's weight."""
    sums: dict[str, float] = {}
    for vector, weight in zip(vectors, weights, strict=True):
        for term, value in vector.items():
            sums[term] = sums.get(term, 0.0) + value * weight
    return [math.fsum(value * sums[term] for term, value in vector.items()) for vector in vectors]


def _candidates(text: str) -> list[str]:
    """What may be told: whole sentences, or where there are hardly any, all lines of some words."""
    found: list[str] = []
    prose = _CODE_BLOCK.sub("\n", text[:_READ_CHARACTERS])
    for sentence in sentences(prose):
        if sentence.startswith("#") or " | " in sentence or len(sentence) > _SENTENCE_CHARACTERS:
            continue
        plain = _plain(sentence)
        if document_terms(plain).length >= _FEWEST_WORDS:
            found.append(plain)
            if len(found) == MAX_SENTENCES:
                break
    whole = [sentence for sentence in found if sentence.rstrip(_CLOSING).endswith(_ENDS)]
    return whole if len(whole) >= _FEWEST_SENTENCES else found


def _vectors(texts: Sequence[str]) -> list[Vector]:
    """Unit tf-idf vectors; empty for a text all of whose terms are in every text."""
    counts = [
        {term: count for term, count in document_terms(text).frequencies.items() if term[0] not in "^~"}
        for text in texts
    ]
    spread = Counter(term for count in counts for term in count)
    # A text alone has no rarity to go by: its terms count as they are.
    rarity = {
        term: math.log(len(texts) / number) if len(texts) > 1 else 1.0 for term, number in spread.items()
    }
    vectors: list[Vector] = []
    for count in counts:
        vector = {term: number * rarity[term] for term, number in count.items() if rarity[term] > 0}
        norm = math.sqrt(math.fsum(value * value for value in vector.values()))
        vectors.append({term: value / norm for term, value in vector.items()} if norm else {})
    return vectors


def _cosine(one: Vector, other: Vector) -> float:
    if len(one) > len(other):
        one, other = other, one
    return math.fsum(value * other.get(term, 0.0) for term, value in one.items())


def _plain(sentence: str) -> str:
    return " ".join(_MARKS.sub("", sentence.removeprefix("- ").lstrip("#")).split())


def _as_sentence(title: str) -> str:
    return title if title.endswith((".", "!", "?", "。", "！", "？", ":", "…")) else f"{title}."


def _cut(text: str, max_characters: int) -> str:
    """The text, or its beginning up to a word's end with an ellipsis."""
    if len(text) <= max_characters:
        return text
    head = text[: max_characters - 1]
    blank = head.rfind(" ", len(head) // 2)
    return (head[:blank] if blank > 0 else head).rstrip() + "…"
