"""`hivemem config`: the effective settings, and the reference page of all of them."""

from __future__ import annotations

import argparse
import json


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the sub-commands."""
    from hivemem.surfaces.cli.main import common_options

    common = common_options()
    actions = parser.add_subparsers(metavar="ACTION", dest="action", required=True)
    actions.add_parser("show", help="print every setting, its value and its source", parents=[common])
    actions.add_parser("reference", help="print the reference page in Markdown", parents=[common])


def run(arguments: argparse.Namespace) -> int:
    """Run one sub-command."""
    from hivemem.settings import settings_reference
    from hivemem.surfaces.cli.local import loaded_settings
    from hivemem.surfaces.cli.printing import table

    if arguments.action == "reference":
        print(settings_reference(), end="")
        return 0
    rows = loaded_settings(arguments).rows()
    if arguments.json:
        shown = {name: {"value": value, "source": source} for name, value, source in rows}
        print(json.dumps(shown, ensure_ascii=False))
        return 0
    cells = [
        (name, ", ".join(value) if isinstance(value, list) else str(value), source)
        for name, value, source in rows
    ]
    print("\n".join(table([("SETTING", "VALUE", "SOURCE"), *cells])))
    return 0
