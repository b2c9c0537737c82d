"""Names made of several words: taking them apart, and writing them in one way."""

from __future__ import annotations

import re

_OUTER = re.compile(r"[/\\@:&+]+")
_MIDDLE = re.compile(r"[.,]")
_INNER = re.compile(r"[_\-']+")
_SEPARATOR = re.compile(r"[^\w]+|_+")
_HUMPS = re.compile(r"[^\W\d_]*?[a-z](?=[A-Z])|[A-Z]+(?=[A-Z][a-z])|.+?$")
_RUNS = re.compile(r"\d+|\D+")
_LOOSE = re.compile(r"(?<!\d)[^\w]|[^\w](?!\d)|_")
_THOUSANDS = re.compile(r"\d{1,3}(?:,\d{3})+")
_VERSION = re.compile(r"[vV](?=\d+\.\d)")
_CONTRACTION = re.compile(r"'(?:s|m|re|ve|ll|d)$", re.IGNORECASE)
_YEARS = range(1900, 2100)


def possessive_removed(token: str) -> str:
    """`token` without an English ending such as 's or 'll."""
    return _CONTRACTION.sub("", token) if "'" in token else token


def whole_form(token: str) -> str:
    """One spelling of a compound, however its words are joined.

    Separators go, except between digits, where they mean something.

    Example:
        >>> [whole_form(name) for name in ("drop_stale_leases", "dropStaleLeases", "v1.2.0-rc.1", "48,281")]
        ['dropstaleleases', 'dropStaleLeases', '1.2.0rc1', '48281']
    """
    if _THOUSANDS.fullmatch(token):
        return token.replace(",", "")
    return _LOOSE.sub("", _VERSION.sub("", token))


def compounds(token: str) -> list[str]:
    """The compounds inside a compound, largest first: of an address its host, of a path its file name."""
    found: list[str] = []
    for outer in _OUTER.split(token):
        if outer != token and _SEPARATOR.search(outer):
            found.append(outer)
        for middle in _MIDDLE.split(outer):
            if middle != outer and _SEPARATOR.search(middle):
                found.append(middle)
    return found


def parts(token: str) -> list[str]:
    """The words of a compound: between separators, at changes of case, between letters and digits."""
    found: list[str] = []
    for piece in _SEPARATOR.split(token):
        if not piece:
            continue
        humps = _humps(piece)
        for hump in humps:
            runs = _RUNS.findall(hump)
            found.append(hump)
            if len(runs) > 1:
                found += [run for run in runs if len(run) > 1 or (len(runs) == 2 and run.isdigit())]
    return found


def _humps(piece: str) -> list[str]:
    if piece.islower() or piece.isupper() or piece.istitle():
        return [piece]
    spaced = re.sub(r"([a-z\d])([A-Z])", r"\1 \2", piece)
    spaced = re.sub(r"([A-Z]+)([A-Z][a-z])", r"\1 \2", spaced)
    return spaced.split(" ")


def is_identifier(token: str) -> bool:
    """Whether a token names one thing exactly, so that a document holding it is relevant.

    Code names, paths, addresses, versions, error codes, long numbers; not years, small numbers,
    hyphenated words or names such as "iPhone".
    """
    digits = sum(map(str.isdigit, token))
    if digits == len(token):
        return digits > 4 or (digits == 4 and int(token) not in _YEARS)
    separators = len(_SEPARATOR.findall(token))
    if digits and any(map(str.isalpha, token)):
        return True
    if digits:
        return token[0] == "#" or separators > 1 or digits > 4
    if re.search(r"[_/\\@.+#]|:", token):
        return True
    humps = _humps(token)
    return len(humps) > 2 or (len(humps) == 2 and token[0].islower() and len(humps[0]) > 1)
