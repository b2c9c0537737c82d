"""Cut a long text into passages that fit a model's window.

Passages end where sentences or lines end, are packed up to a target, and cover every non-blank
character of the text, so that its last sentence is as findable as its first. Cost: linear in the
length of the text, also where it has no boundary at all.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from hivemem.errors import InvalidInput
from hivemem.ports.models import Span

TokenStarts = Callable[[Sequence[str]], list[list[int]]]
"""Maps texts to the code point at which each of their tokens starts, in reading order."""

# One closing punctuation mark before white space, a CJK full stop, or a line's end. Runs ("...") are
# not matched as a whole: that would make a megabyte of dots quadratic.
_BOUNDARY = re.compile(r"[.!?…][\"'”’)\]]{0,3}(?=\s)|[。！？]|\n")

# Texts are tokenised in slices of about this size, and a stretch without a boundary is cut at it.
_SLICE_CHARACTERS = 2_000

# A tokenizer may make one token of any number of characters (BERT: an unknown word of 100 or more).
# Counting at least one token in 16 characters bounds a passage in characters too.
_CHARACTERS_A_TOKEN = 16

# What most tokenizers make one token of, about: a character of a script without spaces, six letters
# of a word, a punctuation mark.
_ESTIMATED_TOKEN = re.compile(r"[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|\w{1,6}|[^\w\s]")

# A text of up to this multiple of the target stays whole: two halves would say less than one.
_WHOLE = 1.25


@dataclass(frozen=True, slots=True, kw_only=True)
class PassageLimits:
    """How long passages are, in tokens without the special ones.

    Attributes:
        target: What a passage is packed up to, at least 8. Shorter passages are ranked more
            precisely and cost more vectors.
        window: What the model can see, at least `target`.
        preferred_count: A text that would need more passages than this gets longer ones, up to
            `window`. A text too long even for that gets more passages: nothing is left out.
        overlap: A passage begins with the last sentence of the one before when that sentence has at
            most this many tokens; 0 for no overlap.
    """

    target: int = 128
    window: int = 500
    preferred_count: int = 512
    overlap: int = 0

    def __post_init__(self) -> None:
        if not 8 <= self.target <= self.window:
            raise InvalidInput(
                f"passages of {self.target} tokens in a window of {self.window}: "
                "passages need 8 tokens or more and must fit the window"
            )
        if self.preferred_count < 1 or not 0 <= self.overlap < self.target:
            raise InvalidInput(
                f"preferred_count={self.preferred_count} must be positive and overlap={self.overlap} "
                f"must be at least 0 and below the passage size {self.target}"
            )


@dataclass(frozen=True, slots=True)
class _Piece:
    """A sentence, or a part of one that was too long: `[start, end)` and its size in tokens."""

    start: int
    end: int
    size: int


def split_passages(text: str, token_starts: TokenStarts, limits: PassageLimits) -> list[Span]:
    r"""Stretches of at most `limits.window` tokens, in reading order, that cover all non-blank text.

    Without overlap they are disjoint. A blank text has none. White space at both ends of a passage
    is left out.

    Example:
        >>> words = lambda texts: [[m.start() for m in re.finditer(r"\S+", t)] for t in texts]
        >>> text = "One two three four five. Six seven eight nine ten. Eleven twelve."
        >>> [text[s.start:s.end] for s in split_passages(text, words, PassageLimits(target=8))]
        ['One two three four five.', 'Six seven eight nine ten. Eleven twelve.']
    """
    sentences = _sentences(text)
    if not sentences:
        return []
    starts = _all_token_starts(text, sentences, token_starts)
    sized = [_sized(start, end, starts) for start, end in sentences]
    total = sum(piece.size for piece in sized)
    if total <= min(limits.target * _WHOLE, limits.window):
        return [Span(sized[0].start, sized[-1].end)]
    # A tenth more than the even share, because passages end at sentences and are not filled exactly.
    even_share = int(1.1 * total / limits.preferred_count) + 1
    target = min(max(limits.target, even_share), limits.window)
    pieces = [part for piece in sized for part in _cut(text, piece, starts, target)]
    return _pack(pieces, target, min(int(target * _WHOLE), limits.window), limits.overlap)


def _sentences(text: str) -> list[tuple[int, int]]:
    """Non-blank stretches between boundaries, stripped, none longer than a slice."""
    found: list[tuple[int, int]] = []
    for start, end in _between_boundaries(text):
        while start < end:
            stop = (
                end if end - start <= _SLICE_CHARACTERS else _last_gap(text, start, start + _SLICE_CHARACTERS)
            )
            stretch = text[start:stop]
            if inner := stretch.strip():
                first = start + len(stretch) - len(stretch.lstrip())
                found.append((first, first + len(inner)))
            start = stop
    return found


def _between_boundaries(text: str) -> Iterator[tuple[int, int]]:
    start = 0
    for match in _BOUNDARY.finditer(text):
        yield start, match.end()
        start = match.end()
    yield start, len(text)


def _last_gap(text: str, start: int, stop: int) -> int:
    """The last blank in the second half of `text[start:stop]`, or `stop` when there is none."""
    gap = text.rfind(" ", (start + stop) // 2, stop)
    return gap if gap > 0 else stop


def _all_token_starts(
    text: str, sentences: Sequence[tuple[int, int]], token_starts: TokenStarts
) -> list[int]:
    """Where each token of the text starts. Whole sentences are gathered into slices, then tokenised."""
    slices: list[tuple[int, int]] = []
    for start, end in sentences:
        if slices and end - slices[-1][0] <= _SLICE_CHARACTERS:
            slices[-1] = (slices[-1][0], end)
        else:
            slices.append((start, end))
    found: list[int] = []
    for batch_start in range(0, len(slices), 64):  # bounds what the tokenizer holds at once
        batch = slices[batch_start : batch_start + 64]
        for (start, _), inner in zip(batch, token_starts([text[s:e] for s, e in batch]), strict=True):
            found.extend(start + offset for offset in inner)
    return found


def _sized(start: int, end: int, starts: Sequence[int]) -> _Piece:
    tokens = bisect_left(starts, end) - bisect_left(starts, start)
    return _Piece(start, end, max(tokens, -(-(end - start) // _CHARACTERS_A_TOKEN)))


def _cut(text: str, piece: _Piece, starts: Sequence[int], target: int) -> Iterator[_Piece]:
    """The piece itself, or even parts of at most `target` tokens, cut between words where possible."""
    if piece.size <= target:
        yield piece
        return
    low, high = bisect_left(starts, piece.start), bisect_left(starts, piece.end)
    parts = -(-piece.size // target)
    step = max(1, -(-(high - low) // parts))
    cuts = [piece.start]
    at = low + step
    while at < high:
        # Up to a quarter of a part back to a word's start; a run without blanks is cut where it stands.
        word = next((i for i in range(at, at - step // 4, -1) if text[starts[i] - 1].isspace()), at)
        if starts[word] > cuts[-1]:
            cuts.append(starts[word])
        at = word + step
    cuts.append(piece.end)
    for start, end in pairwise(cuts):
        yield _sized(start, start + len(text[start:end].rstrip()), starts)


def _pack(pieces: Sequence[_Piece], target: int, largest: int, overlap: int) -> list[Span]:
    """Gather neighbours up to `target`; a short rest joins the last passage when it fits `largest`."""
    groups: list[list[_Piece]] = []
    size = 0
    for piece in pieces:
        if groups and size + piece.size <= target:
            groups[-1].append(piece)
            size += piece.size
            continue
        before = groups[-1][-1] if groups else None
        if before and before.size <= overlap and before.size + piece.size <= target and len(groups[-1]) > 1:
            groups.append([before, piece])
        else:
            groups.append([piece])
        size = sum(member.size for member in groups[-1])
    if len(groups) > 1:
        rest = [piece for piece in groups[-1] if piece is not groups[-2][-1]]
        joined = sum(piece.size for piece in groups[-2]) + sum(piece.size for piece in rest)
        if joined <= largest:
            groups[-2:] = [[*groups[-2], *rest]]
    return [Span(group[0].start, group[-1].end) for group in groups]


def estimated_token_starts(texts: Sequence[str]) -> list[list[int]]:
    """Where tokens start, about: for models whose tokenizer is remote, or that have none."""
    return [[match.start() for match in _ESTIMATED_TOKEN.finditer(text)] for text in texts]
