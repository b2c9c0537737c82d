"""Finding the running server, and asking it something, without importing anything slow.

Agents run a hook before every prompt, so what this module imports is paid for every time: the standard
library's light parts only, hence no dataclasses, no `pathlib`, no `http.client` and no `hivemem.settings`. A
test compares the names and defaults here with those of the settings.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import time

LOCK_FILE = "server.lock"
SETTINGS_FILE = "hivemem.toml"
KEY_VARIABLE = "HM_API_KEY"
SAVED_KEYS_FILE = "keys.json"

_MAX_ANSWER_BYTES = 4 * 1024 * 1024
_CHUNK = 65_536


class NoAnswer(Exception):
    """The server cannot be reached, is too slow, or does not speak HTTP."""


class Target:
    """A server: its base URL without a trailing slash, and the credential for it, which may be empty.

    Attributes:
        is_local: Whether it came from the lock file of a data directory.
    """

    __slots__ = ("credential", "is_local", "url")

    def __init__(self, url: str, credential: str, *, is_local: bool = False) -> None:
        self.url = url.rstrip("/")
        self.credential = credential
        self.is_local = is_local


def user_folder(variable: str, *otherwise: str) -> str:
    """`hivemem` in the user's folder that an XDG variable names, or in the one it stands for by default."""
    base = os.environ.get(variable, "").strip()
    return os.path.join(base or os.path.join(os.path.expanduser("~"), *otherwise), "hivemem")


def data_folder(given: str | None = None) -> str:
    """The data directory: as given, from the environment, or the platform's."""
    chosen = given or os.environ.get("HIVEMEM_DATA_DIR")
    if chosen:
        return os.path.abspath(os.path.expanduser(chosen))
    if sys.platform == "darwin":
        return os.path.join(os.path.expanduser("~/Library/Application Support"), "hivemem")
    return user_folder("XDG_DATA_HOME", ".local", "share")


def config_folder() -> str:
    """Where `hivemem setup` notes what it wrote."""
    if sys.platform == "darwin":
        return os.path.join(os.path.expanduser("~/Library/Application Support"), "hivemem")
    return user_folder("XDG_CONFIG_HOME", ".config")


def file_settings(folder: str) -> dict[str, object]:
    """The settings file of a data directory; empty when there is none, or none that can be read."""
    path = os.path.join(folder, SETTINGS_FILE)
    if not os.path.exists(path):
        return {}
    import tomllib  # most users have no such file

    try:
        with open(path, "rb") as file:
            return tomllib.load(file)
    except (OSError, ValueError):
        return {}


def text_setting(name: str, in_file: dict[str, object]) -> str:
    """A setting that is a text; empty when it is not set."""
    return str(os.environ.get(f"HIVEMEM_{name.upper()}") or in_file.get(name) or "").strip()


def number_setting(name: str, default: float, in_file: dict[str, object]) -> float:
    """A setting that is a number; the default when it is not set or not a number."""
    given = text_setting(name, in_file) or str(in_file.get(name, ""))
    try:
        return float(given.replace("_", ""))
    except ValueError:
        return default


def find_server(
    folder: str, in_file: dict[str, object], url: str | None = None, key: str | None = None
) -> Target | None:
    """The server to talk to: the one named, else the one in the settings, else the one that runs.

    Args:
        folder: The data directory.
        in_file: Its settings file.
        url: A base URL from the command line.
        key: A credential from the command line.

    Returns:
        None when none is named and none runs on the data directory.
    """
    named = url or text_setting("url", in_file)
    if named:
        given = key or text_setting("api_key", in_file) or os.environ.get(KEY_VARIABLE, "").strip()
        return Target(named, given or saved_key(named))
    try:
        with open(os.path.join(folder, LOCK_FILE), "rb") as file:
            note = json.loads(file.read(10_000))
        target = Target(str(note["url"]), str(note["token"]), is_local=True)
        # Signal 0 asks whether the process is there; a crashed server leaves its note behind.
        os.kill(int(note["pid"]), 0)
    except PermissionError:
        return None
    except (OSError, ValueError, KeyError, TypeError, OverflowError):
        return None
    return target


def saved_key(url: str) -> str:
    """The key that `hivemem setup --key` saved for a server; empty when there is none."""
    try:
        with open(os.path.join(config_folder(), SAVED_KEYS_FILE), "rb") as file:
            return str(json.load(file).get(url.rstrip("/"), ""))
    except (OSError, ValueError, AttributeError):
        return ""


