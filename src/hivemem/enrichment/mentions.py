"""What a statement names: people and things by their capitals, dates, links and addresses.

Rules, not a model: they know no word by heart but frequent ones, and rather miss a name than invent one.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from hivemem.retrieval.stopwords import STOP_WORDS

MAX_NAME_WORDS = 5

_MONTHS = (
    *("january", "february", "march", "april", "may", "june", "july", "august", "september"),
    *("october", "november", "december"),
)
_MONTH = (
    "|".join(name.capitalize() for name in _MONTHS)
    + "|"
    + "|".join(name[:3].capitalize() for name in _MONTHS if len(name) > 3)
)
_DATES = (
    re.compile(r"\b(?P<year>\d{4})-(?P<month>\d{2})-(?P<day>\d{2})\b"),
    re.compile(rf"\b(?P<day>\d{{1,2}})(?:st|nd|rd|th)?\.? (?P<month>{_MONTH})\.?,? (?P<year>\d{{4}})\b"),
    re.compile(rf"\b(?P<month>{_MONTH})\.? (?P<day>\d{{1,2}})(?:st|nd|rd|th)?,? (?P<year>\d{{4}})\b"),
)
_LINK = re.compile(r"https?://[^\s<>\"'`]+[^\s<>\"'`.,;:!?)\]}]")
_ADDRESS = re.compile(r"\b[\w.+-]{1,64}@[\w-]+(?:\.[\w-]+)+\b")
_WORD = re.compile(r"[^\W\d_](?:[\w’'-]*\w)?")
_PARTICLES = frozenset(("of", "de", "von", "van", "der", "del", "la", "di", "da", "du", "the"))
_OPENERS = frozenset(
    (
        *("yesterday", "today", "tomorrow", "recently", "currently", "finally", "later", "then", "now"),
        *("also", "however", "meanwhile", "please", "see", "ask", "when", "after", "before", "since"),
        *("although", "because", "while", "perhaps", "maybe", "only", "both", "each", "every", "many"),
    )
)
"""Words that often begin a sentence in front of a name."""

_TITLES = frozenset(("mr", "mrs", "ms", "dr", "prof", "sir", "frau", "herr", "madame"))
_ORGANIZATION_ENDS = frozenset(
    (
        *("inc", "ltd", "llc", "corp", "gmbh", "ag", "plc", "company", "university", "institute"),
        *("bank", "foundation", "ministry", "college", "hospital", "committee", "team", "group"),
    )
)
_PERSON_VERBS = frozenset(
    (
        *("said", "says", "told", "asked", "wrote", "writes", "works", "worked", "lives", "lived"),
        *("likes", "loves", "prefers", "wants", "joined", "met", "married", "decided", "thinks"),
        *("believes", "leads", "led", "moved", "owns", "proposed", "suggested", "agreed", "reported"),
    )
)
_TELLING_WORDS = 8
_MANY_CAPITALS = 0.35
"""Above this share of capitalised words inside sentences, capitals mark nouns (German) or headlines."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mention:
    """Something that a statement names, as the node it becomes.

    `names` are further keys under which it may be known already, most likely first.
    """

    key: str
    node_type: str
    description: str
    label: str
    names: tuple[str, ...] = ()


def mentions(texts: Sequence[str]) -> list[list[Mention]]:
    """What each of `texts` mentions, each thing once, in reading order.

    A capital at the beginning of a sentence counts only for words that are capitalised elsewhere too.
    """
    known, capitals_say_little = _capitalised(texts)
    return [
        _of_one(text, known, say_little) for text, say_little in zip(texts, capitals_say_little, strict=True)
    ]


def slug(text: str, max_words: int = 6) -> str:
    """`text` as part of a key: lower-case ASCII words; "" when it has none.

    Example:
        >>> slug("José's café, 3rd floor"), slug("铁柜")
        ('jose_s_cafe_3rd_floor', '')
    """
    ascii_text = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode().lower()
    return "_".join(re.findall(r"[a-z0-9]+", ascii_text)[:max_words])


def digest(text: str) -> str:
    """Eight hexadecimal digits that stand for `text`."""
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def _of_one(text: str, known: frozenset[str], capitals_say_little: bool) -> list[Mention]:
    found: dict[str, Mention] = {}
    rest = text
    for pattern, made in ((_LINK, _link), (_ADDRESS, _address)):
        for match in pattern.finditer(rest):
            mention = made(match[0])
            found.setdefault(mention.key, mention)
        # Their parts are no names. Blanks keep the places of all other words.
        rest = pattern.sub(lambda match: "." * len(match[0]), rest)
    for pattern in _DATES:
        for match in pattern.finditer(rest):
            mention = _date(match)
            if mention is not None:
                found.setdefault(mention.key, mention)
        rest = pattern.sub(lambda match: "." * len(match[0]), rest)
    for name, following, title in _names(rest, known, capitals_say_little):
        mention = _named(name, following, title)
        found.setdefault(mention.key, mention)
    return list(found.values())


