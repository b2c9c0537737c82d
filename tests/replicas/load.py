"""Clients that write and read through several replicas, and know what they may expect to see.

Each writer counts a key of its own up, stores new keys, and rewrites a key that all share. What it was told
is stored is written down before the next call; a reader that is given less than what was written down when
it asked has seen a stale state.
"""

from __future__ import annotations

import asyncio
import itertools
import random
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import httpx2

from tests.replicas.replica import Caller, Refused

SHARED = "fact_shared"
_COUNTED = re.compile(r"stands at (\d+)")
_PAUSE_SECONDS = 0.02

Pick = Callable[[], Caller]


@dataclass
class Ledger:
    """What was acknowledged, and what went wrong."""

    counters: dict[str, int] = field(default_factory=dict)
    stored: dict[str, str] = field(default_factory=dict)
    shared_writes: int = 0
    reads: int = 0
    stale: list[str] = field(default_factory=list)
    refused: list[tuple[int, dict[str, Any]]] = field(default_factory=list)
    no_answer: int = 0

    @property
    def writes(self) -> int:
        return sum(self.counters.values()) + len(self.stored) + self.shared_writes


async def run(pick: Pick, ledger: Ledger, stop: asyncio.Event, *, writers: int, readers: int) -> None:
    """Let clients work until `stop`; each asks a replica that `pick` chooses for the call."""
    async with asyncio.TaskGroup() as group:
        for number in range(writers):
            group.create_task(_write(pick, ledger, stop, number))
        for number in range(readers):
            group.create_task(_read(pick, ledger, stop, random.Random(number)))


async def _write(pick: Pick, ledger: Ledger, stop: asyncio.Event, number: int) -> None:
    key = f"fact_counter_{number}"
    for count in itertools.count(1):
        if stop.is_set():
            return
        await _store(pick, ledger, key, f"The {word_of(key)} stands at {count}.")
        ledger.counters[key] = count
        new = f"fact_note_{number}_{count}"
        text = f"Writer {number} noted {word_of(new)}."
        await _store(pick, ledger, new, text, relationships=[{"to_key": key, "relationship": "was noted at"}])
        ledger.stored[new] = text
        await _store(pick, ledger, SHARED, f"Writer {number} was here for the time {count}.")
        ledger.shared_writes += 1


async def _read(pick: Pick, ledger: Ledger, stop: asyncio.Event, chance: random.Random) -> None:
    while not stop.is_set():
        if not ledger.stored:
            await asyncio.sleep(_PAUSE_SECONDS)
            continue
        counter, note = chance.choice([*ledger.counters]), chance.choice([*ledger.stored][-5:])
        expected, text = ledger.counters[counter], ledger.stored[note]
        try:
            found = await pick().recalled(f"{word_of(note)} {word_of(counter)}")
            record = (await pick().post("nodes", keys=[counter]))["nodes"][counter]["node"]
        except (Refused, httpx2.TransportError) as error:
            await _note(ledger, error)
            continue
        ledger.reads += 1
        if found.get(note) != text:
            ledger.stale.append(f"recall of {note}: {found}")
        # One that is written while it is searched may be missing, since what was found belonged to another
        # text; but what is shown is never older than what was acknowledged.
        for shown in (record["description"], found.get(counter)):
            if shown is not None and _count(shown) < expected:
                ledger.stale.append(f"{counter}: {shown!r}, not {expected} or more")


def word_of(key: str) -> str:
    """A word that only the text of this key holds."""
    return "zq" + key.replace("_", "x") + "q"


def _count(text: str) -> int:
    counted = _COUNTED.search(text)
    return int(counted[1]) if counted else 0


async def _store(pick: Pick, ledger: Ledger, key: str, text: str, **fields: Any) -> None:
    """Store until it is acknowledged: what may have been stored already is the same again."""
    while True:
        try:
            await pick().post("store", key=key, description=text, **fields)
            return
        except (Refused, httpx2.TransportError) as error:
            await _note(ledger, error)


async def _note(ledger: Ledger, error: Refused | httpx2.TransportError) -> None:
    if isinstance(error, Refused):
        ledger.refused.append((error.status, error.body))
        if not error.body["retryable"]:
            raise error
    else:
        ledger.no_answer += 1
    await asyncio.sleep(_PAUSE_SECONDS)
