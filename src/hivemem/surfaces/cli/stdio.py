"""`hivemem mcp`: an MCP server for one local agent. Works beside a running `hivemem serve`."""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys

from hivemem.errors import HivememError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The verb has the common options only."""
    parser.epilog = "An agent starts this command itself; see its settings for MCP servers over stdio."


def run(arguments: argparse.Namespace) -> int:
    """Serve until standard input ends."""
    from hivemem.surfaces.cli.local import loaded_settings, opened
    from hivemem.surfaces.cli.main import report_error
    from hivemem.surfaces.logs import configure_logging
    from hivemem.surfaces.mcp.stdio import serve_stdio

    loaded = loaded_settings(arguments)
    configure_logging(loaded.settings.log_level)
    # An interrupt has to end the process although a thread blocks in a read; the file stays whole.
    signal.signal(signal.SIGINT, signal.SIG_DFL)

    def report(error: HivememError) -> int:
        code = report_error(error, as_json=arguments.json)
        sys.stderr.flush()
        return code

    asyncio.run(serve_stdio(lambda: opened(loaded, stays=True), report))
    return 0