def ask(
    target: Target,
    method: str,
    path: str,
    body: object = None,
    *,
    until: float,
    headers: dict[str, str] | None = None,
) -> tuple[int, dict[str, str], bytes]:
    """One HTTP/1.1 request over a connection of its own.

    Args:
        target: The server.
        method: GET or POST.
        path: Below the base URL, with its slash.
        body: Sent as JSON; None sends no body.
        until: Value of `time.monotonic()` at which to give up, wherever the exchange is by then.
        headers: Further headers.

    Returns:
        (status, headers by lower-case name, body).

    Raises:
        NoAnswer: With a sentence for a log.
    """
    scheme, host, port, prefix = _parts(target.url)
    content = b"" if body is None else json.dumps(body).encode()
    name = f"[{host}]" if ":" in host else host
    lines = [f"{method} {prefix}{path} HTTP/1.1", f"Host: {name}:{port}", "Connection: close"]
    if target.credential:
        lines.append(f"Authorization: Bearer {target.credential}")
    if body is not None:
        lines += ["Content-Type: application/json", f"Content-Length: {len(content)}"]
    lines += [f"{key}: {value}" for key, value in (headers or {}).items()]
    if any("\r" in line or "\n" in line for line in lines):
        raise NoAnswer("the URL, the key or a header has a line break in it")
    try:
        sent = ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1") + content
        with socket.create_connection((host, port), timeout=_left(until)) as plain:
            connection = _encrypted(plain, host) if scheme == "https" else plain
            connection.settimeout(_left(until))
            connection.sendall(sent)
            return _answer(connection, until)
    except (OSError, ValueError) as error:
        raise NoAnswer(f"{target.url}: {error or type(error).__name__}") from error


def _parts(url: str) -> tuple[str, str, int, str]:
    scheme, separator, rest = url.partition("://")
    location, slash, prefix = rest.partition("/")
    if not separator or scheme not in ("http", "https") or not location or "@" in location:
        raise NoAnswer(f"{url!r} is not a URL of the form http://host:port")
    host, _, port = location.rpartition(":") if not location.endswith("]") else (location, "", "")
    if not host:
        host, port = location, ""
    if port and not port.isdigit():
        raise NoAnswer(f"{url!r} has no number as its port")
    number = int(port) if port else (443 if scheme == "https" else 80)
    return scheme, host.strip("[]"), number, f"/{prefix}" if slash and prefix else ""


def _encrypted(plain: socket.socket, host: str) -> socket.socket:
    import ssl  # 20 ms that a server on this machine does not need

    return ssl.create_default_context().wrap_socket(plain, server_hostname=host)


def _left(until: float) -> float:
    left = until - time.monotonic()
    if left <= 0:
        raise TimeoutError("no answer within the time limit")
    return left


def _answer(connection: socket.socket, until: float) -> tuple[int, dict[str, str], bytes]:
    received = b""
    while b"\r\n\r\n" not in received:
        received += _receive(connection, until, received)
    head, _, body = received.partition(b"\r\n\r\n")
    first, *rest = head.decode("latin-1").split("\r\n")
    version, _, status = first.partition(" ")
    if not version.startswith("HTTP/1.") or not status[:3].isdigit():
        raise ValueError("what answers there is not an HTTP server")
    headers = {
        name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in rest)
    }
    chunked = headers.get("transfer-encoding", "").lower() == "chunked"
    length = int(headers["content-length"]) if headers.get("content-length", "").isdigit() else None
    while not _is_whole(body, length, chunked=chunked):
        more = _receive(connection, until, body, may_end=length is None and not chunked)
        if not more:
            break
        body += more
    return int(status[:3]), headers, _unchunked(body) if chunked else body[:length]


def _receive(connection: socket.socket, until: float, so_far: bytes, *, may_end: bool = False) -> bytes:
    if len(so_far) > _MAX_ANSWER_BYTES:
        raise ValueError("the answer is too large")
    connection.settimeout(_left(until))
    more = connection.recv(_CHUNK)
    if not more and not may_end:
        raise ConnectionError("the connection was closed before the answer was complete")
    return more


def _is_whole(body: bytes, length: int | None, *, chunked: bool) -> bool:
    if chunked:
        return body.endswith(b"0\r\n\r\n")
    return length is not None and len(body) >= length


def _unchunked(body: bytes) -> bytes:
    parts: list[bytes] = []
    while body:
        size, _, rest = body.partition(b"\r\n")
        count = int(size.split(b";")[0], 16)
        if count == 0:
            break
        parts.append(rest[:count])
        body = rest[count + 2 :]
    return b"".join(parts)
