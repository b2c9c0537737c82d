"""People with passwords, and an organization, on a server under test."""

from __future__ import annotations

from dataclasses import dataclass

from hivemem.domain.accounts import AuditEvent, AuditQuery, Graph, Organization, Role, User
from tests.surfaces.serving import Served

PASSWORD = "four quite ordinary words"


@dataclass
class People:
    """`ada` has two memories and owns Acme; `ben` is a member there; `eve` belongs to nothing."""

    api: Served
    users: dict[str, User]
    default: dict[str, Graph]
    second: Graph
    acme: Organization

    async def events(self, action: str) -> list[AuditEvent]:
        """Lines of the audit log, newest first."""
        return list(await self.api.services.audit.read(await self.operator(), AuditQuery(action=action)))

    async def operator(self):
        return await self.api.services.access.local_principal()


async def settled(api: Served) -> People:
    """The people, on a server that knows nobody yet."""
    services = api.services
    owner = await services.access.local_principal()
    users: dict[str, User] = {}
    default: dict[str, Graph] = {}
    for name in ("ada", "ben", "eve"):
        users[name], default[name] = await services.people.add_user(owner, name, PASSWORD)
    second = await services.people.add_graph(owner, "work & play", "ada")
    acme = await services.organizations.add(owner, "Acme", "ada")
    await services.organizations.put_member(owner, "Acme", "ben", Role.MEMBER, is_new=True)
    return People(api, users, default, second, acme)
