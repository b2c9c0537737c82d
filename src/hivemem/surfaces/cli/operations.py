"""The verbs of the operations: options made from the input of each, its answer printed."""

from __future__ import annotations

import argparse
import sys
from types import UnionType
from typing import TYPE_CHECKING, Any, Literal, Union, get_args, get_origin

from hivemem.errors import InvalidInput

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

    from hivemem.surfaces.operations import AnyOperation

# Shorter than the property, or the other way round.
_OPTION_NAMES = {
    "assets": "--asset",
    "force_regex": "--regex",
    "include_duplicates": "--no-duplicates",
    "include_enrichment_history": "--history",
    "include_relationships": "--no-relationships",
    "include_session_relationships": "--session-relationships",
    "node_type": "--type",
    "organization_id": "--organization",
}
_SHORT_NAMES = {"max_results": "-n"}
_SOME_REFUSED_EXIT_CODE = 6
_LOADS_MODELS = frozenset(("recall", "store", "update", "ingest", "find"))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the verb that `parser` is for; each sets one property of the operation's input."""
    operation = _operation(parser.prog.rsplit(" ", 1)[-1])
    for name, field in operation.input.model_fields.items():
        add_property(parser, name, field, by_position=name in operation.arguments)
    if operation.verb == "store":
        parser.add_argument(
            "--relate",
            nargs=2,
            action="append",
            metavar=("KEY", "WHY"),
            default=[],
            help="relate the node to KEY with the sentence WHY; may be repeated",
        )


def add_property(parser: argparse.ArgumentParser, name: str, field: FieldInfo, *, by_position: bool) -> None:
    """Add the argument or option that sets a property of an input."""
    if by_position:
        _add_argument(parser, name, field)
    else:
        _add_option(parser, name, field)


def run(arguments: argparse.Namespace) -> int:
    """Run the operation in this process and print its answer."""
    from hivemem.surfaces.cli.local import run_locally
    from hivemem.surfaces.cli.printing import print_answer
    from hivemem.surfaces.readiness import wait_for_models

    operation = _operation(arguments.verb)
    given = operation_arguments(arguments, operation.input.model_fields)

    async def work(services: Any, principal: Any) -> Any:
        await wait_for_models(services)
        return await operation.run(services, principal, given)

    answer = run_locally(arguments, work, models=arguments.verb in _LOADS_MODELS)
    print_answer(arguments.verb, answer, as_json=arguments.json)
    # Of relationships, each of which is refused by itself; as `hivemem import` ends when it refused some.
    return _SOME_REFUSED_EXIT_CODE if answer.get("errors") else 0


def operation_arguments(arguments: argparse.Namespace, fields: dict[str, FieldInfo]) -> dict[str, object]:
    """The operation's input from the options that were given.

    Raises:
        InvalidInput: An option that takes JSON has something else.
    """
    given = {name: value for name, value in vars(arguments).items() if name in fields and value is not None}
    for name, value in given.items():
        if _takes_json(fields[name]):
            given[name] = _json(str(value), "--" + name.replace("_", "-"))
        elif isinstance(value, list) and not _is_list(fields[name]):
            given[name] = " ".join(value)
        elif value == "-" and name in ("description", "text"):
            given[name] = _standard_input()
    related = [
        {"to_key": to_key, "relationship": label} for to_key, label in getattr(arguments, "relate", ())
    ]
    if related:
        given["relationships"] = [*given.get("relationships", []), *related]
    return given


def _operation(verb: str) -> AnyOperation:
    # pydantic takes a quarter of a second to load, which `hivemem --help` shall not wait for.
    from hivemem.surfaces.operations import OPERATIONS

    return next(operation for operation in OPERATIONS if operation.verb == verb)


def _add_argument(parser: argparse.ArgumentParser, name: str, field: FieldInfo) -> None:
    help_text = field.description or ""
    metavar = name.removesuffix("s").upper() if _is_list(field) else name.upper()
    if _is_list(field) or name == "query":
        # A question is written without quotes.
        parser.add_argument(name, nargs="+", metavar=metavar, help=_escaped(help_text))
    elif get_origin(_plain_type(field)) is Literal:
        parser.add_argument(name, choices=get_args(_plain_type(field)), help=_escaped(help_text))
    else:
        reads = " - reads standard input." if name in ("description", "text") else ""
        parser.add_argument(name, metavar=metavar, help=_escaped(help_text + reads))


def _add_option(parser: argparse.ArgumentParser, name: str, field: FieldInfo) -> None:
    option = _OPTION_NAMES.get(name, "--" + name.replace("_", "-"))
    names = [_SHORT_NAMES[name], option] if name in _SHORT_NAMES else [option]
    settings: dict[str, Any] = {
        "dest": name,
        "default": argparse.SUPPRESS,
        "help": _escaped(field.description or ""),
    }
    kind = _plain_type(field)
    if kind is bool and field.default is None:
        settings |= {"metavar": "yes|no", "type": _yes_or_no}
    elif kind is bool:
        settings["action"] = "store_false" if field.default is True else "store_true"
        if field.default is True and not option.startswith("--no-"):
            names = ["--no-" + option.removeprefix("--")]
        if field.default is True:
            settings["help"] = "Turn off: " + settings["help"]
    elif _takes_json(field):
        settings["metavar"] = "JSON"
    elif _is_list(field):
        settings |= {"action": "append", "metavar": "VALUE"}
    elif get_origin(kind) is Literal:
        settings["choices"] = get_args(kind)
    else:
        settings |= {
            "metavar": name.rsplit("_", 1)[-1].upper(),
            "type": kind if kind in (int, float) else str,
        }
    parser.add_argument(*names, **settings)


def _yes_or_no(text: str) -> bool:
    if text not in ("yes", "no"):
        raise argparse.ArgumentTypeError(f"{text!r} is neither 'yes' nor 'no'")
    return text == "yes"


def _plain_type(field: FieldInfo) -> Any:
    """The type of a property without `None`."""
    annotation: Any = field.annotation
    if get_origin(annotation) in (Union, UnionType):
        [annotation] = [choice for choice in get_args(annotation) if choice is not type(None)]
    return annotation


def _is_list(field: FieldInfo) -> bool:
    return get_origin(_plain_type(field)) is list


def _takes_json(field: FieldInfo) -> bool:
    kind = _plain_type(field)
    return get_origin(kind) is dict or (get_origin(kind) is list and get_args(kind)[0] is not str)


def _escaped(help_text: str) -> str:
    return help_text.replace("%", "%%")


def _standard_input() -> str:
    """All of standard input as UTF-8, whatever the locale."""
    try:
        return sys.stdin.buffer.read().decode("utf-8")
    except UnicodeDecodeError as error:
        raise InvalidInput(f"standard input is not UTF-8: byte {error.start} cannot be decoded.") from error


def _json(text: str, option: str) -> object:
    from hivemem.surfaces.wire_json import parse_json

    try:
        return parse_json(text)
    except InvalidInput as error:
        raise InvalidInput(f"{option}: {error.message}") from error
