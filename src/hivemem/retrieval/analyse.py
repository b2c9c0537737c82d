"""From text to index terms: the one analyser of documents and queries.

A word becomes its main term, the Snowball stem of its case-folded spelling. Further terms widen what
finds it: the form without accents (`~` in front, its own namespace, so that an exact spelling ranks
above a folded one), its first letters (`^`, outside English), the whole form of a compound, n-grams
of scripts without spaces. No main term begins with `~` or `^`. docs/decisions/analyser.md has the
measurements behind the rules.

Query text is data: no character of it is an operator. Nothing here raises on any string.
"""

from __future__ import annotations

import enum
import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

from hivemem.retrieval.identifiers import (
    compounds,
    is_identifier,
    is_negation,
    parts,
    possessive_removed,
    whole_form,
)
from hivemem.retrieval.scripts import spelling, stem, without_accents
from hivemem.retrieval.stopwords import ENGLISH, ENGLISH_MARKS, STOP_WORDS
from hivemem.retrieval.words import is_han_or_kana, is_hangul, is_unspaced, tokens

MAX_TERM_CHARACTERS = 64
"""Longer words are cut, in documents and queries alike."""
MAX_QUERY_TOKENS = 1000
"""How many tokens of a query are looked at, from its end; bounds the time of enormous queries."""
MAX_QUERY_TOKEN_CHARACTERS = 1024
PREFIX_CHARACTERS = 5
UNSPACED_GRAM = 3

# Weights of the further forms, measured in docs/decisions/analyser.md.
PREFIX_WEIGHT = 0.6
PLAIN_SPELLING_WEIGHT = 0.6
"""Of accented text for a query without any accent: its author may not type them."""
OTHER_SPELLING_WEIGHT = 0.1
"""Of differently accented text for a query with accents: its author means what the letters say."""
WHOLE_RUN_WEIGHT = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentTerms:
    """What a document adds to the index.

    Attributes:
        frequencies: Index term -> how often it occurs, at least 1.
        length: Number of words counted; variants of a word do not lengthen a document.
    """

    frequencies: Mapping[str, int]
    length: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightedTerm:
    """An index term to look up; `weight` in (0, 1], 1.0 for the main form of a word."""

    text: str
    weight: float


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryWord:
    """One word of a query. A document holds it when it holds at least one of `terms`.

    Attributes:
        surface: The word as the query spells it.
        terms: At least one, the main form first.
        informative: False for stop words, which are left out of the score.
        identifier: Whether the word names one thing exactly, such as `EBADLEASE_7731`.
    """

    surface: str
    terms: tuple[WeightedTerm, ...]
    informative: bool
    identifier: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class AnalysedQuery:
    """The distinct words of a query, in order; `shortened` when earlier words were left out."""

    words: tuple[QueryWord, ...]
    shortened: bool

    @property
    def names(self) -> tuple[bool, ...]:
        """For each word whether it is written like a name: a capital letter, not at the beginning."""
        return tuple(
            position > 0 and word.informative and word.surface[:1].isupper()
            for position, word in enumerate(self.words)
        )


def document_terms(*texts: str) -> DocumentTerms:
    """The index terms of a document given as several fields, which are analysed one by one and added.

    Cost: linear; 12 to 25 microseconds for a sentence of 25 English words that were seen before.
    """
    terms: list[str] = []
    prefixes: list[str] = []
    length = 0
    for text in texts:
        for token in tokens(text):
            found = _cached_entry(token) if len(token) <= MAX_TERM_CHARACTERS else _entry(token)
            terms += found[0]
            prefixes += found[1]
            length += found[2]
    if prefixes and not _is_english(terms):
        terms += prefixes
    return DocumentTerms(frequencies=Counter(terms), length=length)


