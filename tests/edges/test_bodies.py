"""Bodies that are too large or too slow, and too many requests at once."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from starlette.types import Message

from hivemem.errors import Overloaded
from hivemem.surfaces.rest.pacing import Slots, TimedBody, TooSlow, timed_send
from tests.edges.calls import Answered, ask, pieces, tool_call
from tests.surfaces.serving import REST, served

ENTRANCES = [
    f"{REST}/store",
    f"{REST}/recall",
    f"{REST}/exports",
    "/api/v1/admin/users",
    "/mcp",
    "/token",
    "/revoke",
    "/register",
    "/authorize",
    "/oauth/sign-in",
    "/oauth/consent",
]
JSON = ("content-type", "application/json")
FORM = ("content-type", "application/x-www-form-urlencoded")


@pytest.mark.parametrize("kind", [JSON, FORM])
@pytest.mark.parametrize("path", ENTRANCES)
async def test_large_bodies_are_refused_wherever_one_is_taken(
    tmp_path: Path, path: str, kind: tuple[str, str]
) -> None:
    async with served(tmp_path, max_body_bytes=70_000, max_file_bytes=1024) as api:
        key, _ = await api.services.keys.create(await api.services.access.local_principal(), admin=True)
        piece = b"a" * 10_000
        for declared in (True, False):
            length = [("content-length", "90000")] if declared else [("transfer-encoding", "chunked")]
            taken = 0

            async def receive() -> Message:
                nonlocal taken
                taken += 1
                return {"type": "http.request", "body": piece, "more_body": taken < 9}

            answered = await ask(api, "POST", path, receive=receive, headers=[kind, *length], key=key)
            assert answered.status == 413, answered.body
            assert answered.complete
            # Nothing, or no more than the limit and the piece that went beyond it.
            assert taken <= (0 if declared else 8)


@pytest.mark.parametrize("path", [f"{REST}/store", "/mcp", "/token", "/register", "/oauth/sign-in"])
async def test_a_body_that_trickles_is_given_up(tmp_path: Path, path: str) -> None:
    async with served(tmp_path, body_timeout_seconds=0.1) as api:
        body = pieces(b'{"query"', b": ", then_silence=True)
        answered = await ask(api, "POST", path, receive=body, headers=[JSON])
        assert answered.status == 408
        assert answered.header("connection") == "close"
        if path in (f"{REST}/store", "/mcp"):
            assert answered.json()["error"] == "too_slow"
            assert answered.json()["retryable"] is True


async def test_a_large_body_has_the_time_it_needs() -> None:
    now = 0.0

    async def receive() -> Message:
        nonlocal now
        now += 0.9
        return {"type": "http.request", "body": b"a" * 65_536, "more_body": True}

    timed = TimedBody(receive, 1.0, lambda: now)
    for _ in range(50):
        await timed()
    assert now == pytest.approx(45)


async def test_drops_do_not_buy_time() -> None:
    now = 0.0

    async def receive() -> Message:
        nonlocal now
        now += 0.9
        await asyncio.sleep(0)
        return {"type": "http.request", "body": b"a", "more_body": True}

    timed = TimedBody(receive, 10.0, lambda: now)
    with pytest.raises(TooSlow):
        for _ in range(20):
            await timed()


async def test_after_the_body_nothing_is_timed() -> None:
    now = 0.0
    messages: list[Message] = [
        {"type": "http.request", "body": b"", "more_body": False},
        {"type": "http.disconnect"},
    ]

    async def receive() -> Message:
        await asyncio.sleep(0)
        return messages.pop(0)

    timed = TimedBody(receive, 1.0, lambda: now)
    await timed()
    now += 1000
    assert (await timed())["type"] == "http.disconnect"


async def test_an_answer_that_nobody_takes_is_given_up() -> None:
    async def stuck(_: Message) -> None:
        await asyncio.Event().wait()

    with pytest.raises(TooSlow):
        await timed_send(stuck, 0.05)({"type": "http.response.body"})


def test_slots_are_given_back() -> None:
    slots = Slots(2)
    with slots.one(), slots.one():
        with pytest.raises(Overloaded), slots.one():
            raise AssertionError
        with slots.one(urgent=True):
            pass
    with pytest.raises(ZeroDivisionError), slots.one():
        raise ZeroDivisionError
    with slots.one(), slots.one():
        pass


async def test_more_requests_than_slots(tmp_path: Path) -> None:
    async with served(tmp_path, max_concurrent_requests=1) as api:
        arrived, go = asyncio.Event(), asyncio.Event()
        body = json.dumps(tool_call("hm_get_overview")).encode()

        async def receive() -> Message:
            arrived.set()
            await go.wait()
            return {"type": "http.request", "body": body, "more_body": False}

        first = asyncio.create_task(ask(api, "POST", "/mcp", receive=receive, headers=[JSON]))
        await arrived.wait()
        second = await api.client.get(f"{REST}/overview")
        assert second.status_code == 503
        assert second.json()["error"] == "overloaded"
        assert second.json()["retryable"] is True
        assert int(second.headers["retry-after"]) >= 1
        assert (await api.client.get("/health")).status_code == 200
        go.set()
        answered: Answered = await first
        assert answered.json()["result"]["isError"] is False
        assert (await api.client.get(f"{REST}/overview")).status_code == 200


async def test_large_heads_are_refused(tmp_path: Path) -> None:
    async with served(tmp_path, max_header_bytes=4096) as api:
        for headers, query in (([("x-large", "a" * 5000)], ""), ([], "a" * 5000)):
            answered = await ask(api, "GET", f"{REST}/overview", headers=headers, query=query)
            assert answered.status == 431
            assert answered.json()["error"] == "headers_too_large"
        many = [(f"x-{number}", "a") for number in range(500)]
        assert (await ask(api, "GET", "/health", headers=many)).status == 431
        assert (await ask(api, "GET", "/health", headers=[("x-large", "a" * 3000)])).status == 200
