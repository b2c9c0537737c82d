"""A person who is removed through one server is gone from the database and from the memory of both."""

from __future__ import annotations

import asyncio
import json
import re

import httpx2

from tests.replicas.conftest import Pair
from tests.replicas.replica import Caller, Refused, Replica
from tests.surfaces.serving import bearer, run_cli

ADMIN = "/api/v1/admin"


def hot_graphs(replica: Replica) -> int:
    """How many indexes a server holds, by its own account."""
    metrics = httpx2.get(f"{replica.url}/metrics").text
    found = re.search(r"^hivemem_hot_graphs (\d+)", metrics, re.MULTILINE)
    assert found is not None, metrics[:500]
    return int(found[1])


async def test_removal_through_one_server_reaches_the_other(
    replicas: tuple[Replica, Replica], pair: Pair
) -> None:
    one, other = replicas

    def run(*arguments: str) -> dict[str, str]:
        # With the database of the servers, whose folder holds its address.
        done = run_cli(one.data_dir, *arguments, "--json", HIVEMEM_DATABASE_URL=one.database_url)
        assert done.returncode == 0, done.stderr.decode()
        return json.loads(done.stdout)

    run("user", "add", "ada")
    ada, admin = run("key", "create", "--user", "ada")["key"], run("key", "create", "--admin")["key"]
    callers = Caller(one, ada), Caller(other, ada)
    await callers[0].post("store", key="fact_ada", description="The zqadaxw garden is hers.")
    for caller in callers:
        assert "fact_ada" in await caller.recalled("zqadaxw")
    before = [hot_graphs(one), hot_graphs(other)]
    assert min(before) >= 1

    async with httpx2.AsyncClient(base_url=one.url, headers=bearer(admin), timeout=60) as http:
        assert (await http.delete(f"{ADMIN}/users/ada")).json()["removed"]
        for caller in callers:
            try:
                await caller.recalled("zqadaxw")
            except Refused as refused:
                assert refused.status == 401
            else:
                raise AssertionError("a removed person still recalls")
        # Dropped beside the requests, within seconds; the loop only ends the test when it never happens.
        for _ in range(600):
            if [hot_graphs(one), hot_graphs(other)] == [count - 1 for count in before]:
                break
            await asyncio.sleep(0.05)
        assert [hot_graphs(one), hot_graphs(other)] == [count - 1 for count in before]
        for _ in range(600):
            checked = (await http.post(f"{ADMIN}/purge", json={"check": True})).json()
            if checked["clean"]:
                break
            await asyncio.sleep(0.05)
        assert checked["clean"], checked
    for caller in callers:
        await caller.close()
