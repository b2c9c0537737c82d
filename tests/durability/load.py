"""Writers that talk to a real server over HTTP, and remember what they were told is stored."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from typing import Any

import httpx2

from tests.surfaces.serving import REST, bearer

HUB = "project_hub"
_CHANGES_EVERY = 5
_FORGETS_EVERY = 7


@dataclass(frozen=True, slots=True)
class Told:
    """What an answer said of a node: its text and version; None and 0 when it was forgotten."""

    description: str | None
    write_version: int


@dataclass(slots=True)
class Acknowledged:
    """What a server has said is stored, and what it was asked for and never answered."""

    nodes: dict[str, Told] = field(default_factory=dict[str, Told])
    unanswered: dict[str, str | None] = field(default_factory=dict[str, str | None])
    refusals: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    writes: int = 0

    @property
    def never_stored(self) -> set[str]:
        """Keys of nodes that were refused each time."""
        return {refusal["key"] for refusal in self.refusals} - self.nodes.keys()

    def add(self, later: Acknowledged) -> None:
        """Take over what was said later, of other or of the same nodes."""
        self.nodes |= later.nodes
        self.unanswered |= later.unanswered
        self.refusals += later.refusals
        self.writes += later.writes


class Writers:
    """Threads that store, change and forget nodes one after the other, until the server is gone.

    Args:
        url: Of the server.
        key: An API key.
        name: Begins the keys of the nodes; a name may be used once.
        threads: Each writes nodes of its own, so that it knows what they must be.
        characters: Length of a text, about.
    """

    def __init__(self, url: str, key: str, name: str, *, threads: int = 4, characters: int = 120) -> None:
        self.acknowledged = Acknowledged()
        self._url, self._key, self._name, self._characters = url, key, name, characters
        self._lock = threading.Lock()
        self._first = threading.Event()
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._write, args=(n,), daemon=True) for n in range(threads)]
        for thread in self._threads:
            thread.start()

    def wait_for_the_first(self) -> None:
        """Return when a write was acknowledged."""
        assert self._first.wait(20), "no write was acknowledged within 20 s"

    def wait_for_refusals(self, count: int) -> None:
        """Return when `count` writes were refused."""
        deadline = time.monotonic() + 30
        while len(self.acknowledged.refusals) < count:
            assert time.monotonic() < deadline, "the writes were not refused within 30 s"
            time.sleep(0.01)

    def finish(self, *, stop: bool = False) -> Acknowledged:
        """Wait for the threads, which end with the server, or, with `stop`, after their present write."""
        if stop:
            self._stop.set()
        for thread in self._threads:
            thread.join(30)
            assert not thread.is_alive()
        return self.acknowledged

    def _write(self, number: int) -> None:
        with httpx2.Client(base_url=f"{self._url}{REST}", headers=bearer(self._key), timeout=20) as client:
            own: list[str] = []
            turn = 0
            while not self._stop.is_set():
                turn += 1
                if len(own) > 2 and turn % _FORGETS_EVERY == 0:
                    key, description = own.pop(0), None
                elif own and turn % _CHANGES_EVERY == 0:
                    key = own[turn % len(own)]
                    description = self._text(key, turn)
                else:
                    key = f"note_{self._name}_{number}_{turn}"
                    description = self._text(key, turn)
                try:
                    stored = self._one(client, key, description, own[-1] if own else HUB)
                except httpx2.TransportError:
                    with self._lock:
                        self.acknowledged.unanswered[key] = description
                    return
                if stored and description is not None and key not in own:
                    own.append(key)

    def _text(self, key: str, turn: int) -> str:
        text = f"Note {key}, turn {turn}, tells of the ferry, the harbour and word{turn % 50}."
        return text + " More of it." * ((self._characters - len(text)) // 12)

    def _one(self, client: httpx2.Client, key: str, description: str | None, before: str) -> bool:
        if description is None:
            response = client.post("/forget", json={"key": key})
        else:
            related = [
                {"to_key": HUB, "relationship": "belongs to"},
                {"to_key": before, "relationship": "comes after"},
            ]
            body = {"key": key, "description": description, "relationships": related if key != before else []}
            response = client.post("/store", json=body)
        answer = response.json()
        with self._lock:
            if response.status_code != 200:
                self.acknowledged.refusals.append({"status": response.status_code, "key": key, **answer})
                return False
            version = 0 if description is None else answer["write_version"]
            self.acknowledged.nodes[key] = Told(description, version)
            self.acknowledged.writes += 1
        self._first.set()
        return True
