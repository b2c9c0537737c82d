"""A server with people in two organizations, and ways to call it as any of them over REST and MCP."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hivemem.domain.access import Scope
from hivemem.domain.accounts import Organization, Role
from hivemem.surfaces.operations import BY_NAME, REST_PREFIX
from tests.surfaces.serving import Served, bearer, served

WAYS = ("rest", "mcp")


@dataclass(frozen=True)
class Answered:
    """What a call came to: `error` is the code of a refusal, None for an answer."""

    error: str | None
    body: dict[str, Any]


@dataclass
class Company:
    """Acme with the admin `ada` and the member `erin`; Boats with the owner `bea`, who is in Acme too.

    `mallory` belongs to nothing. `keys` by name: those of the people, and `acme` (writes Acme's memory) and
    `acme_reader` (reads it), which are bound to Acme's graph.
    """

    api: Served
    acme: Organization
    boats: Organization
    keys: dict[str, str]

    async def call(self, who: str, name: str, way: str = "rest", /, **arguments: Any) -> Answered:
        """Call an operation by its name; one that only the other way offers, that way."""
        operation = BY_NAME[name]
        rest = bool(operation.routes) and (way == "rest" or not operation.tool)
        return await (self._over_rest if rest else self._over_mcp)(who, name, arguments)

    async def good(self, who: str, name: str, way: str = "rest", /, **arguments: Any) -> dict[str, Any]:
        """The answer of a call that must not fail; it fits the model that is published for it."""
        answered = await self.call(who, name, way, **arguments)
        assert answered.error is None, answered
        BY_NAME[name].output.model_validate(answered.body)
        return answered.body

    async def write_mode(self, who: str, organization: Organization | None) -> None:
        """Switch where somebody's writes go."""
        owner = await self.api.services.access.local_principal()
        chosen = None if organization is None else organization.organization_id
        await self.api.services.organizations.write_mode(owner, chosen, who)

    async def _over_rest(self, who: str, name: str, arguments: Mapping[str, Any]) -> Answered:
        [route, *_] = BY_NAME[name].routes
        path, given = route.path, dict(arguments)
        for part in route.in_path:
            path = path.replace("{" + part + "}", given.pop(part))
        sent: dict[str, Any] = {"json": given} if route.method == "POST" else {"params": given}
        response = await self.api.anonymous.request(
            route.method, REST_PREFIX + path, headers=bearer(self.keys[who]), **sent
        )
        body = response.json()
        assert response.is_success or "error" in body
        return Answered(None if response.is_success else body["error"], body)

    async def _over_mcp(self, who: str, name: str, arguments: Mapping[str, Any]) -> Answered:
        params = {"name": name, "arguments": arguments}
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        response = await self.api.anonymous.post("/mcp", json=body, headers=bearer(self.keys[who]))
        result = response.json()["result"]
        answer = result["structuredContent"]
        return Answered(answer["error"] if result["isError"] else None, answer)


@asynccontextmanager
async def company(folder: Path, **settings: Any) -> AsyncIterator[Company]:
    """Serve it from a new folder."""
    async with served(folder, **settings) as api:
        services = api.services
        owner = await services.access.local_principal()
        for name in ("ada", "erin", "bea", "mallory"):
            await services.people.add_user(owner, name)
        acme = await services.organizations.add(owner, "Acme", "ada")
        boats = await services.organizations.add(owner, "Boats", "bea")
        for name, role in (("erin", Role.MEMBER), ("bea", Role.MEMBER)):
            await services.organizations.put_member(owner, acme.organization_id, name, role, is_new=True)
        keys: dict[str, str] = {}
        for name in ("ada", "erin", "bea", "mallory"):
            keys[name], _ = await services.keys.create(owner, name="test", user=name)
        for name, user, scope in (("acme", "ada", Scope.OWNER), ("acme_reader", "erin", Scope.MEMBER)):
            keys[name], _ = await services.keys.create(
                owner, name="test", user=user, organization=acme.organization_id, scope=scope
            )
        yield Company(api, acme, boats, keys)
