"""Names made of several words: taking them apart, and writing them in one way."""

from __future__ import annotations

import re

_OUTER = re.compile(r"[/\\@:&+]+")
_MIDDLE = re.compile(r"[.,]")
# Not \W: vowel signs and other marks are part of a word.
_SEPARATOR = re.compile(r"[-_.,/\\@:&+#']+")
_HUMP_STARTS = re.compile(r"(?<=[^\W\d_A-Z])(?=[A-Z])|(?<=\d)(?=[A-Z][a-z])|(?<=[A-Z])(?=[A-Z][a-z])")
_RUNS = re.compile(r"\d+|\D+")
_LOOSE = re.compile(r"(?<!\d)[-.,/\\@:&+']|[-.,/\\@:&+'](?!\d)|_|(?!^)#")
_THOUSANDS = re.compile(r"\d{1,3}(?:,\d{3})+")
_VERSION = re.compile(r"[vV](?=\d+\.\d)")
_ENDING = re.compile(r"'(?:s|m|re|ve|ll|d)$", re.IGNORECASE)
_NEGATION = re.compile(r"[^\W\d_]+n't", re.IGNORECASE)
_SHARP_NAME = re.compile(r"[^\W\d_]{1,2}(?:\+\+|#)")

_PATH_LIKE = re.compile(r"_|\\|@|::|//|/.*/|\w\w\.[a-z0-9]{2}")
_MEASURE = re.compile(r"\d+(?:[-.,/:]?[a-z]+)*|\d+[a-zA-Z]{1,3}", re.ASCII)
_YEARS = range(1900, 2100)


def possessive_removed(token: str) -> str:
    """`token` without an English ending such as 's or 'll."""
    return _ENDING.sub("", token) if "'" in token else token


def is_negation(token: str) -> bool:
    """Whether `token` is a contraction such as "don't", which is one word and not two."""
    return _NEGATION.fullmatch(token) is not None


def whole_form(token: str) -> str:
    """One spelling of a compound, however its words are joined.

    Separators go, except between digits, where they mean something. A ticket number keeps its sharp,
    as do C++ and C#.

    Example:
        >>> [whole_form(name) for name in ("drop_stale_leases", "v1.2.0-rc.1", "48,281", "#1234", "C++")]
        ['dropstaleleases', '1.2.0rc1', '48281', '#1234', 'C++']
    """
    if _SHARP_NAME.fullmatch(token):
        return token
    if _THOUSANDS.fullmatch(token):
        return token.replace(",", "")
    return _LOOSE.sub("", _VERSION.sub("", token))


def compounds(token: str) -> list[str]:
    """The compounds inside a compound, such as the host of an address or the file name of a path."""
    found: list[str] = []
    for outer in _OUTER.split(token):
        middles = _MIDDLE.split(outer)
        candidates = [outer, *middles] if len(middles) > 1 else [outer]
        found += [name for name in candidates if name != token and _SEPARATOR.search(name)]
    return found


def parts(token: str) -> list[str]:
    """The words of a compound: between separators, at changes of case, between letters and digits.

    Example:
        >>> parts("rotateSigningKey"), parts("EBADLEASE_7731"), parts("svc-kumo7"), parts("E2E")
        (['rotate', 'Signing', 'Key'], ['EBADLEASE', '7731'], ['svc', 'kumo7', 'kumo', '7'], ['E2E'])
    """
    found: list[str] = []
    for piece in filter(None, _SEPARATOR.split(token)):
        for hump in _humps(piece):
            found.append(hump)
            runs = _RUNS.findall(hump)
            if len(runs) > 1:
                # One letter or digit among several runs ("E2E") says nothing by itself.
                found += [run for run in runs if len(run) > 1 or (len(runs) == 2 and run.isdecimal())]
    return found


def is_identifier(token: str) -> bool:
    """Whether a token names one thing exactly, so that a document holding it is relevant.

    Code names, paths, addresses, versions, error codes, ticket and long numbers. Not years, small
    numbers, measures ("10km", "80s", "5-star"), hyphenated words, or names of two humps ("YouTube").
    """
    digits = sum(map(str.isdecimal, token))
    if digits == len(token):
        return digits > 4 or (digits == 4 and int(token) not in _YEARS)
    if digits and any(map(str.isalpha, token)):
        return _MEASURE.fullmatch(token) is None
    if digits:
        return token[0] == "#" or digits > 4 or len(_SEPARATOR.findall(token)) > 1
    if _PATH_LIKE.search(token) or _SHARP_NAME.fullmatch(token):
        return True
    humps = _humps(token) if token.isalpha() else [token]
    return len(humps) > 2 or (len(humps) == 2 and token[0].islower() and len(humps[0]) > 1)


def _humps(piece: str) -> list[str]:
    if piece.islower() or piece.isupper() or piece.istitle():
        return [piece]
    return [hump for hump in _HUMP_STARTS.split(piece) if hump]
