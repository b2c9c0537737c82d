"""Warns of secrets on a command line, where every user of the machine can read them."""

from __future__ import annotations

import argparse
import re
import sys

_PASSWORD_IN_URL = re.compile(r"^postgres(ql)?://([^/?#]*:[^/?#@]+@|.*[?&]password=[^&])", re.IGNORECASE)

_INSTEAD = {
    "database_url": "set HIVEMEM_DATABASE_URL, or name a file with HIVEMEM_DATABASE_URL_FILE",
    "source": "leave the password out and set PGPASSWORD, or use the file that PGPASSFILE names",
    "target": "leave the password out and set PGPASSWORD, or use the file that PGPASSFILE names",
}


def warn_of_secrets(arguments: argparse.Namespace, secret_settings: list[str]) -> None:
    """Say on standard error which options hold a secret, and how to give it instead.

    With `--json`, standard error is for programs, and nothing is said.
    """
    if getattr(arguments, "json", False):
        return
    for name, instead in _INSTEAD.items():
        if _PASSWORD_IN_URL.match(str(getattr(arguments, name, None) or "")):
            option = {"source": "from", "target": "to"}.get(name, name.replace("_", "-"))
            _warn(f"--{option} holds a password", instead)
    for override in getattr(arguments, "overrides", None) or ():
        name, _, value = str(override).partition("=")
        name = name.strip().replace("-", "_")
        secret = name in secret_settings and (name != "database_url" or _PASSWORD_IN_URL.match(value))
        if secret and value:
            variable = f"HIVEMEM_{name.upper()}"
            _warn(f"--set {name} holds a secret", f"set {variable}, or name a file with {variable}_FILE")


def warn_of_key(option: str) -> None:
    """Say on standard error that an option holds a key that could come from standard input."""
    _warn(f"{option} holds a key", f"give '{option} -' and the key on standard input")


def warn_of_argument(what: str) -> None:
    """Say on standard error that an argument is a secret that could come from standard input."""
    _warn(f"{what} stands on the command line", "give '-' instead, and the secret on standard input")


def _warn(what: str, instead: str) -> None:
    print(
        f"warning: {what}, which others on this machine can see while the command runs; {instead}.",
        file=sys.stderr,
    )
