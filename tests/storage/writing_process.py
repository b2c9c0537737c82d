"""A process that writes nodes into a file: `python -m tests.storage.writing_process FILE NAME COUNT`.

It prints the key of each node once its write has returned.
"""

from __future__ import annotations

import asyncio
import itertools
import sys
from pathlib import Path

from hivemem.errors import StaleWrite
from hivemem.storage.sqlite import SqliteStore
from tests.support.builders import batch, create, edge, entry, node, passage, update, vectors

GRAPH = "graph_one"
SHARED_KEY = "shared_counter"


async def write(path: Path, name: str, count: int | None) -> None:
    """Write `count` nodes, or without end; every tenth write also counts up in a shared node."""
    store = await SqliteStore.open(path)
    for number in itertools.count() if count is None else range(count):
        key = f"{name}_{number}"
        things = [
            create(node(key, "Some text. " * 50), vectors(passage(*map(float, range(384))))),
            entry(node_key=key),
        ]
        if number:
            things.append(create(edge(key, f"{name}_{number - 1}", "follows")))
        await store.apply(GRAPH, batch(*things))
        if number % 10 == 9:
            await count_up(store)
        print(key, flush=True)
    await store.close()


async def count_up(store: SqliteStore) -> None:
    while True:
        shared = (await store.snapshot(GRAPH, [SHARED_KEY])).nodes.get(SHARED_KEY)
        if shared is None:
            change = create(node(SHARED_KEY, data={"count": 1}))
        else:
            change = update(shared, data={"count": shared.data["count"] + 1})
        try:
            await store.apply(GRAPH, batch(change))
        except StaleWrite:
            continue
        return


if __name__ == "__main__":
    file, name, count = sys.argv[1:]
    asyncio.run(write(Path(file), name, int(count) if count != "endless" else None))
