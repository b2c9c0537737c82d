"""`hivemem doctor`: what works, what does not, and the next step for each thing that does not."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import enum
import json
import os
import shutil
import sqlite3
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import hivemem
from hivemem.errors import HivememError
from hivemem.service.schema import sqlite_schema
from hivemem.settings import Settings
from hivemem.surfaces.running_server import (
    KEY_VARIABLE,
    NoAnswer,
    Target,
    ask,
    file_settings,
    find_server,
    saved_key,
)

_ANSWER_SECONDS = 10.0
_REST = "/api/v1/memory"
_LOW_BYTES = 1_000_000_000
_FULL_BYTES = 100_000_000
_WRITE_SECONDS = 3.0


class State(enum.StrEnum):
    """How a check ended; `WARNING` and `SKIPPED` do not make the command fail."""

    OK = "ok"
    WARNING = "warning"
    SKIPPED = "skipped"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One thing that was looked at.

    Attributes:
        next: What to do about it; empty where nothing is to be done.
    """

    name: str
    state: State
    detail: str
    next: str = ""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The verb has the common options and the server's address."""
    parser.add_argument("--url", default=None, help="base URL of the server; else the one that runs here")
    parser.epilog = (
        "Exit codes: 0 nothing failed, 1 a check failed, 2 the settings or options cannot be used."
    )


def run(arguments: argparse.Namespace) -> int:
    """Look at everything, print it, and say with the exit code whether anything failed."""
    from hivemem.surfaces.cli.local import loaded_settings

    settings = loaded_settings(arguments).settings
    url = arguments.url or settings.url or None
    checks = list(all_checks(settings, url))
    failed = any(check.state is State.FAILED for check in checks)
    if arguments.json:
        print(json.dumps({"ok": not failed, "checks": [asdict(one) for one in checks]}, ensure_ascii=False))
        return int(failed)
    width = max(len(check.name) for check in checks)
    for check in checks:
        print(f"{check.state.value.upper() if check.state is State.FAILED else check.state.value:8}", end="")
        print(f"{check.name:{width}}  {check.detail}")
        if check.next:
            print(f"{'':8}{'':{width}}  next: {check.next}")
    return int(failed)


def all_checks(settings: Settings, url: str | None) -> Iterator[Check]:
    """Every check, each worked out when it is asked for."""
    folder = settings.data_dir
    if url is None:
        yield _database(settings)
        yield _disk(folder)
    target = find_server(str(folder), file_settings(str(folder)), url)
    if target is None:
        yield Check(
            name="server",
            state=State.FAILED,
            detail=f"none runs on {folder}",
            next="start one with `hivemem serve`, or name one with --url or the setting url.",
        )
    else:
        yield from _server_checks(target, settings)
    yield from _agents()


def _database(settings: Settings) -> Check:
    if settings.database_url:
        said = "in PostgreSQL; the server tells below, as runtime, whether it reaches it"
        return Check(name="database", state=State.SKIPPED, detail=said)
    path = settings.database_path
    folder = path.parent
    if folder.exists() and not os.access(folder, os.W_OK | os.X_OK):
        # SQLite keeps its log beside the file, so that a file that can be written is not enough.
        return Check(
            name="database",
            state=State.FAILED,
            detail=f"{folder} cannot be written by this user",
            next="check owner and mode of the folder.",
        )
    if not path.exists():
        return Check(
            name="database",
            state=State.SKIPPED,
            detail=f"{path} is not there yet",
            next="`hivemem serve` or `hivemem store` makes it.",
        )
    try:
        # Opened to write, without making it: a writer's lock is taken and given back.
        with contextlib.closing(
            sqlite3.connect(f"{path.absolute().as_uri()}?mode=rw", uri=True, timeout=_WRITE_SECONDS)
        ) as connection:
            connection.isolation_level = None
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
            connection.execute("ROLLBACK")
    except sqlite3.Error as error:
        busy = "locked" in str(error)
        step = (
            "find out which process holds it." if busy else "check owner, mode and disk, or restore a backup."
        )
        return Check(
            name="database", state=State.FAILED, detail=f"{path} cannot be written: {error}", next=step
        )
    try:
        asyncio.run(sqlite_schema(path, busy_timeout_seconds=_WRITE_SECONDS, migrate=False))
    except HivememError as error:
        # Another program's, or a newer hivemem's.
        return Check(
            name="database",
            state=State.FAILED,
            detail=error.message,
            next="choose another --data-dir, or the hivemem that this database is of.",
        )
    return Check(name="database", state=State.OK, detail=f"{path} can be written")


def _disk(folder: Path) -> Check:
    there = next((one for one in (folder, *folder.parents) if one.exists()), Path("/"))
    free = shutil.disk_usage(there).free
    detail = f"{free / 1e9:.1f} GB are free at {there}"
    if free < _FULL_BYTES:
        return Check(name="disk", state=State.FAILED, detail=detail, next="make room; writes will fail soon.")
    if free < _LOW_BYTES:
        return Check(name="disk", state=State.WARNING, detail=detail, next="make room.")
    return Check(name="disk", state=State.OK, detail=detail)


