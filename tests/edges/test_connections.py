"""The web server's connections: heads that are large or slow, and bodies that nobody reads."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import uvicorn
from starlette.types import Receive, Scope, Send

from hivemem.surfaces.cli.http_connection import BoundedConnection

HEAD = b"GET / HTTP/1.1\r\nhost: x\r\n"


async def echo(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer at once, or `/later` when the body is there; a body is read only there."""
    if scope["path"] == "/later":
        while (await receive()).get("more_body"):
            pass
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
    await send({"type": "http.response.body", "body": b"ok"})


@asynccontextmanager
async def listening(head_seconds: float, max_head_bytes: int = 4096) -> AsyncIterator[int]:
    limits = {"head_seconds": head_seconds, "max_head_bytes": max_head_bytes}
    connection = type("Connection", (BoundedConnection,), limits)
    config = uvicorn.Config(
        echo,
        http=connection,
        port=0,
        lifespan="off",
        log_config=None,
        server_header=False,
        timeout_keep_alive=60,
    )
    server = uvicorn.Server(config)
    running = asyncio.create_task(server._serve())
    while not server.started:
        await asyncio.sleep(0.01)
    try:
        yield server.servers[0].sockets[0].getsockname()[1]
    finally:
        server.should_exit = True
        await running


async def say(port: int, *parts: bytes) -> bytes:
    """All that comes back until the server ends the connection."""
    reading, writing = await asyncio.open_connection("127.0.0.1", port)
    try:
        for part in parts:
            writing.write(part)
            await writing.drain()
            await asyncio.sleep(0.01)
        return await asyncio.wait_for(reading.read(), 30)
    except ConnectionError:
        return b""
    finally:
        writing.close()


async def test_a_silent_connection_ends() -> None:
    async with listening(head_seconds=0.2) as port:
        assert await say(port) == b""
        assert await say(port, b"\r\n") == b""


async def test_a_head_that_does_not_end_is_given_up() -> None:
    async with listening(head_seconds=0.2) as port:
        for parts in ((HEAD,), (HEAD, b"x-one: 1\r\n", b"x-two: 2\r\n"), (b"GET",)):
            assert (await say(port, *parts)).startswith(b"HTTP/1.1 408 ")


async def test_a_head_that_grows_without_end_is_refused() -> None:
    async with listening(head_seconds=30) as port:
        for parts in (
            (HEAD, b"x-large: ", *[b"a" * 1000] * 6),
            (HEAD, *[b"x-many: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\n" * 20] * 6),
            (b"GET /", *[b"a" * 1000] * 6),
        ):
            answer = await say(port, *parts)
            assert answer == b"" or answer.startswith(b"HTTP/1.1 431 ")


async def test_after_an_answer_line_breaks_do_not_keep_a_connection() -> None:
    async with listening(head_seconds=0.2) as port:
        answer = await say(port, HEAD + b"\r\n", b"\r\n")
        assert answer.count(b"200 OK") == 1


async def test_a_body_that_nobody_reads_does_not_keep_a_connection() -> None:
    async with listening(head_seconds=0.2) as port:
        sent = b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 1000\r\n\r\n"
        assert (await say(port, sent, b"a", b"a")).count(b"200 OK") == 1


async def test_good_requests_are_answered_one_after_the_other() -> None:
    async with listening(head_seconds=0.3) as port:
        body = b"POST /later HTTP/1.1\r\nhost: x\r\ncontent-length: 6\r\n\r\n"
        reading, writing = await asyncio.open_connection("127.0.0.1", port)
        for parts in ((HEAD, b"\r\n"), (body, b"aaa", b"aaa"), (HEAD + b"\r\n" + HEAD + b"\r\n",)):
            for part in parts:
                writing.write(part)
                await asyncio.sleep(0.01)
        for _ in range(4):
            answer = await asyncio.wait_for(reading.readuntil(b"\r\n\r\nok"), 30)
            assert answer.startswith(b"HTTP/1.1 200 ")
            assert b"server:" not in answer.lower()
        writing.close()


async def test_a_slow_body_is_not_the_connections_affair() -> None:
    """The application has its own limit for those, which grows with what arrives."""
    async with listening(head_seconds=0.2) as port:
        body = b"POST /later HTTP/1.1\r\nhost: x\r\ncontent-length: 40\r\nconnection: close\r\n\r\n"
        assert b"200 OK" in await say(port, body, *[b"a"] * 40)
