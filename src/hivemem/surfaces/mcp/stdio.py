"""MCP over standard input and output, for one local agent.

Standard output carries protocol messages and nothing else: the caller has moved it to a descriptor of its own
before anything that could print was loaded. It is UTF-8 whatever the locale says.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable

from mcp.server.stdio import stdio_server

from hivemem.domain.access import Principal
from hivemem.errors import HivememError
from hivemem.surfaces.mcp.server import Context, build_server
from hivemem.surfaces.operations import AnyOperation
from hivemem.surfaces.readiness import wait_for_models
from hivemem.surfaces.services import Services

_PARENT_POLL_SECONDS = 1.0
_MODELS_WAIT_SECONDS = 10.0


async def serve_stdio(
    open_services: Callable[[], Awaitable[Services]],
    caller: Callable[[Services], Awaitable[Principal]],
    report: Callable[[HivememError], int],
    *,
    wire: int,
    parent: int,
) -> None:
    """Serve until standard input ends, or until the program that started this one is gone.

    Args:
        open_services: Opens the database.
        caller: Says whose memory it is; asked for each call.
        report: Tells of services that cannot be opened, and returns the exit code for it.
        wire: Descriptor of the real standard output.
        parent: Process whose end is ours too.
    """
    # What was printed so far goes to the diagnostics; from here on the transport guards the output itself.
    sys.stdout.flush()
    os.dup2(wire, 1)
    async with stdio_server() as (reading, writing):
        try:
            services = await open_services()
        except HivememError as error:
            # A thread blocks in a read of standard input that nothing can interrupt.
            os._exit(report(error))
        watch = asyncio.create_task(_exit_when_orphaned(parent, services))
        try:

            async def local(_: Context, __: AnyOperation) -> Principal:
                # Hosts start this process when a conversation begins: its first recall, a moment later,
                # should not be the one that searches by words alone.
                await wait_for_models(services, max_seconds=_MODELS_WAIT_SECONDS)
                # Asked each time: memberships change while a conversation goes on.
                return await caller(services)

            server = build_server(services, local)
            await server.run(reading, writing, server.create_initialization_options())
        finally:
            watch.cancel()
            await services.close()


async def _exit_when_orphaned(parent: int, services: Services) -> None:
    """End the process when its parent died without closing our input, as a killed host does."""
    while os.getppid() == parent:
        await asyncio.sleep(_PARENT_POLL_SECONDS)
    await services.close()
    os._exit(0)  # a thread still blocks in a read of standard input
