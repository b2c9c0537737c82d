"""Errors between the worker process and its caller: by the name of their family."""

from __future__ import annotations

from typing import Any

from hivemem.errors import Corruption, HivememError, InvalidInput, LimitExceeded, NotFound, Unavailable

FAMILIES: dict[str, type[HivememError]] = {
    family.__name__: family for family in (InvalidInput, LimitExceeded, NotFound, Unavailable, Corruption)
}
"""Errors that a task may end with, by name."""


def told_error(told: dict[str, Any], filename: str) -> HivememError:
    """The error that a worker reported, for the caller to raise."""
    family = FAMILIES.get(told["family"])
    if family is not None:
        return family(told["message"], code=told["code"], **told["facts"])
    if told["family"] == "memory":
        return LimitExceeded(
            f"{filename!r} needs more memory than one file may take; make it smaller or simpler.",
            code="file_too_complex",
        )
    return InvalidInput(
        f"{filename!r} cannot be read: a parser gave up ({told['message']}). "
        "Open it in its own program, save it anew and send that.",
        code="file_unreadable",
    )
