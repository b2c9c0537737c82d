"""`hivemem health`: one request, and an exit code for supervisors and container engines.

It runs every few seconds for as long as a server does, so it imports what the hooks import and no more.
`hivemem doctor` is for people: it looks at everything, and says what to do.
"""

from __future__ import annotations

import argparse
import json
import time

from hivemem.errors import Unavailable
from hivemem.surfaces.running_server import NoAnswer, Target, ask, data_folder, file_settings, find_server

_SECONDS = 3.0
_ALIVE = "/health"
_READY = "/api/v1/memory/ready"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `hivemem health`."""
    parser.add_argument("--url", default=None, help="base URL of the server; else the one that runs here")
    parser.add_argument(
        "--ready", action="store_true", help="ask whether the models are loaded too, not only for an answer"
    )


def run(arguments: argparse.Namespace) -> int:
    """Ask the server; exit code 0 when it is well.

    Raises:
        Unavailable: No server runs, it does not answer within three seconds, or it is not ready.
    """
    folder = data_folder(getattr(arguments, "data_dir", None))
    found = find_server(folder, file_settings(folder), arguments.url)
    if found is None:
        raise Unavailable(
            f"no server runs on {folder}; start one with `hivemem serve`, or name one with --url."
        )
    # Both routes answer without a credential, which need not travel then.
    target = Target(found.url, "")
    try:
        status, _, body = ask(
            target, "GET", _READY if arguments.ready else _ALIVE, until=time.monotonic() + _SECONDS
        )
    except NoAnswer as error:
        raise Unavailable(f"the server does not answer: {error}.") from error
    answer = _object(body)
    if status != 200 or "status" not in answer:
        raise Unavailable(f"{target.url} answers {status}: {answer.get('detail', 'this is not hivemem')}")
    print(json.dumps({"url": target.url, **answer}) if arguments.json else answer["status"])
    return 0


def _object(body: bytes) -> dict[str, object]:
    try:
        answer: object = json.loads(body)
    except ValueError:
        return {}
    return {str(name): value for name, value in answer.items()} if isinstance(answer, dict) else {}
