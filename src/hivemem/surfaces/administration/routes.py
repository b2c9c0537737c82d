"""What the operations of the administration have in common."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from pydantic import BaseModel

from hivemem.domain.access import Principal
from hivemem.domain.text import JsonObject
from hivemem.surfaces.inputs import Input
from hivemem.surfaces.operations.operation import ADMIN_PREFIX, Access, Operation, RestRoute
from hivemem.surfaces.services import Services

InputT = TypeVar("InputT", bound=Input)


def administration(
    verb: str,
    summary: str,
    input: type[InputT],
    output: type[BaseModel],
    route: str,
    handler: Callable[[Services, Principal, InputT], Awaitable[JsonObject]],
    *,
    arguments: tuple[str, ...] = (),
    destructive: bool = False,
) -> Operation[InputT]:
    """An operation of the administration.

    Args:
        verb: Words of the command, such as `org member add`; with underscores also the operation's name.
        summary: What it does.
        input: What is sent.
        output: What is answered.
        route: Method and path below `ADMIN_PREFIX`, such as `POST /users`. A POST that creates answers 201.
        handler: Answers it.
        arguments: Input properties that the command takes by position.
        destructive: Whether it takes something away.
    """
    method, path = route.split()
    creates = verb.rsplit(" ", 1)[-1] in ("add", "create", "invite")
    return Operation(
        name=verb.replace(" ", "_").replace("-", "_"),
        summary=summary,
        input=input,
        output=output,
        access=Access.ADMINISTRATION,
        destructive=destructive,
        idempotent=method == "GET",
        tool=False,
        routes=(RestRoute(method=method, prefix=ADMIN_PREFIX, path=path, status=201 if creates else 200),),
        verb=verb,
        arguments=arguments,
        handler=handler,
    )
