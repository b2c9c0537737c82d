"""The table of operations. REST routes, OpenAPI, MCP tools and command-line verbs are made from it."""

from __future__ import annotations

import enum
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, cast

from pydantic import BaseModel

from hivemem.domain.access import Principal
from hivemem.domain.text import JsonObject
from hivemem.domain.writing import IfExists
from hivemem.errors import InvalidRequest
from hivemem.service.nodes import NodesRequest
from hivemem.service.recall import RecallRequest
from hivemem.service.remember import StoreRequest
from hivemem.surfaces.answers import NodesAnswer, OverviewAnswer, RecallAnswer, StoreAnswer
from hivemem.surfaces.inputs import Input, NodesInput, OverviewInput, RecallInput, StoreInput, parse_input
from hivemem.surfaces.presentation import (
    add_warnings,
    nodes_answer,
    overview_answer,
    recall_answer,
    store_answer,
)
from hivemem.surfaces.services import Services

REST_PREFIX = "/api/v1/memory"
NO_ORGANIZATION = "none"

InputT = TypeVar("InputT", bound=Input)


class Access(enum.StrEnum):
    """The right that an operation needs."""

    READ = "read"
    WRITE = "write"


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation(Generic[InputT]):
    """One thing a caller can ask for, on every surface alike.

    Attributes:
        name: MCP tool name.
        summary: What it is for, written for the agent that chooses a tool.
        path: REST path below `REST_PREFIX`.
        verb: Command of the `hivemem` program.
        destructive: Whether it can take memories away.
        idempotent: Whether a second call with the same input changes nothing more.
    """

    name: str
    summary: str
    input: type[InputT]
    output: type[BaseModel]
    access: Access
    destructive: bool = False
    idempotent: bool = False
    method: str
    path: str
    verb: str
    handler: Callable[[Services, Principal, InputT], Awaitable[JsonObject]]

    @property
    def input_names(self) -> frozenset[str]:
        """Names of the properties it reads."""
        return frozenset(self.input.model_fields)

    async def run(
        self,
        services: Services,
        principal: Principal,
        arguments: Mapping[str, object],
        *,
        strict: bool = True,
    ) -> JsonObject:
        """Check rights and input, and answer.

        Args:
            services: The use cases.
            principal: The caller.
            arguments: A JSON object as parsed; `strict` as in `parse_input`.
            strict: False for query strings.

        Raises:
            HivememError: Whatever the input or the use case calls for.
        """
        if self.access is Access.WRITE:
            principal.require_write()
        parsed = parse_input(self.input, arguments, strict=strict)
        answer = await self.handler(services, principal, parsed.value)
        if not parsed.unknown:
            return answer
        names = ", ".join(repr(name[:100]) for name in parsed.unknown[:10])
        return add_warnings(answer, [f"unknown properties were ignored: {names}"])


async def _recall(services: Services, principal: Principal, sent: RecallInput) -> JsonObject:
    result = await services.recall.recall(
        principal,
        RecallRequest(
            query=sent.query,
            max_results=sent.max_results,
            session_id=sent.session_id,
            force_regex=sent.force_regex,
            organization_id=sent.organization_id,
        ),
    )
    return recall_answer(result, services.settings.max_answer_bytes)


async def _store(services: Services, principal: Principal, sent: StoreInput) -> JsonObject:
    result = await services.remember.store(principal, store_request(sent))
    return store_answer(result, services.settings.max_answer_bytes)


async def _overview(services: Services, principal: Principal, sent: OverviewInput) -> JsonObject:
    _require_own_memory(sent.organization_id)
    return overview_answer(await services.overview.overview(principal))


async def _nodes(services: Services, principal: Principal, sent: NodesInput) -> JsonObject:
    _require_own_memory(sent.organization_id)
    request = NodesRequest(
        keys=tuple(sent.keys),
        include_relationships=sent.include_relationships,
        relationship_detail=sent.relationship_detail,
        participant_limit=sent.participant_limit,
        include_enrichment_history=sent.include_enrichment_history,
        include_session_relationships=sent.include_session_relationships,
    )
    result = await services.nodes.nodes(principal, request)
    budget = services.settings.max_answer_bytes
    return nodes_answer(result, request, include_duplicates=sent.include_duplicates, budget=budget)


def store_request(sent: StoreInput) -> StoreRequest:
    """The use case's request for a valid input; an import uses it too."""
    return StoreRequest(
        key=sent.key,
        description=sent.description,
        node_type=sent.node_type,
        data=sent.data,
        relationships=tuple(sent.relationships or ()),
        assets=None if sent.assets is None else tuple(sent.assets),
        search_text=sent.search_text,
        session_id=sent.session_id,
        if_exists=IfExists(sent.if_exists),
    )


def _require_own_memory(organization_id: str | None) -> None:
    """Refuse any organization: a caller can only name one that they belong to."""
    if organization_id not in (None, NO_ORGANIZATION):
        raise InvalidRequest(
            f"/organization_id {organization_id!r} is not one of your organizations; leave it out, or send "
            f"{NO_ORGANIZATION!r} for your own memory alone."
        )


OPERATIONS: tuple[Operation[Any], ...] = (
    Operation(
        name="hm_get_overview",
        summary="Size of the memory, its node types and its best-connected nodes. A first look.",
        input=OverviewInput,
        output=OverviewAnswer,
        access=Access.READ,
        idempotent=True,
        method="GET",
        path="/overview",
        verb="overview",
        handler=_overview,
    ),
    Operation(
        name="hm_recall",
        summary="Search the memory before you answer: by meaning, by word and along relationships. Returns "
        "the relevant memories, best first, with their strongest relationships; an empty list when nothing "
        "is relevant. Long texts come shortened: hm_get_nodes returns the whole record.",
        input=RecallInput,
        output=RecallAnswer,
        access=Access.READ,
        method="POST",
        path="/recall",
        verb="recall",
        handler=_recall,
    ),
    Operation(
        name="hm_get_nodes",
        summary="Full records of nodes by key, with their relationships; unknown keys are in `missing`.",
        input=NodesInput,
        output=NodesAnswer,
        access=Access.READ,
        idempotent=True,
        method="POST",
        path="/nodes",
        verb="nodes",
        handler=_nodes,
    ),
    Operation(
        name="hm_store",
        summary="Remember something: one node with its relationships to other nodes. The same key again "
        "changes the node; nothing else is ever overwritten or merged.",
        input=StoreInput,
        output=StoreAnswer,
        access=Access.WRITE,
        idempotent=True,
        method="POST",
        path="/store",
        verb="store",
        handler=_store,
    ),
)

BY_NAME: Mapping[str, Operation[Any]] = {operation.name: operation for operation in OPERATIONS}


def slim_schema(schema: object) -> Any:
    """A JSON schema without what only costs an agent tokens: titles, null alternatives and null defaults.

    A property that is itself called `title` stays, since its schema is an object and not a text.
    """
    if isinstance(schema, list):
        return [slim_schema(item) for item in cast("list[object]", schema)]
    if not isinstance(schema, dict):
        return schema
    given = cast("dict[str, object]", schema)
    optional = "default" in given and given["default"] is None
    slim = {
        name: slim_schema(value)
        for name, value in given.items()
        if not (name == "title" and isinstance(value, str)) and not (name == "default" and optional)
    }
    choices = slim.get("anyOf")
    if optional and isinstance(choices, list):
        rest = [choice for choice in cast("list[object]", choices) if choice != {"type": "null"}]
        if len(rest) == 1 and isinstance(rest[0], dict):
            del slim["anyOf"]
            slim = {**cast("dict[str, object]", rest[0]), **slim}
    return slim
