"""A credential that ends while it is in use."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

import pytest
from starlette.requests import Request

from hivemem.domain.exports import EXPORT_CHUNK_BYTES
from hivemem.errors import Unauthorized
from hivemem.surfaces.rest import streams
from hivemem.surfaces.rest.streams import while_admitted
from tests.edges.calls import Answered, ask, streamed, tool
from tests.surfaces.serving import REST, Served, bearer


@pytest.fixture
async def key_id(api: Served) -> str:
    """Of the key that the requests of a test use."""
    secret, key = await api.services.keys.create(await api.services.access.local_principal(), name="short")
    api.key = secret
    api.client.headers.update(bearer(secret))
    return key.key_id


async def end_key(api: Served, key_id: str) -> None:
    await api.services.keys.revoke(await api.services.access.local_principal(), key_id)


async def test_a_download_ends_with_its_key(
    api: Served, key_id: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(streams, "_CHECK_SECONDS", 0.0)
    for number in range(4):
        await api.store(f"fact_{number}", "x" * EXPORT_CHUNK_BYTES)
    ordered = (await api.client.post(f"{REST}/exports", json={})).json()
    await api.services.exports.finished()
    state = (await api.client.get(ordered["status_url"])).json()
    url = urlsplit(state["download_url"])

    whole = await ask(api, "GET", url.path, query=url.query)
    assert whole.status == 200
    assert whole.complete
    assert len(whole.body) == state["bytes"]

    revoked = False

    async def revoke(_: Answered) -> None:
        nonlocal revoked
        if not revoked:
            revoked = True
            await end_key(api, key_id)

    broken = await ask(api, "GET", url.path, query=url.query, on_piece=revoke)
    assert broken.status == 200
    assert not broken.complete
    assert 0 < len(broken.body) < state["bytes"]
    assert "broken off: unauthorized" in caplog.text
    assert api.key not in caplog.text

    again = await ask(api, "GET", url.path, query=url.query)
    assert again.status == 401


async def test_a_credential_is_looked_at_once_a_second(api: Served, key_id: str) -> None:
    now, asked = 0.0, 0
    authenticate = api.services.access.authenticate

    async def counted(*given: Any, **named: Any) -> object:
        nonlocal asked
        asked += 1
        return await authenticate(*given, **named)

    api.services.access.authenticate = counted
    scope = {
        "type": "http",
        "method": "GET",
        "path": "/",
        "scheme": "http",
        "query_string": b"",
        "server": ("localhost", 80),
        "headers": [(b"host", b"localhost"), (b"authorization", f"Bearer {api.key}".encode())],
    }
    content = [bytes([number]) for number in range(30)]
    got: list[bytes] = []
    stream = while_admitted(streamed(*content), api.services, Request(scope), lambda: now)
    async for piece in stream:
        got.append(piece)
        now += 0.1
        if len(got) == 25:
            break
    assert got == content[:25]
    assert asked == 2
    await end_key(api, key_id)
    now += 1
    with pytest.raises(Unauthorized):
        await anext(stream)


async def test_the_next_call_of_a_conversation_is_refused(api: Served, key_id: str) -> None:
    assert (await tool(api, "hm_get_overview")).status_code == 200
    await end_key(api, key_id)
    refused = await tool(api, "hm_get_overview")
    assert refused.status_code == 401
    assert "www-authenticate" in refused.headers
    assert (await api.client.get(f"{REST}/overview")).status_code == 401
