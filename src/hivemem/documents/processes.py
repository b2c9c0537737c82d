"""Runs each task over foreign bytes in a process of its own, which is killed when it takes too long."""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from dataclasses import asdict
from typing import Any

from hivemem.documents.errors_told import told_error
from hivemem.documents.limits import DocumentLimits
from hivemem.errors import HivememError, LimitExceeded, Unavailable

# The interpreter ignores the environment and starts where the server's own modules are.
_START = "import sys; sys.path[:] = sys.argv[1:]; from hivemem.documents.worker import main; main()"

_ANSWER_BYTES = 16 << 20
_BYTES_A_CHARACTER = 12
"""Of JSON in ASCII, at most: two escapes for a character beyond U+FFFF."""

_CHUNK_BYTES = 1 << 18


class WorkerProcesses:
    """Starts worker processes, a few at a time.

    Args:
        limits: Given to each worker, which enforces them on itself; the time is watched from here too.
        max_processes: How many run at once.
        max_waiting: How many tasks may wait for their turn; more are refused.
    """

    def __init__(self, limits: DocumentLimits, *, max_processes: int = 2, max_waiting: int = 32) -> None:
        self.limits = limits
        self._turns = asyncio.Semaphore(max_processes)
        self._max_waiting = max_waiting
        self._waiting = 0

    async def run(self, mode: str, filename: str, data: bytes, arguments: dict[str, Any]) -> dict[str, Any]:
        """The answer of one task, as JSON.

        Raises:
            InvalidInput: The file is refused or broken; the worker says why.
            NotFound: What was asked for is not in the file.
            LimitExceeded: The file is beyond a limit, or its worker was (`file_too_complex`).
            Unavailable: Too many tasks are waiting (`documents_busy`), or no process can be started.
        """
        if self._waiting >= self._max_waiting:
            raise Unavailable(
                f"{self._waiting} files are waiting to be read; send this one again in a few seconds.",
                code="documents_busy",
                retry_after_seconds=5,
            )
        self._waiting += 1
        try:
            await self._turns.acquire()
        finally:
            self._waiting -= 1
        try:
            return await self._run(mode, filename, data, arguments)
        finally:
            self._turns.release()

    async def _run(self, mode: str, filename: str, data: bytes, arguments: dict[str, Any]) -> dict[str, Any]:
        task = {"mode": mode, "filename": filename, "limits": asdict(self.limits), "arguments": arguments}
        line = json.dumps(task).encode("ascii") + b"\n"
        try:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-I", "-c", _START, *sys.path),
                stdin=PIPE,
                stdout=PIPE,
                stderr=DEVNULL,
                env={},
                cwd="/",
            )
        except OSError as error:
            raise Unavailable(f"no process could be started to read {filename!r}: {error}") from error
        try:
            async with asyncio.timeout(2 * self.limits.max_seconds):
                _, written = await asyncio.gather(
                    _send(process, line, data), self._receive(process, filename)
                )
                status = await process.wait()
        except TimeoutError:
            raise _too_long(filename, self.limits) from None
        finally:
            if process.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    process.kill()
                await process.wait()
        if status != 0:
            raise _ended(status, filename, self.limits)
        told = json.loads(written)
        if "error" in told:
            raise told_error(told["error"], filename)
        return told["answer"]

    async def _receive(self, process: Process, filename: str) -> bytes:
        most = _ANSWER_BYTES + _BYTES_A_CHARACTER * self.limits.max_text_characters
        assert process.stdout is not None
        parts: list[bytes] = []
        size = 0
        while chunk := await process.stdout.read(_CHUNK_BYTES):
            parts.append(chunk)
            size += len(chunk)
            if size > most:
                raise LimitExceeded(
                    f"the answer about {filename!r} has more than {most:,} bytes; ask for less of it."
                )
        return b"".join(parts)


async def _send(process: Process, line: bytes, data: bytes) -> None:
    assert process.stdin is not None
    # A worker that has ended needs no more input; why it ended is told by its status.
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        process.stdin.write(line)
        for start in range(0, len(data), _CHUNK_BYTES):
            process.stdin.write(data[start : start + _CHUNK_BYTES])
            await process.stdin.drain()
        process.stdin.close()
        await process.stdin.wait_closed()


def _ended(status: int, filename: str, limits: DocumentLimits) -> HivememError:
    """The error of a worker that ended without an answer."""
    if status == -signal.SIGXCPU:
        return _too_long(filename, limits)
    if status < 0:
        return told_error({"family": "memory"}, filename)
    return Unavailable(
        f"the process that reads files ended with status {status} before it answered about {filename!r}; "
        "check that the installation is complete and that limits of memory leave room for it.",
        code="document_worker_failed",
    )


def _too_long(filename: str, limits: DocumentLimits) -> LimitExceeded:
    return LimitExceeded(
        f"{filename!r} takes more than {limits.max_seconds} s to read; make it smaller or simpler.",
        code="file_too_complex",
    )
