"""`hivemem setup` and `hivemem uninstall`: connect an agent, and take everything out again."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hivemem.surfaces.setup.agents import Scope, Wishes
    from hivemem.surfaces.setup.plan import Plan

_AGENTS = ("claude", "codex", "cursor", "kimi")
_INCOMPLETE = 6


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the verb that `parser` is for."""
    removing = parser.prog.endswith("uninstall")
    if removing:
        parser.add_argument("agent", nargs="?", choices=_AGENTS, help="one agent; all when left out")
    else:
        parser.add_argument("agent", choices=_AGENTS, help="the agent to connect")
    parser.add_argument(
        "--scope",
        choices=("user", "project"),
        default=None if removing else "user",
        help="the user's files, or those of the project in the current folder",
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="print what would change as a diff, write nothing"
    )
    parser.add_argument(
        "--force", action="store_true", help="also replace or remove what was changed by hand"
    )
    if not removing:
        parser.add_argument("--url", default=None, help="base URL of the server; else the one that runs here")
        parser.add_argument(
            "--key",
            default="env",
            help="API key to write down; '-' reads it from standard input; 'env', the default, refers to the "
            "variable HM_API_KEY",
        )


def run(arguments: argparse.Namespace) -> int:
    """Connect or disconnect an agent."""
    if arguments.verb == "uninstall":
        return _uninstall(arguments)
    from hivemem.surfaces.setup.agents import notes
    from hivemem.surfaces.setup.changes import plan_setup

    wishes = _wishes(arguments)
    plan = plan_setup(wishes, force=arguments.force)
    if not arguments.dry_run and plan.files:
        plan.carry_out(removing=False)
    hints = notes(wishes) if plan.files else []
    _report(plan, arguments, secret=wishes.key, hints=hints)
    return 0


def _uninstall(arguments: argparse.Namespace) -> int:
    from hivemem.surfaces.setup.changes import plan_uninstall

    project = Path.cwd() if arguments.scope == "project" else None
    plan = plan_uninstall(
        arguments.agent, project=project, user_only=arguments.scope == "user", force=arguments.force
    )
    if not arguments.dry_run:
        plan.carry_out(removing=True)
    if not plan.said and not plan.kept:
        plan.said.append("setup has added nothing that could be taken out")
    _report(plan, arguments)
    return _INCOMPLETE if plan.kept else 0


def _wishes(arguments: argparse.Namespace) -> Wishes:
    from hivemem.surfaces.cli.local import loaded_settings
    from hivemem.surfaces.running_server import find_server
    from hivemem.surfaces.setup.agents import Scope, Wishes

    loaded = loaded_settings(arguments)
    settings = loaded.settings
    scope: Scope = Scope(arguments.scope)
    running = find_server(str(settings.data_dir), {}, arguments.url or settings.url or None)
    url = running.url if running else f"http://127.0.0.1:{settings.port}"
    own_folder = loaded.sources["data_dir"] != "default"
    return Wishes(
        agent=arguments.agent,
        scope=scope,
        url=_base_url(url),
        key=_key(arguments),
        remote=arguments.url is not None,
        data_dir=str(settings.data_dir) if own_folder else None,
        project=Path.cwd() if scope is Scope.PROJECT else None,
    )


def _base_url(url: str) -> str:
    from urllib.parse import urlsplit

    from hivemem.surfaces.cli.local import SettingsProblem

    base = url.strip().rstrip("/").removesuffix("/mcp")
    try:
        parts = urlsplit(base)
        good = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.username is None
        good = good and (parts.port or 1) > 0 and not parts.query and not parts.fragment
    except ValueError:
        good = False
    if not good or any(character.isspace() for character in base):
        raise SettingsProblem(
            f"--url {url!r} is not a base URL; write http://host:port, without a path of ours."
        )
    return base


def _key(arguments: argparse.Namespace) -> str | None:
    from hivemem.surfaces.cli.local import SettingsProblem
    from hivemem.surfaces.cli.visible_secrets import warn_of_key

    given: str = arguments.key
    if given == "env":
        return None
    if given == "-":
        given = sys.stdin.readline().strip()
    elif not arguments.json:
        warn_of_key("--key")
    if not given.isascii() or not given.isprintable() or " " in given or len(given) < 8:
        raise SettingsProblem("--key is not a key; give the one that `hivemem key create` printed, or 'env'.")
    return given


def _report(
    plan: Plan, arguments: argparse.Namespace, *, secret: str | None = None, hints: list[str] | None = None
) -> None:
    if arguments.json:
        body = {
            "dry_run": arguments.dry_run,
            "parts": plan.said,
            "kept": plan.kept,
            "files": [str(change.path) for change in plan.files],
            "next": hints or [],
            **({"diff": [change.diff(secret) for change in plan.files]} if arguments.dry_run else {}),
        }
        print(json.dumps(body, ensure_ascii=False))
        return
    if arguments.dry_run:
        for change in plan.files:
            print(change.diff(secret), end="")
        print("nothing was written (--dry-run)", file=sys.stderr)
    else:
        print("\n".join(plan.said))
        for hint in hints or ():
            print(f"next: {hint}")
    for line in plan.kept:
        print(f"kept: {line}", file=sys.stderr)
