"""The list of tables against the real schemas: nothing is missing from a copy."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest

from hivemem.storage.postgres.connection import Address
from hivemem.storage.postgres.migrate import prepare_database as prepare_postgres
from hivemem.storage.sqlite.migrate import prepare_database
from hivemem.storage.tables import (
    EXPORT_TABLES,
    LEFT_BEHIND,
    PURGED_TABLES,
    TABLES,
    Column,
    ColumnKind,
    Table,
    owned_tables,
)
from tests.support.postgres import fresh_database

KEPT_FOR_THE_VERSION_BEFORE = {("graphs", "kind")}
"""Columns of PostgreSQL that servers name which are not upgraded yet; migration 0006 says more."""
POSTGRES_TYPES = {"text": ColumnKind.TEXT, "bigint": ColumnKind.INTEGER, "bytea": ColumnKind.BYTES}
SQLITE_TYPES = {"TEXT": ColumnKind.TEXT, "INTEGER": ColumnKind.INTEGER, "BLOB": ColumnKind.BYTES}


def by_name(tables: list[Table]) -> list[Table]:
    return sorted(tables, key=lambda table: table.name)


def sqlite_tables(connection: sqlite3.Connection) -> list[Table]:
    found: list[Table] = []
    for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall():
        columns = connection.execute(f"PRAGMA table_info({name})").fetchall()
        key = sorted((position, column) for _, column, *_, position in columns if position)
        found.append(
            Table(
                name=name,
                key=tuple(column for _, column in key),
                columns=tuple(
                    Column(name=column, kind=SQLITE_TYPES[kind], nullable=not not_null)
                    for _, column, kind, not_null, *_ in columns
                ),
            )
        )
    return found


@pytest.fixture
def path(tmp_path: Path) -> Path:
    prepare_database(tmp_path / "memory.db", 1)
    return tmp_path / "memory.db"


def test_the_list_is_the_schema_of_sqlite(path: Path) -> None:
    with contextlib.closing(sqlite3.connect(path)) as connection:
        copied = [table for table in sqlite_tables(connection) if table.name not in LEFT_BEHIND]
    assert by_name(list(TABLES)) == by_name(copied)


def test_what_goes_with_a_graph_is_the_schema_of_sqlite(path: Path) -> None:
    with contextlib.closing(sqlite3.connect(path)) as connection:
        found = {table.name: table for table in sqlite_tables(connection)}
    assert [found[table.name] for table in EXPORT_TABLES] == list(EXPORT_TABLES)
    of_graphs = {name for name, table in found.items() if table.key[0] == "graph_id"}
    assert of_graphs - {"graphs", "deleted_graphs"} == {table.name for table in PURGED_TABLES}


def test_every_table_belongs_to_somebody_or_is_known_not_to() -> None:
    ownerless = {table.name for table in TABLES} - {table.name for table, _ in owned_tables()}
    go_with_their_grant = {"oauth_tokens", "oauth_codes"}
    go_with_their_program = {"oauth_sign_ins"}
    assert ownerless == {
        "organizations",
        "oauth_clients",
        "audit_events",
        *go_with_their_grant,
        *go_with_their_program,
    }


def postgres_tables(url: str) -> list[Table]:
    with psycopg.connect(url) as connection:
        columns = connection.execute(
            "SELECT table_name, column_name, data_type, is_nullable, collation_name"
            " FROM information_schema.columns WHERE table_schema = current_schema() ORDER BY ordinal_position"
        ).fetchall()
        keys = connection.execute(
            "SELECT table_name, column_name FROM information_schema.key_column_usage"
            " JOIN information_schema.table_constraints"
            " USING (constraint_schema, constraint_name, table_name)"
            " WHERE constraint_schema = current_schema() AND constraint_type = 'PRIMARY KEY'"
            " ORDER BY ordinal_position"
        ).fetchall()
    # Another collation would put rows in another order than SQLite does.
    assert {collation for *_, kind, _, collation in columns if kind == "text"} == {"C"}
    return [
        Table(
            name=name,
            key=tuple(column for table, column in keys if table == name),
            columns=tuple(
                Column(name=column, kind=POSTGRES_TYPES[kind], nullable=nullable == "YES")
                for table, column, kind, nullable, _ in columns
                if table == name and (table, column) not in KEPT_FOR_THE_VERSION_BEFORE
            ),
        )
        for name in sorted({table for table, *_ in columns} - LEFT_BEHIND.keys())
    ]


def test_the_list_is_the_schema_of_postgresql() -> None:
    url = fresh_database()
    asyncio.run(prepare_postgres(Address.parse(url)))
    # Columns that came later are at the end there; copies name every column.
    assert [in_order(table) for table in by_name(list(TABLES))] == [*map(in_order, postgres_tables(url))]


def in_order(table: Table) -> Table:
    return replace(table, columns=tuple(sorted(table.columns, key=lambda column: column.name)))


def test_a_row_comes_after_those_that_it_names(path: Path) -> None:
    names = [table.name for table in TABLES]
    with contextlib.closing(sqlite3.connect(path)) as connection:
        named = {
            (name, parent)
            for name in names
            for _, _, parent, *_ in connection.execute(f"PRAGMA foreign_key_list({name})")
        }
    assert len(named) > 5
    assert [pair for pair in named if names.index(pair[1]) >= names.index(pair[0])] == []


@pytest.mark.parametrize("key", [(), ("missing",), ("vector",), ("maybe",)], ids=str)
def test_a_table_that_cannot_be_read_in_order_is_refused(key: tuple[str, ...]) -> None:
    columns = (
        Column(name="id", kind=ColumnKind.TEXT),
        Column(name="vector", kind=ColumnKind.BYTES),
        Column(name="maybe", kind=ColumnKind.TEXT, nullable=True),
    )
    with pytest.raises(ValueError, match="some"):
        Table(name="some", key=key, columns=columns)
