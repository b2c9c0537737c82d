"""Where words begin and end, and what an identifier is made of.

Close to UAX #29: letters, digits and marks hold together, and so do the characters that join them
inside names and numbers (`svc-kumo7`, `3.7.12`, `src/app/main.py`, `anna@example.org`, `don't`).
Such a token stays whole here and is taken apart by `parts`, so that both can be indexed.
"""

from __future__ import annotations

import re
import unicodedata

from hivemem.retrieval.scripts import HAN_KANA, HANGUL, MARKS, UNSPACED

_JOINT = r"(?:_+|[-.@'+\\]|(?<=[A-Za-z])&(?=[A-Za-z])|:(?://|:)?|/+|(?<=\d),(?=\d{3}(?!\d)))"
_TAIL = r"(?:\+\+|\#(?![\w]))?"
_ASCII_TOKEN = re.compile(rf"(?:\#(?=\d))?[A-Za-z0-9]+(?:{_JOINT}[A-Za-z0-9]+)*{_TAIL}", re.ASCII)
_LETTERS = rf"[^\W_{HAN_KANA}{HANGUL}{UNSPACED}]"
_WORD = rf"{_LETTERS}+(?:[{MARKS}]+{_LETTERS}*)*"
_TOKEN = re.compile(
    rf"(?:\#(?=\d))?{_WORD}(?:{_JOINT}{_WORD})*{_TAIL}|[{HAN_KANA}]+|[{HANGUL}]+|[{UNSPACED}]+"
)
_APOSTROPHES = re.compile("[\u2019\u2018\u02bc\u02bb\uff07]")
# Invisible: soft hyphen, joiners, direction marks, variation selectors. They are inside words of
# pasted text, and nobody types them into a query.
_INVISIBLE = re.compile(
    "[\u00ad\u034f\u061c\u180b-\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff]"
)
_HYPHENS = re.compile("[\u2010\u2011]")

_IDEOGRAPHS = re.compile(f"[{HAN_KANA}]")
_SYLLABLES = re.compile(f"[{HANGUL}]")
_CLUSTERS = re.compile(f"[{UNSPACED}]")


def tokens(text: str) -> list[str]:
    """The tokens of a text in order, in their own case: words, identifiers, runs of unspaced script.

    Never raises, whatever the characters; linear in the length of `text`.

    Example:
        >>> tokens("svc-kumo7 (v1.2.0-rc.1) isn't iPhone充电")
        ['svc-kumo7', 'v1.2.0-rc.1', "isn't", 'iPhone', '充电']
    """
    if not text.isascii():
        text = _HYPHENS.sub("-", _APOSTROPHES.sub("'", _INVISIBLE.sub("", text)))
        text = unicodedata.normalize("NFKC", text)
        if not text.isascii():
            return _TOKEN.findall(text)
    return _ASCII_TOKEN.findall(text)


def is_han_or_kana(token: str) -> bool:
    """Whether `token` is a run of Han, Hiragana or Katakana."""
    return _IDEOGRAPHS.match(token) is not None


def is_hangul(token: str) -> bool:
    """Whether `token` is a run of Hangul."""
    return _SYLLABLES.match(token) is not None


def is_unspaced(token: str) -> bool:
    """Whether `token` is a run of Thai, Lao, Khmer or Myanmar."""
    return _CLUSTERS.match(token) is not None
