"""`hivemem export`: write the memory to a file, while a server runs or not."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

_BY_ENDING = {
    ".hivemem": "archive",
    ".zip": "archive",
    ".json": "json",
    ".graphml": "graphml",
    "": "markdown",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `hivemem export`."""
    parser.add_argument(
        "file", metavar="FILE", help="NAME.hivemem, NAME.json, NAME.graphml, or a new folder of notes"
    )
    parser.add_argument(
        "--format",
        choices=("archive", "json", "graphml", "markdown"),
        help="default: by the ending of FILE. An archive has everything, and `hivemem import` makes the same "
        "memory of it; the others have what people and programs read",
    )
    parser.add_argument(
        "--without-vectors",
        action="store_true",
        help="leave the vectors out of an archive: smaller, and they are made again after the import",
    )
    parser.add_argument(
        "--progress", action="store_true", help="show a progress bar also when not on a terminal"
    )


def run(arguments: argparse.Namespace) -> int:
    """Write the file, and print how much is in it."""
    from hivemem.errors import InvalidInput
    from hivemem.service.exporting_to_file import ExportFormat
    from hivemem.surfaces.cli.local import run_locally
    from hivemem.surfaces.cli.progress import progress_bar

    path = Path(arguments.file).expanduser()
    named = arguments.format or _BY_ENDING.get(path.suffix.lower())
    if named is None:
        raise InvalidInput(f"{path.name} does not end like a format; add --format.")
    format = ExportFormat(named)

    async def work(services: Any, principal: Any) -> dict[str, int]:
        with progress_bar("exporting", "row", forced=arguments.progress) as report:
            return await services.file_export.write(
                principal.graph_id, path, format, vectors=not arguments.without_vectors, report=report
            )

    counts = run_locally(arguments, work, models=False)
    if arguments.json:
        print(json.dumps({"file": str(path), "format": format.value, **counts}, ensure_ascii=False))
    else:
        told = ", ".join(f"{number} {kind}" for kind, number in counts.items())
        print(f"wrote {path}: {told or 'nothing, since the memory is empty'}")
    return 0
