"""One server a data directory: a lock that a crash releases, and a note of who holds it."""

from __future__ import annotations

import fcntl
import json
import os
from dataclasses import dataclass
from pathlib import Path

from hivemem.errors import Conflict

FILE_NAME = "server.lock"


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """The server that owns a data directory."""

    pid: int
    address: str


class ServerLock:
    """Held from `acquire` to `release`, or until the process ends in whatever way.

    The kernel keeps the lock (`flock`), not the file: a file left behind by a crash locks nobody out. The
    file is never removed, since a second process might hold its lock on the removed one.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    @classmethod
    def acquire(cls, data_dir: Path, address: str) -> ServerLock:
        """Take the lock of `data_dir` for a server at `address`.

        Raises:
            Conflict: Another server holds it (`already_running`); facts `pid` and `address`.
        """
        path = data_dir / FILE_NAME
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
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

    def note(self, address: str) -> None:
        """Write down where this server is, for the message to a second one."""
        text = json.dumps({"pid": os.getpid(), "address": address}).encode()
        os.ftruncate(self._descriptor, 0)
        os.pwrite(self._descriptor, text, 0)

    def release(self) -> None:
        """Let the next server in. Safe to call twice."""
        if self._descriptor >= 0:
            os.ftruncate(self._descriptor, 0)
            os.close(self._descriptor)
            self._descriptor = -1


def read_holder(data_dir: Path) -> Holder | None:
    """Who noted down to hold the lock last, None when nobody did or the note is not readable yet."""
    try:
        note = json.loads((data_dir / FILE_NAME).read_text("utf-8"))
        return Holder(pid=int(note["pid"]), address=str(note["address"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None
