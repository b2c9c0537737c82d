"""A text as statements: what one memory should hold of it."""

from __future__ import annotations

import re
from dataclasses import dataclass

STATEMENT_CHARACTERS = 300
"""Sentences of one paragraph are packed up to this: a memory is a thought, not a word and not a page."""

MAX_STATEMENT_CHARACTERS = 4_000
"""A longer sentence, such as pasted data, is cut between words."""

# A mark that ends a sentence and the blank behind it; CJK marks need no blank. "e.g. this" and "Dr. Who" do
# not end one: the word before is an abbreviation, or a capital alone.
_SENTENCE_END = re.compile(r"(?<=[.!?…])[\"'”’)\]]{0,3}\s+|(?<=[。！？])\s*")
_ABBREVIATION = re.compile(
    r"(?:\b(?:[A-Z]|Mr|Mrs|Ms|Dr|Prof|St|vs|etc|cf|e\.g|i\.e|z\.B|d\.h|Nr|No|Inc|Ltd|Jr|Sr|approx))\.$"
)
_HEADING = re.compile(r"#{1,6}\s+(.+?)\s*#*$")
_ITEM = re.compile(r"\s*(?:[-*•+]|\d{1,3}[.)])\s+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """A stretch of text that stands for itself.

    `heading` is the nearest Markdown heading above it; `follows` says that it goes on from the statement
    before, in the same paragraph or list.
    """

    text: str
    heading: str | None
    follows: bool


def statements(text: str) -> list[Statement]:
    r"""The statements of a text in order: packed sentences of paragraphs, items of lists.

    Never raises; linear in the length of `text`.

    Example:
        >>> [one.text for one in statements("# Keys\n- Rotate weekly.\n- Ask Ann.\n\nDone. Really?")]
        ['Rotate weekly.', 'Ask Ann.', 'Done. Really?']
    """
    found: list[Statement] = []
    heading: str | None = None
    for block in re.split(r"\n\s*\n", text.replace("\r\n", "\n").replace("\r", "\n")):
        follows = False
        for piece in _pieces(block):
            titled = _HEADING.match(piece)
            if titled:
                heading, follows = titled[1], False
                continue
            for part in _packed(piece):
                found.append(Statement(text=part, heading=heading, follows=follows))
                follows = True
    return found


def sentences(paragraph: str) -> list[str]:
    """The sentences of a paragraph, without the blanks between them."""
    found: list[str] = []
    start = 0
    for end in _SENTENCE_END.finditer(paragraph):
        if _ABBREVIATION.search(paragraph, start, end.start()):
            continue
        found.append(paragraph[start : end.end()].strip())
        start = end.end()
    found.append(paragraph[start:].strip())
    return [sentence for sentence in found if sentence]


def _pieces(block: str) -> list[str]:
    """The headings, list items and paragraphs of a block of lines; wrapped lines are joined."""
    pieces: list[str] = []
    for line in block.split("\n"):
        stripped = line.strip()
        if not stripped:
            continue
        item = _ITEM.match(line)
        if item:
            pieces.append(line[item.end() :].strip())
        elif _HEADING.match(stripped) or not pieces or _HEADING.match(pieces[-1]):
            pieces.append(stripped)
        else:
            pieces[-1] += " " + stripped
    return [piece for piece in pieces if piece]


def _packed(paragraph: str) -> list[str]:
    packed: list[str] = []
    for sentence in sentences(paragraph):
        for part in _cut(sentence):
            if packed and len(packed[-1]) + len(part) < STATEMENT_CHARACTERS:
                packed[-1] += " " + part
            else:
                packed.append(part)
    return packed


def _cut(sentence: str) -> list[str]:
    parts: list[str] = []
    while len(sentence) > MAX_STATEMENT_CHARACTERS:
        at = sentence.rfind(" ", MAX_STATEMENT_CHARACTERS // 2, MAX_STATEMENT_CHARACTERS)
        at = at if at > 0 else MAX_STATEMENT_CHARACTERS
        parts.append(sentence[:at].rstrip())
        sentence = sentence[at:].lstrip()
    return [*parts, sentence] if sentence else parts
