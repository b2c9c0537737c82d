"""`hivemem db distribute`: the statements fit the schema; the test's server has not the extension."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from hivemem.storage.postgres.distribution import DISTRIBUTED, FIRST, LOCAL, statements
from hivemem.storage.tables import GRAPH_TABLES, LEFT_BEHIND, TABLES
from tests.surfaces.serving import run_cli

VARIABLE = "HIVEMEM_DATABASE_URL"


@pytest.fixture
def schema(url: str, tmp_path: Path) -> Iterator[psycopg.Connection]:
    """The present schema."""
    assert run_cli(tmp_path, "db", "migrate", **{VARIABLE: url}).returncode == 0
    with psycopg.connect(url, autocommit=True) as connection:
        yield connection


def names(connection: psycopg.Connection, query: str) -> list[tuple[Any, ...]]:
    return connection.execute(query.encode()).fetchall()


def test_every_table_is_distributed_or_stays_for_a_reason(schema: psycopg.Connection) -> None:
    found = {
        name
        for (name,) in names(
            schema,
            "SELECT relname FROM pg_class"
            " WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace",
        )
    }
    assert found == {*DISTRIBUTED, *LOCAL}
    assert not {*DISTRIBUTED} & {*LOCAL}
    assert {*DISTRIBUTED} >= {table.name for table in GRAPH_TABLES}
    assert {table.name for table in TABLES} | {*LEFT_BEHIND} == found
    assert len(DISTRIBUTED) == len(set(DISTRIBUTED))


def test_every_unique_index_of_a_distributed_table_holds_the_graph(schema: psycopg.Connection) -> None:
    """Citus can keep a row unique within its shard only."""
    rows = names(
        schema,
        "SELECT c.relname, i.indexrelid::regclass::text, EXISTS (SELECT FROM pg_attribute AS a"
        " WHERE a.attrelid = c.oid AND a.attnum = ANY (i.indkey) AND a.attname = 'graph_id')"
        " FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indrelid"
        " WHERE i.indisunique AND c.relnamespace = current_schema()::regnamespace",
    )
    assert {table for table, _, _ in rows} >= {*DISTRIBUTED}
    assert [index for table, index, holds in rows if table in DISTRIBUTED and not holds] == []


def test_foreign_keys_lead_to_the_same_shard_or_stay_local(schema: psycopg.Connection) -> None:
    """A key of a distributed table names the graph at both ends, and a table that was distributed before."""
    rows = names(
        schema,
        "SELECT child.relname, parent.relname,"
        " (SELECT array_agg(attname::text ORDER BY ord)"
        "  FROM unnest(k.conkey) WITH ORDINALITY AS u (num, ord)"
        "  JOIN pg_attribute ON attrelid = k.conrelid AND attnum = num),"
        " (SELECT array_agg(attname::text ORDER BY ord)"
        "  FROM unnest(k.confkey) WITH ORDINALITY AS u (num, ord)"
        "  JOIN pg_attribute ON attrelid = k.confrelid AND attnum = num)"
        " FROM pg_constraint AS k JOIN pg_class AS child ON child.oid = k.conrelid"
        " JOIN pg_class AS parent ON parent.oid = k.confrelid"
        " WHERE k.contype = 'f' AND child.relnamespace = current_schema()::regnamespace",
    )
    assert len(rows) > 5
    for child, parent, own, others in rows:
        assert (child in DISTRIBUTED) == (parent in DISTRIBUTED), (child, parent)
        if child in DISTRIBUTED:
            assert own.index("graph_id") == others.index("graph_id")
            assert DISTRIBUTED.index(parent) < DISTRIBUTED.index(child)


def test_a_server_without_the_extension_is_refused(url: str, tmp_path: Path) -> None:
    place = {VARIABLE: url}
    outdated = run_cli(tmp_path, "db", "distribute", "--json", **place)
    assert outdated.returncode == 6
    assert "hivemem db migrate" in json.loads(outdated.stderr)["detail"]
    assert run_cli(tmp_path, "db", "migrate", **place).returncode == 0
    for arguments in ((), ("--check",)):
        refused = run_cli(tmp_path, "db", "distribute", "--json", *arguments, **place)
        assert refused.returncode == 6
        error = json.loads(refused.stderr)
        assert error["error"] == "citus_missing"
        assert "CREATE EXTENSION citus" in error["detail"]
    on_a_file = run_cli(tmp_path, "db", "distribute")
    assert on_a_file.returncode == 6
    assert b"SQLite file" in on_a_file.stderr
    assert run_cli(tmp_path, "db", "distribute", "--shards", "0", **place).returncode == 6


# What Citus has of it: a catalogue, and a function with these parameters in this order.
STAND_IN = """
CREATE TABLE pg_dist_partition (logicalrel regclass PRIMARY KEY, beside text, shards int);
CREATE FUNCTION create_distributed_table(
    table_name regclass, distribution_column text, distribution_type text DEFAULT 'hash',
    colocate_with text DEFAULT 'default', shard_count int DEFAULT NULL
) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF distribution_column <> 'graph_id' THEN RAISE 'another column'; END IF;
    IF colocate_with <> 'none' AND NOT EXISTS (
        SELECT FROM pg_dist_partition WHERE logicalrel = colocate_with::regclass
    ) THEN RAISE 'nothing to lie beside'; END IF;
    INSERT INTO pg_dist_partition VALUES (table_name, colocate_with, shard_count);
END $$;
"""


def test_the_statements_run_once_and_go_on_after_an_interruption(
    schema: psycopg.Connection, url: str, tmp_path: Path
) -> None:
    schema.execute(STAND_IN.encode())
    schema.execute(statements([FIRST], 8)[0].encode())
    place = {VARIABLE: url}
    checked = run_cli(tmp_path, "db", "distribute", "--check", "--json", **place)
    assert checked.returncode == 6
    answer = json.loads(checked.stdout)
    assert answer["done"] == [FIRST]
    assert answer["pending"] == [*DISTRIBUTED[1:]]
    assert names(schema, "SELECT count(*) FROM pg_dist_partition") == [(1,)]
    done = run_cli(tmp_path, "db", "distribute", "--json", **place)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["applied"] == [*DISTRIBUTED[1:]]
    rows = names(schema, "SELECT logicalrel::text, beside, shards FROM pg_dist_partition")
    assert {table for table, *_ in rows} == {*DISTRIBUTED}
    assert [row for row in rows if row[0] == FIRST] == [(FIRST, "none", 8)]
    assert {row[1:] for row in rows if row[0] != FIRST} == {(FIRST, None)}
    again = run_cli(tmp_path, "db", "distribute", "--check", **place)
    assert again.returncode == 0
    assert f"all {len(DISTRIBUTED)} tables are distributed".encode() in again.stdout


def test_the_statements_of_an_empty_database() -> None:
    first, second, *rest = statements(DISTRIBUTED, 64)
    assert first == (
        "SELECT create_distributed_table('graph_counters', 'graph_id', colocate_with => 'none', "
        "shard_count => 64)"
    )
    assert second.startswith("SELECT create_distributed_table('nodes', 'graph_id', colocate_with => 'graph_")
    assert len(rest) == len(DISTRIBUTED) - 2
