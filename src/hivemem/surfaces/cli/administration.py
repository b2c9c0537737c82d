"""`hivemem user`, `graph`, `org`, `key`, `grant`, `audit` and `purge`: the administration, on this machine.

Sub-commands and options are made from the table of the administration. Works while a server runs.
"""

from __future__ import annotations

import argparse
import json
import sys
from typing import TYPE_CHECKING, Any

from hivemem.errors import InvalidInput

if TYPE_CHECKING:
    from hivemem.surfaces.operations.operation import AnyOperation

_ALIASES = {"create": ["add"], "revoke": ["remove"]}
_SECRETS = frozenset(("password", "current_password"))
_FINDINGS_EXIT_CODE = 1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the sub-commands of the verb that `parser` is for."""
    verb = parser.prog.rsplit(" ", 1)[-1]
    operations = [one for one in _table() if one.verb.split(" ")[0] == verb]
    if [one.verb for one in operations] == [verb]:
        _add_options(parser, operations[0])
        return
    levels: dict[tuple[str, ...], Any] = {(): _level(parser)}
    for operation in operations:
        *groups, action = operation.verb.split(" ")[1:]
        for depth in range(len(groups)):
            path = tuple(groups[: depth + 1])
            if path not in levels:
                group = levels[path[:-1]].add_parser(
                    path[-1], help=f"{' '.join((verb, *path))}: see its help"
                )
                levels[path] = _level(group)
        sentence = operation.summary
        leaf = levels[tuple(groups)].add_parser(
            action,
            aliases=_ALIASES.get(action, []),
            help=sentence[0].lower() + sentence[1:].rstrip("."),
            description=sentence,
            parents=_common(),
        )
        _add_options(leaf, operation)


def run(arguments: argparse.Namespace) -> int:
    """Run one sub-command on the database, and print its answer."""
    from hivemem.surfaces.cli.local import run_locally

    operation: AnyOperation = arguments.operation
    given = _given(arguments, operation)

    async def work(services: Any, principal: Any) -> Any:
        return await operation.run(services, principal, given)

    answer = run_locally(arguments, work, models=False)
    for line in [json.dumps(answer, ensure_ascii=False)] if arguments.json else _lines(answer):
        print(line)
    return _FINDINGS_EXIT_CODE if answer.get("clean") is False else 0


def _table() -> tuple[Any, ...]:
    # pydantic takes a quarter of a second to load, which `hivemem --help` shall not wait for.
    from hivemem.surfaces.administration import ADMINISTRATION

    return ADMINISTRATION


def _common() -> list[argparse.ArgumentParser]:
    from hivemem.surfaces.cli.main import common_options

    return [common_options()]


def _level(parser: argparse.ArgumentParser) -> Any:
    return parser.add_subparsers(
        # Not "action", which is a property of an input.
        metavar="ACTION",
        dest="sub_command",
        required=True,
    )


def _add_options(parser: argparse.ArgumentParser, operation: AnyOperation) -> None:
    from hivemem.surfaces.cli.operations import add_property

    parser.set_defaults(operation=operation)
    for name, field in operation.input.model_fields.items():
        if name not in _SECRETS:
            add_property(parser, name, field, by_position=name in operation.arguments)
    if "password" in operation.input.model_fields:
        # Not as an option: everybody on the machine can read the arguments of a process.
        parser.add_argument(
            "--password-stdin", action="store_true", help="read the password from standard input, one line"
        )
    if operation.verb == "key create":
        parser.add_argument(
            "--read-only", action="store_const", const="member", dest="scope", default=argparse.SUPPRESS,
            help="the same as --scope member",
        )  # fmt: skip


def _given(arguments: argparse.Namespace, operation: AnyOperation) -> dict[str, object]:
    fields = operation.input.model_fields
    given = {name: value for name, value in vars(arguments).items() if name in fields and value is not None}
    if getattr(arguments, "password_stdin", False):
        given["password"] = _line_of_standard_input("password")
    if given.get("secret") == "-":
        given["secret"] = _line_of_standard_input("secret")
    elif "secret" in given and not arguments.json:
        from hivemem.surfaces.cli.visible_secrets import warn_of_argument

        warn_of_argument("the secret of an invitation")
    return given


def _line_of_standard_input(what: str) -> str:
    line = sys.stdin.readline().rstrip("\r\n")
    if not line:
        raise InvalidInput(f"standard input is empty; write the {what} to it, one line.")
    return line


def _lines(answer: dict[str, Any]) -> list[str]:
    """A list as a table, a new key as its secret alone, anything else as indented JSON."""
    from hivemem.surfaces.cli.printing import table

    if "key" in answer:
        return [answer["key"]]
    lists = [value for value in answer.values() if isinstance(value, list)]
    if "count" not in answer or len(lists) != 1:
        return json.dumps(answer, ensure_ascii=False, indent=2).splitlines()
    rows: list[dict[str, Any]] = lists[0]
    if not rows:
        return []
    header = tuple(name.replace("_", " ").upper() for name in rows[0])
    return table([header, *(tuple(_cell(value) for value in row.values()) for row in rows)])


def _cell(value: object) -> str:
    if value is None:
        return ""
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict | bool) else str(value)