def _server_checks(target: Target, settings: Settings) -> Iterator[Check]:
    try:
        status, body = _get(target, "/health")
    except NoAnswer as error:
        step = "start it with `hivemem serve`, or correct the address."
        yield Check(name="server", state=State.FAILED, detail=str(error), next=step)
        return
    if status != 200 or not isinstance(body, dict):
        yield Check(
            name="server",
            state=State.FAILED,
            detail=f"{target.url} answers {status}, which is not this program",
            next="correct the address, or look at the proxy in between.",
        )
        return
    yield Check(name="server", state=State.OK, detail=f"{target.url} answers")
    try:
        yield _version(target)
        yield _key(target, settings)
        yield from _parts(target)
    except NoAnswer as error:
        yield Check(name="server", state=State.FAILED, detail=str(error), next="look at the server's log.")


def _version(target: Target) -> Check:
    _, document = _get(target, "/openapi.json")
    info = document.get("info") if isinstance(document, dict) else None
    theirs = info.get("version") if isinstance(info, dict) else None
    if theirs == hivemem.__version__:
        return Check(name="version", state=State.OK, detail=f"{theirs}, here and on the server")
    return Check(
        name="version",
        state=State.WARNING,
        detail=f"{hivemem.__version__} here, {theirs or 'unknown'} on the server",
        next="install the same version on both sides, then restart the server.",
    )


def _key(target: Target, settings: Settings) -> Check:
    """Whether the key that agents use is good, and what it allows."""
    key = settings.api_key or os.environ.get(KEY_VARIABLE, "").strip() or saved_key(target.url)
    if not key:
        return Check(
            name="key",
            state=State.WARNING,
            detail=f"{KEY_VARIABLE} is not set here, so the key of the agents was not tried",
            next=f"make one with `hivemem key create` and set {KEY_VARIABLE} where the agents start.",
        )
    as_agent = Target(target.url, key)
    status, body = _get(as_agent, f"{_REST}/overview")
    if status != 200:
        said = body.get("detail") if isinstance(body, dict) else None
        return Check(
            name="key",
            state=State.FAILED,
            detail=f"the server answers {status}: {said or 'no reason given'}",
            next="make another with `hivemem key create`.",
        )
    # Rights are looked at before the input, so an empty request tells them apart and stores nothing.
    status, _ = _exchange(as_agent, "POST", f"{_REST}/store", {})
    scope = "read only" if status == 403 else "read and write"
    return Check(name="key", state=State.OK, detail=f"valid: {scope}")


def _parts(target: Target) -> Iterator[Check]:
    """The server's own view of its parts: models, writes, and whatever else it names."""
    status, body = _get(target, f"{_REST}/health")
    found = body.get("checks") if isinstance(body, dict) else None
    if status != 200 or not isinstance(found, dict):
        yield Check(
            name="models",
            state=State.SKIPPED,
            detail="the server tells about its models only with a valid key",
            next=f"set {KEY_VARIABLE}.",
        )
        return
    for name, said in found.items():
        if said in ("ok", "enabled", "off"):
            yield Check(name=name, state=State.OK, detail=f"{said}")
        elif said == "loading":
            yield Check(
                name=name, state=State.WARNING, detail="loading", next="wait a moment and run this again."
            )
        else:
            step = "see the setting of that name in `hivemem config reference`, and the server's log."
            yield Check(name=name, state=State.FAILED, detail=f"{said}", next=step)


def _agents() -> Iterator[Check]:
    from hivemem.surfaces.setup.changes import group_of, present, up_to_date
    from hivemem.surfaces.setup.journal import Record, read_journal

    try:
        records = read_journal()
    except HivememError as error:
        yield Check(name="agents", state=State.FAILED, detail=error.message, next="see the message.")
        return
    if not records:
        yield Check(
            name="agents",
            state=State.SKIPPED,
            detail="none was connected by setup",
            next="`hivemem setup claude`, codex, cursor or kimi.",
        )
    groups: dict[tuple[str, str, str], list[Record]] = {}
    for record in records:
        groups.setdefault(group_of(record), []).append(record)
    for (agent, scope, root), mine in groups.items():
        problems: list[str] = []
        for record in mine:
            try:
                found = present(record)
                if found != record.value:
                    problems.append(
                        f"{record.what} {'is missing' if found is None else 'was changed'} in {record.file}"
                    )
            except HivememError as error:
                problems.append(f"{record.file}: {error.message}")
        if not problems and not up_to_date(mine):
            problems.append("written by another version, or for another place of this program")
        where = f"{agent} ({root or scope})"
        if not problems:
            yield Check(name="agent", state=State.OK, detail=f"{where}: all as setup wrote it")
            continue
        step = f"run `hivemem setup {agent} --scope {scope}`{' in that folder' if root else ''} again."
        yield Check(name="agent", state=State.FAILED, detail=f"{where}: {'; '.join(problems)}", next=step)


def _get(target: Target, path: str) -> tuple[int, Any]:
    return _exchange(target, "GET", path)


def _exchange(target: Target, method: str, path: str, body: object = None) -> tuple[int, Any]:
    status, _, content = ask(target, method, path, body, until=time.monotonic() + _ANSWER_SECONDS)
    try:
        return status, json.loads(content)
    except ValueError:
        return status, None
