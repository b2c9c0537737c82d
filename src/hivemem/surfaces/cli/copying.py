"""`hivemem db copy`: move a whole memory to another database, and prove that nothing was lost on the way."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import sys
from collections.abc import Callable, Collection
from functools import partial
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hivemem.service.copying import CopyResult
    from hivemem.service.file_bytes import BlobName, CarriedFiles


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `hivemem db copy`."""
    form = "sqlite:///PATH or postgresql://USER@HOST/DATABASE"
    parser.add_argument("--from", metavar="URL", dest="source", required=True, help=f"what to copy: {form}")
    parser.add_argument(
        "--to", metavar="URL", dest="target", required=True, help="where to: an empty database"
    )
    parser.add_argument(
        "--restart", action="store_true", help="throw an unfinished copy away instead of going on with it"
    )
    parser.add_argument(
        "--progress", action="store_true", help="show a progress bar also when not on a terminal"
    )


def run(arguments: argparse.Namespace) -> int:
    """Copy, compare every table, and print both sides."""
    from hivemem.errors import Conflict, InvalidInput
    from hivemem.service.copying import copy_database
    from hivemem.service.database_urls import database_url, open_files, open_source, open_target
    from hivemem.service.file_bytes import carry_files
    from hivemem.surfaces.cli.progress import progress_bar
    from hivemem.surfaces.cli.visible_secrets import warn_of_secrets

    warn_of_secrets(arguments, [])
    source, target = database_url(arguments.source), database_url(arguments.target)
    if source.path is not None and target.path is not None and source.path.resolve() == target.path.resolve():
        # Else our own connection to the source would be taken for another process.
        raise InvalidInput(f"--from and --to are both {source.path}; name another file.")
    with contextlib.ExitStack() as stack:
        bar = stack.enter_context(contextlib.ExitStack())
        moves: dict[str, Callable[[int, int], None]] = {}

        def report(doing: str, done: int, total: int) -> None:
            if doing not in moves:
                bar.close()
                unit = "file" if doing == "files" else "row"
                moves[doing] = bar.enter_context(progress_bar(doing, unit, forced=arguments.progress))
            moves[doing](done, total)

        reading = stack.enter_context(contextlib.closing(open_source(source)))
        writing = stack.enter_context(contextlib.closing(open_target(target)))

        async def carry(names: Collection[BlobName]) -> CarriedFiles:
            async with open_files(source) as here, open_files(target) as there:
                return await carry_files(names, here, there, partial(report, "files"))

        result = copy_database(
            reading,
            writing,
            restart=arguments.restart,
            report=report,
            carry=lambda names: asyncio.run(carry(names)),
        )
    if arguments.json:
        print(json.dumps(_answer(source.shown, target.shown, result), ensure_ascii=False))
    else:
        print("\n".join(_lines(source.shown, target.shown, result)))
    sys.stdout.flush()
    if result.files is not None and result.files.missing:
        print(
            f"warning: the bytes of {len(result.files.missing)} uploaded files are absent or damaged in "
            f"{source.shown} already, so that the copy has them neither.",
            file=sys.stderr,
        )
    if not result.equal:
        different = [table.name for table in result.tables if not table.equal]
        if result.files is not None and result.files.lost:
            different.append("the bytes of uploaded files")
        raise Conflict(
            f"{', '.join(different)} differ, so that {target.shown} cannot be used. The source was changed "
            "while the copy was interrupted, or a disk is at fault; begin again with --restart.",
            code="copies_differ",
        )
    return 0


def _answer(source: str, target: str, result: CopyResult) -> dict[str, Any]:
    return {
        "from": source,
        "to": target,
        "equal": result.equal,
        "copied_rows": result.copied_rows,
        "resumed_rows": result.resumed_rows,
        "copy_seconds": round(result.copy_seconds, 3),
        "compare_seconds": round(result.compare_seconds, 3),
        "files": None
        if result.files is None
        else {
            "count": result.files.count,
            "copied": result.files.copied,
            "missing": len(result.files.missing),
            "lost": len(result.files.lost),
        },
        "tables": [
            {
                "table": table.name,
                "equal": table.equal,
                "source": {"rows": table.source.rows, "sha256": table.source.sha256},
                "target": {"rows": table.target.rows, "sha256": table.target.sha256},
            }
            for table in result.tables
        ],
    }


def _files(result: CopyResult) -> list[str]:
    if result.files is None or not result.files.count:
        return []
    whole = result.files.count - len(result.files.missing) - len(result.files.lost)
    return [f"uploaded files: {whole:,} of {result.files.count:,} whole, {result.files.copied:,} copied now"]


def _lines(source: str, target: str, result: CopyResult) -> list[str]:
    from hivemem.surfaces.cli.printing import table as aligned

    cells = [("TABLE", "ROWS", "SHA-256", "")]
    for table in result.tables:
        cells.append(
            (table.name, f"{table.source.rows:,}", table.source.sha256, "equal" if table.equal else "source")
        )
        if not table.equal:
            cells.append(("", f"{table.target.rows:,}", table.target.sha256, "target"))
    speed = result.copied_rows / max(result.copy_seconds, 1e-9)
    earlier = f" ({result.resumed_rows:,} before)" if result.resumed_rows else ""
    return [
        *aligned(cells),
        *_files(result),
        f"{source} -> {target}: {result.copied_rows:,} rows copied{earlier} in {result.copy_seconds:.1f} s "
        f"({speed:,.0f} rows/s), compared in {result.compare_seconds:.1f} s",
    ]
