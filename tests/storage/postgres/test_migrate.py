"""Schemas that are made, found, upgraded, and refused."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator

import psycopg
import pytest

from hivemem.errors import Conflict, Corruption, InvalidInput, Unavailable
from hivemem.storage.postgres import PostgresStore, migrate
from hivemem.storage.postgres.connection import Address
from tests.conformance.store.observe import GRAPH
from tests.storage.postgres.conftest import Opener
from tests.support.builders import batch, node
from tests.support.postgres import with_parameters


@contextlib.contextmanager
def administrator(url: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(url, autocommit=True) as connection:
        yield connection


def version(url: str) -> list[tuple[int, int]]:
    with administrator(url) as connection:
        return connection.execute("SELECT version, oldest_program FROM schema_version").fetchall()


@pytest.fixture
def next_release(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """This program with one more migration, as its next release would have; the script can be changed."""
    scripts = {"migrations/9999_next.sql": "ALTER TABLE nodes ADD COLUMN weight BIGINT;"}
    names, read = migrate.migration_names(), migrate.read_sql
    monkeypatch.setattr(migrate, "migration_names", lambda: [*names, *scripts])
    monkeypatch.setattr(migrate, "read_sql", lambda name: scripts.get(name) or read(name))
    yield next(iter(scripts))


async def test_an_empty_database_gets_the_schema_once(url: str) -> None:
    address = Address.parse(url)
    assert (await migrate.schema_state(address)).pending == migrate.migration_names()
    found = await migrate.prepare_database(address)
    assert (found.version, found.pending) == (0, migrate.migration_names())
    again = await migrate.prepare_database(address)
    assert (again.version, again.pending) == (migrate.latest_version(), [])
    assert version(url) == [(migrate.latest_version(), 1)]


async def test_many_servers_that_start_at_once_make_one_schema(url: str) -> None:
    found = await asyncio.gather(*(migrate.prepare_database(Address.parse(url)) for _ in range(8)))
    assert {state.version for state in found} <= {0, migrate.latest_version()}
    assert version(url) == [(migrate.latest_version(), 1)]


async def test_a_migration_that_fails_leaves_nothing(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    read = migrate.read_sql
    monkeypatch.setattr(migrate, "read_sql", lambda name: read(name) + "SELECT no_such_column FROM nodes;")
    with pytest.raises(Corruption, match="no_such_column"):
        await migrate.prepare_database(Address.parse(url))
    monkeypatch.undo()
    assert (await migrate.schema_state(Address.parse(url))).version == 0
    await migrate.prepare_database(Address.parse(url))
    assert version(url) == [(migrate.latest_version(), 1)]


async def test_a_server_of_the_release_before_works_on_during_an_upgrade(
    opened: Opener, url: str, next_release: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as released:
        released.setattr(migrate, "migration_names", lambda: _names_before(next_release))
        old = await opened()
        assert await old.apply(GRAPH, batch(node("a_1"))) == 1
    present = migrate.latest_version()
    new = await opened()
    assert version(url) == [(present, 1)]
    assert await old.apply(GRAPH, batch(node("b_1"))) == 2
    assert list(await new.nodes(GRAPH, ["a_1", "b_1"])) == ["a_1", "b_1"]
    # One that starts again meanwhile finds a newer schema that it may still use.
    with monkeypatch.context() as released:
        released.setattr(migrate, "migration_names", lambda: _names_before(next_release))
        restarted = await opened()
        assert await restarted.apply(GRAPH, batch(node("c_1"))) == 3


def _names_before(name: str) -> list[str]:
    from hivemem.storage.postgres.statements import migration_names

    return [other for other in migration_names() if other != name]


async def test_a_schema_that_old_programs_cannot_use_refuses_them(
    url: str, next_release: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = migrate.read_sql
    newest = migrate.latest_version()
    await migrate.prepare_database(Address.parse(url))
    contract = f"-- oldest program: {newest}\nALTER TABLE nodes DROP COLUMN assets;"
    with administrator(url) as connection:
        connection.execute(f"UPDATE schema_version SET version = {newest - 1}".encode())
    monkeypatch.setattr(migrate, "read_sql", lambda n: contract if n == next_release else read(n))
    await migrate.prepare_database(Address.parse(url))
    assert version(url) == [(newest, newest)]
    monkeypatch.setattr(migrate, "migration_names", lambda: _names_before(next_release))
    with pytest.raises(Corruption, match=f"version {newest}.* up to {newest - 1};") as caught:
        await PostgresStore.open(url)
    assert caught.value.code == "schema_too_new"


async def test_an_outdated_schema_is_refused_when_migrations_are_manual(
    opened: Opener, url: str, next_release: str
) -> None:
    with pytest.raises(Conflict, match="hivemem db migrate") as caught:
        await opened(migrate=False)
    assert caught.value.code == "schema_too_old"
    with administrator(url) as connection:
        assert connection.execute("SELECT to_regclass('nodes')").fetchone() == (None,)
    await migrate.prepare_database(Address.parse(url))
    assert await (await opened(migrate=False)).revision(GRAPH) == 0


async def test_another_programs_tables_are_left_alone(opened: Opener, url: str) -> None:
    with administrator(url) as connection:
        connection.execute("CREATE TABLE users (login TEXT)")
    with pytest.raises(Corruption, match="'users' of another program"):
        await opened()
    with administrator(url) as connection:
        connection.execute("DROP TABLE users")
        connection.execute("CREATE TABLE spatial_ref_sys (srid BIGINT)")
    assert await (await opened()).revision(GRAPH) == 0


async def test_a_schema_without_its_version_is_corrupt(opened: Opener, url: str) -> None:
    await migrate.prepare_database(Address.parse(url))
    with administrator(url) as connection:
        connection.execute("DELETE FROM schema_version")
    with pytest.raises(Corruption, match="does not say its schema version"):
        await opened()


async def test_databases_that_cannot_be_used_say_why(opened: Opener, url: str) -> None:
    with pytest.raises(InvalidInput, match="no schema of its search_path"):
        await opened(with_parameters(url, options="-csearch_path=nowhere"))
    with pytest.raises(Unavailable, match="no_such_database"):
        await opened(with_parameters(url, dbname="no_such_database"))


async def test_a_database_in_another_encoding_is_refused(opened: Opener, url: str) -> None:
    name = f"latin_{abs(hash(url))}"
    with administrator(url) as connection:
        connection.execute(f"CREATE DATABASE {name} TEMPLATE template0 ENCODING 'LATIN1' LOCALE 'C'".encode())
        try:
            with pytest.raises(InvalidInput, match=r"LATIN1.* ENCODING 'UTF8'"):
                await opened(with_parameters(url, dbname=name, options=""))
        finally:
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


async def test_keys_are_ordered_by_code_points_whatever_the_locale(opened: Opener, url: str) -> None:
    store = await opened()
    keys = ["B_1", "a_1", "a_b", "é_1", "Z_1", "_1", "a-1", "日_1", "𝒳_1", "\uffee_1"]
    await store.apply(GRAPH, batch(*map(node, keys)))
    assert [one.key for one in await store.scan(GRAPH)] == sorted(keys)
