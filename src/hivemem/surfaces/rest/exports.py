"""REST routes of exports: order one, ask how far it is, download the document."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Literal
from urllib.parse import quote

from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from hivemem.domain.access import Principal
from hivemem.domain.exports import Export, ExportStatus
from hivemem.domain.rates import Bucket
from hivemem.domain.text import JsonObject, storable_text
from hivemem.service.exporting import ExportState
from hivemem.surfaces.answers import Answer
from hivemem.surfaces.envelope import HttpRefusal
from hivemem.surfaces.operations import REST_PREFIX
from hivemem.surfaces.presentation import timestamp
from hivemem.surfaces.rest.body import json_object, read_body
from hivemem.surfaces.rest.credentials import authenticated
from hivemem.surfaces.rest.streams import while_admitted
from hivemem.surfaces.services import Services
from hivemem.surfaces.wire_json import dump_json

_PATH = f"{REST_PREFIX}/exports"
_MAX_KEY_CHARACTERS = 200


class ExportAnswer(Answer):
    """An export; the fields about the document are there when it is published."""

    export_id: str
    status: Literal["queued", "running", "published", "failed", "expired"]
    status_url: str = Field(description="Path from the root; ask again in a second or two.")
    created_at: str
    expires_at: str
    bytes: int | None = None
    sha256: str | None = None
    node_count: int | None = None
    download_url: str | None = Field(
        None, description="Path from the root, with a token that lasts for 15 minutes."
    )
    error_code: str | None = Field(None, description="Why it failed, or that it is expired.")


def export_routes(services: Services) -> list[Route]:
    """The routes; they need more of HTTP than the table of operations has."""

    async def order(request: Request) -> Response:
        # As costly as taking a text in: the whole memory is read.
        principal = await authenticated(services, request, Bucket.INGEST)
        if request.headers.get("content-length") not in (None, "0"):
            await json_object(request, services.settings.max_body_bytes)
        else:
            # One in pieces has no length; whatever it says, there is nothing to choose.
            await read_body(request, services.settings.max_body_bytes)
        key = request.headers.get("idempotency-key")
        if key is not None:
            storable_text(key, "/Idempotency-Key", max_characters=_MAX_KEY_CHARACTERS)
        credential = request.headers["authorization"].partition(" ")[2].strip()
        export = await services.exports.order(principal, credential, key)
        await note("export.order", principal, export)
        return _json(export_answer(ExportState(export=export, token=None)), 202)

    async def state(request: Request) -> Response:
        principal = await authenticated(services, request)
        found = await services.exports.state(principal, request.path_params["export_id"])
        return _json(export_answer(found))

    async def download(request: Request) -> Response:
        principal = await authenticated(services, request)
        export, pieces = await services.exports.document(
            principal, request.path_params["export_id"], request.query_params.get("token", "")
        )
        await note("export.download", principal, export)
        headers = {
            "content-length": str(export.size_bytes),
            "content-disposition": f'attachment; filename="hivemem-{export.created_at:%Y-%m-%d}.json"',
        }
        admitted = while_admitted(pieces, services, request)
        return StreamingResponse(admitted, headers=headers, media_type="application/json")

    async def note(action: str, principal: Principal, export: Export) -> None:
        """Whole memories leave here: the audit log tells when, and to whom."""
        await services.audit.record(
            action,
            principal,
            graph_id=principal.graph_id,
            organization_id=principal.organization_id,
            target=export.export_id,
        )

    async def moved(request: Request) -> Response:
        await authenticated(services, request)
        refusal = HttpRefusal(
            410,
            "export_moved",
            f"exports are made in the background now: POST {_PATH}, then read its status_url.",
        )
        refusal.facts["code"] = "export_moved"
        raise refusal

    endpoints: list[tuple[str, str, Callable[[Request], Awaitable[Response]]]] = [
        (_PATH, "POST", order),
        (f"{_PATH}/{{export_id}}", "GET", state),
        (f"{_PATH}/{{export_id}}/download", "GET", download),
        (f"{REST_PREFIX}/export", "GET", moved),
    ]
    return [Route(path, endpoint, methods=[method]) for path, method, endpoint in endpoints]


def export_paths(plain: Callable[..., dict[str, Any]]) -> dict[str, Any]:
    """The routes in OpenAPI, described by `plain(summary, answer, refusals, success=...)`."""
    order = plain(
        "Order a document of the whole memory.", "ExportAnswer", ("401", "413", "503"), success="202"
    )
    state = plain("How far an export is.", "ExportAnswer", ("401", "404", "503"))
    document = plain("The document of an export, as JSON.", "ExportAnswer", ("401", "404", "503"))
    document["responses"]["200"]["content"] = {"application/json": {"schema": {"type": "object"}}}
    moved = plain("Retired: exports are made in the background.", "ErrorAnswer", ("401",), success="410")
    id = {"name": "export_id", "in": "path", "required": True, "schema": {"type": "string"}}
    token = {"name": "token", "in": "query", "required": True, "schema": {"type": "string"}}
    order["parameters"] = [
        {
            "name": "Idempotency-Key",
            "in": "header",
            "required": False,
            "description": "A second order with the same key and credential is the first one.",
            "schema": {"type": "string", "maxLength": _MAX_KEY_CHARACTERS},
        }
    ]
    state["parameters"], document["parameters"] = [id], [id, token]
    return {
        _PATH: {"post": order},
        f"{_PATH}/{{export_id}}": {"get": state},
        f"{_PATH}/{{export_id}}/download": {"get": document},
        f"{REST_PREFIX}/export": {"get": moved},
    }


def export_answer(state: ExportState) -> JsonObject:
    """An export as JSON."""
    export: Export = state.export
    url = f"{_PATH}/{quote(export.export_id, safe='')}"
    answer: JsonObject = {
        "export_id": export.export_id,
        "status": export.status.value,
        "status_url": url,
        "created_at": timestamp(export.created_at),
        "expires_at": timestamp(export.expires_at),
    }
    if export.status is ExportStatus.PUBLISHED:
        answer |= {"bytes": export.size_bytes, "sha256": export.sha256, "node_count": export.node_count}
        if state.token is not None:
            answer["download_url"] = f"{url}/download?token={quote(state.token)}"
    if export.status in (ExportStatus.FAILED, ExportStatus.EXPIRED):
        answer["error_code"] = export.error_code or "export_expired"
    return answer


def _json(body: object, status: int = 200) -> Response:
    return Response(dump_json(body), status, media_type="application/json")
