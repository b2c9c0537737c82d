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
_MAX_LINE_BYTES = 65_536
_LARGEST_NUMBER = 1e9
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
    """A setting that is a number, not negative; the default when it is not set or not such a number."""
    given = text_setting(name, in_file) or str(in_file.get(name, ""))
    try:
        number = float(given.replace("_", ""))
    except ValueError:
        return default
    return number if 0 <= number < _LARGEST_NUMBER else default


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
        given = key or _key_in_file() or text_setting("api_key", in_file)
        return Target(named, given or os.environ.get(KEY_VARIABLE, "").strip() or saved_key(named))
    try:
        with open(os.path.join(folder, LOCK_FILE), "rb") as file:
            note = json.loads(file.read(10_000))
        target = Target(str(note["url"]), str(note["token"]), is_local=True)
        # Signal 0 asks whether the process is there; a crashed server leaves its note behind.
        os.kill(int(note["pid"]), 0)
    except (OSError, ValueError, KeyError, TypeError, OverflowError):
        return None
    return target


def _key_in_file() -> str:
    """What stands in the file that `HIVEMEM_API_KEY_FILE` names; empty when there is none."""
    try:
        with open(os.environ["HIVEMEM_API_KEY_FILE"], encoding="utf-8") as file:
            return file.read(10_000).strip()
    except (KeyError, OSError, ValueError):
        return ""


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
    max_bytes: int = _MAX_ANSWER_BYTES,
) -> tuple[int, dict[str, str], bytes]:
    """One HTTP/1.1 request over a connection of its own.

    Args:
        target: The server.
        method: GET or POST.
        path: Below the base URL, with its slash.
        body: Sent as JSON; None sends no body.
        until: Value of `time.monotonic()` at which to give up, wherever the exchange is by then.
        headers: Further headers.
        max_bytes: Largest answer to take.

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
            return _answer(_Reader(connection, until, max_bytes))
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


class _Reader:
    """Reads pieces of an answer within a time and a size."""

    def __init__(self, connection: socket.socket, until: float, max_bytes: int) -> None:
        self._connection = connection
        self._until = until
        self._left = max_bytes
        self._buffer = bytearray()

    def line(self) -> bytes:
        """Up to the next line end, without it."""
        while (end := self._buffer.find(b"\r\n")) < 0:
            if len(self._buffer) > _MAX_LINE_BYTES or not self._more():
                raise ValueError("what answers there is not an HTTP server")
        found = bytes(self._buffer[:end])
        del self._buffer[: end + 2]
        return found

    def exactly(self, count: int) -> bytes:
        """That many bytes."""
        while len(self._buffer) < count:
            if not self._more():
                raise ConnectionError("the connection was closed before the answer was complete")
        found = bytes(self._buffer[:count])
        del self._buffer[:count]
        return found

    def rest(self) -> bytes:
        """Everything until the other side closes."""
        while self._more():
            pass
        return bytes(self._buffer)

    def _more(self) -> bool:
        self._connection.settimeout(_left(self._until))
        received = self._connection.recv(_CHUNK)
        self._left -= len(received)
        if self._left < 0:
            raise ValueError("the answer is too large")
        self._buffer += received
        return bool(received)


def _answer(reader: _Reader) -> tuple[int, dict[str, str], bytes]:
    version, _, status = reader.line().decode("latin-1").partition(" ")
    if not version.startswith("HTTP/1.") or not status[:3].isdigit():
        raise ValueError("what answers there is not an HTTP server")
    headers: dict[str, str] = {}
    while line := reader.line().decode("latin-1"):
        name, _, value = line.partition(":")
        headers[name.strip().lower()] = value.strip()
    if headers.get("transfer-encoding", "").lower() == "chunked":
        body = _chunks(reader)
    elif headers.get("content-length", "").isdigit():
        body = reader.exactly(int(headers["content-length"]))
    else:
        body = reader.rest()
    return int(status[:3]), headers, body


def _chunks(reader: _Reader) -> bytes:
    parts: list[bytes] = []
    while count := int(reader.line().split(b";")[0], 16):
        parts.append(reader.exactly(count))
        reader.exactly(2)
    return b"".join(parts)