def _link(url: str) -> Mention:
    host = re.sub(r"^https?://(?:www\.)?", "", url).split("/", 1)[0].split("?", 1)[0]
    return Mention(
        key=f"artifact_{slug(host)}_{digest(url)}".replace("__", "_"),
        node_type="artifact",
        description=f"The page {url}",
        label=f"links to {host}",
    )


def _address(address: str) -> Mention:
    local = slug(address.split("@", 1)[0]) or digest(address)
    return Mention(
        key=f"person_{local}",
        node_type="person",
        description=f"Somebody with the address {address}",
        label=f"names the address {address}",
    )


def _date(match: re.Match[str]) -> Mention | None:
    month = match["month"]
    if not month.isdecimal():
        month = str(next(n for n, name in enumerate(_MONTHS, 1) if name.startswith(month.lower()[:3])))
    try:
        day = date(int(match["year"]), int(month), int(match["day"]))
    except ValueError:  # the 31st of February
        return None
    return Mention(
        key=f"event_{day.isoformat().replace('-', '_')}",
        node_type="event",
        description=f"The day {day.isoformat()}: {day.day} {_MONTHS[day.month - 1].capitalize()} {day.year}",
        label=f"is dated {day.isoformat()}",
    )


def _named(name: str, following: str, title: bool) -> Mention:
    words = name.lower().split()
    if title or (following in _PERSON_VERBS and len(words) <= 3):
        node_type = "person"
    elif words[-1].rstrip(".") in _ORGANIZATION_ENDS:
        node_type = "organization"
    else:
        node_type = "concept"
    part = slug(name) or digest(name)
    others = ("person", "organization", "project", "technology", "component", "concept", "user")
    return Mention(
        key=f"{node_type}_{part}",
        node_type=node_type,
        description=f"{name}, named in a text",
        label=f"mentions {name}",
        names=tuple(f"{prefix}_{part}" for prefix in others if prefix != node_type),
    )


def _capitalised(texts: Sequence[str]) -> tuple[frozenset[str], list[bool]]:
    """The words that have a capital inside a sentence; and of each text whether too many have one."""
    inside: set[str] = set()
    shares: list[tuple[int, int]] = []
    for text in texts:
        within = [word for _, word, initial in _words(text) if not initial]
        capital = [word for word in within if word[0].isupper()]
        inside.update(capital)
        shares.append((len(capital), len(within)))
    whole = (sum(capital for capital, _ in shares), sum(words for _, words in shares))
    # A short text tells little by itself: it is taken to be like the others.
    told = [share if share[1] >= _TELLING_WORDS else whole for share in shares]
    return frozenset(inside), [
        words >= _TELLING_WORDS and capital > _MANY_CAPITALS * words for capital, words in told
    ]


def _words(text: str) -> list[tuple[int, str, bool]]:
    """Each word with its place, and whether it begins a sentence, a quotation or a line."""
    found: list[tuple[int, str, bool]] = []
    end = 0
    for match in _WORD.finditer(text):
        between = text[end : match.start()]
        initial = not found or bool(re.search(r"[.!?…:;\"“„«(\n]", between))
        found.append((match.start(), match[0], initial))
        end = match.end()
    return found


def _names(text: str, known: frozenset[str], capitals_say_little: bool) -> list[tuple[str, str, bool]]:
    """Runs of capitalised words: the name, the word behind it in lower case, whether a title is before it."""
    words = _words(text)
    found: list[tuple[str, str, bool]] = []
    at = 0
    while at < len(words):
        end = _run_end(text, words, at, particles=not capitals_say_little)
        if end == at:
            at += 1
            continue
        run = [word for _, word, _ in words[at:end]]
        initial = words[at][2]
        before = words[at - 1][1].lower() if at else ""
        following = words[end][1].lower() if end < len(words) else ""
        at = end
        title = before.rstrip(".") in _TITLES
        if run[0].lower() in _TITLES:
            title, run, initial = True, run[1:], False
        while run and run[0].lower() in STOP_WORDS | _PARTICLES | _OPENERS:
            run, initial = run[1:], False
        if not run or (initial and len(run) == 1 and run[0] not in known):
            continue
        if len(run) == 1 and (len(run[0]) < 3 or (capitals_say_little and not title)):
            continue
        found.append((_plain(" ".join(run)), following, title))
    return found


def _run_end(text: str, words: Sequence[tuple[int, str, bool]], start: int, *, particles: bool) -> int:
    """Where the capitalised words that begin at `start` end; particles may stand between two of them."""
    end = at = start
    while at < len(words) and at - start < MAX_NAME_WORDS:
        place, word, initial = words[at]
        if at > start:
            previous = words[at - 1]
            joined = text[previous[0] + len(previous[1]) : place] == " "
            if initial or not joined:
                break
        if word[0].isupper():
            end = at + 1
        elif at == start or not particles or word not in _PARTICLES:
            break
        at += 1
    return end


def _plain(name: str) -> str:
    return re.sub(r"['’]s$", "", name)
