"""The audit log."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from hivemem.domain.access import Principal
from hivemem.domain.accounts import AuditEvent, AuditQuery
from hivemem.domain.text import JsonObject
from hivemem.service.timeline import parse_time
from hivemem.surfaces.administration.routes import administration
from hivemem.surfaces.answers import Answer
from hivemem.surfaces.inputs import Input
from hivemem.surfaces.presentation import timestamp
from hivemem.surfaces.services import Services


class AuditEntry(Answer):
    """A line of the audit log."""

    id: int
    at: str
    action: str
    user_id: str | None
    credential: str
    graph_id: str | None
    organization_id: str | None
    target: str | None
    address: str
    request_id: str
    detail: dict[str, Any]


class AuditList(Answer):
    """Lines, newest first; `next_before` reads on, null at the end."""

    events: list[AuditEntry]
    count: int
    next_before: int | None


class AuditInput(Input):
    """Which lines."""

    user: str | None = Field(None, description="Id of who did it.")
    graph: str | None = Field(None, description="Id of the graph it was about.")
    org: str | None = Field(None, description="Id of the organization it was about.")
    action: str | None = Field(None, description="Such as key.create.")
    since: str | None = Field(
        None, description="Only lines from this time on: ISO 8601, a time without a zone is UTC."
    )
    before: int | None = Field(None, ge=1, description="Only lines before this number.")
    limit: int = Field(100, ge=1, le=1000, description="Most lines to return.")


def _entry(event: AuditEvent) -> JsonObject:
    return {
        "id": event.id,
        "at": timestamp(event.at),
        "action": event.action,
        "user_id": event.user_id,
        "credential": event.credential,
        "graph_id": event.graph_id,
        "organization_id": event.organization_id,
        "target": event.target,
        "address": event.address,
        "request_id": event.request_id,
        "detail": event.detail,
    }


async def _list(services: Services, actor: Principal, sent: AuditInput) -> JsonObject:
    query = AuditQuery(
        user_id=actor.user_id if sent.user == "me" else sent.user,
        graph_id=sent.graph,
        organization_id=sent.org,
        action=sent.action,
        since=parse_time(sent.since, "/since"),
        before_id=sent.before,
        limit=sent.limit,
    )
    events = await services.audit.read(actor, query)
    more = events[-1].id if len(events) == sent.limit else None
    return {"events": [_entry(event) for event in events], "count": len(events), "next_before": more}


AUDIT_OPERATIONS = (
    administration(
        "audit list", "Read who did what, newest first.", AuditInput, AuditList, "GET /audit", _list
    ),
)  # fmt: skip
