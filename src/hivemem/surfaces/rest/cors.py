"""Which pages of other origins may read our answers (CORS, as in the Fetch standard).

No answer depends on a cookie: a page needs a credential of its own, and `Access-Control-Allow-Credentials` is
never sent.
"""

from __future__ import annotations

from collections.abc import Iterable

Headers = list[tuple[bytes, bytes]]

# Documents and endpoints of the sign-in that tools in a browser use as well; what they give is bound to a
# code and its verifier, or public.
_OPEN_TO_ALL = frozenset(("/register", "/token", "/revoke"))
_WELL_KNOWN = "/.well-known/"
# The pages of the sign-in are in neither list: nobody frames, posts to or reads those from elsewhere.
_BY_SETTING = ("/mcp", "/health", "/openapi.json")
_API = "/api/"

_METHODS = b"GET, POST, PUT, PATCH, DELETE"
_SENT = (
    b"authorization, content-type, idempotency-key, mcp-method, mcp-name, mcp-protocol-version, "
    b"mcp-session-id, x-graph-id, x-request-id"
)
_READ = (
    b"mcp-session-id, retry-after, www-authenticate, x-ratelimit-limit, x-ratelimit-remaining, "
    b"x-ratelimit-reset, x-request-id"
)
_MAX_AGE = b"600"


class Cors:
    """The origins that the setting `cors_origins` lists.

    Args:
        origins: Scheme, host and port, without a slash at the end.
    """

    def __init__(self, origins: Iterable[str]) -> None:
        self._origins = frozenset(origin.lower().rstrip("/") for origin in origins)

    def headers(self, path: str, origin: str | None) -> Headers | None:
        """What the answer to a page needs; None when pages of this origin must not read it."""
        if origin is None:
            return None
        if path in _OPEN_TO_ALL or path.startswith(_WELL_KNOWN):
            return [(b"access-control-allow-origin", b"*"), (b"access-control-expose-headers", _READ)]
        if origin.lower() in self._origins and (path in _BY_SETTING or path.startswith(_API)):
            return [
                (b"access-control-allow-origin", origin.encode("latin-1")),
                (b"access-control-expose-headers", _READ),
                (b"vary", b"Origin"),
            ]
        return None


def preflight_headers() -> Headers:
    """What a page may send; the preflight comes without a credential, and is answered before it is asked."""
    return [
        (b"access-control-allow-methods", _METHODS),
        (b"access-control-allow-headers", _SENT),
        (b"access-control-max-age", _MAX_AGE),
    ]
