"""What depends on the writing system: character classes, spelling variants, stems.

Ranges are those of the Unicode blocks. A word has one script, that of its first letter outside
ASCII: words of mixed alphabets are rare, and all that matters is that documents and queries agree.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from functools import lru_cache

import Stemmer  # pyright: ignore[reportMissingImports]  (compiled, without stubs)

HAN_KANA = (
    "々〆〇\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\U0001b000-\U0001b16f\U00020000-\U000323af"
)
HANGUL = "\u1100-\u11ff\u3130-\u318f\ua960-\ua97f\uac00-\ud7ff"
UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u1950-\u19df\u1a20-\u1aaf\ua9e0-\ua9ff\uaa60-\uaadf"
"""Thai, Lao, Myanmar, Khmer, Tai: alphabets with no space between words."""


# Where Unicode 16 has combining marks; leaving out ideographs and Hangul saves 20 ms at start.
_MARK_BLOCKS = ((0x300, 0x3100), (0xA600, 0xAC00), (0xFB00, 0xFE30), (0x10000, 0x12000), (0x16A00, 0x1E960))


def _mark_ranges() -> str:
    """A regex class body with every combining mark outside the unspaced scripts."""
    unspaced = re.compile(f"[{UNSPACED}]")
    ranges: list[list[int]] = []
    for first, stop in _MARK_BLOCKS:
        for code in range(first, stop):
            if unicodedata.category(chr(code))[0] != "M" or unspaced.match(chr(code)):
                continue
            if ranges and ranges[-1][1] == code - 1:
                ranges[-1][1] = code
            else:
                ranges.append([code, code])
    return "".join(f"{chr(first)}-{chr(last)}" for first, last in ranges)


MARKS = _mark_ranges()

# Without PyStemmer's own cache, since `stem` has one. Threads may share a stemmer: it keeps the GIL.
_ENGLISH = Stemmer.Stemmer("english", 0)
_BY_SCRIPT = [
    ("\u0370-\u03ff\u1f00-\u1fff", Stemmer.Stemmer("greek", 0)),
    ("\u0400-\u052f", Stemmer.Stemmer("russian", 0)),
    ("\u0530-\u058f", Stemmer.Stemmer("armenian", 0)),
    ("\u0600-\u06ff\u0750-\u077f", Stemmer.Stemmer("arabic", 0)),
    ("\u0900-\u097f", Stemmer.Stemmer("hindi", 0)),
    ("\u0b80-\u0bff", Stemmer.Stemmer("tamil", 0)),
]
_STEMMERS = [(re.compile(f"[{block}]"), stemmer) for block, stemmer in _BY_SCRIPT]

# Spellings that readers take for the same word: vowel signs that are optional (Arabic, Hebrew),
# letter variants (alef, yeh, kaf), the dot under borrowed Devanagari consonants, the dot of "İ".
_OPTIONAL_SIGNS = re.compile(
    "[\u0610-\u061a\u0640\u064b-\u065f\u0670\u06d6-\u06ed\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u093c]"
    "|(?<=i)\u0307"
)
_VARIANTS = str.maketrans("أإآٱىیکةېۀہھ", "ااااييكهيههه")
_DIGITS = {
    code: str(unicodedata.decimal(chr(code)))
    for code in range(0x600, 0x1100)
    if unicodedata.category(chr(code)) == "Nd"
}
_SPELLINGS = {**_VARIANTS, **_DIGITS}

_ACCENTS = re.compile("[\u0300-\u036f\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff]+")
_UNDECOMPOSED = str.maketrans(
    {
        "ł": "l", "ø": "o", "đ": "d", "ð": "d", "þ": "th", "æ": "ae", "œ": "oe", "ı": "i", "ħ": "h",
        "ŧ": "t", "ŋ": "n", "ĸ": "k", "ɓ": "b", "ɖ": "d", "ɗ": "d", "ƙ": "k", "ɛ": "e", "ɔ": "o",
        "ə": "e", "ƒ": "f", "ɨ": "i", "ʉ": "u", "ƴ": "y", "ǥ": "g", "ƶ": "z", "ɫ": "l", "ʻ": "",
        "ʼ": "",
    }
)  # fmt: skip


def spelling(word: str) -> str:
    """`word` case-folded, with optional signs removed and letter variants made one.

    Example:
        >>> spelling("Straße"), spelling("İstanbul"), spelling("٣٠٨")
        ('strasse', 'istanbul', '308')
    """
    if word.isascii():
        return word.lower()
    folded = unicodedata.normalize("NFKC", word.casefold())
    return _OPTIONAL_SIGNS.sub("", folded).translate(_SPELLINGS) or folded


def without_accents(word: str) -> str:
    """`word` (lower case) with accents removed, and letters such as ł and ø in their plain form.

    Vowel signs of Indic scripts are letters, not accents, and stay.

    Example:
        >>> without_accents("økland"), without_accents("reunião"), without_accents("năm")
        ('okland', 'reuniao', 'nam')
    """
    if word.isascii():
        return word
    bare = _ACCENTS.sub("", unicodedata.normalize("NFD", word)).translate(_UNDECOMPOSED)
    return unicodedata.normalize("NFC", bare)


@lru_cache(maxsize=1 << 15)
def stem(word: str) -> str:
    """The stem of a word in its `spelling`: Snowball, the algorithm chosen by script.

    Source: Porter, "Snowball: a language for stemming algorithms", 2001. Latin script is stemmed as
    English whatever the language is; the measured reason is in docs/decisions/analyser.md.
    """
    if not word.isascii():
        for block, stemmer in _STEMMERS:
            if block.search(word):
                return sys.intern(stemmer.stemWord(word) or word)
    return sys.intern(_ENGLISH.stemWord(word) or word)
