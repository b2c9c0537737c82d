"""The verbs that read and write memories: `recall`, `store`, `nodes`, `overview`."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from hivemem.errors import InvalidInput

_NOT_GIVEN = argparse.SUPPRESS


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the verb that `parser` is for; each is named like the operation's property."""
    verb = parser.prog.rsplit(" ", 1)[-1]
    {"recall": _add_recall, "store": _add_store, "nodes": _add_nodes, "overview": _add_overview}[verb](parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the operation in this process and print its answer."""
    from hivemem.surfaces.cli.local import run_locally
    from hivemem.surfaces.cli.printing import print_answer
    from hivemem.surfaces.operations import OPERATIONS
    from hivemem.surfaces.readiness import wait_for_models

    operation = next(one for one in OPERATIONS if one.verb == arguments.verb)
    given = operation_arguments(arguments, operation.input_names)

    async def work(services: Any, principal: Any) -> Any:
        if arguments.verb in ("recall", "store"):
            await wait_for_models(services)
        return await operation.run(services, principal, given)

    print_answer(arguments.verb, run_locally(arguments, work), as_json=arguments.json)
    return 0


def operation_arguments(arguments: argparse.Namespace, names: frozenset[str]) -> dict[str, object]:
    """The operation's input from the options that were given.

    Raises:
        InvalidInput: An option that takes JSON has something else.
    """
    given = {name: value for name, value in vars(arguments).items() if name in names and value is not None}
    if isinstance(given.get("query"), list):
        given["query"] = " ".join(given["query"])
    if given.get("description") == "-":
        given["description"] = _standard_input()
    for name in ("data", "relationships"):
        if name in given:
            given[name] = _json(str(given[name]), f"--{name}")
    related = [
        {"to_key": to_key, "relationship": label} for to_key, label in getattr(arguments, "relate", ())
    ]
    if related:
        given["relationships"] = [*given.get("relationships", []), *related]
    return given


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


def _add_recall(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("query", nargs="+", metavar="QUERY", help="what to look for, in plain language")
    parser.add_argument("-n", "--max-results", type=int, default=_NOT_GIVEN, help="most results, 1 to 50")
    parser.add_argument(
        "--regex",
        dest="force_regex",
        action="store_true",
        default=_NOT_GIVEN,
        help="match QUERY as a regular expression against keys, descriptions and data",
    )
    _add_session(parser)
    _add_organization(parser)


def _add_store(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("key", metavar="KEY", help="permanent name, such as decision_jwt_auth")
    parser.add_argument("description", metavar="DESCRIPTION", help="the memory; - reads standard input")
    parser.add_argument("--type", dest="node_type", default=_NOT_GIVEN, help="node type")
    parser.add_argument("--data", metavar="JSON", default=_NOT_GIVEN, help="structured details, as an object")
    parser.add_argument(
        "--relate",
        nargs=2,
        action="append",
        metavar=("KEY", "WHY"),
        default=[],
        help="relate the node to KEY with the sentence WHY; may be repeated",
    )
    parser.add_argument(
        "--relationships", metavar="JSON", default=_NOT_GIVEN, help="relationships as in the API, as a list"
    )
    parser.add_argument(
        "--asset", dest="assets", action="append", default=_NOT_GIVEN, help="file id or URL; may be repeated"
    )
    parser.add_argument("--search-text", default=_NOT_GIVEN, help="further text to find the node by")
    parser.add_argument(
        "--if-exists",
        choices=("update", "keep", "error"),
        default=_NOT_GIVEN,
        help="what to do when the key exists",
    )
    _add_session(parser)


def _add_nodes(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("keys", nargs="+", metavar="KEY", help="keys; one alone is printed whole")
    parser.add_argument(
        "--no-relationships",
        dest="include_relationships",
        action="store_false",
        default=_NOT_GIVEN,
        help="print the nodes alone",
    )
    parser.add_argument(
        "--no-duplicates",
        dest="include_duplicates",
        action="store_false",
        default=_NOT_GIVEN,
        help="leave out the list of duplicates",
    )
    parser.add_argument(
        "--relationship-detail",
        choices=("summary", "full"),
        default=_NOT_GIVEN,
        help="summary lists at most five participants of a hyperedge",
    )
    parser.add_argument(
        "--participant-limit", type=int, default=_NOT_GIVEN, help="participants listed, 0 to 100"
    )
    parser.add_argument(
        "--history",
        dest="include_enrichment_history",
        action="store_true",
        default=_NOT_GIVEN,
        help="print earlier versions too",
    )
    parser.add_argument(
        "--session-relationships",
        dest="include_session_relationships",
        action="store_true",
        default=_NOT_GIVEN,
        help="print the hyperedges of conversations too",
    )
    _add_organization(parser)


def _add_overview(parser: argparse.ArgumentParser) -> None:
    _add_organization(parser)


def _add_session(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--session-id", default=_NOT_GIVEN, help="conversation that this belongs to")


def _add_organization(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--organization-id", default=_NOT_GIVEN, help="organization; 'none' for your own")
