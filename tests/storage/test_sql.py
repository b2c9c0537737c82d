"""The SQL itself: every statement stays inside one graph, uses an index, is valid and is used."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

import hivemem.storage.sqlite as package
from hivemem.storage.sqlite.statements import (
    migration_names,
    named_statements,
    read_sql,
    split_script,
)

FOLDER = Path(package.__file__).parent
FILES = sorted(path.name for path in FOLDER.glob("*.sql") if path.name != "schema.sql")
STATEMENTS = {(file, name): sql for file in FILES for name, sql in named_statements(file).items()}
_OAUTH = {"oauth_clients", "oauth_codes", "oauth_grants", "oauth_sign_ins", "oauth_tokens"}
_ACCOUNTS = {
    "api_keys",
    "audit_events",
    "deleted_graphs",
    "external_identities",
    "graphs",
    "invitations",
    "memberships",
    "organizations",
    "users",
}
ABOVE_GRAPHS = {*_ACCOUNTS, "leases", *_OAUTH}
"""Tables that are read before the graph of a caller is known."""
FILES_ABOVE_GRAPHS = {
    "audit.sql",
    "keys.sql",
    "leases.sql",
    "oauth.sql",
    "organizations.sql",
    "purging.sql",
    "users.sql",
}
READ_WHOLE = {
    ("keys.sql", "drop_sign_ins_of_member"),
    ("keys.sql", "drop_sign_ins_of_user"),
    ("keys.sql", "drop_sign_ins_to_graph"),
    ("keys.sql", "keys"),
    ("organizations.sql", "end_write_modes"),
    ("organizations.sql", "organizations"),
    ("purging.sql", "since"),
    ("purging.sql", "unfinished"),
    ("users.sql", "graph_ids"),
    ("users.sql", "other_operator"),
    ("users.sql", "users"),
}
"""Lists of all there is, and rare statements on short tables: accounts, and sign-ins under way."""


def database(*scripts: str) -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    for script in scripts:
        for statement in split_script(read_sql(script)):
            connection.execute(statement)
    return connection


@pytest.fixture
def schema() -> Iterator[sqlite3.Connection]:
    connection = database("schema.sql")
    yield connection
    connection.close()


def tables(connection: sqlite3.Connection) -> list[str]:
    return [name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]


def test_the_schema_is_where_the_migrations_lead(schema: sqlite3.Connection) -> None:
    def objects(connection: sqlite3.Connection) -> list[tuple[str, ...]]:
        rows = connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY type, name")
        return [(*names, " ".join((sql or "").split())) for *names, sql in rows]

    migrated = database(*migration_names())
    assert objects(migrated) == objects(schema)
    migrated.close()


def test_migrations_are_numbered_without_a_gap() -> None:
    numbers = [int(Path(name).name[:4]) for name in migration_names()]
    assert numbers == list(range(1, len(numbers) + 1))


def test_tables_of_a_graph_are_keyed_by_graph_first_and_strict(schema: sqlite3.Connection) -> None:
    strict = {name for _, name, _, _, _, strict in schema.execute("PRAGMA table_list") if strict}
    of_graphs = set(tables(schema)) - (ABOVE_GRAPHS - {"graphs", "deleted_graphs"})
    assert len(of_graphs) > 10
    for table in of_graphs:
        columns = schema.execute(f"PRAGMA table_info({table})").fetchall()
        assert [name for _, name, _, _, _, position in columns if position == 1] == ["graph_id"], table
        for _, index, *_ in schema.execute(f"PRAGMA index_list({table})"):
            first = schema.execute(f"PRAGMA index_info({index})").fetchone()[2]
            assert first == "graph_id" or table in ABOVE_GRAPHS, index
    assert set(tables(schema)) <= strict


@pytest.mark.parametrize(("file", "name"), STATEMENTS, ids=lambda part: part)
def test_a_statement_of_graph_tables_names_the_graph_once_for_each_table(file: str, name: str) -> None:
    sql = re.sub(r"--.*", "", STATEMENTS[file, name])
    touched = re.findall(r"\b(?:FROM|JOIN|INTO|^UPDATE)\s+(\w+)", sql, re.MULTILINE)
    of_graphs = [table for table in touched if table not in ABOVE_GRAPHS | {"json_each"}]
    if not of_graphs:
        assert file in FILES_ABOVE_GRAPHS
        return
    tied = len(re.findall(r"graph_id = :graph_id|USING \(graph_id|graph_id = nodes\.graph_id", sql))
    inserted = len(re.findall(r"INSERT INTO \w+ \(\s*graph_id\b", sql))
    assert tied + inserted >= len(of_graphs), sql


@pytest.mark.parametrize(("file", "name"), STATEMENTS, ids=lambda part: part)
def test_a_statement_is_valid_and_reads_by_index(schema: sqlite3.Connection, file: str, name: str) -> None:
    sql = STATEMENTS[file, name]
    arguments = dict.fromkeys(re.findall(r":(\w+)", re.sub(r"--.*", "", sql)), "1")
    plan = [detail for *_, detail in schema.execute(f"EXPLAIN QUERY PLAN {sql}", arguments)]
    scans = [line for line in plan if re.match(r"SCAN (?!json_each|wanted|word|term|CONSTANT)", line)]
    assert bool(scans) == ((file, name) in READ_WHOLE), plan


@pytest.mark.parametrize("file", FILES)
def test_statements_are_used_and_exist(file: str) -> None:
    source = (FOLDER / file).with_suffix(".py").read_text(encoding="utf-8")
    assert set(re.findall(r'_SQL\["(\w+)"\]', source)) == set(named_statements(file))


def test_pages_of_changes_are_read_in_index_order(schema: sqlite3.Connection) -> None:
    """A sort would read the whole rest of the graph for every page."""
    for name in ("revisions_of_changes", "changed_nodes", "changed_vectors", "changed_edges", "removals"):
        sql = STATEMENTS["changes.sql", name]
        arguments = dict.fromkeys(re.findall(r":(\w+)", sql), "1")
        plan = [detail for *_, detail in schema.execute(f"EXPLAIN QUERY PLAN {sql}", arguments)]
        assert not [line for line in plan if line.startswith("USE TEMP B-TREE FOR ORDER BY")], plan


@pytest.mark.parametrize(
    ("script", "statements"),
    [
        ("", []),
        ("-- only a comment\n", []),
        ("SELECT 1;\n-- then\nSELECT ';';\n", ["SELECT 1;\n", "-- then\nSELECT ';';\n"]),
    ],
)
def test_scripts_are_split_at_ends_of_statements(script: str, statements: list[str]) -> None:
    assert list(split_script(script)) == statements


def test_a_script_that_ends_inside_a_statement_is_refused() -> None:
    with pytest.raises(ValueError, match="SELECT 2"):
        list(split_script("SELECT 1;\nSELECT 2\n"))
