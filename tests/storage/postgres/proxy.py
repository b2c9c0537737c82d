"""A proxy between a store and its server that cuts the line when it is told to."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path


class Proxy:
    """Passes bytes on in both directions, and counts how often the client waited for the server."""

    def __init__(self, server: Path) -> None:
        self._server = server
        self._writers: list[asyncio.StreamWriter] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self.cut_before: bytes | None = None
        """When the client sends this, it does not reach the server, and the line is cut. Once."""
        self.cut_after: bytes | None = None
        """When the client sends this, it reaches the server, whose answer is lost with the line. Once."""
        self.refuses = False
        """Whether lines are cut as soon as they are opened."""
        self.round_trips = 0

    async def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        to_client = writer
        if self.refuses:
            to_client.close()
            return
        from_server, to_server = await asyncio.open_unix_connection(self._server)
        self._writers += [to_client, to_server]
        asked = False
        mute = False

        async def back() -> None:
            nonlocal asked
            while data := await from_server.read(65_536):
                if mute:
                    break
                self.round_trips += asked
                asked = False
                to_client.write(data)
            to_client.close()

        answers = asyncio.create_task(back())
        self._tasks.add(answers)
        answers.add_done_callback(self._tasks.discard)
        with contextlib.suppress(ConnectionError):
            while data := await reader.read(65_536):
                if self.cut_before is not None and self.cut_before in data:
                    self.cut_before = None
                    to_client.close()
                    break
                asked = True
                if self.cut_after is not None and self.cut_after in data:
                    self.cut_after = None
                    mute = True
                to_server.write(data)
        if not mute:
            to_server.close()
        await answers
        to_server.close()

    async def close(self) -> None:
        for writer in self._writers:
            writer.close()
        if self._tasks:
            await asyncio.wait(self._tasks)


@contextlib.asynccontextmanager
async def proxy(server: Path, folder: Path) -> AsyncIterator[Proxy]:
    """A proxy that listens where a PostgreSQL server with the socket folder `folder` would."""
    between = Proxy(server)
    listener = await asyncio.start_unix_server(between.accept, folder / ".s.PGSQL.5432")
    try:
        yield between
    finally:
        listener.close()
        await between.close()
