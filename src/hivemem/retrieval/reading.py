"""What the cross-encoder is given to read of a node: a passage, alone and among its neighbours."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from hivemem.domain.text import JsonObject, JsonValue
from hivemem.retrieval.analyse import AnalysedQuery, document_terms

_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])\s*|\s*\n\s*")
_QUESTION_MARKS = ("?", "？")
_SHORT_SENTENCE = 20
_SENTENCES = 12


def shortened_head(text: str, limit: int) -> str:
    """The start of `text`, at most `limit` characters, cut at a space where there is one."""
    text = " ".join(text.split())
    if len(text) <= limit:
        return text
    return text[:limit].rsplit(" ", 1)[0] or text[:limit]


def closing_question(query: str, *, limit: int = 400) -> str:
    """The question at the end of a long query; a query of at most `limit` characters as it is.

    Agents send whole prompts, with logs or letters before what is asked. A cross-encoder gives every
    text a high score for such a query, whatever the text says: it must read the question alone. That is
    the last question among the last twelve sentences, or else the last sentence, with the sentence
    before it when it is shorter than 20 characters; at most its last `limit` characters.

    Example:
        >>> closing_question("2026-03-01 INFO job done. " * 40 + "Who waters the plants? Be brief.")
        'Who waters the plants?'
    """
    if len(query) <= limit:
        return query
    tail = query[-_SENTENCES * limit :].strip()
    sentences = [sentence for sentence in _SENTENCE_END.split(tail) if sentence][-_SENTENCES:]
    asking = [at for at, sentence in enumerate(sentences) if sentence.endswith(_QUESTION_MARKS)]
    if not sentences:
        return ""
    at = asking[-1] if asking else len(sentences) - 1
    found = sentences[at]
    if len(found) < _SHORT_SENTENCE and at > 0:
        found = f"{sentences[at - 1]} {found}"
    if len(found) > limit:
        found = found[-limit:]
        head, _, rest = found.partition(" ")
        found = rest if rest and len(head) < _SHORT_SENTENCE else found
    return found


def best_window(text: str, query: AnalysedQuery, *, width: int) -> tuple[int, int]:
    """The stretch of about `width` characters that holds most of the query's words, as offsets.

    Used where no vector tells the best passage. Windows overlap by half; the first of equals wins.
    Cost: one analysis of the text.
    """
    if len(text) <= width:
        return 0, len(text)
    wanted = [{term.text for term in word.terms} for word in query.words if word.informative]
    step = max(1, width // 2)
    best = (-1, 0)
    for start in range(0, max(1, len(text) - step), step):
        held = document_terms(text[start : start + width]).frequencies
        score = sum(1 for terms in wanted if not terms.isdisjoint(held))
        if score > best[0]:
            best = (score, start)
    start = best[1]
    return start, min(len(text), start + width)


def among_neighbours(before: str, text: str, after: str) -> str:
    """A text between what leads to it and what it leads to, as one paragraph; blank parts are left out."""
    return " ".join(part for part in (before, text, after) if part)


def telling_facts(data: JsonObject, query: AnalysedQuery, text: str, *, limit: int = 160) -> str:
    """The entries of a node's `data` that say what the query asks and the text does not, as sentences.

    An entry is told when its name is an informative word of the query that `text` lacks: "supplier:
    Brandt" for the question which supplier it was. A value that the query names is left to the word
    leg: read aloud, dates and names make unrelated texts look like answers. Entries come in their order,
    nested ones with their path, at most `limit` characters.

    Example:
        >>> from hivemem.retrieval.analyse import analyse_query
        >>> query = analyse_query("which supplier delivers the toner?")
        >>> telling_facts({"supplier": "Brandt", "floor": 3}, query, "Toner is in the hall cupboard.")
        'supplier: Brandt.'
    """
    if not data:
        return ""
    wanted = {term.text for word in query.words if word.informative for term in word.terms}
    entries = [
        (name, value) for name, value in _entries(data, "") if not wanted.isdisjoint(_terms_of_name(name))
    ]
    if not entries:
        # The usual case, and known without a look at the text.
        return ""
    in_text = document_terms(text).frequencies
    asked = {
        term.text
        for word in query.words
        if word.informative and not any(term.text in in_text for term in word.terms)
        for term in word.terms
    }
    told: list[str] = []
    for name, value in entries:
        entry = f"{name}: {value}."
        if len(entry) <= limit and not asked.isdisjoint(_terms_of_name(name)):
            told.append(entry)
            limit -= len(entry) + 1
    return " ".join(told)


@lru_cache(maxsize=4096)
def _terms_of_name(name: str) -> frozenset[str]:
    return frozenset(document_terms(name).frequencies)


def _entries(value: JsonValue, path: str) -> Iterator[tuple[str, str]]:
    """Every plain value inside `value` with the names that lead to it."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _entries(inner, f"{path} {name}".strip())
    elif isinstance(value, list):
        for inner in value:
            yield from _entries(inner, path)
    elif value is not None:
        yield path.replace("_", " "), str(value)
