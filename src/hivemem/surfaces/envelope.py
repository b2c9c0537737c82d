"""Errors on the wire: one object for REST, MCP and the command line, and one table of codes."""

from __future__ import annotations

from hivemem.errors import (
    Conflict,
    Corruption,
    Forbidden,
    HivememError,
    InvalidInput,
    InvalidRequest,
    LimitExceeded,
    NotFound,
    RateLimited,
    Unauthorized,
    Unavailable,
)
from hivemem.surfaces.redaction import without_credentials

USAGE_EXIT_CODE = 2

# Family -> (HTTP status, exit code of the command line). The first family that fits decides.
_CODES: tuple[tuple[type[HivememError], int, int], ...] = (
    (InvalidRequest, 400, 6),
    (InvalidInput, 422, 6),
    (Unauthorized, 401, 3),
    (Forbidden, 403, 4),
    (NotFound, 404, 5),
    (Conflict, 409, 6),
    (LimitExceeded, 413, 6),
    (RateLimited, 429, 7),
    (Unavailable, 503, 8),
    (Corruption, 500, 8),
    (HivememError, 500, 8),
)


class HttpRefusal(HivememError):
    """A request that never reaches an operation: wrong path, method, media type or host.

    Attributes:
        status: HTTP status of the answer.
        headers: Headers that the status asks for, such as `Allow`.
    """

    def __init__(self, status: int, code: str, message: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(message, code=code)
        self.status = status
        self.headers = headers or {}


class InternalError(HivememError):
    """Something unforeseen; the log line with the same request id has the details."""

    code = "internal_error"

    def __init__(self) -> None:
        super().__init__("the server failed on this request; its log names the reason under this request_id.")


def http_status(error: HivememError) -> int:
    """The HTTP status of an error."""
    if isinstance(error, HttpRefusal):
        return error.status
    return next(status for family, status, _ in _CODES if isinstance(error, family))


def exit_code(error: HivememError) -> int:
    """The exit code with which a command that failed with this error ends."""
    return next(code for family, _, code in _CODES if isinstance(error, family))


def envelope(error: HivememError, request_id: str) -> dict[str, object]:
    """The error object that every surface answers with."""
    body: dict[str, object] = dict(error.facts)
    if isinstance(error, Unavailable):
        body["retry_after"] = error.retry_after_seconds
    # Last, so that a fact can never replace one of the four.
    body.update(
        error=error.code,
        detail=without_credentials(error.message),
        retryable=error.retryable,
        request_id=request_id,
    )
    return {name: body[name] for name in ("error", "detail", "retryable", "request_id")} | body


def answer_headers(error: HivememError) -> dict[str, str]:
    """HTTP headers that belong to an error."""
    if isinstance(error, HttpRefusal):
        return error.headers
    if isinstance(error, Unauthorized):
        return {"WWW-Authenticate": 'Bearer realm="hivemem"'}
    if isinstance(error, Unavailable):
        return {"Retry-After": str(error.retry_after_seconds)}
    return {}
