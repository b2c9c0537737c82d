"""The administration over REST and as commands: one table, the same answers, only for who has the right."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest

from hivemem.surfaces.administration import ADMINISTRATION
from hivemem.surfaces.operations import AnyOperation
from hivemem.surfaces.rest.openapi import openapi_document
from tests.surfaces.serving import Served, Server, bearer, run_cli, served

ADMIN = "/api/v1/admin"
BY_VERB = {operation.verb: operation for operation in ADMINISTRATION}


@dataclass
class Desk:
    """An operator with an admin key, on a server of this process."""

    api: Served
    http: httpx2.AsyncClient

    async def ask(self, verb: str, **sent: Any) -> dict[str, Any]:
        """The answer of an operation, which must be what its model says."""
        response = await self.send(verb, **sent)
        assert response.is_success, response.text
        operation = BY_VERB[verb]
        assert response.status_code == operation.routes[0].status
        operation.output.model_validate(response.json())
        return response.json()

    async def send(self, verb: str, **sent: Any) -> httpx2.Response:
        return await send(self.http, BY_VERB[verb], sent)


async def send(http: httpx2.AsyncClient, operation: AnyOperation, sent: dict[str, Any]) -> httpx2.Response:
    route = operation.routes[0]
    path = route.path
    for name in route.in_path:
        path = path.replace("{" + name + "}", str(sent.get(name, "unknown")))
    rest = {name: value for name, value in sent.items() if name not in route.in_path}
    if route.has_body:
        return await http.request(route.method, route.prefix + path, json=rest)
    return await http.request(route.method, route.prefix + path, params=rest)


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    async with served(tmp_path) as api:
        owner = await api.services.access.local_principal()
        secret, _ = await api.services.keys.create(owner, name="admin", admin=True)
        transport = httpx2.ASGITransport(app=api.app, raise_app_exceptions=True)
        async with httpx2.AsyncClient(
            transport=transport, base_url="http://localhost", headers=bearer(secret)
        ) as http:
            yield Desk(api, http)


def test_every_operation_has_a_route_a_command_and_a_description() -> None:
    paths = openapi_document()["paths"]
    for operation in ADMINISTRATION:
        [route] = operation.routes
        assert route.prefix == ADMIN and not operation.tool and operation.verb
        assert paths[route.prefix + route.path][route.method.lower()]["operationId"] == operation.name


@pytest.mark.parametrize("operation", ADMINISTRATION, ids=lambda operation: operation.name)
async def test_a_key_of_an_agent_reaches_nothing_of_it(api: Served, operation: AnyOperation) -> None:
    for client, status in ((api.client, 403), (api.reader, 403), (api.anonymous, 401)):
        response = await send(client, operation, {})
        assert response.status_code == status, response.text


async def test_a_team_is_set_up_and_taken_down(desk: Desk) -> None:
    ada = await desk.ask("user add", name="ada", password="four quite ordinary words")
    ben = await desk.ask("user add", name="ben")
    assert (ada["has_password"], ben["has_password"]) == (True, False)
    assert [user["name"] for user in (await desk.ask("user list"))["users"]] == ["owner", "ada", "ben"]
    assert (await desk.ask("user show", user="me"))["operator"]
    assert (await desk.ask("user change", user="ben", name="benjamin"))["user_id"] == ben["user_id"]

    acme = await desk.ask("org add", name="Acme", owner="ada")
    added = await desk.ask("org member add", org="Acme", user="benjamin", role="member")
    assert added == {"organization_id": acme["organization_id"], "user_id": ben["user_id"], "role": "member"}
    assert (await desk.ask("org member role", org="Acme", user="benjamin", role="admin"))["role"] == "admin"
    shown = await desk.ask("org show", org=acme["organization_id"])
    assert [(one["name"], one["role"]) for one in shown["members"]] == [
        ("ada", "owner"),
        ("benjamin", "admin"),
    ]
    mode = await desk.ask("org write-mode", org="Acme", user="ada")
    assert mode["write_organization_id"] == acme["organization_id"]

    key = await desk.ask("key create", user="ada", name="laptop", days=30)
    assert key["key"].startswith("hm_") and key["expires_at"] is not None
    listed = (await desk.ask("key list", user="ada"))["keys"]
    assert [one["key_id"] for one in listed] == [key["key_id"]] and "hm_" not in json.dumps(listed)
    stored = await desk.http.post(
        "/api/v1/memory/store",
        json={"key": "fact_shared", "description": "Everybody at Acme reads this."},
        headers=bearer(key["key"]),
    )
    assert stored.json()["write_target"] == {
        "organization_id": acme["organization_id"],
        "name": "Acme",
        "graph_id": acme["graph_id"],
    }
    assert (await desk.ask("graph change", graph=acme["graph_id"], frozen=True))["frozen"]
    refused = await desk.http.post(
        "/api/v1/memory/store",
        json={"key": "fact_late", "description": "Too late."},
        headers=bearer(key["key"]),
    )
    assert (refused.status_code, refused.json()["error"]) == (403, "graph_frozen")

    work = await desk.ask("graph add", name="work", user="ada")
    assert [one["name"] for one in (await desk.ask("graph list", user="ada"))["graphs"]] == [
        "default",
        "work",
    ]
    assert (await desk.ask("graph remove", graph=work["graph_id"]))["removed"]

    invitation = await desk.ask("org invite", org="Acme", role="member")
    assert (await desk.ask("org join", secret=invitation["secret"]))["name"] == "Acme"
    assert (await desk.send("org join", secret=invitation["secret"])).status_code == 404
    open_one = await desk.ask("org invite", org="Acme")
    assert (await desk.ask("org invitation list", org="Acme"))["count"] == 2
    await desk.ask("org invitation remove", org="Acme", invitation=open_one["invitation_id"])

    await desk.ask("org member remove", org="Acme", user="benjamin")
    assert (await desk.ask("key revoke", key=key["key_id"]))["revoked"]
    await desk.ask("org remove", org="Acme")
    for name in ("ada", "benjamin"):
        await desk.ask("user remove", user=name)
    assert (await desk.ask("purge"))["clean"]
    actions = [event["action"] for event in (await desk.ask("audit list", limit=1000))["events"]]
    assert {"user.create", "member.add", "key.create", "invitation.accept", "user.remove"} <= set(actions)


async def test_reading_a_frozen_memory_does_not_change_it(desk: Desk) -> None:
    for number in range(3):
        await desk.api.store(f"fact_{number}", f"Number {number} of the harbour.")
    services = desk.api.services
    graph_id = (await services.access.local_principal()).graph_id
    await desk.ask("graph change", graph=graph_id, frozen=True)
    for _ in range(6):
        found = await desk.api.post("recall", {"query": "harbour number", "session_id": "talk"})
        assert found.json()["count"]
        await desk.api.post("find-related", {"start_node": "fact_0", "session_id": "talk"})
    await services.recall.close()
    assert await services.store.session(graph_id, "talk") is None


async def test_the_log_tells_who_took_a_whole_memory_away(desk: Desk) -> None:
    memory = "/api/v1/memory/exports"
    ordered = (await desk.api.client.post(memory, headers={"X-Request-ID": "asked-for-export"})).json()
    for _ in range(200):
        state = (await desk.api.client.get(ordered["status_url"])).json()
        if "download_url" in state:
            break
        await asyncio.sleep(0.02)
    assert (await desk.api.client.get(state["download_url"])).is_success
    listed = (await desk.ask("audit list", limit=2))["events"]
    assert [one["action"] for one in listed] == ["export.download", "export.order"]
    first = listed[1]
    assert (first["target"], first["request_id"]) == (ordered["export_id"], "asked-for-export")
    assert first["credential"].startswith("key:") and first["address"] and first["graph_id"]
    assert desk.api.key not in json.dumps(listed)


@pytest.mark.parametrize(
    ("verb", "sent", "status"),
    [
        ("user add", {}, 422),
        ("user add", {"name": "  "}, 422),
        ("user add", {"name": "owner"}, 409),
        ("user add", {"name": "ada", "password": "short"}, 422),
        ("user show", {"user": "nobody"}, 404),
        ("user change", {"user": "me"}, 422),
        ("user remove", {"user": "owner"}, 409),
        ("graph show", {"graph": "graph_unknown"}, 404),
        ("graph change", {"graph": "graph_unknown", "frozen": "yes"}, 422),
        ("org add", {"name": "Acme", "owner": "nobody"}, 404),
        ("org show", {"org": "nobody's"}, 404),
        ("org member add", {"org": "nobody's", "user": "me", "role": "king"}, 422),
        ("org join", {"secret": "inv_wrong"}, 404),
        ("key create", {"scope": "all"}, 422),
        ("key create", {"graph": "graph_unknown"}, 404),
        ("key create", {"days": 0}, 422),
        ("key revoke", {"key": "000000000000"}, 404),
        ("audit list", {"limit": 0}, 422),
    ],
)
async def test_what_cannot_be_done_is_told(desk: Desk, verb: str, sent: dict[str, Any], status: int) -> None:
    response = await desk.send(verb, **sent)
    assert response.status_code == status, response.text
    assert set(response.json()) >= {"error", "detail", "retryable", "request_id"}


def test_commands_print_what_the_table_says_while_a_server_runs(server: Server) -> None:
    def ask(*arguments: str, stdin: str = "") -> dict[str, Any]:
        done = run_cli(server.data_dir, *arguments, "--json", stdin=stdin)
        assert done.returncode == 0, done.stderr.decode()
        return json.loads(done.stdout)

    user = ask("user", "add", "table ada", "--password-stdin", stdin="four quite ordinary words\n")
    assert user["user_id"].startswith("user_") and user["has_password"]
    other = ask("user", "add", "table ben")
    organization = ask("org", "add", "Table Acme", "--owner", "table ada")
    assert organization["organization_id"].startswith("org_") and organization["graph_id"].startswith(
        "graph_"
    )
    member = ask("org", "member", "add", "Table Acme", other["user_id"], "--role", "admin")
    assert member["role"] == "admin"
    bound = ask("key", "create", "--user", "table ben", "--org", "Table Acme", "--scope", "member")
    assert (bound["graph_id"], bound["scope"]) == (organization["graph_id"], "member")
    plain = run_cli(server.data_dir, "key", "create", "--user", "table ada")
    assert plain.stdout.decode().strip().startswith("hm_") and plain.stdout.count(b"\n") == 1
    with httpx2.Client(base_url=server.url, headers=bearer(plain.stdout.decode().strip())) as http:
        overview = http.get("/api/v1/memory/overview").json()
    assert [one["name"] for one in overview["organizations"]] == ["Table Acme"]
    secret = ask("org", "invite", "Table Acme", "--role", "member")["secret"]
    on_the_line = run_cli(server.data_dir, "org", "join", secret + "x")
    assert b"others on this machine can see" in on_the_line.stderr and on_the_line.returncode == 5
    assert ask("org", "join", "-", stdin=secret + "\n")["name"] == "Table Acme"
    assert run_cli(server.data_dir, "user", "show", "nobody").returncode == 5
    assert run_cli(server.data_dir, "user", "remove", "table ada").returncode == 6
    assert b"table ben" in run_cli(server.data_dir, "user", "list").stdout
