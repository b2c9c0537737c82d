"""`hivemem db`: bring the schema up to date, and copy a whole database to another."""

from __future__ import annotations

import argparse
import asyncio
import json

OUTDATED = 6
"""Exit code of `--check` when there is something to do: that of a conflict."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the sub-commands."""
    from hivemem.surfaces.cli import copying
    from hivemem.surfaces.cli.main import common_options

    common = common_options()
    actions = parser.add_subparsers(
        metavar="ACTION", dest="action", required=True, parser_class=argparse.ArgumentParser
    )
    migrate = actions.add_parser(
        "migrate",
        help="create the schema or bring it up to date; servers of the version before may go on",
        parents=[common],
    )
    migrate.add_argument(
        "--check",
        action="store_true",
        help=f"change nothing; exit code {OUTDATED} says that the schema is not up to date",
    )
    copying.add_arguments(
        actions.add_parser("copy", help="copy everything to an empty database", parents=[common])
    )


def run(arguments: argparse.Namespace) -> int:
    """Run one sub-command."""
    from hivemem.service.schema import postgres_schema, sqlite_schema
    from hivemem.surfaces.cli import copying
    from hivemem.surfaces.cli.local import loaded_settings, make_data_dir

    if arguments.action == "copy":
        return copying.run(arguments)
    settings = loaded_settings(arguments).settings
    migrates = not arguments.check
    if settings.database_url:
        work = postgres_schema(settings.database_url, migrate=migrates)
    else:
        if migrates:
            make_data_dir(settings.data_dir)
        work = sqlite_schema(
            settings.database_path,
            busy_timeout_seconds=settings.busy_timeout_seconds,
            migrate=migrates,
        )
    report = asyncio.run(work)
    now = report.latest if migrates else report.found
    if arguments.json:
        answer = {
            "database": report.database,
            "found_version": report.found,
            "version": now,
            "latest_version": report.latest,
            "pending" if arguments.check else "applied": [*report.pending],
        }
        print(json.dumps(answer, ensure_ascii=False))
    elif not report.pending:
        print(f"{report.database}: schema version {report.found}, up to date")
    elif arguments.check:
        print(f"{report.database}: schema version {report.found}, lacks {', '.join(report.pending)}")
    else:
        print(f"{report.database}: schema version {report.found} -> {now} ({', '.join(report.pending)})")
    return OUTDATED if arguments.check and report.pending else 0
