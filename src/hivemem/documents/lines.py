"""Lines that were broken at the width of a page, joined to paragraphs again; sentences of a text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

_ENDS = (".", "!", "?", "…", ":", ";", "。", "！", "？", "।", "؟", "”", '"', ")", "|")
_BULLET = re.compile(r"([-*•·▪–]|\(?[0-9]{1,3}[.)]|[a-z][.)])\s")
_BULLET_SIGNS = ("#", "|", "•", "·", "▪")
_WIDE_SHARE = 0.7
_WIDE_CHARACTERS = 45

# As in passages of models: a closing mark before white space, or a full stop of a script without spaces.
_SENTENCE_END = re.compile(r"[.!?…؟।][\"'”’»)\]]{0,3}(?=\s)|[。！？]")
_ABBREVIATION = re.compile(
    r"(?:^|[\s(])(?:[A-Za-z]|[Dd]r|[Mm]rs?|[Pp]rof|[Ss]t|[Nn]o|vs|etc|bzw|ca|Nr|[a-z]\.[a-z])\.$"
)


def unwrapped(lines: Iterable[str]) -> Iterator[str]:
    """Paragraphs from lines, which a page may have broken.

    A line goes on when the next one begins with a small letter, or when it is nearly as long as the
    longest line and ends without punctuation. A hyphen between two small letters at such a break is
    taken away. Headings, list items and blank lines begin anew.
    """
    texts = [line.strip() for line in lines]
    wide = max(_WIDE_CHARACTERS, int(_WIDE_SHARE * max(map(len, texts), default=0)))
    paragraph = ""
    last = ""
    for line in texts:
        if paragraph and line and _goes_on(last, line, wide):
            if last[-1:] == "-" and last[-2:-1].islower() and line[0].islower():
                paragraph = paragraph[:-1] + line
            else:
                paragraph = f"{paragraph} {line}"
        else:
            if paragraph:
                yield paragraph
            paragraph = line
        last = line
    if paragraph:
        yield paragraph


def sentences(text: str) -> Iterator[str]:
    """The sentences of a text in order, none blank; a heading, list item or table row is one."""
    for paragraph in unwrapped(text.split("\n")):
        start = 0
        for end in _SENTENCE_END.finditer(paragraph):
            if end[0] == "." and _ABBREVIATION.search(paragraph, max(start, end.end() - 8), end.end()):
                continue
            if sentence := paragraph[start : end.end()].strip():
                yield sentence
            start = end.end()
        if rest := paragraph[start:].strip():
            yield rest


def _goes_on(last: str, line: str, wide: int) -> bool:
    if not last or _BULLET.match(line) or line.startswith(_BULLET_SIGNS) or last.startswith("#"):
        return False
    if line[0].islower():
        return not last.endswith((".", "!", "?", "|"))
    return len(last) >= wide and not last.endswith(_ENDS)
