"""The SQL of this package: named statements in the .sql file beside the module that runs them."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator, Mapping
from importlib import resources
from types import MappingProxyType

_FOLDER = resources.files("hivemem.storage.sqlite")
_NAME = re.compile(r"^-- name: (\w+)$", re.MULTILINE)


def named_statements(file_name: str) -> Mapping[str, str]:
    """The statements of a file, by the name in the `-- name:` line above each."""
    parts = _NAME.split(read_sql(file_name))
    return MappingProxyType(dict(zip(parts[1::2], (body.strip() for body in parts[2::2]), strict=True)))


def read_sql(file_name: str) -> str:
    """The text of an .sql file of this package, such as `migrations/0001_initial.sql`."""
    return _FOLDER.joinpath(file_name).read_text(encoding="utf-8")


def migration_names() -> list[str]:
    """File names of all migrations, first one first; the n-th leads to schema version n."""
    folder = _FOLDER.joinpath("migrations")
    return sorted(f"migrations/{file.name}" for file in folder.iterdir() if file.name.endswith(".sql"))


def split_script(script: str) -> Iterator[str]:
    """The single statements of a script, so that it can run inside a transaction.

    (`executescript` of the driver commits before it starts.)
    """
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
    if re.sub(r"--.*", "", statement).strip():
        raise ValueError(f"the script ends inside a statement: {statement!r}")
