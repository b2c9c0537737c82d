"""`hivemem restore`: an earlier version of one memory, or a whole database from its backup.

Which of the two is told by the target: a path is a backup, anything else the key of a node.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING

from hivemem.errors import InvalidInput, NotFound
from hivemem.surfaces.envelope import USAGE_EXIT_CODE

if TYPE_CHECKING:
    from hivemem.domain.access import Principal
    from hivemem.domain.text import JsonObject
    from hivemem.surfaces.services import Services

_BACKUP_ENDINGS = (".sqlite3", ".sqlite", ".db", ".backup", ".bak")
_PATH_BEGINNINGS = ("/", "./", "../", "~")


class RestoreUsage(InvalidInput):
    """Options that do not go together; the command ends like on a usage error."""

    exit_code = USAGE_EXIT_CODE


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the target, and the options of either kind of it."""
    parser.usage = (
        "%(prog)s KEY [--version N] [options]\n       %(prog)s FILE [--force] [--progress] [options]"
    )
    parser.description = (
        "Restore one memory or all of them. KEY is a node: its state before the last change is stored again, "
        "and a forgotten node comes back with its relationships. FILE is a backup made by `hivemem backup`: "
        "it becomes the database, while no server runs. A target is taken for a FILE when a file of that "
        "name exists, when it begins with /, ./, ../ or ~, or when it ends in "
        f"{', '.join(_BACKUP_ENDINGS)}; --as decides otherwise."
    )
    parser.add_argument("target", metavar="KEY|FILE", help="a node's key, or the path of a backup")
    parser.add_argument(
        "--as",
        dest="kind",
        choices=("key", "file"),
        help="take the target for a key or a file, however it looks",
    )
    parser.add_argument(
        "--version",
        dest="node_version",
        type=int,
        metavar="N",
        help="KEY: the version to restore, as `hivemem history KEY` lists them",
    )
    parser.add_argument("--force", action="store_true", help="FILE: replace the database that is there")
    parser.add_argument(
        "--progress", action="store_true", help="FILE: show a progress bar also when not on a terminal"
    )


def run(arguments: argparse.Namespace) -> int:
    """Restore what the target names.

    Raises:
        RestoreUsage: An option of the other kind of target.
        HivememError: Whatever stands in the way.
    """
    target: str = arguments.target
    if (arguments.kind or kind_of(target)) == "file":
        if arguments.node_version is not None:
            raise RestoreUsage(
                f"--version belongs to a key, and {target!r} is taken for a file; add --as key if it is one."
            )
        return _restore_backup(arguments)
    for option, given in (("--force", arguments.force), ("--progress", arguments.progress)):
        if given:
            raise RestoreUsage(
                f"{option} belongs to a backup, and {target!r} is taken for a key, since there is no such "
                "file; check the path, or add --as file."
            )
    return _restore_node(arguments)


def kind_of(target: str) -> str:
    """`file` for what is or looks like the path of a backup, else `key`.

    Example:
        >>> kind_of("decision_jwt_auth")
        'key'
        >>> kind_of("backups/monday.sqlite3")
        'file'
    """
    looks_like_path = target.startswith(_PATH_BEGINNINGS) or target.lower().endswith(_BACKUP_ENDINGS)
    # isfile, since Path.is_file raises for what cannot be a file name at all.
    return "file" if looks_like_path or os.path.isfile(target) else "key"  # noqa: PTH113


def _restore_backup(arguments: argparse.Namespace) -> int:
    from hivemem.surfaces.cli.backup import restore_backup

    return restore_backup(arguments, Path(arguments.target).expanduser().absolute())


def _restore_node(arguments: argparse.Namespace) -> int:
    from hivemem.surfaces.cli.local import run_locally
    from hivemem.surfaces.cli.printing import print_answer
    from hivemem.surfaces.operations import BY_NAME
    from hivemem.surfaces.readiness import wait_for_models

    target: str = arguments.target

    async def work(services: Services, principal: Principal) -> JsonObject:
        await wait_for_models(services)
        sent = {"key": target, "version": arguments.node_version}
        return await BY_NAME["restore_node"].run(services, principal, sent)

    try:
        answer = run_locally(arguments, work)
    except NotFound as error:
        if arguments.kind == "key" or arguments.node_version is not None:
            raise
        raise NotFound(f"{error.message} If a backup is meant: there is no file {target!r} here.") from error
    print_answer("restore", answer, as_json=arguments.json)
    return 0
