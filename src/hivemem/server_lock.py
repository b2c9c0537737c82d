"""One server a data directory: a lock that a crash releases, and a note of who holds it and where."""

from __future__ import annotations

import fcntl
import json
import os
import secrets
from dataclasses import dataclass, field
from pathlib import Path

from hivemem.errors import Conflict, Unavailable

FILE_NAME = "server.lock"


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """The server that owns a data directory.

    Attributes:
        pid: Its process.
        address: What it binds, as `host:port`.
        url: Where it answers; None until it listens.
        token: Credential that lets its reader act as the owner while this process lives. The file has mode
            0600, and whoever can read it could read the database beside it.
    """

    pid: int
    address: str
    url: str | None = None
    token: str | None = field(default=None, repr=False)


class ServerLock:
    """Held from `acquire` to `release`, or until the process ends in whatever way.

    The kernel keeps the lock (`flock`), not the file: a file left behind by a crash locks nobody out. The
    file is never removed, since a second process might hold its lock on the removed one.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        # Not of the form of an API key, so that neither is ever taken for the other.
        self.token = f"local_{secrets.token_hex(32)}"

    @classmethod
    def acquire(cls, data_dir: Path, address: str) -> ServerLock:
        """Take the lock of `data_dir` for a server at `address`.

        Raises:
            Conflict: Another server holds it (`already_running`); facts `pid` and `address`.
            Unavailable: The folder cannot be written.
        """
        path = data_dir / FILE_NAME
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            os.fchmod(descriptor, 0o600)
        except OSError as error:
            raise _unwritable(path, error) from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            holder = read_holder(data_dir)
            who = f"process {holder.pid} at {holder.address}" if holder else "another process"
            raise Conflict(
                f"{data_dir} is in use by {who}. Use that server, stop it, or choose another --data-dir.",
                code="already_running",
                **({"pid": holder.pid, "address": holder.address} if holder else {}),
            ) from None
        lock = cls(descriptor)
        lock.note(address)
        return lock

    def note(self, address: str, url: str | None = None) -> None:
        """Write down where this server is: for the message to a second one, and for local clients.

        Args:
            address: What it binds, as `host:port`.
            url: Where local clients reach it, once it answers.

        Raises:
            Unavailable: The disk is full.
        """
        reachable = {} if url is None else {"url": url, "token": self.token}
        text = json.dumps({"pid": os.getpid(), "address": address, **reachable}).encode()
        try:
            os.ftruncate(self._descriptor, 0)
            os.pwrite(self._descriptor, text, 0)
        except OSError as error:
            raise _unwritable(Path(FILE_NAME), error) from error

    def release(self) -> None:
        """Let the next server in. Safe to call twice."""
        if self._descriptor >= 0:
            os.ftruncate(self._descriptor, 0)
            os.close(self._descriptor)
            self._descriptor = -1


def _unwritable(path: Path, error: OSError) -> Unavailable:
    return Unavailable(
        f"the server cannot write its {path}: {error.strerror}. Make the folder writable, free space, or "
        "choose another --data-dir. Commands that only read, such as `hivemem recall`, work without it."
    )


def read_holder(data_dir: Path) -> Holder | None:
    """Who noted down to hold the lock last, None when nobody did or the note is not readable yet."""
    try:
        note = json.loads((data_dir / FILE_NAME).read_text("utf-8"))
        return Holder(
            pid=int(note["pid"]),
            address=str(note["address"]),
            url=note.get("url"),
            token=note.get("token"),
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
