"""Rate limits on both surfaces, by a clock that the tests set."""

from __future__ import annotations

from pathlib import Path

import httpx2
import pytest

from hivemem.domain.rates import Bucket
from hivemem.surfaces.operations import OPERATIONS, TOOLS
from tests.edges.calls import ask, limit_by, tool
from tests.oauth.flow import Program, query_of
from tests.support.builders import FixedClock
from tests.surfaces.serving import REST, bearer, served

NAMES = ("x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset")


def told(response: httpx2.Response) -> list[int]:
    return [int(response.headers[name]) for name in NAMES]


def test_every_operation_has_its_bucket() -> None:
    buckets = {operation.name: operation.bucket for operation in OPERATIONS}
    assert {name for name, bucket in buckets.items() if bucket is Bucket.INGEST} == {
        "hm_ingest",
        "hm_upload_file",
    }
    assert {buckets[name] for name in ("hm_recall", "hm_get_nodes", "hm_list_files")} == {Bucket.READ}
    assert {buckets[name] for name in ("hm_store", "hm_forget", "hm_timeline_write")} == {Bucket.WRITE}
    assert set(TOOLS) <= set(buckets)


async def test_without_a_setting_nothing_is_limited(tmp_path: Path) -> None:
    async with served(tmp_path) as api:
        responses = [await api.client.get(f"{REST}/overview") for _ in range(20)]
        assert {response.status_code for response in responses} == {200}
        assert not set(NAMES) & set(responses[-1].headers)


async def test_reads_over_rest(tmp_path: Path) -> None:
    clock = FixedClock()
    async with served(tmp_path, rate_limit_read_per_minute=3) as api:
        limit_by(api, clock)
        start = int(clock.now().timestamp())
        assert told(await api.client.get(f"{REST}/overview")) == [3, 2, start + 20]
        # The same user with another credential, a POST that reads, and one that is refused for its input.
        assert told(await api.reader.post(f"{REST}/recall", json={"query": "x"})) == [3, 1, start + 40]
        wrong = await api.client.post(f"{REST}/recall", json={})
        assert wrong.status_code == 422
        assert told(wrong) == [3, 0, start + 60]
        refused = await api.client.get(f"{REST}/overview")
        assert refused.status_code == 429
        body = refused.json()
        assert body["error"] == "rate_limited"
        assert body["retryable"] is True
        assert body["retry_after"] == 20
        assert refused.headers["retry-after"] == "20"
        assert told(refused) == [3, 0, start + 60]
        # Writes have a bucket of their own, and what watches over the server has none.
        assert (await api.post("store", {"key": "fact_a", "description": "One."})).status_code == 200
        assert (await api.client.get(f"{REST}/health")).status_code == 200
        clock.advance(seconds=20)
        assert (await api.client.get(f"{REST}/overview")).status_code == 200


async def test_strangers_use_up_nobodys_limit(tmp_path: Path) -> None:
    async with served(tmp_path, rate_limit_read_per_minute=1) as api:
        limit_by(api, FixedClock())
        for _ in range(3):
            response = await api.anonymous.get(f"{REST}/overview", headers=bearer("hm_" + "0" * 64))
            assert response.status_code == 401
            assert not set(NAMES) & set(response.headers)
        assert (await api.client.get(f"{REST}/overview")).status_code == 200


async def test_tools_and_routes_count_together(tmp_path: Path) -> None:
    clock = FixedClock()
    async with served(tmp_path, rate_limit_write_per_minute=2, rate_limit_ingest_per_minute=1) as api:
        limit_by(api, clock)
        first = await tool(api, "hm_store", {"key": "fact_a", "description": "One."})
        assert first.json()["result"]["isError"] is False
        assert told(first)[:2] == [2, 1]
        assert (await api.post("store", {"key": "fact_b", "description": "Two."})).status_code == 200
        refused = await tool(api, "hm_store", {"key": "fact_c", "description": "Three."})
        assert refused.status_code == 200
        result = refused.json()["result"]
        assert result["isError"] is True
        assert result["structuredContent"]["error"] == "rate_limited"
        assert result["structuredContent"]["retry_after"] == 30
        assert result["structuredContent"]["retryable"] is True
        assert told(refused)[:2] == [2, 0]
        assert (await tool(api, "hm_recall", {"query": "x"})).json()["result"]["isError"] is False
        assert (await tool(api, "hm_ingest", {"text": "A."})).json()["result"]["isError"] is False
        again = await api.post("ingest", {"text": "A."})
        assert again.status_code == 429
        nodes = await api.client.post(f"{REST}/nodes", json={"keys": ["fact_b", "fact_c"]})
        assert list(nodes.json()["nodes"]) == ["fact_b"]


