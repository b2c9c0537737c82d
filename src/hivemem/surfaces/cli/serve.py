"""`hivemem serve`: one process, one port, one data directory."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import errno
import json
import signal
import socket
import sys
from collections.abc import Callable, Generator

from hivemem.errors import Conflict, InvalidInput
from hivemem.server_lock import ServerLock
from hivemem.settings import LoadedSettings

_BACKLOG = 2048
_SHUTDOWN_SECONDS = 10
_FOREIGN_ADDRESS = (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `hivemem serve`."""
    parser.add_argument("--host", default=argparse.SUPPRESS, help="address to bind, 127.0.0.1 by default")
    parser.add_argument(
        "--port", default=argparse.SUPPRESS, help="port to bind, 8477 by default; 0 takes a free one"
    )


def run(arguments: argparse.Namespace) -> int:
    """Serve until SIGTERM or SIGINT."""
    from hivemem.surfaces.cli.local import loaded_settings, make_data_dir
    from hivemem.surfaces.logs import configure_logging

    flags = {name: getattr(arguments, name, None) for name in ("host", "port")}
    loaded = loaded_settings(arguments, **flags)
    configure_logging(loaded.settings)
    settings = loaded.settings
    make_data_dir(settings.data_dir)
    # Before anything heavy is loaded: a second server should be told at once.
    lock = ServerLock.acquire(settings.data_dir, f"{settings.host}:{settings.port}")
    try:
        with asyncio.Runner(loop_factory=_loop_factory()) as runner:
            runner.run(_serve(loaded, lock, as_json=arguments.json))
    finally:
        lock.release()
    return 0


async def _serve(loaded: LoadedSettings, lock: ServerLock, *, as_json: bool) -> None:
    import uvicorn

    from hivemem.surfaces.cli.http_connection import bounded_connection
    from hivemem.surfaces.cli.local import opened
    from hivemem.surfaces.rest.app import build_app

    class Server(uvicorn.Server):
        """uvicorn's server; tells when it listens, and leaves signals to us.

        uvicorn raises a signal again after it has stopped, which would end the process before the
        database is closed.
        """

        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            announce()

        @contextlib.contextmanager
        def capture_signals(self) -> Generator[None, None, None]:
            yield

    settings = loaded.settings
    with _listener(settings.host, settings.port) as listener:
        host = f"[{settings.host}]" if ":" in settings.host else settings.host
        address = f"{host}:{listener.getsockname()[1]}"
        lock.note(address)
        services = await opened(loaded, stays=True)
        try:
            _, _, first_key = await services.access.ensure_owner()
            services.access.admit_local(lock.token)

            def announce() -> None:
                lock.note(address, _local_url(settings.host, listener.getsockname()[1]))
                _announce(f"http://{address}", str(settings.data_dir), first_key, as_json=as_json)

            config = uvicorn.Config(
                build_app(services),
                http=bounded_connection(settings.max_header_bytes),
                lifespan="on",
                log_config=None,
                access_log=False,
                server_header=False,
                proxy_headers=False,
                timeout_graceful_shutdown=_SHUTDOWN_SECONDS,
            )
            server = Server(config)
            loop = asyncio.get_running_loop()
            for number in (signal.SIGTERM, signal.SIGINT):
                loop.add_signal_handler(number, server.handle_exit, number, None)
            await server.serve(sockets=[listener])
        finally:
            await services.close()


def _local_url(host: str, port: int) -> str:
    """Where programs on this machine reach a server that binds `host`."""
    name = {"0.0.0.0": "127.0.0.1", "": "127.0.0.1", "::": "::1"}.get(host, host)
    return f"http://[{name}]:{port}" if ":" in name else f"http://{name}:{port}"


def _listener(host: str, port: int) -> socket.socket:
    """A bound socket.

    Raises:
        Conflict: Another program listens there.
        InvalidInput: The address is not one of this machine.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=_BACKLOG)
    except PermissionError as error:
        raise InvalidInput(
            f"port {port} cannot be bound: {error.strerror}; choose one above 1023."
        ) from error
    except OSError as error:
        if isinstance(error, socket.gaierror) or error.errno in _FOREIGN_ADDRESS:
            raise InvalidInput(f"{host!r} is not an address of this machine: {error.strerror}.") from error
        raise Conflict(
            f"{host}:{port} cannot be bound: {error.strerror}. Choose another port with --port.",
            code="address_in_use",
        ) from error


def _announce(url: str, data_dir: str, first_key: str | None, *, as_json: bool) -> None:
    """Say on standard output where the server is, and on the very first start the key, once."""
    if as_json:
        key = {} if first_key is None else {"key": first_key}
        print(
            json.dumps({"url": url, "mcp_url": f"{url}/mcp", "data_dir": data_dir, **key}, ensure_ascii=False)
        )
    else:
        print(f"hivemem listens on {url}")
        print(f"MCP endpoint:     {url}/mcp")
        print(f"data directory:   {data_dir}")
        if first_key is not None:
            print(f"API key:          {first_key}")
            print("The key is shown this once; `hivemem key create` makes another.")
    sys.stdout.flush()


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    if sys.platform == "win32":
        return None
    import uvloop

    return uvloop.new_event_loop
