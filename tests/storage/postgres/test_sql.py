"""The SQL itself: every statement stays inside one graph, uses an index, is valid and is used."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.rows import TupleRow

import hivemem.storage.postgres as package
import hivemem.storage.sqlite as sqlite_package
from hivemem.storage.postgres.statements import for_psycopg, migration_names, read_sql
from hivemem.storage.tables import LEFT_BEHIND, TABLES, ColumnKind
from tests.support.postgres import fresh_database

FOLDER = Path(package.__file__).parent
FILES = sorted(path.name for path in FOLDER.glob("*.sql") if path.name != "schema.sql")
_OAUTH = {"oauth_clients", "oauth_codes", "oauth_grants", "oauth_sign_ins", "oauth_tokens"}
_ACCOUNTS = {
    "users",
    "graphs",
    "organizations",
    "memberships",
    "invitations",
    "external_identities",
    "api_keys",
    "deleted_graphs",
    "audit_events",
}
ABOVE_GRAPHS = {*_ACCOUNTS, *_OAUTH, "leases", "rate_limits", "schema_version"}
"""Tables that are read before the graph of a caller is known, or belong to none."""
FILES_ABOVE_GRAPHS = {
    "account_locks.sql",
    "audit.sql",
    "keys.sql",
    "leases.sql",
    "oauth.sql",
    "organizations.sql",
    "rates.sql",
    "users.sql",
}
"""Their statements are about those tables; `purging.sql` has both kinds."""
OF_MANY_GRAPHS = {
    ("purging.sql", "forget_token_reports"): "of a user, in the graphs that are named",
    ("purging.sql", "forget_exports"): "as above",
}
READ_WHOLE = {
    ("users.sql", "users"),
    ("users.sql", "graph_ids"),
    ("keys.sql", "keys"),
    ("organizations.sql", "organizations"),
    # Sign-ins end after ten minutes, so that there are few.
    ("keys.sql", "drop_sign_ins_of_user"),
    ("keys.sql", "drop_sign_ins_to_graph"),
    ("keys.sql", "drop_sign_ins_of_member"),
}
"""Lists of all there is, and rare statements about a short table."""
KEPT_FOR_THE_VERSION_BEFORE = {("graphs", "kind")}
"""Columns that servers name which are not upgraded yet; migration 0006 says more."""
NO_TABLES = {"unnest", "LATERAL", "revisions", "present", "page"}
"""Words after FROM and JOIN that name a function, or a part of the statement itself."""

Database = psycopg.Connection[TupleRow]


def statements_of(file: str) -> dict[str, str]:
    parts = re.split(r"^-- name: (\w+)$", read_sql(file), flags=re.MULTILINE)
    return dict(zip(parts[1::2], (re.sub(r"--.*", "", body).strip() for body in parts[2::2]), strict=True))


STATEMENTS = {(file, name): sql for file in FILES for name, sql in statements_of(file).items()}


def database(*scripts: str) -> Database:
    connection = psycopg.connect(fresh_database(), autocommit=True)
    for script in scripts:
        connection.execute(read_sql(script).encode())
    return connection


@pytest.fixture(scope="module")
def schema() -> Iterator[Database]:
    with database("schema.sql") as connection:
        yield connection


def rows(connection: Database, sql: str) -> list[tuple[Any, ...]]:
    return connection.execute(sql.encode()).fetchall()


_COLUMNS = """
    SELECT relname, attname, format_type(atttypid, atttypmod), attnotnull, collname, attstorage
    FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid
    LEFT JOIN pg_collation ON pg_collation.oid = attcollation
    WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r' AND attnum > 0
    ORDER BY relname, attnum
"""
_INDEXES = """
    SELECT relname, replace(pg_get_indexdef(indexrelid), current_schema(), 'schema')
    FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid
    WHERE relnamespace = current_schema()::regnamespace
    ORDER BY relname
"""
_CONSTRAINTS = """
    SELECT conname, replace(pg_get_constraintdef(oid), current_schema(), 'schema')
    FROM pg_constraint
    WHERE connamespace = current_schema()::regnamespace
    ORDER BY conname
"""
_FUNCTIONS = """
    SELECT proname, provolatile, prosrc FROM pg_proc
    WHERE pronamespace = current_schema()::regnamespace
    ORDER BY proname
"""
_TRIGGERS = """
    SELECT replace(pg_get_triggerdef(oid), current_schema(), 'schema') FROM pg_trigger
    WHERE tgrelid IN (SELECT oid FROM pg_class WHERE relnamespace = current_schema()::regnamespace)
      AND NOT tgisinternal
    ORDER BY tgname
"""
_KEYS = """
    SELECT conrelid::regclass::text, confrelid::regclass::text, contype::text,
           ARRAY(SELECT attname::text FROM unnest(conkey) AS n
                 JOIN pg_attribute ON attrelid = conrelid AND attnum = n),
           ARRAY(SELECT attname::text FROM unnest(confkey) AS n
                 JOIN pg_attribute ON attrelid = confrelid AND attnum = n)
    FROM pg_constraint
    WHERE connamespace = current_schema()::regnamespace AND contype IN ('p', 'f')
