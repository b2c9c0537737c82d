"""A process that works on one database through the real services.

    python -m tests.multiprocess.one_process store DIR NAME COUNT
    python -m tests.multiprocess.one_process recall-until-closed DIR KEY
    python -m tests.multiprocess.one_process recall DIR KEY...

`recall-until-closed` asks until its standard input ends. Each prints one JSON object when it is done.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from hivemem.app import OpenServices, open_services
from hivemem.domain.access import Principal
from hivemem.service.recall import RecallRequest
from hivemem.service.remember import StoreRequest
from hivemem.settings import load_settings
from hivemem.surfaces.readiness import wait_for_models

AT_ONCE = 16
"""Store calls of one process that are on their way together, as from an agent that sends many."""


def description(key: str) -> str:
    return f"The memory {key} was written by one of several processes."


async def store(services: OpenServices, principal: Principal, name: str, count: str) -> dict[str, Any]:
    """Store `count` nodes, each with a call of its own."""
    numbers = iter(range(int(count)))
    statuses: list[str] = []

    async def one_after_the_other() -> None:
        for number in numbers:
            key = f"{name}_{number}"
            request = StoreRequest(key=key, description=description(key), node_type="fact")
            statuses.append((await services.remember.store(principal, request)).status)

    await asyncio.gather(*(one_after_the_other() for _ in range(AT_ONCE)))
    return {"created": statuses.count("created"), "stored": len(statuses)}


async def recall_until_closed(services: OpenServices, principal: Principal, key: str) -> dict[str, Any]:
    """Ask for a node that was there before, again and again while others write."""
    closed = asyncio.create_task(asyncio.to_thread(sys.stdin.read))
    recalls = found = 0
    while not closed.done():
        result = await services.recall.recall(principal, RecallRequest(query=key))
        recalls += 1
        found += key in [hit.node.key for hit in result.hits]
        await asyncio.sleep(0.01)
    return {"recalls": recalls, "found": found}


async def recall(services: OpenServices, principal: Principal, *keys: str) -> dict[str, Any]:
    """Which of the keys the first recall of each finds, and how many nodes there are."""
    found: list[str] = []
    for key in keys:
        result = await services.recall.recall(principal, RecallRequest(query=key))
        found += [hit.node.key for hit in result.hits[:1]]
    overview = await services.overview.overview(principal)
    return {"first": found, "nodes": overview.counts.nodes}


WORK = {"store": store, "recall-until-closed": recall_until_closed, "recall": recall}


async def main(work: str, data_dir: str, *arguments: str) -> None:
    flags = {"data_dir": data_dir, "embedder": "hashing", "reranker": "none"}
    services = await open_services(load_settings(flags, {}).settings)
    try:
        await wait_for_models(services)
        principal = await services.access.local_principal()
        print(json.dumps(await WORK[work](services, principal, *arguments)), flush=True)
    finally:
        await services.close()


if __name__ == "__main__":
    Path(sys.argv[2]).mkdir(parents=True, exist_ok=True)
    asyncio.run(main(*sys.argv[1:]))
