"""The server as a process, and its REST interface as any client sees it: standard library only."""

from __future__ import annotations

import json
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any

REST = "/api/v1/memory"
LOG_FILE = "server.log"
KEY_FILE = "demo-key"
READY_SECONDS = 120.0
STOP_SECONDS = 15.0

# Without this a proxy set in the environment would be asked for addresses of this machine.
_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class DemoFailed(Exception):
    """The demonstration cannot go on; the message says why and what to do."""


class Refused(DemoFailed):
    """The server answered with an error; `status` is that of HTTP."""

    def __init__(self, status: int, detail: str) -> None:
        super().__init__(detail)
        self.status = status


def hivemem(*arguments: str) -> list[str]:
    """The `hivemem` command of this very interpreter."""
    return [sys.executable, "-m", "hivemem.surfaces.cli.main", *arguments]


class Server:
    """A running `hivemem serve`.

    Attributes:
        url: Where it listens.
        first_key: The API key that it printed, on the first start in a data directory only.
    """

    def __init__(self, data_dir: Path, port: int) -> None:
        """Start it and return when it listens. Its log goes to `data_dir/server.log`.

        Raises:
            DemoFailed: It ended at once; the message says why.
        """
        data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.log = data_dir / LOG_FILE
        command = hivemem("serve", "--json", "--data-dir", str(data_dir), "--port", str(port))
        with self.log.open("a", encoding="utf-8") as log:
            self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            self.stop()
            raise DemoFailed(f"the server did not start: {_last_error(self.log)}")
        announced = json.loads(line)
        self.url: str = announced["url"]
        self.first_key: str | None = announced.get("key")

    def wait_until_ready(self) -> None:
        """Return when its models are loaded.

        Raises:
            DemoFailed: It ended, or is not ready in time.
        """
        deadline = time.monotonic() + READY_SECONDS
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                raise DemoFailed(f"the server ended while it loaded its models; see {self.log}.")
            try:
                call(self.url, "GET", "/ready")
            except Refused:
                time.sleep(0.1)
            else:
                return
        raise DemoFailed(f"the server was not ready after {READY_SECONDS:.0f} s; see {self.log}.")

    def stop(self) -> None:
        """End it in an orderly way, and wait until it has."""
        if self.process.poll() is None:
            self.process.terminate()
        try:
            self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        if self.process.stdout is not None:
            self.process.stdout.close()


def call(
    url: str, method: str, route: str, body: Mapping[str, object] | None = None, key: str | None = None
) -> dict[str, Any]:
    """The answer of one REST call.

    Raises:
        Refused: The server answered with an error.
        DemoFailed: Nobody answers at `url`.
    """
    headers = {} if key is None else {"Authorization": f"Bearer {key}"}
    content = None if body is None else json.dumps(body).encode()
    if content is not None:
        headers["Content-Type"] = "application/json"
    request = urllib.request.Request(url + REST + route, content, headers, method=method)
    try:
        with _OPENER.open(request, timeout=30) as response:
            return json.load(response)
    except urllib.error.HTTPError as error:
        with error:
            raise Refused(error.code, _detail(error.read())) from None
    except urllib.error.URLError as error:
        raise DemoFailed(f"{url} cannot be reached: {error.reason}.") from error


def _last_error(log: Path) -> str:
    lines = log.read_text("utf-8", errors="replace").splitlines()
    return _detail(lines[-1].encode()) if lines else "it said nothing"


def _detail(content: bytes) -> str:
    try:
        return str(json.loads(content)["detail"])
    except (ValueError, KeyError, TypeError):
        return content.decode("utf-8", "replace")[:200]


def working_key(server: Server, data_dir: Path) -> str:
    """An API key for `server`: printed now, kept from an earlier run, or made with `hivemem key create`.

    It is kept in `data_dir/demo-key`, readable for its owner alone: only its hash is in the database.
    """
    kept = data_dir / KEY_FILE
    if server.first_key is not None:
        return _keep(kept, server.first_key)
    if kept.is_file():
        key = kept.read_text("utf-8").strip()
        try:
            call(server.url, "GET", "/overview", key=key)
        except Refused as error:
            if error.status != 401:
                raise
        else:
            return key
    command = hivemem("key", "create", "--name", "demo", "--json", "--data-dir", str(data_dir))
    made = subprocess.run(command, capture_output=True, text=True, check=False)
    if made.returncode:
        raise DemoFailed(made.stderr.strip())
    return _keep(kept, json.loads(made.stdout)["key"])


def _keep(path: Path, key: str) -> str:
    path.unlink(missing_ok=True)
    # The mode is given before there is anything to read.
    path.touch(mode=0o600, exist_ok=False)
    path.write_text(key + "\n", encoding="utf-8")
    return key
