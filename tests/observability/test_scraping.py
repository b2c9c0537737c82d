"""Who may read `/metrics`."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import httpx2
import pytest

from hivemem.domain.access import Scope
from hivemem.surfaces.observability import scraping
from hivemem.surfaces.observability.scraping import is_from_this_machine
from tests.surfaces.serving import Served, bearer, served

REMOTE = ("192.0.2.7", 40_000)


def from_address(api: Served, client: tuple[str, int], **headers: str) -> httpx2.AsyncClient:
    transport = httpx2.ASGITransport(app=api.app, client=client)
    return httpx2.AsyncClient(transport=transport, base_url="http://localhost", headers=headers)


async def status(api: Served, client: tuple[str, int] = REMOTE, **headers: str) -> int:
    async with from_address(api, client, **headers) as caller:
        return (await caller.get("/metrics")).status_code


async def operators_key(api: Served) -> str:
    owner = await api.services.access.local_principal()
    key, _ = await api.services.keys.create(owner, name="prometheus", scope=Scope.MEMBER, admin=True)
    return key


async def test_this_machine_may_read_them_by_default(api: Served) -> None:
    assert await status(api, ("127.0.0.1", 1)) == 200
    assert await status(api, ("::1", 1)) == 200


async def test_others_need_a_credential_that_administers(api: Served) -> None:
    assert await status(api) == 401
    assert await status(api, authorization=f"Bearer {'hm_' + '0' * 64}") == 401
    assert await status(api, **bearer(api.key)) == 403
    assert await status(api, **bearer(await operators_key(api))) == 200


async def test_who_administers_an_organization_alone_does_not_run_the_server(api: Served) -> None:
    owner = await api.services.access.local_principal()
    await api.services.people.add_user(owner, "ada")
    key, _ = await api.services.keys.create(owner, user="ada", admin=True)
    assert await status(api, **bearer(key)) == 403


async def test_a_proxy_on_this_machine_is_not_this_machine(api: Served, tmp_path: Path) -> None:
    local = ("127.0.0.1", 1)
    assert await status(api, local, **{"x-forwarded-for": "192.0.2.7"}) == 401
    assert await status(api, local, forwarded="for=192.0.2.7") == 401
    assert await status(api, local, via="1.1 proxy") == 401
    async with served(tmp_path / "public", public_url="https://memory.example.org") as public:
        assert await status(public, local) == 401


async def test_only_credentials_count_with_token(tmp_path: Path) -> None:
    async with served(tmp_path, metrics="token") as api:
        assert await status(api, ("127.0.0.1", 1)) == 401
        assert await status(api, ("127.0.0.1", 1), **bearer(await operators_key(api))) == 200


async def test_open_means_everybody(tmp_path: Path) -> None:
    async with served(tmp_path, metrics="open") as api:
        assert await status(api) == 200


async def test_off_means_that_there_is_no_such_route(tmp_path: Path) -> None:
    async with served(tmp_path, metrics="off") as api:
        assert await status(api, ("127.0.0.1", 1)) == 404
        await api.store("fact_a")


@pytest.mark.parametrize(
    ("client", "headers", "local"),
    [
        (("127.0.0.1", 1), [(b"host", b"127.0.0.1:8477")], True),
        (("127.8.9.1", 1), [(b"host", b"localhost")], True),
        (("::ffff:127.0.0.1", 1), [(b"host", b"[::1]:8477")], True),
        (("::ffff:192.0.2.7", 1), [(b"host", b"localhost")], False),
        (("127.0.0.1", 1), [(b"host", b"memory.example.org")], False),
        (("127.0.0.1", 1), [], False),
        (("127.0.0.1", 1), [(b"host", b"localhost"), (b"x-real-ip", b"127.0.0.1")], False),
        (("testclient", 1), [(b"host", b"localhost")], False),
        (None, [(b"host", b"localhost")], False),
    ],
)
def test_what_comes_from_this_machine(
    client: tuple[str, int] | None, headers: Iterable[tuple[bytes, bytes]], local: bool
) -> None:
    assert is_from_this_machine({"client": client, "headers": headers}) is local


def test_the_path_is_the_one_that_prometheus_asks_for() -> None:
    assert scraping.PATH == "/metrics"
