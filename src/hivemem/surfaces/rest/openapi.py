"""The OpenAPI 3.1 document of the REST API, made from the table of operations."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, Literal

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

import hivemem
from hivemem.surfaces.answers import AliveAnswer, ErrorAnswer, HealthAnswer, ReadyAnswer
from hivemem.surfaces.operations import OPERATIONS, REST_PREFIX, Access, Operation, slim_schema

_REFERENCE = "#/components/schemas/{model}"
_REFUSALS = {
    "400": "A value is refused in this context.",
    "401": "No valid credential.",
    "403": "The credential does not allow this.",
    "409": "The graph holds something else.",
    "413": "Larger than a limit.",
    "415": "The body is not JSON.",
    "422": "A property is missing or breaks a rule; `detail` begins with its JSON pointer.",
    "500": "The server failed.",
    "503": "Something is busy or starting; see Retry-After.",
}


@cache
def openapi_document() -> dict[str, Any]:
    """The document; built once."""
    outputs: list[type[BaseModel]] = [operation.output for operation in OPERATIONS]
    outputs += [AliveAnswer, ErrorAnswer, HealthAnswer, ReadyAnswer]
    models: list[tuple[type[BaseModel], Literal["validation", "serialization"]]] = [
        *((operation.input, "validation") for operation in OPERATIONS),
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
    for operation in OPERATIONS:
        paths[REST_PREFIX + operation.path] = {operation.method.lower(): _operation(operation)}
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


def _operation(operation: Operation[Any]) -> dict[str, Any]:
    refusals = [status for status in _REFUSALS if operation.access is Access.WRITE or status != "409"]
    described = _plain(operation.summary, operation.output.__name__, refusals)
    described["operationId"] = operation.name
    if operation.method == "GET":
        properties = slim_schema(operation.input.model_json_schema())["properties"]
        described["parameters"] = [
            {"name": name, "in": "query", "schema": schema} for name, schema in properties.items()
        ]
    else:
        described["requestBody"] = {"required": True, "content": _content(operation.input.__name__)}
    return described


def _plain(summary: str, answer: str, refusals: Sequence[str], *, secured: bool = True) -> dict[str, Any]:
    responses: dict[str, Any] = {"200": {"description": "Success.", "content": _content(answer)}}
    for status in refusals:
        responses[status] = {"description": _REFUSALS[status], "content": _content("ErrorAnswer")}
    described: dict[str, Any] = {"summary": summary, "responses": responses}
    if not secured:
        described["security"] = []
    return described


def _content(model: str) -> dict[str, Any]:
    return {"application/json": {"schema": {"$ref": _REFERENCE.format(model=model)}}}
