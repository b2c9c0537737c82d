"""`hivemem reembed`: after a change of the embedding model, or when texts wait for one."""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `hivemem reembed`."""
    parser.add_argument(
        "--progress", action="store_true", help="show a progress bar also when not on a terminal"
    )


def run(arguments: argparse.Namespace) -> int:
    """Embed what lacks vectors of the present model; a server may run meanwhile."""
    from hivemem.service.reembed import Reembed
    from hivemem.surfaces.cli.local import run_locally
    from hivemem.surfaces.cli.progress import progress_bar
    from hivemem.surfaces.readiness import wait_for_models

    async def work(services: Any, principal: Any) -> int:
        await wait_for_models(services)
        reembed = Reembed(store=services.store, executor=services.executor)
        with progress_bar("embedding", "node", forced=arguments.progress) as report:
            return await reembed.run(principal.graph_id, on_progress=report)

    done = run_locally(arguments, work)
    print(json.dumps({"embedded": done}) if arguments.json else f"embedded {done} nodes")
    sys.stdout.flush()
    return 0
