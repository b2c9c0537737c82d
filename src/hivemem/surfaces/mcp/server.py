"""The MCP server: the table of operations as tools, for both protocol eras."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Any

from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
    Tool,
    ToolAnnotations,
)

import hivemem
from hivemem.domain.access import Principal
from hivemem.errors import HivememError
from hivemem.ports.observer import ToolCalled
from hivemem.surfaces.envelope import InternalError, envelope
from hivemem.surfaces.operations import TOOLS, AnyOperation
from hivemem.surfaces.request_id import current_request_id
from hivemem.surfaces.schemas import slim_schema
from hivemem.surfaces.services import Services
from hivemem.surfaces.wire_json import dump_json

_LOG = logging.getLogger("hivemem.mcp")
_TOOLS_FRESH_MS = 300_000

INSTRUCTIONS = (
    "A memory that outlives this conversation. Call hm_recall before you answer anything that may depend "
    "on earlier work, people, decisions or preferences. Call hm_store when you learn something worth "
    "keeping: one fact a node, a full sentence as description, and relationships that say why nodes belong "
    "together. An empty recall means that nothing relevant is remembered. Texts marked as shortened are "
    "complete in hm_get_nodes."
)

Context = ServerRequestContext[Any, Any]
PrincipalOf = Callable[[Context, AnyOperation], Awaitable[Principal]]
"""Finds who calls an operation, and refuses callers beyond their limits."""


def build_server(services: Services, principal_of: PrincipalOf) -> Server[Any]:
    """A server whose tools act for whoever `principal_of` finds behind a request."""
    tools = [_tool(operation) for operation in TOOLS.values()]
    schemas = {tool.name: tool.input_schema for tool in tools}

    async def list_tools(_: Context, __: PaginatedRequestParams | None) -> ListToolsResult:
        return ListToolsResult(tools=tools, ttl_ms=_TOOLS_FRESH_MS, cache_scope="private")

    def failed(operation: AnyOperation, error: HivememError) -> CallToolResult:
        called = ToolCalled(tool=operation.name, error=error.code, retryable=error.retryable)
        services.observers.note(called)
        return _failure(error)

    async def call_tool(context: Context, params: CallToolRequestParams) -> CallToolResult:
        operation = TOOLS.get(params.name)
        if operation is None:
            services.observers.note(ToolCalled(tool="unknown", error="unknown_tool"))
            raise MCPError(INVALID_PARAMS, f"there is no tool {params.name[:100]!r}; tools/list names all.")
        try:
            principal = await principal_of(context, operation)
            answer = await operation.run(services, principal, params.arguments or {})
        except HivememError as error:
            return failed(operation, error)
        except Exception:
            _LOG.exception("unhandled error in the tool %s", operation.name)
            return failed(operation, InternalError())
        services.observers.note(ToolCalled(tool=operation.name))
        return CallToolResult(content=[TextContent(text=_text(answer))], structured_content=answer)

    return Server(
        "hivemem",
        version=hivemem.__version__,
        instructions=INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        get_tool_input_schema=schemas.get,
    )


def _tool(operation: AnyOperation) -> Tool:
    return Tool(
        name=operation.name,
        description=operation.summary,
        input_schema=slim_schema(operation.input.model_json_schema()),
        output_schema=slim_schema(operation.output.model_json_schema(mode="serialization")),
        annotations=ToolAnnotations(
            read_only_hint=operation.read_only,
            destructive_hint=operation.destructive,
            idempotent_hint=operation.idempotent,
            open_world_hint=False,
        ),
    )


def _failure(error: HivememError) -> CallToolResult:
    body = envelope(error, current_request_id())
    return CallToolResult(is_error=True, content=[TextContent(text=_text(body))], structured_content=body)


def _text(body: object) -> str:
    return dump_json(body).decode()
