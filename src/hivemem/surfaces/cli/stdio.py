"""`hivemem mcp`: an MCP server for one local agent.

Where a server runs on the data directory, or one is named, messages are passed on to it. Else this process
opens the database itself.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import sys
from collections.abc import Awaitable
from typing import TYPE_CHECKING

from hivemem.errors import HivememError

if TYPE_CHECKING:
    from hivemem.domain.access import Principal
    from hivemem.surfaces.services import Services


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the server's address."""
    parser.add_argument("--url", default=None, help="base URL of a server; else the one that runs here")
    parser.epilog = "An agent starts this command itself; see its settings for MCP servers over stdio."


def run(arguments: argparse.Namespace) -> int:
    """Serve until standard input ends."""
    # Whatever else takes its time, the parent must not be gone before it is asked for.
    parent = os.getppid()
    # Before anything is loaded: whatever prints from here on, libraries included, must not reach the agent.
    wire = os.dup(1)
    os.dup2(2, 1)

    from hivemem.surfaces.cli.local import loaded_settings, local_principal, opened
    from hivemem.surfaces.cli.main import report_error
    from hivemem.surfaces.mcp.relay import Relay, answers
    from hivemem.surfaces.running_server import Target, file_settings, find_server

    loaded = loaded_settings(arguments)
    # An interrupt has to end the process although a thread blocks in a read; the file stays whole.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    folder = str(loaded.settings.data_dir)
    url = arguments.url or loaded.settings.url or None

    def find() -> Target | None:
        return find_server(folder, file_settings(folder), url, loaded.settings.api_key or None)

    target = find()
    # A server that was named holds another memory than this machine: never fall back to that one.
    if target is not None and (url is not None or answers(target)):
        print(f"hivemem: passing messages on to {target.url}, whose settings hold", file=sys.stderr)
        Relay(find, wire, parent).run()
        return 0

    from hivemem.surfaces.logs import configure_logging
    from hivemem.surfaces.mcp.stdio import serve_stdio

    configure_logging(loaded.settings)

    def report(error: HivememError) -> int:
        code = report_error(error, as_json=arguments.json)
        sys.stderr.flush()
        return code

    def caller(services: Services) -> Awaitable[Principal]:
        return local_principal(services, arguments)

    asyncio.run(serve_stdio(lambda: opened(loaded, stays=True), caller, report, wire=wire, parent=parent))
    return 0
