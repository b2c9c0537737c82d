"""The SQL of this package: named statements in the .sql file beside the module that runs them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib import resources
from types import MappingProxyType

_FOLDER = resources.files("hivemem.storage.postgres")
_NAME = re.compile(r"^-- name: (\w+)$", re.MULTILINE)
_PARAMETER = re.compile(r"(?<!:):([a-z_]+)")
_COMMENT = re.compile(r"^--.*\n", re.MULTILINE)


def named_statements(file_name: str) -> Mapping[str, bytes]:
    """The statements of a file in the form that psycopg takes, by the name in the line above each.

    The files name parameters as `:key`, like those of the other stores.
    """
    parts = _NAME.split(read_sql(file_name))
    statements = {name: for_psycopg(body) for name, body in zip(parts[1::2], parts[2::2], strict=True)}
    return MappingProxyType(statements)


def for_psycopg(statement: str) -> bytes:
    """A statement with psycopg's kind of parameters, sent in binary form, and without comments."""
    bare = _COMMENT.sub("", statement).strip().replace("%", "%%")
    return _PARAMETER.sub(r"%(\1)b", bare).encode()


def read_sql(file_name: str) -> str:
    """The text of an .sql file of this package, such as `migrations/0001_initial.sql`."""
    return _FOLDER.joinpath(file_name).read_text(encoding="utf-8")


def migration_names() -> list[str]:
    """File names of all migrations, first one first; the n-th leads to schema version n."""
    folder = _FOLDER.joinpath("migrations")
    return sorted(f"migrations/{file.name}" for file in folder.iterdir() if file.name.endswith(".sql"))
