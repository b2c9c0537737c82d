"""Rate limits at the edge: which bucket a request counts in, and what its answer says about it."""

from __future__ import annotations

from starlette.requests import HTTPConnection

from hivemem.domain.rates import Allowance, Bucket
from hivemem.errors import RateLimited
from hivemem.surfaces.rest.proxies import limited_as
from hivemem.surfaces.services import Services

ANSWER_HEADERS = "hivemem.answer_headers"
"""Key of an ASGI scope: a list of headers that the edge adds to the answer."""

_SECOND = 1_000_000


def bucket_of_method(method: str) -> Bucket:
    """Where requests count that belong to no operation of the table."""
    return Bucket.READ if method in ("GET", "HEAD") else Bucket.WRITE


async def count_user(services: Services, connection: HTTPConnection, bucket: Bucket, user_id: str) -> None:
    """Let a call of a user pass who is within the limit, whichever credential they use.

    Raises:
        RateLimited: They are not.
    """
    found = await services.rate_limits.take(bucket, user_id)
    if found is not None:
        _tell(connection, found)
        _check(found, f"too many calls of the kind {bucket.value!r}")


async def count_address(services: Services, connection: HTTPConnection, bucket: Bucket) -> None:
    """Let a request pass whose network address is within the limit.

    Raises:
        RateLimited: It is not.
    """
    address = connection.client.host if connection.client else ""
    found = await services.rate_limits.take(bucket, limited_as(address))
    if found is not None:
        _check(found, "too many requests from this address")


def _tell(connection: HTTPConnection, found: Allowance) -> None:
    added: list[tuple[bytes, bytes]] = connection.scope.get(ANSWER_HEADERS, [])
    for name, value in (
        (b"x-ratelimit-limit", found.limit),
        (b"x-ratelimit-remaining", found.remaining),
        (b"x-ratelimit-reset", -(-found.full_at // _SECOND)),
    ):
        added.append((name, str(value).encode()))


def _check(found: Allowance, what: str) -> None:
    if not found.allowed:
        wait = max(1, -(-found.wait // _SECOND))
        raise RateLimited(f"{what}; try again in {wait} s.", retry_after_seconds=wait)
