"""`hivemem db`: bring the schema up to date, spread it over servers, copy a whole database to another."""

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
    actions = parser.add_subparsers(metavar="ACTION", dest="action", required=True)
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
    distribute = actions.add_parser(
        "distribute",
        help="spread the tables over a Citus cluster, by graph; stop all servers of hivemem first",
        parents=[common],
    )
    distribute.add_argument(
        "--shards",
        type=int,
        default=64,
        metavar="N",
        help="parts of each table, and so servers at most; cannot be changed later (default: 64)",
    )
    distribute.add_argument(
        "--check",
        action="store_true",
        help=f"print the statements and change nothing; exit code {OUTDATED} says that there are some",
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
    if arguments.action == "distribute":
        return _distribute(arguments)
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


def _distribute(arguments: argparse.Namespace) -> int:
    from hivemem.errors import InvalidInput, InvalidRequest
    from hivemem.service.schema import spread_postgres
    from hivemem.surfaces.cli.local import loaded_settings

    settings = loaded_settings(arguments).settings
    if not settings.database_url:
        raise InvalidRequest(
            "the memory is a SQLite file, which is on one machine; move it with `hivemem db copy`, and name "
            "the PostgreSQL database in database_url."
        )
    if not 1 <= arguments.shards <= 1024:
        raise InvalidInput(f"--shards is {arguments.shards}; it must be 1 to 1024.")
    report = asyncio.run(
        spread_postgres(settings.database_url, shards=arguments.shards, change=not arguments.check)
    )
    if arguments.json:
        answer = {
            "database": report.database,
            "done": [*report.done],
            "pending" if arguments.check else "applied": [*report.pending],
            "statements": [*report.statements],
        }
        print(json.dumps(answer, ensure_ascii=False))
    elif not report.pending:
        print(f"{report.database}: all {len(report.done)} tables are distributed by graph_id")
    else:
        print("\n".join(f"{statement};" for statement in report.statements))
        if not arguments.check:
            print(f"{report.database}: {len(report.pending)} tables distributed by graph_id")
    return OUTDATED if arguments.check and report.pending else 0
