"""Takes secrets out of texts that are about to be logged."""

from __future__ import annotations

import re

HIDDEN = "***"

_SHORTEST_KNOWN = 8

_PATTERNS: tuple[tuple[re.Pattern[str], str], ...] = (
    # API keys, and what a server's lock file lets its reader send.
    (re.compile(r"(hm|local)_[0-9a-fA-F]{32,}"), rf"\1_{HIDDEN}"),
    # Access tokens, refresh tokens, codes and invitations: 32 random bytes in base64url. Ids are shorter.
    (re.compile(r"(at|rt|ac|inv)_[A-Za-z0-9_-]{40,}"), rf"\1_{HIDDEN}"),
    (re.compile(r"(bearer\s+)[^\s\"'*]+", re.IGNORECASE), rf"\1{HIDDEN}"),
    (re.compile(r"(basic\s+)[A-Za-z0-9+/=_-]{16,}", re.IGNORECASE), rf"\1{HIDDEN}"),
    # The password of a URL, up to the last @: one that was not percent-encoded may hold others. The limit
    # keeps the cost linear.
    (re.compile(r"(?<=://)([^\s:/@]{0,200}):\S{0,1000}@"), rf"\1:{HIDDEN}@"),
    # The other form of a libpq connection, and of query strings: the link to an export holds a token.
    (
        re.compile(
            r"(password|passwd|token|secret|api_key)(\s*=\s*)('(?:[^'\\]|\\.)*'|[^\s&'\"]+)", re.IGNORECASE
        ),
        rf"\1\2{HIDDEN}",
    ),
)

_CREDENTIAL = re.compile(
    r"(?<![A-Za-z0-9_-])(?:(?:hm|local)_[0-9a-fA-F]{64}|(?:at|rt|ac|inv)_[A-Za-z0-9_-]{43})(?![A-Za-z0-9_-])"
)


def redacted(text: str, known: tuple[str, ...] = ()) -> str:
    """The text without anything that has the form of a credential.

    Args:
        text: Of any length; the cost is linear in it.
        known: Secrets of any form, such as keys of other services.
    """
    for secret in known:
        text = text.replace(secret, HIDDEN)
    for pattern, instead in _PATTERNS:
        text = pattern.sub(instead, text)
    return text


def without_credentials(text: str) -> str:
    """The text of an error without a credential that the caller had put in a place for something else.

    Only what is one beyond doubt goes: errors name keys and values that must stay readable.
    """
    return _CREDENTIAL.sub(HIDDEN, text)


def worth_hiding(secrets: list[str]) -> tuple[str, ...]:
    """Those that can be looked for in texts: shorter ones would also be parts of words. Longest first."""
    return tuple(sorted({one for one in secrets if len(one) >= _SHORTEST_KNOWN}, key=len, reverse=True))
