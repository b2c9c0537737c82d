"""`hivemem backup`, and the half of `hivemem restore` that undoes it: the SQLite file, whole and checked.

The bytes of uploaded files go into an archive beside the backup.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from hivemem.errors import InvalidRequest


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `hivemem backup`."""
    parser.add_argument("file", metavar="FILE", help="the backup")
    parser.add_argument("--force", action="store_true", help="replace what is there already")
    parser.add_argument(
        "--progress", action="store_true", help="show a progress bar also when not on a terminal"
    )


def run(arguments: argparse.Namespace) -> int:
    """Make a backup while everything runs."""
    from hivemem.service.backup import back_up
    from hivemem.surfaces.cli.local import loaded_settings
    from hivemem.surfaces.cli.progress import progress_bar

    settings = loaded_settings(arguments).settings
    _refuse_postgres(settings.database_url, "pg_dump --format=custom --no-owner --file=FILE --dbname=URL")
    file = Path(arguments.file).expanduser().absolute()
    with (
        progress_bar("backing up", "page", forced=arguments.progress) as report,
        progress_bar("uploaded files", "file", forced=arguments.progress) as report_files,
    ):
        made = back_up(
            settings.database_path,
            file,
            overwrite=arguments.force,
            report=report,
            report_files=report_files,
        )
    files = made.files
    if arguments.json:
        body = {
            "file": str(made.file),
            "size_bytes": made.size_bytes,
            "schema_version": made.schema_version,
            "rows": dict(made.rows),
            "files": {
                "archive": None if files.archive is None else str(files.archive),
                "count": files.count,
                "size_bytes": files.size_bytes,
                "missing": files.missing,
            },
        }
        print(json.dumps(body, ensure_ascii=False))
    else:
        print(
            f"backed up {settings.database_path} to {made.file}: {made.rows.get('nodes', 0):,} nodes, "
            f"{sum(made.rows.values()):,} rows, {made.size_bytes:,} bytes, checked"
        )
        if files.archive is not None:
            print(
                f"uploaded files: {files.count:,} in {files.archive}, {files.size_bytes:,} bytes; keep it "
                "beside the backup"
            )
    if files.missing:
        _warn(
            f"the bytes of {files.missing:,} uploaded files are absent or damaged in "
            f"{settings.data_dir / 'files'}, so that the backup lacks them"
        )
    return 0


def restore_backup(arguments: argparse.Namespace, file: Path) -> int:
    """Put a backup in place while nothing runs."""
    from hivemem.server_lock import ServerLock
    from hivemem.service.backup import archive_of, restore
    from hivemem.surfaces.cli.local import loaded_settings, make_data_dir
    from hivemem.surfaces.cli.progress import progress_bar

    settings = loaded_settings(arguments).settings
    _refuse_postgres(settings.database_url, "pg_restore --no-owner --single-transaction --dbname=URL FILE")
    make_data_dir(settings.data_dir)
    # A server that starts meanwhile is refused.
    lock = ServerLock.acquire(settings.data_dir, "`hivemem restore`")
    try:
        with (
            progress_bar("restoring", "page", forced=arguments.progress) as report,
            progress_bar("uploaded files", "B", forced=arguments.progress) as report_files,
        ):
            done = restore(
                file,
                settings.database_path,
                overwrite=arguments.force,
                report=report,
                report_files=report_files,
            )
    finally:
        lock.release()
    if arguments.json:
        body = {
            "database": str(done.database),
            "schema_version": done.schema_version,
            "rows": dict(done.rows),
            "kept_aside": None if done.kept_aside is None else str(done.kept_aside),
            "files": {"restored": done.files_restored, "missing": done.files_missing},
        }
        print(json.dumps(body, ensure_ascii=False))
    else:
        print(f"restored {done.database} from {arguments.target}: {done.rows['nodes']:,} nodes, checked")
        if done.kept_aside is not None:
            print(f"the database that was there is now {done.kept_aside}")
        if done.files_restored:
            print(f"uploaded files: {done.files_restored:,} put back")
    if done.files_missing:
        _warn(
            f"the bytes of {done.files_missing:,} uploaded files are not in {settings.data_dir / 'files'}; "
            f"put {archive_of(file).name} beside the backup and repeat with --force"
        )
    return 0


def _warn(text: str) -> None:
    print(f"warning: {text}.", file=sys.stderr)


def _refuse_postgres(database_url: str, command: str) -> None:
    """PostgreSQL has tools of its own, which also know its roles, versions and large databases."""
    if database_url:
        raise InvalidRequest(
            f"the memory is in PostgreSQL, whose own tools do this: `{command}`. FILE is the backup, URL the "
            "setting database_url; docs/operating/backup.md has the whole procedure."
        )
