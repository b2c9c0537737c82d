"""`hivemem import`: store many nodes from JSON lines, one node a line."""

from __future__ import annotations

import argparse
import gzip
import json
import sys
from collections import Counter
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, cast

from hivemem.errors import HivememError, InvalidInput, NotFound

_SOME_FAILED = 6
_CHUNK_BATCHES = 4
"""Batches read at once, so that a file of any size needs little memory."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `hivemem import`."""
    parser.add_argument(
        "file",
        metavar="FILE",
        help='JSON lines {"key", "description", ...} as in the API; .gz is unpacked, - reads standard input',
    )
    parser.add_argument(
        "--if-exists",
        choices=("update", "keep", "error"),
        default=None,
        help="what to do with keys that exist, for lines that do not say it themselves",
    )
    parser.add_argument(
        "--progress", action="store_true", help="show a progress bar also when not on a terminal"
    )


def run(arguments: argparse.Namespace) -> int:
    """Store all valid lines, report the others with their numbers; exit code 6 when a line failed."""
    from hivemem.surfaces.cli.local import run_locally
    from hivemem.surfaces.cli.progress import progress_bar
    from hivemem.surfaces.readiness import wait_for_models

    counts: Counter[str] = Counter()
    errors: list[dict[str, object]] = []

    def fail(line: int, error: HivememError) -> None:
        counts["failed"] += 1
        errors.append({"line": line, "error": error.code, "detail": error.message})
        if not arguments.json:
            print(f"line {line}: {error.message}", file=sys.stderr)

    async def work(services: Any, principal: Any) -> None:
        await wait_for_models(services)
        size = services.settings.max_import_batch * _CHUNK_BATCHES
        with (
            _binary(arguments.file) as (stream, total),
            progress_bar("importing", "node", forced=arguments.progress) as report,
        ):
            for chunk in _chunks(enumerate(stream, start=1), size):
                lines, requests = _requests(chunk, arguments.if_exists, fail)
                before = sum(counts.values())

                def moved(done: int, _: int, before: int = before) -> None:
                    report(before + done, max(total or 0, before + done))

                outcomes = await services.remember.store_many(principal, requests, on_progress=moved)
                for line, outcome in zip(lines, outcomes, strict=True):
                    if isinstance(outcome, HivememError):
                        fail(line, outcome)
                        continue
                    counts[outcome.status] += 1
                    counts["relationships"] += len(outcome.created)
                    for refusal in outcome.errors:
                        counts["relationships_refused"] += 1
                        if not arguments.json:
                            print(f"line {line}: {refusal.detail}", file=sys.stderr)

    run_locally(arguments, work)
    names = ("created", "updated", "kept", "failed", "relationships", "relationships_refused")
    summary = {name: counts[name] for name in names}
    if arguments.json:
        print(json.dumps({**summary, "errors": errors}, ensure_ascii=False))
    else:
        print(", ".join(f"{number} {name.replace('_', ' ')}" for name, number in summary.items()))
    return _SOME_FAILED if counts["failed"] else 0


def _requests(
    chunk: list[tuple[int, bytes]], if_exists: str | None, fail: Any
) -> tuple[list[int], list[Any]]:
    """(line numbers, store requests) of the valid lines; the others go to `fail`."""
    from hivemem.surfaces.inputs import parse_input
    from hivemem.surfaces.operations.store import StoreInput, store_request
    from hivemem.surfaces.wire_json import parse_json

    lines: list[int] = []
    requests: list[Any] = []
    for line, raw in chunk:
        try:
            value = parse_json(raw.removeprefix(b"\xef\xbb\xbf"))
            if not isinstance(value, dict):
                raise InvalidInput('/ is not of type "object"; write one JSON object a line.')
            given = cast("dict[str, object]", value)
            parsed = parse_input(StoreInput, {"if_exists": if_exists} | given)
            if parsed.unknown:
                raise InvalidInput(f"/{parsed.unknown[0]} is not a field of a node; see hm_store.")
        except HivememError as error:
            fail(line, error)
            continue
        lines.append(line)
        requests.append(store_request(parsed.value))
    return lines, requests


def _chunks(lines: Iterable[tuple[int, bytes]], size: int) -> Iterator[list[tuple[int, bytes]]]:
    chunk: list[tuple[int, bytes]] = []
    for number, raw in lines:
        if not raw.strip():
            continue
        chunk.append((number, raw))
        if len(chunk) == size:
            yield chunk
            chunk = []
    if chunk:
        yield chunk


@contextmanager
def _binary(name: str) -> Generator[tuple[Iterable[bytes], int | None], None, None]:
    """The lines of a file or of standard input, and their number where it is cheap to know."""
    if name == "-":
        yield sys.stdin.buffer, None
        return
    path = Path(name)
    try:
        if path.suffix == ".gz":
            with gzip.open(path) as packed:
                yield cast("BinaryIO", packed), None
        else:
            with path.open("rb") as counted:
                total = sum(1 for line in counted if line.strip())
            with path.open("rb") as plain:
                yield plain, total
    except (FileNotFoundError, IsADirectoryError) as error:
        raise NotFound(f"{name} cannot be read: {error.strerror}.") from error
    except (gzip.BadGzipFile, EOFError) as error:
        raise InvalidInput(f"{name} is not a whole gzip file: {error}.") from error
