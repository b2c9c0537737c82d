"""A server process on a shared database, and what its clients ask it."""

from __future__ import annotations

import base64
import threading
from pathlib import Path
from typing import Any

import httpx2

from tests.surfaces.serving import REST, Server, bearer

PATIENCE_SECONDS = 60.0


class Refused(Exception):
    """An error answer.

    Attributes:
        status: Of the response.
        body: The error as JSON.
    """

    def __init__(self, status: int, body: dict[str, Any]) -> None:
        super().__init__(f"{status}: {body}")
        self.status = status
        self.body = body


class Replica(Server):
    """A `hivemem serve` on `url`, with a data folder of its own."""

    def __init__(self, folder: Path, url: str) -> None:
        super().__init__(folder, HIVEMEM_DATABASE_URL=url)
        self.database_url = url
        self.logged: list[bytes] = []
        # Nobody else reads what it logs under load, and a full pipe would stop it.
        self._reader = threading.Thread(target=self._read_log, daemon=True)
        self._reader.start()

    def kill(self) -> None:
        """End it as a crash does."""
        self.process.kill()
        self.process.wait()
        self._reader.join()

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.terminate()
            self.process.wait(timeout=20)
        self._reader.join()
        for stream in (self.process.stdout, self.process.stderr):
            if stream is not None:
                stream.close()

    def _read_log(self) -> None:
        assert self.process.stderr is not None
        self.logged.extend(self.process.stderr)


class Caller:
    """A client of one replica, in the graph of one key."""

    def __init__(self, replica: Replica, key: str) -> None:
        self.key = key
        self._client = httpx2.AsyncClient(base_url=replica.url, headers=bearer(key), timeout=PATIENCE_SECONDS)

    async def post(self, route: str, **body: Any) -> dict[str, Any]:
        """The answer of a REST route.

        Raises:
            Refused: An error answer.
            httpx2.TransportError: No answer.
        """
        return _body(await self._client.post(f"{REST}/{route}", json=body))

    async def get(self, route: str, **parameters: Any) -> dict[str, Any]:
        return _body(await self._client.get(f"{REST}/{route}", params=parameters))

    async def tool(self, name: str, **arguments: Any) -> dict[str, Any]:
        """The answer of an MCP tool."""
        call = {"name": name, "arguments": arguments}
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
        result = _body(await self._client.post("/mcp", json=message))["result"]
        assert not result["isError"], result
        return result["structuredContent"]

    async def recalled(self, query: str) -> dict[str, str]:
        """Key -> description of what a recall finds."""
        answer = await self.post("recall", query=query)
        return {hit["key"]: hit["description"] for hit in answer["results"]}

    async def upload(self, filename: str, content: bytes) -> dict[str, Any]:
        encoded = base64.b64encode(content).decode()
        return await self.tool("hm_upload_file", filename=filename, content_base64=encoded)

    async def close(self) -> None:
        await self._client.aclose()


def _body(response: httpx2.Response) -> dict[str, Any]:
    if response.status_code != 200:
        raise Refused(response.status_code, response.json())
    return response.json()
