"""Exports over REST: ordered, made, downloaded by their owner alone, and gone after their time."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import sqlite3
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from hivemem.domain.access import Principal, Scope
from hivemem.domain.exports import EXPORT_CHUNK_BYTES, Export, ExportStatus
from hivemem.errors import Corruption, Unavailable
from hivemem.service.database_urls import database_url, open_source
from hivemem.service.exporting import Exports
from hivemem.storage.rows import RowSource
from hivemem.storage.sqlite import SqliteStore
from tests.support.builders import FixedClock, batch, edge, graph, hyperedge, node, user
from tests.surfaces.serving import REST, Served, served


@pytest.fixture
async def api(tmp_path: Path) -> AsyncIterator[Served]:
    async with served(tmp_path) as opened:
        yield opened


async def order(api: Served, key: str | None = None) -> dict[str, Any]:
    headers = {} if key is None else {"Idempotency-Key": key}
    response = await api.client.post(f"{REST}/exports", json={}, headers=headers)
    assert response.status_code == 202, response.text
    return response.json()


async def published(api: Served, key: str | None = None) -> dict[str, Any]:
    ordered = await order(api, key)
    await api.services.exports.finished()
    response = await api.client.get(ordered["status_url"])
    assert response.json()["status"] == "published", response.text
    return response.json()


async def test_the_document_has_the_whole_memory_without_conversations(api: Served) -> None:
    people = [f"person_{name}" for name in "abcd"]
    together = {
        "participant_keys": people,
        "relationship": "planned the harbour together",
        "description": "d",
    }
    await api.store("fact_a", "日本語 " * 100, data={"n": 1.0}, search_text="uno", assets=["file_1"])
    await api.store("fact_b", "B.", relationships=[{"to_key": "fact_a", "relationship": "follows"}, together])
    for key in ("fact_a", "fact_b"):
        await api.store(key, "In a session.", session_id="s")
    await api.services.groups.written()
    status = await published(api)
    response = await api.client.get(status["download_url"])
    assert (response.status_code, response.headers["content-type"]) == (200, "application/json")
    assert len(response.content) == status["bytes"] == int(response.headers["content-length"])
    assert hashlib.sha256(response.content).hexdigest() == status["sha256"]
    document = response.json()
    assert document["format_version"] == 1
    assert len(document["nodes"]) == status["node_count"]
    assert {"fact_a", "fact_b", *people} <= {one["key"] for one in document["nodes"]}
    node_a = next(one for one in document["nodes"] if one["key"] == "fact_a")
    read = (await api.post("nodes", {"keys": ["fact_a"]})).json()["nodes"]["fact_a"]["node"]
    assert {name: node_a[name] for name in read} == read
    assert [(one["from_key"], one["to_key"]) for one in document["edges"]] == [("fact_b", "fact_a")]
    assert [one["relationship"] for one in document["hyperedges"]] == ["planned the harbour together"]
    members = document["hyperedges"][0]["participants"]
    assert [one["node_key"] for one in members] == people
    assert len(document["timeline"]) == 4


async def test_the_answers_fit_the_document_of_the_api(api: Served) -> None:
    described = (await api.anonymous.get("/openapi.json")).json()
    schema = described["components"]["schemas"]["ExportAnswer"]
    for answer in (await order(api), await published(api)):
        jsonschema.Draft202012Validator({**schema, "components": described["components"]}).validate(answer)
    assert described["paths"][f"{REST}/exports"]["post"]["responses"]["202"]
    assert (
        described["paths"][f"{REST}/exports/{{export_id}}/download"]["get"]["parameters"][1]["name"]
        == "token"
    )


async def test_the_same_key_of_the_same_credential_is_the_same_export(api: Served) -> None:
    first = await order(api, "key-1")
    assert (await order(api, "key-1"))["export_id"] == first["export_id"]
    assert (await order(api, "key-2"))["export_id"] != first["export_id"]
    other = await api.reader.post(f"{REST}/exports", json={}, headers={"Idempotency-Key": "key-1"})
    assert other.json()["export_id"] != first["export_id"]
    assert len({(await order(api))["export_id"] for _ in range(2)}) == 2
    assert (await api.client.post(f"{REST}/exports")).status_code == 202
    long = await api.client.post(f"{REST}/exports", json={}, headers={"Idempotency-Key": "k" * 201})
    assert long.status_code == 413


async def test_a_link_needs_its_token_and_its_owner(api: Served) -> None:
    status = await published(api)
    link, path = status["download_url"], f"{status['status_url']}/download"
    assert (await api.anonymous.get(link)).status_code == 401
    until, _, signature = link.partition("token=")[2].partition(".")
    for token in (
        "",
        "x",
        f"{until}.",
        f"{until}.{'0' * 64}",
        f"{int(until) + 1}.{signature}",
        "1.é",
        f"²{until}.x",
    ):
        refused = await api.client.get(path, params={"token": token})
        assert (refused.status_code, refused.json()["error"]) == (404, "not_found"), token
    other = await published(api)
    swapped = f"{other['status_url']}/download"
    assert (await api.client.get(swapped, params={"token": f"{until}.{signature}"})).status_code == 404
    assert (await api.client.get(f"{REST}/exports/nope")).status_code == 404
    assert (await api.client.get(f"{REST}/exports/nope/download?token=x")).status_code == 404
    assert (await api.client.get(link)).status_code == 200


async def test_the_old_route_says_where_exports_went(api: Served) -> None:
    gone = await api.client.get(f"{REST}/export")
    assert gone.status_code == 410
    assert (gone.json()["error"], gone.json()["code"]) == ("export_moved", "export_moved")
    assert (await api.anonymous.get(f"{REST}/export")).status_code == 401


OWNER = Principal(user_id="user_one", graph_id="graph_one", scope=Scope.OWNER)
STRANGER = Principal(user_id="user_two", graph_id="graph_one", scope=Scope.OWNER)


class World:
    """A database, and servers on it."""

    def __init__(self, path: Path, store: SqliteStore) -> None:
        self.path = path
        self.store = store
        self.clock = FixedClock()

    def server(self, open_rows: Any = None) -> Exports:
        return Exports(
            store=self.store,
            open_rows=open_rows or self.rows,
            clock=self.clock,
            retention=timedelta(hours=24),
        )

    def rows(self) -> RowSource:
        return open_source(database_url(str(self.path)))


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    store = await SqliteStore.open(tmp_path / "memory.db")
    await store.add_user(user(), graph())
    nodes = [node(f"n_{number:03}", "x" * 5_000) for number in range(200)]
    things = [edge("n_000", "n_001"), hyperedge("n_000", "n_001", "n_002")]
    await store.apply("graph_one", batch(*nodes, *things))
    yield World(tmp_path / "memory.db", store)
    await store.close()


async def document(exports: Exports, export_id: str, principal: Principal = OWNER) -> bytes:
    state = await exports.state(principal, export_id)
    assert state.token is not None
    _, pieces = await exports.document(principal, export_id, state.token)
    return b"".join([piece async for piece in pieces])


async def test_a_large_document_is_served_in_pieces_by_any_server(world: World) -> None:
    maker, other = world.server(), world.server()
    ordered = await maker.order(OWNER, "c", None)
    await maker.finished()
    whole = await document(other, ordered.export_id)
    assert len(whole) > 3 * EXPORT_CHUNK_BYTES
    assert len(json.loads(whole)["nodes"]) == 200
    for line in whole.decode().splitlines():
        assert len(line) < 6_000


async def test_what_a_stopped_server_left_is_taken_up_by_the_next_that_is_asked(world: World) -> None:
    stopping = asyncio.Event()

    def slow() -> RowSource:
        loop.call_soon_threadsafe(stopping.set)
        return world.rows()

    loop = asyncio.get_running_loop()
    first, second = world.server(slow), world.server()
    ordered = await first.order(OWNER, "c", None)
    await stopping.wait()
    await first.close()
    left = await world.store.export("graph_one", ordered.export_id)
    assert left is not None and left.status is ExportStatus.RUNNING
    assert (await second.state(OWNER, ordered.export_id)).export.status is ExportStatus.RUNNING
    await second.finished()
    assert len(json.loads(await document(second, ordered.export_id))["edges"]) == 1


async def test_an_export_that_another_server_works_on_is_left_to_it(world: World) -> None:
    now = world.clock.now()
    order = Export(
        export_id="export_1",
        user_id=OWNER.user_id,
        request="r",
        secret="s",
        created_at=now,
        expires_at=now + timedelta(hours=1),
    )
    await world.store.add_export("graph_one", order)
    until = now + timedelta(minutes=1)
    await world.store.acquire_lease("export graph_one export_1", "other", at=now, expires_at=until)
    exports = world.server()
    await exports.state(OWNER, "export_1")
    await exports.finished()
    assert await world.store.export("graph_one", "export_1") == order
    world.clock.advance(minutes=1)
    await exports.state(OWNER, "export_1")
    await exports.finished()
    assert (await exports.state(OWNER, "export_1")).export.status is ExportStatus.PUBLISHED


async def test_a_link_lasts_a_quarter_of_an_hour_and_a_document_a_day(world: World) -> None:
    exports = world.server()
    ordered = await exports.order(OWNER, "c", None)
    await exports.finished()
    token = (await exports.state(OWNER, ordered.export_id)).token
    assert token is not None
    with pytest.raises(Exception, match="no export"):
        await exports.state(STRANGER, ordered.export_id)
    with pytest.raises(Exception, match="no export"):
        await exports.document(STRANGER, ordered.export_id, token)
    world.clock.advance(minutes=14, seconds=59)
    await exports.document(OWNER, ordered.export_id, token)
    world.clock.advance(seconds=1)
    with pytest.raises(Exception, match="invalid or expired"):
        await exports.document(OWNER, ordered.export_id, token)
    assert await document(exports, ordered.export_id)
    world.clock.advance(hours=24)
    expired = await exports.state(OWNER, ordered.export_id)
    assert (expired.export.status, expired.export.error_code) == (ExportStatus.EXPIRED, "export_expired")
    assert expired.token is None
    await exports.sweep("graph_one")
    with contextlib.closing(sqlite3.connect(world.path)) as connection:
        assert connection.execute("SELECT count(*) FROM export_chunks").fetchone() == (0,)
    assert (await exports.state(OWNER, ordered.export_id)).export.status is ExportStatus.EXPIRED
    world.clock.advance(days=7)
    await exports.sweep("graph_one")
    with pytest.raises(Exception, match="no export"):
        await exports.state(OWNER, ordered.export_id)


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (Corruption("damaged."), ExportStatus.FAILED, "corruption"),
        (RuntimeError("a bug"), ExportStatus.FAILED, "internal_error"),
        (Unavailable("busy."), ExportStatus.RUNNING, None),
    ],
    ids=["corruption", "bug", "busy"],
)
async def test_a_failure_is_told_and_a_delay_tried_again(
    world: World, error: Exception, status: ExportStatus, code: str | None
) -> None:
    def failing() -> RowSource:
        raise error

    exports = world.server(failing)
    ordered = await exports.order(OWNER, "c", None)
    await exports.finished()
    found = await world.store.export("graph_one", ordered.export_id)
    assert found is not None
    assert (found.status, found.error_code) == (status, code)
    again = world.server()
    await again.state(OWNER, ordered.export_id)
    await again.finished()
    final = (await again.state(OWNER, ordered.export_id)).export
    assert final.status is (ExportStatus.FAILED if status is ExportStatus.FAILED else ExportStatus.PUBLISHED)
