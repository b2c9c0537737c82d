"""`hivemem import`: take in an archive, what other programs wrote, or store requests, one a line."""

from __future__ import annotations

import argparse
import gzip
import json
import sys
from collections import Counter
from collections.abc import Generator, Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, cast

from hivemem.errors import HivememError, InvalidInput, NotFound

if TYPE_CHECKING:
    from hivemem.service.importing_formats import Format

_SOME_FAILED = 6
_CHUNK_BATCHES = 4
"""Batches read at once, so that a file of any size needs little memory."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `hivemem import`."""
    parser.add_argument(
        "file",
        metavar="FILE",
        help="an archive, JSON document or folder of notes of `hivemem export`; the file of the MCP server "
        "`memory`; what get_all of mem0 answers; or JSON lines {key, description, ...} as in the API, where "
        ".gz is unpacked and - reads standard input",
    )
    parser.add_argument(
        "--merge",
        action="store_true",
        help="store an archive's nodes and relationships into what is there, without its history",
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
    """Take the file in, and report what was refused, with its place; exit code 6 when a node was."""
    from hivemem.service.importing_formats import Format, recognise

    path = Path(arguments.file).expanduser()
    packed = arguments.file == "-" or path.suffix == ".gz"
    try:
        format = Format.LINES if packed else recognise(path)
        if format is Format.LINES:
            return _import_lines(arguments)
        if format is Format.ARCHIVE and not arguments.merge:
            return _restore(arguments, path)
        return _merge(arguments, path, format)
    except PermissionError as error:
        raise InvalidInput(f"{error.filename} cannot be read: {error.strerror}.") from error


def _restore(arguments: argparse.Namespace, path: Path) -> int:
    """Make the empty memory that of the archive."""
    from hivemem.service.archive import ArchiveReader
    from hivemem.surfaces.cli.local import run_locally
    from hivemem.surfaces.cli.progress import progress_bar

    async def work(services: Any, principal: Any) -> int:
        with (
            closing(ArchiveReader.open(path)) as archive,
            progress_bar("importing", "row", forced=arguments.progress) as report,
        ):

            def moved(done: int) -> None:
                report(done, archive.row_count)

            return await services.importing.restore(principal, archive, moved)

    rows = run_locally(arguments, work, models=False)
    print(json.dumps({"restored": True, "rows": rows}) if arguments.json else f"restored {rows} rows")
    return 0


def _merge(arguments: argparse.Namespace, path: Path, format: Format) -> int:
    """Store what the file says."""
    from hivemem.domain.writing import IfExists
    from hivemem.service.archive import ArchiveReader
    from hivemem.service.exporting_records import GraphRecords
    from hivemem.service.importing_formats import Format, RecordsSource, source_of
    from hivemem.surfaces.cli.local import run_locally
    from hivemem.surfaces.cli.progress import progress_bar
    from hivemem.surfaces.readiness import wait_for_models

    errors: list[dict[str, object]] = []

    def fail(where: str, error: HivememError) -> None:
        errors.append({"where": where, "error": error.code, "detail": error.message})
        if not arguments.json:
            print(f"{where}: {error.message}", file=sys.stderr)

    async def work(services: Any, principal: Any) -> Counter[str]:
        await wait_for_models(services)
        with ExitStack() as stack:
            if format is Format.ARCHIVE:
                archive = stack.enter_context(closing(ArchiveReader.open(path)))
                source: Any = RecordsSource(GraphRecords(archive, principal.graph_id))
            else:
                source = source_of(path, format)
            report = stack.enter_context(progress_bar("importing", "item", forced=arguments.progress))

            def moved(done: int) -> None:
                report(done, done)

            return await services.importing.merge(
                principal,
                source,
                if_exists=IfExists(arguments.if_exists or "update"),
                trusted=format in (Format.ARCHIVE, Format.DOCUMENT, Format.NOTES),
                fail=fail,
                on_done=moved,
            )

    counts = run_locally(arguments, work)
    return _summary(arguments, counts, {"format": format.value}, errors)


def _summary(
    arguments: argparse.Namespace,
    counts: Counter[str],
    told: dict[str, object],
    errors: list[dict[str, object]],
) -> int:
    """Print the numbers, and return the exit code."""
    names = ("created", "updated", "kept", "failed", "relationships", "relationships_refused")
    summary = {name: counts[name] for name in names}
    if arguments.json:
        print(json.dumps({**told, **summary, "errors": errors}, ensure_ascii=False))
    else:
        print(", ".join(f"{number} {name.replace('_', ' ')}" for name, number in summary.items()))
    return _SOME_FAILED if counts["failed"] else 0


def _import_lines(arguments: argparse.Namespace) -> int:
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
    return _summary(arguments, counts, {}, errors)


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
