"""The OpenAPI 3.1 document of the REST API, made from the table of operations."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, Literal

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

import hivemem
from hivemem.surfaces.administration import ADMINISTRATION
from hivemem.surfaces.answers import AliveAnswer, ErrorAnswer, HealthAnswer, ReadyAnswer
from hivemem.surfaces.oauth.openapi import oauth_paths
from hivemem.surfaces.operations import OPERATIONS, REST_PREFIX, Access, AnyOperation, RestRoute
from hivemem.surfaces.rest.exports import ExportAnswer, export_paths
from hivemem.surfaces.schemas import slim_schema

_REFERENCE = "#/components/schemas/{model}"
_REFUSALS = {
    "400": "A value is refused in this context.",
    "401": "No valid credential.",
    "403": "The credential does not allow this.",
    "404": "What is named does not exist.",
    "409": "The graph holds something else.",
    "413": "Larger than a limit.",
    "415": "The body is not JSON.",
    "422": "A property is missing or breaks a rule; `detail` begins with its JSON pointer.",
    "429": "Too many calls; see Retry-After.",
    "500": "The server failed.",
    "503": "Something is busy or starting; see Retry-After.",
}


@cache
def openapi_document() -> dict[str, Any]:
    """The document; built once."""
    operations = (*OPERATIONS, *ADMINISTRATION)
    outputs: list[type[BaseModel]] = [operation.output for operation in operations]
    outputs += [AliveAnswer, ErrorAnswer, ExportAnswer, HealthAnswer, ReadyAnswer]
    models: list[tuple[type[BaseModel], Literal["validation", "serialization"]]] = [
        *((operation.input, "validation") for operation in operations),
        *((output, "serialization") for output in outputs),
    ]
    _, definitions = models_json_schema(models, ref_template=_REFERENCE)
    paths: dict[str, Any] = {
        "/health": {"get": _plain("Whether the server answers.", "AliveAnswer", ("500",), secured=False)},
        f"{REST_PREFIX}/health": {"get": _plain("State of each part.", "HealthAnswer", ("401",))},
        f"{REST_PREFIX}/ready": {
            "get": _plain("Whether the models are loaded.", "ReadyAnswer", ("503",), secured=False)
        },
    }
    paths |= export_paths(_plain)
    paths |= oauth_paths(_plain)
    for operation in operations:
        for route in operation.routes:
            described = _operation(operation, route)
            paths.setdefault(route.prefix + route.path, {})[route.method.lower()] = described
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "hivemem",
            "version": hivemem.__version__,
            "description": "A memory graph that AI agents search before they answer.",
        },
        "paths": paths,
        "components": {
            "schemas": slim_schema(definitions["$defs"]),
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"bearer": []}],
    }


def _operation(operation: AnyOperation, route: RestRoute) -> dict[str, Any]:
    refusals = [status for status in _REFUSALS if operation.access is not Access.READ or status != "409"]
    described = _plain(operation.summary, operation.output.__name__, refusals, success=str(route.status))
    # An id names one route, the first; a second way to the same operation needs another.
    first = route == operation.routes[0]
    described["operationId"] = operation.name if first else f"{operation.name}_{route.method.lower()}"
    properties: dict[str, Any] = slim_schema(operation.input.model_json_schema())["properties"]
    parameters = [
        {"name": name, "in": "path", "required": True, "schema": properties[name]} for name in route.in_path
    ]
    if not route.has_body:
        required = {name for name, field in operation.input.model_fields.items() if field.is_required()}
        parameters += [
            {"name": name, "in": "query", "required": name in required, "schema": schema}
            for name, schema in properties.items()
            if name not in route.in_path
        ]
    else:
        described["requestBody"] = {"required": True, "content": _content(operation.input.__name__)}
    if parameters:
        described["parameters"] = parameters
    return described


def _plain(
    summary: str, answer: str, refusals: Sequence[str], *, secured: bool = True, success: str = "200"
) -> dict[str, Any]:
    responses: dict[str, Any] = {success: {"description": "Success.", "content": _content(answer)}}
    for status in refusals:
        responses[status] = {"description": _REFUSALS[status], "content": _content("ErrorAnswer")}
    described: dict[str, Any] = {"summary": summary, "responses": responses}
    if not secured:
        described["security"] = []
    return described


def _content(model: str) -> dict[str, Any]:
    return {"application/json": {"schema": {"$ref": _REFERENCE.format(model=model)}}}
