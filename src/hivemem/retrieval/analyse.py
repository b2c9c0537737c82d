"""From text to index terms: the one analyser of documents and queries.

A word becomes its main term, the Snowball stem of its case-folded spelling. Further terms widen what
finds it: the form without accents (`~` in front, its own namespace, so that an exact spelling ranks
above a folded one), the whole form of an identifier, n-grams of scripts without spaces.

Query text is data: no character of it is an operator. Nothing here raises on any string.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from hivemem.retrieval.identifiers import (
    compounds,
    is_identifier,
    parts,
    possessive_removed,
    whole_form,
)
from hivemem.retrieval.scripts import spelling, stem, without_accents
from hivemem.retrieval.stopwords import STOP_WORDS
from hivemem.retrieval.words import is_han_or_kana, is_hangul, is_unspaced, tokens

MAX_TERM_CHARACTERS = 64
"""Longer words are cut, in documents and queries alike."""
FOLDED_WEIGHT = 0.5
UNSPACED_GRAM = 3


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


def document_terms(*texts: str) -> DocumentTerms:
    """The index terms of a document given as several fields, which are analysed one by one and added.

    Cost: linear; about 10 microseconds for a sentence of 25 English words seen before.
    """
    terms: list[str] = []
    length = 0
    for text in texts:
        for token in tokens(text):
            found, words = _indexed(token) if len(token) <= MAX_TERM_CHARACTERS else _index(token)
            terms += found
            length += words
    return DocumentTerms(frequencies=Counter(terms), length=length)


def analyse_query(text: str, *, max_words: int = 64) -> AnalysedQuery:
    """The words of a query with the index terms that find them.

    A query of stop words alone keeps all of them as informative.

    Args:
        text: Any text; every character is data.
        max_words: How many informative words are kept, at least 1. A longer query keeps its tail: a
            prompt ends with the question.
    """
    kept: dict[tuple[WeightedTerm, ...], QueryWord] = {}
    informative = 0
    shortened = False
    for token in reversed(tokens(text)):
        for word in reversed(_query_words(token)):
            if word.terms in kept:
                continue
            if word.informative:
                if informative == max_words:
                    shortened = True
                    break
                informative += 1
            kept[word.terms] = word
        if shortened:
            break
    words = tuple(reversed(kept.values()))
    if not informative:
        words = tuple(
            QueryWord(surface=word.surface, terms=word.terms, informative=True, identifier=word.identifier)
            for word in words[-max_words:]
        )
    return AnalysedQuery(words=words, shortened=shortened)


def _index(token: str) -> tuple[tuple[str, ...], int]:
    """Index terms of a token and the number of words it counts for."""
    if not token.isascii():
        if is_han_or_kana(token):
            return (*token, *_grams(token, 2)), len(token)
        if is_hangul(token):
            whole = (token[:MAX_TERM_CHARACTERS],) if len(token) > 2 else ()
            return (*token, *_grams(token, 2), *whole), len(token)
        if is_unspaced(token):
            grams = [gram for n in range(1, UNSPACED_GRAM + 1) for gram in _grams(token, n)]
            return tuple(grams), max(1, len(token) // UNSPACED_GRAM)
    terms: list[str] = []
    wholes, leaves = _forms(token)
    for word in (*wholes, *leaves):
        main, folded = _main_and_folded(word)
        terms.append(main)
        if folded:
            terms.append(sys.intern("~" + folded))
    return tuple(terms), max(1, len(leaves))


_indexed = lru_cache(maxsize=1 << 15)(_index)


def _query_words(token: str) -> list[QueryWord]:
    if not token.isascii():
        if is_han_or_kana(token):
            return [_gram_word(gram) for gram in (_grams(token, 2) or [token])]
        if is_hangul(token):
            words = [_gram_word(gram) for gram in (_grams(token, 2) or [token])]
            if len(token) > 2:
                # A document with the whole word also has its first two syllables, so `held` stays true.
                words[0] = _gram_word(token[:2], token[:MAX_TERM_CHARACTERS])
            return words
        if is_unspaced(token):
            return [_gram_word(gram) for gram in _grams(token, min(UNSPACED_GRAM, len(token)))]
    wholes, leaves = _forms(token)
    identifier = is_identifier(token)
    return [
        QueryWord(
            surface=word,
            terms=_lookups(word),
            informative=spelling(word) not in STOP_WORDS,
            identifier=identifier and position == 0,
        )
        for position, word in enumerate((*wholes, *leaves))
    ]


def _forms(token: str) -> tuple[list[str], list[str]]:
    """The whole forms and the leaf words of a token; a plain word is one leaf."""
    token = possessive_removed(token)
    if token.isalpha() and (token.islower() or token.isupper() or token.istitle()):
        return [], [token]
    if token.isdigit():
        return [], [token]
    if token.lower().endswith("n't"):
        return [], [token.replace("'", "")]
    leaves = parts(token)
    whole = whole_form(token)
    wholes = [whole, *map(whole_form, compounds(token))]
    wholes = [name for name in dict.fromkeys(wholes) if name and name not in leaves]
    return wholes, leaves or [token]


def _main_and_folded(word: str) -> tuple[str, str | None]:
    word = spelling(word)[:MAX_TERM_CHARACTERS]
    main = stem(word)
    if word.isascii():
        return main, None
    folded = stem(without_accents(word))
    return main, folded if folded != main else None


def _lookups(word: str) -> tuple[WeightedTerm, ...]:
    main, folded = _main_and_folded(word)
    found = [WeightedTerm(text=main, weight=1.0)]
    if folded is not None:
        found.append(WeightedTerm(text=folded, weight=FOLDED_WEIGHT))
    found.append(WeightedTerm(text="~" + (folded or main), weight=FOLDED_WEIGHT))
    return tuple(found)


def _grams(text: str, n: int) -> list[str]:
    return [text[start : start + n] for start in range(len(text) - n + 1)]


def _gram_word(gram: str, whole: str | None = None) -> QueryWord:
    terms = [WeightedTerm(text=gram, weight=1.0)]
    if whole is not None:
        terms.append(WeightedTerm(text=whole, weight=FOLDED_WEIGHT))
    return QueryWord(surface=gram, terms=tuple(terms), informative=True, identifier=False)
