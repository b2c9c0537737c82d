"""What an operation is: one thing a caller can ask for, the same on REST, MCP and the command line."""

from __future__ import annotations

import enum
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from pydantic import BaseModel

from hivemem.domain.access import Principal
from hivemem.domain.rates import Bucket
from hivemem.domain.text import JsonObject
from hivemem.surfaces.inputs import Input, parse_input
from hivemem.surfaces.presentation import add_warnings, add_write_target
from hivemem.surfaces.services import Services

REST_PREFIX = "/api/v1/memory"
ADMIN_PREFIX = "/api/v1/admin"

InputT = TypeVar("InputT", bound=Input)


class Access(enum.StrEnum):
    """The right that an operation needs."""

    READ = "read"
    WRITE = "write"
    ADMINISTRATION = "administration"


@dataclass(frozen=True, slots=True, kw_only=True)
class RestRoute:
    """Where REST offers an operation.

    Attributes:
        method: GET and DELETE take the input from the query string, POST from a JSON body.
        path: Below `prefix`. A part in braces is an input property; of a memory's route it takes the rest of
            the path, slashes included. A body that names another value for it is refused.
        prefix: `REST_PREFIX` or `ADMIN_PREFIX`.
        status: Of a successful answer.
        takes_files: Whether the body may carry a file, and be as large as one.
    """

    method: str
    path: str
    status: int = 200
    takes_files: bool = False
    prefix: str = REST_PREFIX

    @property
    def has_body(self) -> bool:
        """Whether the input comes in a body."""
        return self.method == "POST"

    @property
    def pattern(self) -> str:
        """The whole path as the router takes it."""
        # A key may hold slashes, and the server decodes %2F.
        rest = ":path}" if self.prefix == REST_PREFIX else "}"
        return self.prefix + self.path.replace("}", rest)

    @property
    def in_path(self) -> tuple[str, ...]:
        """The input properties that are parts of the path."""
        return tuple(re.findall(r"\{(\w+)\}", self.path))


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation(Generic[InputT]):
    """One thing a caller can ask for.

    Attributes:
        name: Operation id in OpenAPI, and name of the MCP tool.
        summary: What it is for, written for the agent that chooses a tool.
        destructive: Whether it can take memories away.
        idempotent: Whether a second call with the same input changes nothing more.
        reports: Whether it keeps something beside the memory, which every credential may do.
        ingests: Whether it takes in texts or files, which costs more than a write.
        tool: Whether MCP offers it.
        routes: Where REST offers it.
        verb: Command of the `hivemem` program; None when it has none.
        arguments: Input properties that the command takes by position.
    """

    name: str
    summary: str
    input: type[InputT]
    output: type[BaseModel]
    access: Access
    destructive: bool = False
    idempotent: bool = False
    reports: bool = False
    ingests: bool = False
    tool: bool = True
    routes: tuple[RestRoute, ...]
    verb: str | None
    arguments: tuple[str, ...] = ()
    handler: Callable[[Services, Principal, InputT], Awaitable[JsonObject]]

    @property
    def read_only(self) -> bool:
        """Whether nothing is kept of a call."""
        return self.access is Access.READ and not self.reports

    @property
    def bucket(self) -> Bucket:
        """Where the rate limits count it."""
        if self.ingests:
            return Bucket.INGEST
        reads = self.access is Access.READ or (self.access is Access.ADMINISTRATION and self.idempotent)
        return Bucket.READ if reads else Bucket.WRITE

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
        if self.access is Access.ADMINISTRATION:
            principal.require_administration()
        writes = self.access is Access.WRITE
        if writes:
            principal = principal.for_writing()
        parsed = parse_input(self.input, arguments, strict=strict)
        answer = await self.handler(services, principal, parsed.value)
        if writes:
            answer = add_write_target(answer, principal)
        if not parsed.unknown:
            return answer
        names = ", ".join(repr(name[:100]) for name in parsed.unknown[:10])
        return add_warnings(answer, [f"unknown properties were ignored: {names}"])


AnyOperation = Operation[Any]
