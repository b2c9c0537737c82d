"""Read the JSON object in the body of a request, within limits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from starlette.requests import ClientDisconnect, Request

from hivemem.errors import InvalidInput, LimitExceeded
from hivemem.surfaces.envelope import HttpRefusal
from hivemem.surfaces.wire_json import parse_json


async def json_object(request: Request, max_bytes: int) -> Mapping[str, object]:
    """The JSON object that was sent. The content type is not insisted on when the body is JSON anyway.

    Raises:
        HttpRefusal: A form, or something else that is not JSON (415).
        LimitExceeded: More than `max_bytes`.
        InvalidInput: Empty, not UTF-8, not JSON, or not an object.
    """
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    encoding = request.headers.get("content-encoding", "identity").strip().lower()
    if media_type.startswith("multipart/") or encoding not in ("", "identity"):
        raise _unsupported(encoding if encoding not in ("", "identity") else media_type)
    body = await read_body(request, max_bytes)
    if not body.strip():
        raise InvalidInput("/ is empty; send a JSON object.")
    try:
        value = parse_json(body)
    except InvalidInput as error:
        if media_type in ("", "application/json") or media_type.endswith("+json"):
            raise
        raise _unsupported(media_type) from error
    if not isinstance(value, dict):
        raise InvalidInput('/ is not of type "object"; send the arguments as a JSON object.')
    return cast("dict[str, object]", value)


async def read_body(request: Request, max_bytes: int) -> bytes:
    """The bytes of a body.

    Raises:
        LimitExceeded: More than `max_bytes`.
        InvalidInput: The connection ended before the body did.
    """
    declared = request.headers.get("content-length", "")
    if declared.isdecimal() and int(declared) > max_bytes:
        raise _too_large(max_bytes)
    body = bytearray()
    try:
        async for chunk in request.stream():
            body += chunk
            if len(body) > max_bytes:
                raise _too_large(max_bytes)
    except ClientDisconnect as error:
        raise InvalidInput("/ ended early; the connection was closed.") from error
    return bytes(body)


def _too_large(max_bytes: int) -> LimitExceeded:
    return LimitExceeded(
        f"the request body is larger than {max_bytes} bytes; send less at once, or raise the setting "
        "max_body_bytes.",
        limit=max_bytes,
    )


def _unsupported(what: str) -> HttpRefusal:
    return HttpRefusal(
        415, "unsupported_media_type", f"the body is {what[:100]!r}; send plain application/json."
    )
