"""Ways to run the surfaces in tests: in process, or as the real command."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
from starlette.applications import Starlette

from hivemem.app import open_services
from hivemem.domain.access import Scope
from hivemem.settings import load_settings
from hivemem.surfaces.rest.app import build_app

FAST = {"embedder": "hashing", "reranker": "none"}
REST = "/api/v1/memory"


@dataclass
class Served:
    """An application in this process, and keys for it."""

    services: Any
    app: Starlette
    key: str
    read_only_key: str
    anonymous: httpx2.AsyncClient
    client: httpx2.AsyncClient
    reader: httpx2.AsyncClient

    async def post(self, route: str, body: Any = None, **options: Any) -> httpx2.Response:
        return await self.client.post(f"{REST}/{route}", json=body, **options)

    async def store(self, key: str, description: str = "A memory.", **fields: Any) -> dict[str, Any]:
        response = await self.post("store", {"key": key, "description": description, **fields})
        assert response.status_code == 200, response.text
        return response.json()


@asynccontextmanager
async def served(data_dir: Path, **settings: Any) -> AsyncIterator[Served]:
    loaded = load_settings({"data_dir": str(data_dir), **FAST, **settings}, {})
    services = await open_services(loaded.settings)
    try:
        await services.access.ensure_owner()
        owner = await services.access.local_principal()
        key, _ = await services.keys.create(owner, name="test", scope=Scope.OWNER)
        read_only_key, _ = await services.keys.create(owner, name="reader", scope=Scope.MEMBER)
        app = build_app(services)
        async with running(app):
            transport = httpx2.ASGITransport(app=app, raise_app_exceptions=True)
            clients = [
                httpx2.AsyncClient(transport=transport, base_url="http://localhost", headers=headers)
                for headers in ({}, bearer(key), bearer(read_only_key))
            ]
            yield Served(services, app, key, read_only_key, *clients)
            for client in clients:
                await client.aclose()
    finally:
        await services.close()


@asynccontextmanager
async def running(app: Starlette) -> AsyncIterator[None]:
    """Enter an application's lifespan in a task of its own: fixtures end in another task than they began."""
    started, stop = asyncio.Event(), asyncio.Event()

    async def live() -> None:
        async with app.router.lifespan_context(app):
            started.set()
            await stop.wait()

    task = asyncio.create_task(live())
    waiting = asyncio.create_task(started.wait())
    await asyncio.wait({task, waiting}, return_when=asyncio.FIRST_COMPLETED)
    if task.done():
        task.result()
    try:
        yield
    finally:
        stop.set()
        await task


def bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


def environment(**extra: str) -> dict[str, str]:
    """The environment of a command under test: no settings from the developer's shell, no slow models."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("HIVEMEM_")}
    return kept | {f"HIVEMEM_{name.upper()}": value for name, value in FAST.items()} | extra


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "hivemem.surfaces.cli.main", *arguments]


def run_cli(
    data_dir: Path, *arguments: str, stdin: str | bytes = "", **extra: str
) -> subprocess.CompletedProcess[bytes]:
    content = stdin.encode() if isinstance(stdin, str) else stdin
    return subprocess.run(
        command(*arguments, "--data-dir", str(data_dir)),
        input=content,
        capture_output=True,
        env=environment(**extra),
        timeout=60,
        check=False,
    )


class Server:
    """A real `hivemem serve` on a free port."""

    def __init__(self, data_dir: Path, *arguments: str, **extra: str) -> None:
        self.data_dir = data_dir
        self.process = subprocess.Popen(
            command("serve", "--port", "0", "--json", "--data-dir", str(data_dir), *arguments),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment(**extra),
        )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            _, logged = self.process.communicate(timeout=20)
            raise AssertionError(logged.decode())
        self.announced: dict[str, str] = json.loads(line)
        self.url = self.announced["url"]
        self.key = self.announced.get("key", "")

    def stop(self, number: signal.Signals = signal.SIGTERM) -> tuple[int, str]:
        """(exit code, what it logged)."""
        self.process.send_signal(number)
        with suppress(subprocess.TimeoutExpired):
            _, logged = self.process.communicate(timeout=20)
            return self.process.returncode, logged.decode()
        self.process.kill()
        raise AssertionError("the server did not stop within 20 s")

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.stop()
        for stream in (self.process.stdout, self.process.stderr):
            if stream is not None:
                stream.close()
