"""Reads the file of reported cases and plays their steps on a memory.

A step is an object with one operation. What a case means by it, in terms of the four operations:
`store` with several nodes stores one after the other, `update` stores the key again, `delete` goes to
the store, `wait` is for vectors, and `restart` closes the folder and opens it again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hivemem.service.remember import IfExists, StoreRequest
from tests.cases.memory import Memory


@dataclass(frozen=True)
class Report:
    """One case: what is stored, and what is done then."""

    setup: Sequence[Any]
    action: Mapping[str, Any]

    @property
    def sequence(self) -> Sequence[Any]:
        return self.action["sequence"]


def read_report(folder: Path, name: str) -> Report:
    """The case `name`, with its abbreviations written out."""
    with (folder / "cases" / "public_reports.jsonl").open(encoding="utf-8") as lines:
        for line in lines:
            case = json.loads(line)
            if case["id"] == name:
                return Report(setup=_written_out(case["setup"]), action=_written_out(case["action"]))
    raise AssertionError(f"there is no case {name}")


async def play(memory: Memory, steps: Sequence[Any]) -> list[Any]:
    """Do the steps in order; one outcome for each, None where there is nothing to see."""
    return [await _step(memory, step) for step in steps]


async def _step(memory: Memory, step: Mapping[str, Any]) -> Any:
    [(operation, given)] = step.items()
    match operation:
        case "store":
            return await memory.store_all(store_requests(given))
        case "update":
            return await memory.store(given["key"], given["description"])
        case "for":
            return await _repeated(memory, given)
        case "delete":
            return await memory.delete(given["key"])
        case "wait":
            return await memory.settled()
        case "restart":
            return await memory.restart()
        case "recall":
            return await memory.recall(given["query"], **{k: v for k, v in given.items() if k != "query"})
        case "get":
            return await memory.nodes(*given["keys"])
        case "overview":
            return await memory.overview()
        case "timeline":
            return await memory.services.store.timeline(memory.owner.graph_id, limit=1000)
        case _:
            raise AssertionError(f"no step {operation}")


async def _repeated(memory: Memory, given: Mapping[str, Any]) -> Any:
    steps = [
        substituted(given["op"], given["var"], number) for number in range(given["from"], given["to"] + 1)
    ]
    if all("store" in step for step in steps):
        # As many calls, in batches: the models are the slow part.
        return await memory.store_all([one for step in steps for one in store_requests(step["store"])])
    return await play(memory, steps)


def store_requests(given: Mapping[str, Any]) -> list[StoreRequest]:
    related: dict[str, list[dict[str, str]]] = {}
    for wish in given.get("relationships", ()):
        item = {"to_key": wish["to"], "relationship": wish["relationship"]}
        related.setdefault(wish["from"], []).append(item)
    requests = [
        StoreRequest(
            key=node["key"],
            description=node["description"],
            node_type=node["node_type"],
            relationships=related.pop(node["key"], []),
        )
        for node in given.get("nodes", ())
    ]
    # Relationships of a node that was stored before: it is kept as it is.
    requests += [
        StoreRequest(key=key, description="Kept.", relationships=items, if_exists=IfExists.KEEP)
        for key, items in related.items()
    ]
    return requests


def _written_out(value: Any) -> Any:
    """`{"$repeat": [text, n]}` and `{"$concat": [...]}` as the texts that they stand for."""
    if isinstance(value, list):
        return [_written_out(item) for item in value]
    if not isinstance(value, dict):
        return value
    if "$repeat" in value:
        text, count = value["$repeat"]
        return text * count
    if "$concat" in value:
        return "".join(_written_out(part) for part in value["$concat"])
    return {name: _written_out(item) for name, item in value.items()}


def substituted(value: Any, variable: str, number: int) -> Any:
    if isinstance(value, str):
        return value.replace("${" + variable + "}", str(number))
    if isinstance(value, list):
        return [substituted(item, variable, number) for item in value]
    if isinstance(value, dict):
        return {name: substituted(item, variable, number) for name, item in value.items()}
    return value