async def test_listing_tools_is_free(tmp_path: Path) -> None:
    async with served(tmp_path, rate_limit_read_per_minute=1) as api:
        limit_by(api, FixedClock())
        listing = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
        for _ in range(3):
            response = await api.client.post(
                "/mcp", json=listing, headers={"Accept": "application/json, text/event-stream"}
            )
            assert len(response.json()["result"]["tools"]) == len(TOOLS)


async def test_an_export_counts_as_ingest(tmp_path: Path) -> None:
    async with served(tmp_path, rate_limit_ingest_per_minute=1) as api:
        limit_by(api, FixedClock())
        statuses = [(await api.client.post(f"{REST}/exports", json={})).status_code for _ in range(2)]
        assert statuses == [202, 429]
        await api.services.exports.finished()


async def test_sign_ins_are_limited_by_default_and_by_address(tmp_path: Path) -> None:
    clock = FixedClock()
    async with served(tmp_path) as api:
        limit_by(api, clock)
        program = await Program.register(api.anonymous)
        request = query_of(await program.authorize())["request"]
        statuses = [(await program.sign_in(request, "wrong")).status_code for _ in range(11)]
        assert statuses == [403] * 10 + [429]
        clock.advance(seconds=6)
        assert (await program.sign_in(request, api.key)).status_code == 200


@pytest.mark.parametrize(("path", "most"), [("/register", 60), ("/token", 300), ("/revoke", 300)])
async def test_what_strangers_may_ask_for_is_limited(tmp_path: Path, path: str, most: int) -> None:
    async with served(tmp_path) as api:
        limit_by(api, FixedClock())
        statuses = [(await api.anonymous.post(path, json={})).status_code for _ in range(most + 1)]
        assert set(statuses[:-1]) == {400}
        assert statuses[-1] == 429


async def test_a_refusal_of_the_sign_in_is_one_of_oauth(tmp_path: Path) -> None:
    async with served(tmp_path, oauth_registrations_per_hour=1) as api:
        limit_by(api, FixedClock())
        sent = {"redirect_uris": ["http://127.0.0.1/"], "client_name": "x"}
        assert (await api.anonymous.post("/register", json=sent)).status_code == 201
        refused = await api.anonymous.post("/register", json=sent)
        assert refused.status_code == 429
        assert refused.json()["error"] == "temporarily_unavailable"
        assert refused.headers["retry-after"] == "3600"


async def test_an_address_behind_a_proxy_has_its_own_limit_and_cannot_invent_one(tmp_path: Path) -> None:
    proxy, stranger = ("10.0.0.7", 9), ("198.51.100.9", 9)
    async with served(tmp_path, trusted_proxies="10.0.0.0/8", oauth_registrations_per_hour=1) as api:
        limit_by(api, FixedClock())

        async def register(peer: tuple[str, int], forwarded: str) -> int:
            headers = [("x-forwarded-for", forwarded), ("content-type", "application/json")]
            return (await ask(api, "POST", "/register", client=peer, headers=headers)).status

        assert await register(proxy, "203.0.113.1") == 400
        assert await register(proxy, "203.0.113.1") == 429
        assert await register(proxy, "203.0.113.2") == 400
        # What the client wrote itself stands before the address that the proxy saw.
        assert await register(proxy, "9.9.9.9, 203.0.113.1") == 429
        assert await register(stranger, "203.0.113.3") == 400
        assert await register(stranger, "203.0.113.4") == 429


async def test_two_users_do_not_share_a_limit(tmp_path: Path) -> None:
    async with served(tmp_path, rate_limit_read_per_minute=1) as api:
        limit_by(api, FixedClock())
        services = api.services
        limits = services.rate_limits
        first = await services.access.authenticate(api.key)
        assert (await limits.take(Bucket.READ, first.user_id)).allowed
        assert (await limits.take(Bucket.READ, "user_other")).allowed
        assert not (await limits.take(Bucket.READ, first.user_id)).allowed