def analyse_query(text: str, *, max_words: int = 64) -> AnalysedQuery:
    """The words of a query with the index terms that find them.

    An identifier gives a word for its whole form, the one marked `identifier`, and one for each of
    its parts. A query of stop words alone keeps all of them as informative.

    Args:
        text: Any text; every character is data.
        max_words: How many informative words are kept, at least 1. A longer query keeps its tail: a
            prompt ends with the question.
    """
    found = tokens(text)
    shortened = len(found) > MAX_QUERY_TOKENS
    forms: list[_Form] = []
    for token in found[-MAX_QUERY_TOKENS:]:
        if len(token) > MAX_QUERY_TOKEN_CHARACTERS:
            token = _shortened(token)
            shortened = True
        forms += _forms(token)
    manner = _manner([form.text for form in forms if form.kind is not _Kind.GRAM])
    kept: dict[tuple[WeightedTerm, ...], QueryWord] = {}
    informative = 0
    for form in reversed(forms):
        word = _query_word(form, manner)
        if word.terms in kept:
            continue
        if word.informative:
            if informative == max_words:
                shortened = True
                break
            informative += 1
        kept[word.terms] = word
    words = tuple(reversed(kept.values()))
    if not informative:
        words = tuple(replace(word, informative=True) for word in words[-max_words:])
    return AnalysedQuery(words=words, shortened=shortened)


class _Kind(enum.Enum):
    WORD = enum.auto()
    NAME = enum.auto()
    """An identifier in one piece; its words stand beside it."""
    GRAM = enum.auto()
    """Part of a run without spaces, looked up as it stands."""


class _Form(NamedTuple):
    """A word to index or look up: as it is written, as it is spelled for the index, and larger units.

    `wholes` are compounds that begin here, or the Hangul word around two syllables. A document that
    has one of them also has `text`, so they raise the score and make no word falsely held.
    """

    surface: str
    text: str
    kind: _Kind = _Kind.WORD
    wholes: tuple[str, ...] = ()


class _Manner(NamedTuple):
    """How a query is written, and what follows for the further forms of its words."""

    spelling_weight: float
    prefix_weight: float
    stop_words: frozenset[str]


def _shortened(token: str) -> str:
    """The tail of a run without spaces; the head of a word, where its index term comes from."""
    if is_han_or_kana(token) or is_hangul(token) or is_unspaced(token):
        return token[-MAX_QUERY_TOKEN_CHARACTERS:]
    return token[:MAX_QUERY_TOKEN_CHARACTERS]


