"""The parser of one verb, which loads the verb's module only when that verb is used."""

from __future__ import annotations

import argparse
import importlib
from typing import Any, NoReturn

from hivemem.errors import InvalidInput
from hivemem.surfaces.envelope import USAGE_EXIT_CODE


class UsageProblem(InvalidInput):
    """What was typed is no command.

    Attributes:
        usage: How the command is written, for people.
    """

    exit_code = USAGE_EXIT_CODE

    def __init__(self, parser: argparse.ArgumentParser, message: str) -> None:
        super().__init__(f"{message}; `{parser.prog} --help` tells more.")
        self.usage = parser.format_usage()


class VerbParser(argparse.ArgumentParser):
    """Parser of one verb, filled by the verb's module when that verb is used.

    Attributes:
        module: Below `hivemem.surfaces.cli`; None once it is loaded, and for what has none.
    """

    module: str | None = None

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride] - typed by overloads
        """Load the verb's options, then parse.

        Raises:
            UsageProblem: There is something that no option takes. argparse would leave that to the parser
                above, which knows less about it.
        """
        if self.module is not None:
            module = importlib.import_module(f"hivemem.surfaces.cli.{self.module}")
            module.add_arguments(self)
            self.set_defaults(run=module.run)
            self.module = None
        parsed, rest = super().parse_known_args(args, namespace)
        if rest:
            self.error(f"unrecognized arguments: {' '.join(rest)}")
        return parsed, rest

    def error(self, message: str) -> NoReturn:
        """Raise instead of printing: with `--json` errors are objects."""
        raise UsageProblem(self, message)
