"""The table of operations. REST routes, OpenAPI, MCP tools and command-line verbs are made from it."""

from __future__ import annotations

from collections.abc import Mapping

from hivemem.surfaces.operations.chat_context import CHAT_CONTEXT
from hivemem.surfaces.operations.files import LIST_FILES, UPLOAD_FILE
from hivemem.surfaces.operations.find_related import FIND_RELATED
from hivemem.surfaces.operations.forget import FORGET
from hivemem.surfaces.operations.history import HISTORY, RESTORE
from hivemem.surfaces.operations.ingest import INGEST
from hivemem.surfaces.operations.nodes import NODES
from hivemem.surfaces.operations.operation import REST_PREFIX, Access, AnyOperation, Operation, RestRoute
from hivemem.surfaces.operations.orphans import ORPHANS
from hivemem.surfaces.operations.overview import OVERVIEW
from hivemem.surfaces.operations.recall import RECALL
from hivemem.surfaces.operations.relationships import ADD_RELATIONSHIPS, RELATIONSHIPS
from hivemem.surfaces.operations.skills import SKILL
from hivemem.surfaces.operations.store import STORE
from hivemem.surfaces.operations.tabular import TABULAR
from hivemem.surfaces.operations.timeline import TIMELINE, TIMELINE_WRITE
from hivemem.surfaces.operations.tokens import TOKENS
from hivemem.surfaces.operations.update import UPDATE

__all__ = [
    "BY_NAME",
    "OPERATIONS",
    "REST_PREFIX",
    "TOOLS",
    "Access",
    "AnyOperation",
    "Operation",
    "RestRoute",
]

OPERATIONS: tuple[AnyOperation, ...] = (
    # Reading.
    OVERVIEW,
    RECALL,
    NODES,
    FIND_RELATED,
    RELATIONSHIPS,
    ORPHANS,
    TIMELINE,
    LIST_FILES,
    TABULAR,
    CHAT_CONTEXT,
    HISTORY,
    SKILL,
    # Writing.
    STORE,
    UPDATE,
    FORGET,
    ADD_RELATIONSHIPS,
    INGEST,
    UPLOAD_FILE,
    TIMELINE_WRITE,
    TOKENS,
    RESTORE,
)

BY_NAME: Mapping[str, AnyOperation] = {operation.name: operation for operation in OPERATIONS}

TOOLS: Mapping[str, AnyOperation] = {operation.name: operation for operation in OPERATIONS if operation.tool}
"""What MCP offers, by tool name."""
