"""Whether models for English can be expected to understand a question and a text."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Literal

from hivemem.retrieval.stopwords import ENGLISH, ENGLISH_MARKS, STOP_WORDS

_WORD = re.compile(r"[^\W\d_]+")
_FOREIGN_MARKS = STOP_WORDS - ENGLISH
_TEXT_WORDS = 5
_COMMON_SHARE = 0.15
"""Every third word of English prose is one of the 97 stop words; of German prose every fifteenth."""

_READ_CHARACTERS = 1000
_SHORT_CHARACTERS = 200
_QUESTION_MARKS = ("?", "？", "؟", "\u037e")
"""Of Latin, Chinese, Arabic and Greek script."""


def readable_share(text: str) -> float:
    """The share of Latin letters in a text, 0 below a half: what models for English can read at all.

    Example:
        >>> readable_share("Wer repariert die Heizung?"), readable_share("铁柜"), readable_share("7731")
        (1.0, 0.0, 1.0)
    """
    if text.isascii():
        return 1.0
    letters = [character for character in text[:_READ_CHARACTERS] if character.isalpha()]
    if not letters:
        return 1.0
    # Latin letters, IPA and the extensions lie below U+0250 and in one later block.
    latin = sum(1 for letter in letters if letter < "\u0250" or "\u1e00" <= letter <= "\u1eff")
    share = latin / len(letters)
    return share if share >= 0.5 else 0.0


def ends_with_question(text: str) -> bool:
    """Whether the last sentence of a text is a question."""
    return text.rstrip().endswith(_QUESTION_MARKS)


def merely_asks(text: str) -> bool:
    """Whether a text is a question, with little beside it; a longer text tells before it asks."""
    return len(text) <= _SHORT_CHARACTERS and ends_with_question(text)


def is_foreign(query: str, text: str = "") -> bool:
    """Whether a question in Latin script, asked of `text`, is in another language than English.

    A question with a frequent English word is English. One with two frequent words of another language
    is foreign, and so is one to a text of at least five words of which few are common in English and
    two have an accent or are common in another language.
    A few names or technical words are taken for English.

    Example:
        >>> is_foreign("Wann wurde die Brücke gebaut und von wem?"), is_foreign("smtp login")
        (True, False)
    """
    known = _marked_language(query)
    if known is not None:
        return known == "foreign"
    told = _WORD.findall(text[:_READ_CHARACTERS].lower())
    if len(told) < _TEXT_WORDS or sum(1 for word in told if word in ENGLISH) >= _COMMON_SHARE * len(told):
        return False
    # Notes in English can do without its common words; they have none of another language either.
    return sum(1 for word in told if not word.isascii() or word in _FOREIGN_MARKS) >= 2


@lru_cache(maxsize=64)
def _marked_language(query: str) -> Literal["english", "foreign"] | None:
    """The language that a question's frequent words tell; None when they tell none."""
    asked = {word.lower() for word in _WORD.findall(query[:_READ_CHARACTERS])}
    if not asked.isdisjoint(ENGLISH_MARKS):
        return "english"
    return "foreign" if len(asked & _FOREIGN_MARKS) >= 2 else None