def _entry(token: str) -> tuple[tuple[str, ...], tuple[str, ...], int]:
    """Index terms of a token, its prefix terms, and the number of words it counts for."""
    if not token.isascii():
        if is_han_or_kana(token):
            return (*token, *_grams(token, 2)), (), len(token)
        if is_hangul(token):
            whole = (token[:MAX_TERM_CHARACTERS],) if len(token) > 2 else ()
            return (*token, *_grams(token, 2), *whole), (), len(token)
        if is_unspaced(token):
            grams = [gram for n in range(1, UNSPACED_GRAM + 1) for gram in _grams(token, n)]
            return tuple(grams), (), max(1, len(token) // UNSPACED_GRAM)
    terms: list[str] = []
    prefixes: list[str] = []
    words = 0
    for form in _forms(token):
        for text in (form.text, *form.wholes):
            main, folded, prefix = _terms(text)
            terms.append(main)
            if folded != main:
                terms.append(sys.intern("~" + folded))
            if prefix and text is form.text and form.kind is _Kind.WORD:
                prefixes.append(prefix)
        words += form.kind is _Kind.WORD
    return tuple(terms), tuple(prefixes), max(1, words)


_cached_entry = lru_cache(maxsize=1 << 15)(_entry)


def _forms(token: str) -> list[_Form]:
    """What to look up for a token: an identifier in one piece, then the words."""
    if not token.isascii():
        if is_han_or_kana(token) or is_hangul(token):
            grams = [_Form(gram, gram, _Kind.GRAM) for gram in _grams(token, 2) or [token]]
            if is_hangul(token) and len(token) > 2:
                grams[0] = grams[0]._replace(wholes=(token[:MAX_TERM_CHARACTERS],))
            return grams
        if is_unspaced(token):
            grams = _grams(token, min(UNSPACED_GRAM, len(token)))
            return [_Form(gram, gram, _Kind.GRAM) for gram in grams]
    plain = possessive_removed(token)
    if plain.isalpha() and (plain.islower() or plain.istitle() or plain.isupper()):
        return [_Form(plain, plain)]
    if is_negation(plain):
        return [_Form(plain, plain.replace("'", ""))]
    words = parts(plain)
    whole = whole_form(plain)
    names = [plain, *compounds(plain)]
    forms: list[_Form] = []
    if is_identifier(plain):
        forms.append(_Form(plain, whole, _Kind.NAME))
        del names[0]
        words = [word for word in words if word != whole]
    # The other compounds go with their first word that says something.
    wholes_at: dict[str, list[str]] = {}
    for name in names:
        inner = parts(name)
        telling = [word for word in inner if spelling(word) not in STOP_WORDS]
        if whole_form(name) not in inner:
            wholes_at.setdefault((telling or inner)[0], []).append(whole_form(name))
    forms += [_Form(word, word, wholes=tuple(wholes_at.pop(word, ()))) for word in words]
    return forms or [_Form(plain, plain)]


@lru_cache(maxsize=1 << 15)
def _short_word_terms(word: str) -> tuple[str, str, str | None]:
    word = spelling(word)[:MAX_TERM_CHARACTERS]
    plain = without_accents(word) or word
    prefix = None
    if len(plain) >= PREFIX_CHARACTERS and not any(map(str.isdecimal, plain)):
        prefix = sys.intern("^" + plain[:PREFIX_CHARACTERS])
    return stem(word), stem(plain), prefix


def _terms(word: str) -> tuple[str, str, str | None]:
    """Main term, accent-free term and prefix term of a word in any spelling."""
    # Cut before the cache as well, or it would keep enormous keys; spelling can shorten a word.
    return _short_word_terms(word[: 4 * MAX_TERM_CHARACTERS])


def _manner(words: list[str]) -> _Manner:
    terms = [_terms(word) for word in words]
    accents = any(main != folded for main, folded, _ in terms)
    english = _is_english([main for main, _, _ in terms])
    return _Manner(
        spelling_weight=OTHER_SPELLING_WEIGHT if accents else PLAIN_SPELLING_WEIGHT,
        prefix_weight=0.0 if english else PREFIX_WEIGHT,
        stop_words=ENGLISH if english else STOP_WORDS,
    )


def _query_word(form: _Form, manner: _Manner) -> QueryWord:
    terms: dict[str, float] = {}
    if form.kind is _Kind.GRAM:
        terms = {form.text: 1.0, **dict.fromkeys(form.wholes, WHOLE_RUN_WEIGHT)}
        informative = True
    else:
        for text in (form.text, *form.wholes):
            main, folded, prefix = _terms(text)
            terms[main] = 1.0
            terms.setdefault(folded, manner.spelling_weight)
            terms["~" + folded] = manner.spelling_weight
            if prefix and manner.prefix_weight and text is form.text and form.kind is _Kind.WORD:
                terms[prefix] = manner.prefix_weight
        informative = spelling(form.text[:MAX_TERM_CHARACTERS]) not in manner.stop_words
    return QueryWord(
        surface=form.surface,
        terms=tuple(WeightedTerm(text=text, weight=weight) for text, weight in terms.items()),
        informative=informative,
        identifier=form.kind is _Kind.NAME,
    )


def _is_english(terms: list[str]) -> bool:
    """Whether at least one word in 24, or three different ones, are marks of English."""
    found = len(_ENGLISH_MARKS.intersection(terms))
    return found >= 3 or found * 24 >= len(terms)


_ENGLISH_MARKS = frozenset(map(stem, ENGLISH_MARKS))


def _grams(text: str, n: int) -> list[str]:
    return [text[start : start + n] for start in range(len(text) - n + 1)]
