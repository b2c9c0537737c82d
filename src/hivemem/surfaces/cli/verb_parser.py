"""The parser of one verb, which loads the verb's module only when that verb is used."""

from __future__ import annotations

import argparse
import importlib
from typing import Any


class VerbParser(argparse.ArgumentParser):
    """Parser of one verb, filled by the verb's module when that verb is used.

    Attributes:
        module: Below `hivemem.surfaces.cli`; None once it is loaded.
    """

    module: str | None = None

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride] - typed by overloads
        """Load the verb's options, then parse."""
        if self.module is not None:
            module = importlib.import_module(f"hivemem.surfaces.cli.{self.module}")
            module.add_arguments(self)
            self.set_defaults(run=module.run)
            self.module = None
        return super().parse_known_args(args, namespace)
