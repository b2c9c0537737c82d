"""`hivemem upload PATH`: remember a file."""

from __future__ import annotations

import argparse
import base64
from pathlib import Path
from typing import Any

from hivemem.errors import InvalidInput


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the verb."""
    parser.add_argument("path", metavar="PATH", help="the file")
    parser.add_argument("--description", help="what the file is; left out: a summary of its text")
    parser.add_argument("--node-key", metavar="KEY", help="node that it belongs to")
    parser.add_argument("--filename", metavar="NAME", help="name to keep it under; left out: that of PATH")


def run(arguments: argparse.Namespace) -> int:
    """Upload the file and print the answer.

    Raises:
        InvalidInput: The path cannot be read.
    """
    from hivemem.surfaces.cli.local import run_locally
    from hivemem.surfaces.cli.printing import print_answer
    from hivemem.surfaces.operations import BY_NAME
    from hivemem.surfaces.readiness import wait_for_models

    path = Path(arguments.path)
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InvalidInput(f"cannot read {path}: {error.strerror or error}.") from error
    given = {
        "filename": arguments.filename or path.name,
        "content_base64": base64.b64encode(data).decode(),
        "description": arguments.description,
        "node_key": arguments.node_key,
    }

    async def work(services: Any, principal: Any) -> Any:
        await wait_for_models(services)
        return await BY_NAME["hm_upload_file"].run(services, principal, given)

    print_answer("upload", run_locally(arguments, work, models=True), as_json=arguments.json)
    return 0
