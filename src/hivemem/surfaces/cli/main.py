"""The entry point of the `hivemem` command: find the verb, run it, report errors.

Nothing heavy is imported before a verb runs, so that `--version`, `--help` and usage errors answer at once.
Hooks run before every prompt of an agent; for them even argparse is heavy.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence
    from typing import Any

    from hivemem.errors import HivememError

# Verb -> (module below hivemem.surfaces.cli, one line of help).
VERBS: dict[str, tuple[str, str]] = {
    "serve": ("serve", "run the server: REST and MCP over HTTP"),
    "setup": ("setup", "connect an agent: its MCP entry, a skill and hooks"),
    "uninstall": ("setup", "take out of an agent's files what setup added"),
    "doctor": ("doctor", "check server, key, models, database and agents, and say what to do"),
    "health": ("health", "ask whether the server answers, for supervisors: the exit code says it"),
    "hook": ("hook", "what agents run before a prompt and at the end of a turn"),
    "mcp": ("stdio", "speak MCP on standard input and output, for one local agent"),
    "recall": ("operations", "search the memory"),
    "store": ("operations", "remember something"),
    "nodes": ("operations", "print nodes by key, with their relationships"),
    "overview": ("operations", "print sizes, types and the best-connected nodes"),
    "find": ("operations", "walk along the relationships from a node"),
    "relationships": ("operations", "print the relationships of a node"),
    "orphans": ("operations", "print nodes that nothing is related to"),
    "history": ("operations", "print the versions of a node"),
    "update": ("operations", "change fields of a node or an edge"),
    "forget": ("operations", "take a node, an edge or a hyperedge out of the memory"),
    "relate": ("operations", "join nodes that exist"),
    "timeline": ("operations", "print the diary"),
    "note": ("operations", "write a line into the diary"),
    "context": ("operations", "print what a conversation touched"),
    "tokens": ("operations", "report the tokens used in a turn"),
    "upload": ("upload", "remember a file"),
    "files": ("operations", "print the files of the memory"),
    "tabular": ("operations", "look into a spreadsheet or CSV file"),
    "ingest": ("operations", "take a text apart into memories"),
    "import": ("importing", "take in an archive, notes, another program's memory, or JSON lines"),
    "export": ("export", "write the memory to an archive, a document, a graph or notes"),
    "skill": ("skill", "publish, list and remove skills for agents"),
    "reembed": ("reembed", "give vectors of the present model to nodes that lack them"),
    "eval": ("evaluate", "measure the quality of recall on a labelled set"),
    "backup": ("backup", "copy the database to a file, while everything runs"),
    "restore": ("restore", "bring an earlier version of a node back, or a whole backup"),
    "db": ("database", "bring a database to the present schema, or copy it to another"),
    "user": ("administration", "make, list, change and remove users"),
    "graph": ("administration", "make, list, rename, freeze and remove memories of users"),
    "org": ("administration", "organizations: members, roles, invitations, write mode"),
    "key": ("administration", "create, list and revoke API keys"),
    "grant": ("administration", "list and end what programs were let in to do"),
    "audit": ("administration", "read who did what"),
    "purge": ("administration", "remove what is left of removed memories, and prove that nothing is"),
    "config": ("config", "print the effective settings"),
}

_INTERRUPTED = 130


def common_options() -> argparse.ArgumentParser:
    """Options of every command; they stand before the verb or after it."""
    import argparse

    common = argparse.ArgumentParser(add_help=False, argument_default=argparse.SUPPRESS)
    common.add_argument("--data-dir", metavar="DIR", help="folder of the database and the settings file")
    common.add_argument(
        "--database-url", metavar="URL", help="PostgreSQL database instead of the file in DIR"
    )
    common.add_argument("--for-user", metavar="USER", help="work on the memory of this user, by id or name")
    common.add_argument("--for-graph", metavar="ID", help="work on this one of the user's graphs")
    common.add_argument("--json", action="store_true", help="print one JSON object, errors included")
    common.add_argument(
        "--set",
        action="append",
        metavar="NAME=VALUE",
        dest="overrides",
        help="override a setting; `hivemem config show` lists them",
    )
    return common


def build_parser() -> argparse.ArgumentParser:
    """The parser with all verbs, none of them loaded."""
    import hivemem
    from hivemem.surfaces.cli.verb_parser import VerbParser

    common = common_options()
    parents: list[Any] = [common]
    parser = VerbParser(
        prog="hivemem",
        description="A memory graph that AI agents search before they answer.",
        # Else `store --data` is taken for a beginning of --data-dir or --database-url.
        allow_abbrev=False,
        parents=[common],
    )
    parser.add_argument("--version", action="version", version=f"hivemem {hivemem.__version__}")
    verbs = parser.add_subparsers(metavar="COMMAND", dest="verb")
    for verb, (module, help_text) in VERBS.items():
        sentence = help_text[0].upper() + help_text[1:] + "."
        verb_parser = verbs.add_parser(verb, help=help_text, description=sentence, parents=parents)
        verb_parser.module = module
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code.

    0 success, 2 usage or settings, 3 unauthorized, 4 forbidden, 5 not found, 6 invalid or conflict,
    8 unavailable or internal. The result is on standard output; everything else on standard error.
    """
    given = sys.argv[1:] if argv is None else argv
    if given[:1] == ["hook"] and not {"-h", "--help"} & set(given):
        from hivemem.surfaces.cli.hook import run_hook

        return run_hook(given[1:])

    import io

    from hivemem.errors import HivememError, Unavailable

    for stream in (sys.stdout, sys.stderr):
        # Texts are Unicode; a locale that is not must not break the output.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    from hivemem.surfaces.cli.verb_parser import UsageProblem

    parser = build_parser()
    try:
        arguments = parser.parse_args(given)
    except UsageProblem as error:
        as_json = "--json" in given
        if not as_json:
            print(error.usage, end="", file=sys.stderr)
        return report_error(error, as_json=as_json)
    if arguments.verb is None:
        parser.print_help(sys.stderr)
        return 2
    arguments.json = getattr(arguments, "json", False)
    try:
        code = int(arguments.run(arguments))
        if sys.stdout is not None:
            # Now, while a full disk behind it can still be told.
            sys.stdout.flush()
        return code
    except HivememError as error:
        return report_error(error, as_json=arguments.json)
    except KeyboardInterrupt:
        return _INTERRUPTED
    except BrokenPipeError:
        # The reader of our output has seen enough.
        _drop_output()
        return 1
    except OSError as error:
        # Files and databases have errors of their own by now: what is left is mostly the output.
        _drop_output()
        place = error.filename or "standard output"
        return report_error(
            Unavailable(f"{place}: {error.strerror}; what was printed is not whole."), as_json=arguments.json
        )


def _drop_output() -> None:
    """Keep Python from trying to write the rest at its end, and complaining again."""
    import os

    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def report_error(error: HivememError, *, as_json: bool) -> int:
    """Write an error to standard error and return its exit code."""
    import json

    from hivemem.surfaces.envelope import envelope, exit_code
    from hivemem.surfaces.request_id import new_request_id

    code = getattr(error, "exit_code", None) or exit_code(error)
    if as_json:
        body = {**envelope(error, new_request_id()), "exit_code": code}
        print(json.dumps(body, ensure_ascii=False), file=sys.stderr)
    else:
        print(f"error: {error.message}", file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())