"""


def test_the_schema_is_where_the_migrations_lead(schema: Database) -> None:
    with database(*migration_names()) as migrated:
        for query in (_COLUMNS, _INDEXES, _CONSTRAINTS, _FUNCTIONS, _TRIGGERS):
            assert rows(migrated, query) == rows(schema, query) != []


def test_migrations_are_numbered_without_a_gap() -> None:
    numbers = [int(Path(name).name[:4]) for name in migration_names()]
    assert numbers == list(range(1, len(numbers) + 1))


def test_tables_and_columns_are_those_of_every_store(schema: Database) -> None:
    types = {"text": ColumnKind.TEXT, "bigint": ColumnKind.INTEGER, "bytea": ColumnKind.BYTES}
    found: dict[str, dict[str, tuple[ColumnKind, bool]]] = {}
    for table, column, of_type, not_null, collation, _ in rows(schema, _COLUMNS):
        if (table, column) in KEPT_FOR_THE_VERSION_BEFORE:
            continue
        found.setdefault(table, {})[column] = (types[of_type], not not_null)
        assert collation == ("C" if of_type == "text" else None), (table, column)
    assert found.keys() - {table.name for table in TABLES} == set(LEFT_BEHIND)
    assert {name: found[name] for name in found if name not in LEFT_BEHIND} == {
        table.name: {column.name: (column.kind, column.nullable) for column in table.columns}
        for table in TABLES
    }


def test_tables_of_a_graph_are_keyed_by_graph_first_and_refer_to_their_own_graph(schema: Database) -> None:
    primary = {table: columns for table, _, kind, columns, _ in rows(schema, _KEYS) if kind == "p"}
    of_graphs = {table.name for table in TABLES} - (ABOVE_GRAPHS - {"graphs"})
    assert len(of_graphs) > 10
    assert all(primary[table][0] == "graph_id" for table in of_graphs)
    foreign = [row for row in rows(schema, _KEYS) if row[2] == "f" and row[0] not in ABOVE_GRAPHS]
    assert len(foreign) >= 7
    for table, _, _, columns, targets in foreign:
        assert columns[0] == targets[0] == "graph_id", table
    for index, definition in rows(schema, _INDEXES):
        table = re.search(r" ON schema\.(\w+) ", definition)
        assert table is not None
        if table[1] in of_graphs - {"graphs"}:
            assert re.search(r"USING btree \(graph_id\b", definition), index


@pytest.mark.parametrize(("file", "name"), STATEMENTS, ids=lambda part: part)
def test_a_statement_of_graph_tables_names_the_graph_once_for_each_table(file: str, name: str) -> None:
    sql = STATEMENTS[file, name]
    touched = re.findall(r"\b(?:FROM|JOIN|INTO|^UPDATE)\s+(\w+)", sql, re.MULTILINE)
    of_graphs = [table for table in touched if table not in ABOVE_GRAPHS | NO_TABLES]
    if not of_graphs:
        assert file in FILES_ABOVE_GRAPHS or file == "purging.sql"
        return
    assert file not in FILES_ABOVE_GRAPHS
    assert set(of_graphs) <= {table.name for table in TABLES} | set(LEFT_BEHIND)
    one = r"graph_id = ANY \(:graph_ids::" if (file, name) in OF_MANY_GRAPHS else r"graph_id = :graph_id"
    tied = len(re.findall(rf"{one}|USING \(graph_id", sql))
    inserted = len(
        re.findall(r"INSERT INTO \w+ \(\s*graph_id\b[^)]*\)\s*(?:SELECT|VALUES \()\s*:graph_id\b", sql)
    )
    assert tied + inserted >= len(of_graphs), sql


@pytest.mark.parametrize(("file", "name"), STATEMENTS, ids=lambda part: part)
def test_a_statement_is_valid_and_can_read_by_index(schema: Database, file: str, name: str) -> None:
    parameters = sorted(set(re.findall(r"(?<!:):([a-z_]+)", STATEMENTS[file, name])))
    sql = STATEMENTS[file, name]
    for number, parameter in enumerate(parameters, start=1):
        sql = re.sub(rf"(?<!:):{parameter}\b", f"${number}", sql)
    with schema.transaction(force_rollback=True):
        schema.execute(b"SET LOCAL enable_seqscan = off")
        schema.execute(b"SET LOCAL plan_cache_mode = force_generic_plan")
        schema.execute(b"SET LOCAL hivemem.until = 1")
        schema.execute(b"DEALLOCATE ALL")
        schema.execute(f"PREPARE asked AS {sql}".encode(), prepare=False)
        nulls = f"({', '.join(['NULL'] * len(parameters))})" if parameters else ""
        plan = [line for (line,) in rows(schema, f"EXPLAIN EXECUTE asked{nulls}")]
    scans = [line for line in plan if re.search(r"Seq Scan on (?!schema_version)", line)]
    assert bool(scans) <= ((file, name) in READ_WHOLE), plan


@pytest.mark.parametrize("file", FILES)
def test_statements_are_used_and_exist(file: str) -> None:
    source = (FOLDER / file).with_suffix(".py").read_text(encoding="utf-8")
    assert set(re.findall(r'_SQL\["(\w+)"\]', source)) == set(statements_of(file))


def test_modules_and_files_are_those_of_the_other_store() -> None:
    other = Path(sqlite_package.__file__).parent
    shared = {"backup.py", "replacing.py", "readers.py", "writer.py"}
    assert {path.name for path in other.iterdir() if path.suffix in (".py", ".sql")} - shared <= {
        path.name for path in FOLDER.iterdir()
    }


@pytest.mark.parametrize(
    ("statement", "sent"),
    [
        ("SELECT 1", b"SELECT 1"),
        ("-- why\nSELECT a::bigint, :some_name::text[]\n", b"SELECT a::bigint, %(some_name)b::text[]"),
        ("SELECT 5 % 2", b"SELECT 5 %% 2"),
    ],
)
def test_parameters_are_named_in_the_way_of_the_driver(statement: str, sent: bytes) -> None:
    assert for_psycopg(statement) == sent
