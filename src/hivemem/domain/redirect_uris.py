"""Where a browser may be sent with an authorization code, and when two such addresses are the same.

Rules of RFC 6749 (3.1.2), RFC 8252 (7) and OAuth 2.1: an address is registered before it is used and compared
exactly, except for the port of a loopback address, which native programs choose when they start.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from urllib.parse import SplitResult, quote, urlsplit

from hivemem.domain.oauth import is_loopback

MAX_LENGTH = 2_000

# What RFC 3986 allows in a URI. Browsers repair other characters, each in its own way.
_ALLOWED = re.compile(r"[A-Za-z0-9._~:/?#\[\]@!$&'()*+,;=%-]+")
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*")


def redirect_uri_problem(uri: str, private_schemes: Collection[str]) -> str | None:
    """Why `uri` may not be registered, or None when it may.

    Allowed are https, http to a loopback address, schemes in reverse-domain form (`com.example.app`), which
    their owners hold, and those of `private_schemes`.
    """
    parts = _split(uri)
    if parts is None or not _SCHEME.fullmatch(parts.scheme):
        return "it is not an absolute URI in plain ASCII of at most 2,000 characters"
    if "#" in uri:
        return "it has a fragment"
    if parts.scheme in ("http", "https"):
        if not parts.hostname or "@" in parts.netloc:
            return "it needs a host, without a user name"
        if parts.scheme == "http" and not is_loopback(parts.hostname):
            return "http is for loopback addresses only; use https"
        return None
    if "." in parts.scheme or parts.scheme in private_schemes:
        return None
    return (
        f"the scheme {parts.scheme!r} is not allowed; use https, http://127.0.0.1, a reverse-domain "
        "scheme, or one of the setting oauth_redirect_schemes"
    )


def redirect_uris_match(registered: str, asked: str) -> bool:
    """Whether a request may use `asked` by virtue of `registered`. No path is the same as the path `/`."""
    ours, theirs = _split(registered), _split(asked)
    if ours is None or theirs is None or "#" in asked:
        return False
    if ours.scheme == theirs.scheme == "http" and is_loopback(ours.hostname):
        same_place = ours.hostname == theirs.hostname and "@" not in theirs.netloc
    else:
        same_place = ours.scheme == theirs.scheme and ours.netloc.lower() == theirs.netloc.lower()
    return same_place and _path(ours) == _path(theirs) and ours.query == theirs.query


def same_redirect_uri(one: str, other: str) -> bool:
    """Whether two addresses are equal; an empty path, which some programs write out, is `/`."""
    return _with_path(one) == _with_path(other)


def with_parameters(uri: str, parameters: dict[str, str | None]) -> str:
    """`uri` with further parameters in its query, which is kept as it is; None values are left out.

    Example:
        >>> with_parameters("http://127.0.0.1:5000", {"code": "ac_1", "state": "a b", "error": None})
        'http://127.0.0.1:5000/?code=ac_1&state=a%20b'
    """
    parts = urlsplit(uri)
    added = "&".join(
        f"{name}={quote(value, safe='')}" for name, value in parameters.items() if value is not None
    )
    query = f"{parts.query}&{added}" if parts.query else added
    return f"{_with_path(uri).partition('?')[0]}?{query}"


def redirect_origin(uri: str) -> str:
    """Scheme, host and port for people to read; of private schemes all up to the query."""
    parts = urlsplit(uri)
    if parts.scheme in ("http", "https"):
        return f"{parts.scheme}://{parts.netloc}"
    return uri.partition("?")[0]


def _split(uri: str) -> SplitResult | None:
    if len(uri) > MAX_LENGTH or not _ALLOWED.fullmatch(uri):
        return None
    try:
        parts = urlsplit(uri)
        # Reading the port checks it.
        _ = parts.port
    except ValueError:
        return None
    return parts if parts.scheme and (parts.netloc or parts.path) else None


def _path(parts: SplitResult) -> str:
    return parts.path or "/" if parts.netloc else parts.path


def _with_path(uri: str) -> str:
    parts = _split(uri)
    return uri if parts is None or parts.path or not parts.netloc else parts._replace(path="/").geturl()
