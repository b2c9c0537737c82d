"""What belongs to one request across layers: its id."""

from __future__ import annotations

import contextvars
import re
import uuid

_ACCEPTED = re.compile(r"[A-Za-z0-9-]{8,64}")

request_id: contextvars.ContextVar[str] = contextvars.ContextVar("hivemem_request_id", default="")
"""Id of the request that the present task works on; empty outside of requests."""


def new_request_id(sent: str | None = None) -> str:
    """The caller's id when it is 8 to 64 letters, digits or hyphens, else a fresh one."""
    if sent is not None and _ACCEPTED.fullmatch(sent):
        return sent
    return uuid.uuid4().hex


def current_request_id() -> str:
    """The id of the present request, or a fresh one outside of requests."""
    return request_id.get() or new_request_id()
