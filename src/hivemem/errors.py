"""Every error hivemem raises on purpose.

    HivememError
    ├── InvalidInput         a value breaks a rule; the caller must change it          422
    │   └── InvalidRequest   well-formed, but refused in this context                  400
    ├── Unauthorized         no credential, or one that is unknown or revoked          401
    ├── Forbidden            a known caller who may not do this                        403
    ├── NotFound             the named thing does not exist                            404
    ├── Conflict             the state of the graph contradicts the request            409
    │   └── StaleWrite       somebody else wrote first; read again and retry           409
    ├── LimitExceeded        larger than a documented limit                            413
    ├── Unavailable          a dependency is busy or down; repeating can succeed       503
    │   ├── Overloaded       the model queue is full, or too many requests are at work 503
    │   └── RateLimited      the caller has made too many calls                        429
    └── Corruption           stored bytes or model files are not what they must be     500

A message names the value and the next step. `code` is stable and part of the wire contract; nothing
in hivemem decides by the text of a message.
"""

from __future__ import annotations


class HivememError(Exception):
    """Base of all errors of hivemem.

    Attributes:
        code: Stable machine-readable name, the `error` field of every answer.
        retryable: Whether the same request can succeed when it is repeated.
        facts: Further JSON values for the error answer, such as `current_version`.
    """

    code: str = "internal_error"
    retryable: bool = False

    def __init__(self, message: str, *, code: str | None = None, **facts: object) -> None:
        super().__init__(message)
        self.message = message
        if code is not None:
            self.code = code
        self.facts: dict[str, object] = facts


class InvalidInput(HivememError):
    """A value breaks a rule that the caller can read in the documentation."""

    code = "validation_error"


class InvalidRequest(InvalidInput):
    """A well-formed value that is refused in this context."""

    code = "invalid_request"


class Unauthorized(HivememError):
    """The credential is missing, malformed, unknown or revoked."""

    code = "unauthorized"


class Forbidden(HivememError):
    """The credential is valid and does not allow this operation."""

    code = "forbidden"


class NotFound(HivememError):
    """The named node, edge, key or file does not exist."""

    code = "not_found"


class Conflict(HivememError):
    """The request contradicts what the graph holds now."""

    code = "conflict"


class StaleWrite(Conflict):
    """A row changed between the read that a write was planned on and the write itself."""

    code = "version_conflict"
    retryable = True


class LimitExceeded(HivememError):
    """A value is larger than a documented, adjustable limit."""

    code = "payload_too_large"


class Unavailable(HivememError):
    """Something hivemem depends on is busy, starting or down.

    Attributes:
        retry_after_seconds: When to try again; becomes the `Retry-After` header.
    """

    code = "unavailable"
    retryable = True

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        retry_after_seconds: int = 1,
        **facts: object,
    ) -> None:
        super().__init__(message, code=code, **facts)
        self.retry_after_seconds = retry_after_seconds


class Overloaded(Unavailable):
    """More model work is waiting, or more requests are under way, than the limits allow."""

    code = "overloaded"


class RateLimited(Unavailable):
    """The caller has made more calls than a rate limit allows."""

    code = "rate_limited"


class Corruption(HivememError):
    """Stored bytes, or the files of a model, are not what they must be."""

    code = "corruption"
