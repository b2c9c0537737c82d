"""Recall in one's own memory and in that of an organization, at the same time and never mixed.

One's own answer comes first in every way: it is read first, nothing that happens to the other search can
spoil it, and what a conversation touched is noted of it alone, since members do not write to their
organization's graph.
"""

from __future__ import annotations

import asyncio
import enum
import logging
from dataclasses import dataclass, replace

from hivemem.domain.access import Principal
from hivemem.domain.accounts import NO_ORGANIZATION, Membership
from hivemem.errors import Overloaded, Unavailable
from hivemem.service.limits import DEFAULT_SESSION
from hivemem.service.recall import Recall, RecallRequest, RecallResult
from hivemem.service.shared_reading import SharedReading

GRACE_SECONDS = 2.0
"""How much longer than one's own search that of the organization may take."""

log = logging.getLogger(__name__)


class Status(enum.StrEnum):
    """What a recall did about organization memory."""

    INCLUDED = "included"
    """The organization's memory was searched too."""
    SELECTION_REQUIRED = "selection_required"
    """The caller belongs to several organizations and named none."""
    EXCLUDED = "excluded"
    """The caller asked for their own memory alone."""
    SELECTED_GRAPH = "selected_graph"
    """The results themselves are the organization's memory: the credential is bound to it."""
    FAILED = "failed"
    """The search of the organization's memory broke; one's own results are valid."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OrganizationMemory:
    """The organization's part of a recall.

    Attributes:
        status: What was done.
        organization: Whose memory it is about; None where none was chosen.
        result: What was found; only when `INCLUDED`.
        error: What went wrong, for the caller; only when `FAILED`.
    """

    status: Status
    organization: Membership | None = None
    result: RecallResult | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AllRecalled:
    """An answer from all memory that a caller reads. `organization` is None for members of none."""

    own: RecallResult
    organization: OrganizationMemory | None


def chosen_memory(principal: Principal, organization_id: str | None) -> OrganizationMemory | None:
    """What to do about organization memory; None for a caller who belongs to no organization.

    `INCLUDED` says that `organization` is still to be searched.

    Raises:
        InvalidRequest: `organization_id` is none of the caller's, whether or not it exists.
    """
    # Refuses what is not theirs before anything else is told.
    principal.for_reading(organization_id)
    if not principal.organizations:
        return None
    if organization_id == NO_ORGANIZATION:
        return OrganizationMemory(status=Status.EXCLUDED)
    bound = principal.membership(principal.organization_id)
    if bound is not None and organization_id in (None, bound.organization_id):
        return OrganizationMemory(status=Status.SELECTED_GRAPH, organization=bound)
    if organization_id is not None:
        chosen = principal.membership(organization_id)
        return OrganizationMemory(status=Status.INCLUDED, organization=chosen)
    first, *others = principal.organizations
    if others:
        return OrganizationMemory(status=Status.SELECTION_REQUIRED)
    return OrganizationMemory(status=Status.INCLUDED, organization=first)


async def recall_everywhere(
    recall: Recall, principal: Principal, request: RecallRequest, *, grace_seconds: float = GRACE_SECONDS
) -> AllRecalled:
    """What the caller's memory knows, and beside it what their organization's does.

    Args:
        recall: The search of one graph.
        principal: The caller.
        request: The question; `max_results` counts for each memory.
        grace_seconds: How much longer than one's own search the other one may take.

    Raises:
        InvalidRequest: `organization_id` is none of the caller's.
        HivememError: What the search of one's own memory raises; a failure of the other one is a status.
    """
    memory = chosen_memory(principal, request.organization_id)
    if memory is None or memory.organization is None or memory.status is not Status.INCLUDED:
        return AllRecalled(own=await recall.recall(principal, request), organization=memory)
    shared = recall.shared_reading()
    reading = principal.for_reading(memory.organization.organization_id)
    # Of a session, only one's own graph knows.
    asked = replace(request, session_id=DEFAULT_SESSION)
    other = asyncio.create_task(
        _search(recall, reading, asked, shared), name=f"recall in {reading.organization_id}"
    )
    # When one's own search fails nobody else fetches its error.
    other.add_done_callback(lambda done: done.cancelled() or done.exception())
    try:
        own = await recall.recall(principal, request, shared=shared.own)
        await asyncio.wait([other], timeout=grace_seconds)
        if not other.done():
            error = f"searching it took over {grace_seconds:g} s longer than your own memory; ask again."
            memory = replace(memory, status=Status.FAILED, error=error)
        else:
            memory = _with_outcome(memory, other)
    finally:
        # Also when the caller has gone, or their own search failed.
        other.cancel()
    return AllRecalled(own=own, organization=memory)


async def _search(
    recall: Recall, reading: Principal, request: RecallRequest, shared: SharedReading
) -> RecallResult:
    try:
        return await recall.recall(reading, request, shared=shared.organization)
    finally:
        shared.leave()


def _with_outcome(memory: OrganizationMemory, search: asyncio.Task[RecallResult]) -> OrganizationMemory:
    error = search.exception()
    if error is None:
        return replace(memory, result=search.result())
    if isinstance(error, Overloaded):
        told = "too much other work waits; ask again in a few seconds."
    elif isinstance(error, Unavailable):
        told = "its database does not answer; ask again later."
    else:
        told = "searching it broke; the server's log says why."
    # Without the question, and without the error's own words in the answer: they may tell of internals.
    log.warning(
        "the recall in organization %s failed",
        memory.organization.organization_id if memory.organization else "",
        exc_info=error,
    )
    return replace(memory, status=Status.FAILED, error=told)
