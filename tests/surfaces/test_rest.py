"""REST: routes, rights, and an envelope for every refusal."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx2
import pytest

from hivemem.errors import Unavailable
from tests.surfaces.serving import REST, Served, served

JSON = {"Content-Type": "application/json"}


def envelope(response: httpx2.Response, status: int, code: str) -> dict[str, Any]:
    assert response.status_code == status, response.text
    body = response.json()
    assert body["error"] == code
    assert isinstance(body["detail"], str) and body["detail"]
    assert isinstance(body["retryable"], bool)
    assert body["request_id"] == response.headers["x-request-id"]
    return body


async def test_store_answers_with_the_whole_receipt(api: Served) -> None:
    answer = await api.store(
        "decision_tea",
        "Tea is served at four.",
        relationships=[
            {"to_key": "person_anna", "relationship": "was decided by Anna"},
            {"to_key": "decision_tea", "relationship": "is itself"},
        ],
    )
    assert answer["status"] == "created"
    assert answer["key"] == answer["stored"] == "decision_tea"
    assert answer["type"] == answer["node_type"] == "decision"
    assert answer["detected"] == []
    assert answer["relationships"] == 1
    results = answer["relationship_results"]
    [created] = results["created"]
    assert created["entity_id"]
    assert {name: created[name] for name in created if name != "entity_id"} == {
        "index": 0,
        "kind": "edge",
        "relationship": "was decided by Anna",
        "from_key": "decision_tea",
        "to_key": "person_anna",
        "write_version": 1,
    }
    assert results["replayed"] == []
    assert [error["index"] for error in results["errors"]] == [1]
    assert answer["write_version"] == 1
    assert answer["warnings"]


async def test_hyperedge_receipt_names_its_participants_and_a_replay_is_not_created(api: Served) -> None:
    wish = {
        "participant_keys": ["person_a", "person_b", "person_c", "fact_met"],
        "relationship": "met at the harbour",
    }
    first = await api.store("fact_met", "They met.", relationships=[wish])
    again = await api.store("fact_met", "They met.", relationships=[wish])
    [created] = first["relationship_results"]["created"]
    assert created["kind"] == "hyperedge"
    assert created["participant_keys"] == ["person_a", "person_b", "person_c", "fact_met"]
    assert again["relationships"] == 0
    [replayed] = again["relationship_results"]["replayed"]
    assert replayed["entity_id"] == created["entity_id"]


async def test_recall_finds_what_was_stored(api: Served) -> None:
    await api.store("pref_tea", "Anna drinks tea without milk.", data={"cups": 2})
    answer = (await api.post("recall", {"query": "tea without milk"})).json()
    assert answer["count"] == len(answer["results"]) == 1
    item = answer["results"][0]
    assert item["key"] == "pref_tea"
    assert item["description"] == "Anna drinks tea without milk."
    assert item["data"] == {"cups": 2}
    assert 0 <= item["score"] <= 1
    assert isinstance(answer["_search_meta"], dict)


async def test_recall_of_something_unrelated_is_an_empty_list(api: Served) -> None:
    answer = (await api.post("recall", {"query": "quarterly tax deadline"})).json()
    assert answer["results"] == []
    assert answer["count"] == 0


async def test_overview_counts_and_ranks(api: Served) -> None:
    await api.store("fact_a", "One.", relationships=[{"to_key": "person_b", "relationship": "knows"}])
    answer = (await api.client.get(f"{REST}/overview")).json()
    assert answer["nodes"] == answer["total_nodes"] == answer["stats"]["nodes"] == 2
    assert answer["edges"] == 1
    assert {node["key"] for node in answer["top_nodes"]} == {"fact_a", "person_b"}
    assert {one["name"]: one["protected"] for one in answer["types"]} == {"fact": False, "person": True}
    assert sorted(answer["type_names"]) == ["fact", "person"]


async def test_nodes_are_keyed_by_key_and_unknown_ones_are_missing(api: Served) -> None:
    await api.store("fact_a", "One.", relationships=[{"to_key": "person_b", "relationship": "knows"}])
    answer = (await api.post("nodes", {"keys": ["fact_a", "nope"]})).json()
    assert answer["missing"] == ["nope"]
    assert answer["count"] == 1
    entry = answer["nodes"]["fact_a"]
    assert entry["node"]["description"] == "One."
    assert entry["node"]["placeholder"] is False
    assert entry["node"]["created_at"].endswith("Z")
    [edge] = entry["binary_edges"]
    assert edge["id"] == edge["edge_id"]
    assert (edge["in_node"], edge["out_node"], edge["direction"]) == ("fact_a", "person_b", "outgoing")
    assert entry["hyperedges"] == []
    assert entry["duplicates"] == []
    assert "enrichment_history" not in entry


async def test_nodes_without_relationships_or_with_history(api: Served) -> None:
    await api.store("fact_a", "One.")
    await api.store("fact_a", "Two.")
    request = {"keys": ["fact_a"], "include_relationships": False, "include_enrichment_history": True}
    entry = (await api.post("nodes", request)).json()["nodes"]["fact_a"]
    assert "binary_edges" not in entry
    assert [one["description"] for one in entry["enrichment_history"]][:2] == ["Two.", "One."]


async def test_participants_are_listed_as_far_as_asked(api: Served) -> None:
    names = [f"person_{n}" for n in range(12)]
    wish = {"participant_keys": names, "relationship": "crossed the lake together"}
    await api.store("fact_lake", "They crossed.", relationships=[wish])

    async def participants(**options: Any) -> tuple[int, bool]:
        answer = (await api.post("nodes", {"keys": ["person_3"], **options})).json()
        [hyperedge] = answer["nodes"]["person_3"]["hyperedges"]
        assert hyperedge["participant_count"] == 12
        return len(hyperedge["participants"]), hyperedge["participants_truncated"]

    assert await participants() == (5, True)
    assert await participants(relationship_detail="full", participant_limit=7) == (7, True)
    assert await participants(relationship_detail="full") == (12, False)


REFUSED = [
    ("recall", {}, 422, "validation_error", "/query is required."),
    ("recall", {"query": None}, 422, "validation_error", "/query is required."),
    ("recall", {"query": ""}, 422, "validation_error", "/query"),
    ("recall", {"query": " \n\t"}, 422, "validation_error", "/query"),
    ("recall", {"query": 7}, 422, "validation_error", '/query is not of type "string".'),
    ("recall", {"query": "x", "max_results": 0}, 422, "validation_error", "/max_results must be at least 1."),
    (
        "recall",
        {"query": "x", "max_results": 51},
        422,
        "validation_error",
        "/max_results must be at most 50.",
    ),
    (
        "recall",
        {"query": "x", "max_results": "5"},
        422,
        "validation_error",
        '/max_results is not of type "integer"',
    ),
    (
        "recall",
        {"query": "x", "max_results": True},
        422,
        "validation_error",
        '/max_results is not of type "integer"',
    ),
    (
        "recall",
        {"query": "x", "max_results": 10**40},
        422,
        "validation_error",
        "/max_results must be at most",
    ),
    (
        "recall",
        {"query": "x", "force_regex": "yes"},
        422,
        "validation_error",
        '/force_regex is not of type "boolean"',
    ),
    (
        "recall",
        {"query": "x", "session_id": ["a"]},
        422,
        "validation_error",
        '/session_id is not of type "string"',
    ),
    ("recall", {"query": "x", "organization_id": "acme"}, 400, "invalid_request", "/organization_id"),
    ("recall", {"query": "x" * 100_001}, 422, "validation_error", "/query"),
    ("recall", {"query": "a\x00b"}, 422, "validation_error", "/query"),
    ("store", {"description": "x"}, 422, "validation_error", "/key is required."),
    ("store", {"key": "k"}, 422, "validation_error", "/description is required."),
    ("store", {"key": "k", "description": "  "}, 422, "validation_error", "/description"),
    ("store", {"key": "  ", "description": "x"}, 422, "validation_error", "/key"),
    ("store", {"key": "k" * 300, "description": "x"}, 422, "validation_error", "/key"),
    ("store", {"key": "zwj\u200bkey", "description": "x"}, 422, "validation_error", "/key"),
    (
        "store",
        {"key": "k", "description": "x", "data": []},
        422,
        "validation_error",
        '/data is not of type "object"',
    ),
    (
        "store",
        {"key": "k", "description": "x", "if_exists": "merge"},
        422,
        "validation_error",
        "/if_exists must be",
    ),
    (
        "store",
        {"key": "k", "description": "x", "assets": [1]},
        422,
        "validation_error",
        "/assets/0 is not of type",
    ),
    (
        "store",
        {"key": "k", "description": "x", "relationships": {}},
        422,
        "validation_error",
        "/relationships is not of",
    ),
    (
        "store",
        {"key": "k", "description": "x", "relationships": ["y"]},
        422,
        "validation_error",
        "/relationships/0 is",
    ),
    ("store", {"key": "k", "description": "x" * 2_000_001}, 413, "payload_too_large", "/description"),
    ("nodes", {}, 422, "validation_error", "/keys is required."),
    ("nodes", {"keys": []}, 422, "validation_error", "/keys must have at least 1 item."),
    ("nodes", {"keys": "fact_a"}, 422, "validation_error", '/keys is not of type "array".'),
    (
        "nodes",
        {"keys": ["a"], "participant_limit": 101},
        422,
        "validation_error",
        "/participant_limit must be at most",
    ),
    (
        "nodes",
        {"keys": ["a"], "relationship_detail": "all"},
        422,
        "validation_error",
        "/relationship_detail must be",
    ),
    ("nodes", {"keys": ["a"], "organization_id": "acme"}, 400, "invalid_request", "/organization_id"),
    ("nodes", {"keys": [f"k{n}" for n in range(101)]}, 413, "payload_too_large", "/keys"),
]


@pytest.mark.parametrize(("route", "body", "status", "code", "start"), REFUSED, ids=range(len(REFUSED)))
async def test_bad_values_are_refused_with_a_pointer(
    api: Served, route: str, body: Any, status: int, code: str, start: str
) -> None:
    refused = envelope(await api.post(route, body), status, code)
    assert refused["detail"].startswith(start)
    assert refused["retryable"] is False


BODIES = [
    (b"", 422),
    (b"{", 422),
    (b"[]", 422),
    (b'"text"', 422),
    (b"null", 422),
    (b'{"query": NaN}', 422),
    (b'{"query": "x", "max_results": 1e999}', 422),
    (b'{"query": "x", "query": "y"}', 422),
    (b'{"query": "\xff"}', 422),
    (b'{"query": "\\ud800"}', 422),
    (b'{"query": "x", "\\ud800": 1}', 422),
    (b'{"query": "\\u0000"}', 422),
    (b'{"query": "x", "n": ' + b"9" * 5_000 + b"}", 422),
    (b'{"query": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", 422),
    (b'{"key": "k", "description": "x", "data": ' + b'{"a":' * 40 + b"1" + b"}" * 41, 422),
]


@pytest.mark.parametrize(("body", "status"), BODIES, ids=range(len(BODIES)))
async def test_broken_bodies_are_refused(api: Served, body: bytes, status: int) -> None:
    route = "store" if body.startswith(b'{"key"') else "recall"
    response = await api.client.post(f"{REST}/{route}", content=body, headers=JSON)
    envelope(response, status, "validation_error")


async def test_long_values_within_the_limits_are_accepted(api: Served) -> None:
    await api.store("fact_long", "long memory " * 87_000)
    query = "memory " * 14_285
    assert (await api.post("recall", {"query": query})).status_code == 200
    answer = (await api.post("nodes", {"keys": ["fact_long"]})).json()
    assert answer["nodes"]["fact_long"]["node"]["description"] == "long memory " * 87_000
    assert "truncated" not in answer


async def test_a_body_over_the_limit_is_413(tmp_path: Path) -> None:
    async with served(tmp_path, max_body_bytes=2_000) as api:
        refused = await api.post("store", {"key": "k", "description": "x" * 3_000})
        assert envelope(refused, 413, "payload_too_large")["limit"] == 2_000

        async def chunks() -> Any:
            for _ in range(40):
                yield b" " * 100

        streamed = await api.client.post(f"{REST}/store", content=chunks(), headers=JSON)
        envelope(streamed, 413, "payload_too_large")


async def test_content_types(api: Served) -> None:
    body = json.dumps({"query": "x"})
    for content_type in ("application/json", "application/json; charset=utf-8", "text/plain", ""):
        response = await api.client.post(
            f"{REST}/recall", content=body, headers={"Content-Type": content_type}
        )
        assert response.status_code == 200, content_type
    form = await api.client.post(f"{REST}/recall", files={"query": b"x"})
    envelope(form, 415, "unsupported_media_type")
    pairs = await api.client.post(f"{REST}/recall", data={"query": "x"})
    envelope(pairs, 415, "unsupported_media_type")
    packed = await api.client.post(
        f"{REST}/recall", content=body, headers={**JSON, "Content-Encoding": "gzip"}
    )
    envelope(packed, 415, "unsupported_media_type")


async def test_unknown_properties_are_ignored_and_named(api: Served) -> None:
    answer = await api.store("fact_a", "One.", colour="red", response_format="structured")
    assert any("'colour'" in warning for warning in answer["warnings"])
    assert not any("response_format" in warning for warning in answer["warnings"])
    found = (await api.post("recall", {"query": "One", "limit": 3, "response_format": "x"})).json()
    assert any("'limit'" in warning for warning in found["warnings"])


async def test_null_counts_as_absent(api: Served) -> None:
    fields = dict.fromkeys(("node_type", "data", "relationships", "assets", "search_text", "session_id"))
    answer = await api.store("fact_a", "One.", if_exists=None, **fields)
    assert "warnings" not in answer
    found = await api.post(
        "recall",
        {"query": "One", "max_results": None, "organization_id": None, "force_regex": None, "limit": None},
    )
    assert found.status_code == 200
    assert "warnings" not in found.json()


async def test_organization_none_is_your_own_memory(api: Served) -> None:
    await api.store("fact_a", "One.")
    own = {"organization_id": "none"}
    assert (await api.post("recall", {"query": "One", **own})).json()["count"] == 1
    assert (await api.post("nodes", {"keys": ["fact_a"], **own})).json()["count"] == 1
    assert (await api.client.get(f"{REST}/overview", params=own)).json()["nodes"] == 1
    other = await api.client.get(f"{REST}/overview", params={"organization_id": "acme"})
    envelope(other, 400, "invalid_request")


async def test_if_exists(api: Served) -> None:
    await api.store("fact_a", "One.")
    kept = await api.store("fact_a", "Two.", if_exists="keep")
    assert kept["status"] == "kept"
    refused = await api.post("store", {"key": "fact_a", "description": "Two.", "if_exists": "error"})
    envelope(refused, 409, "already_exists")
    assert (await api.store("fact_a", "Two."))["status"] == "updated"


@pytest.mark.parametrize(
    "header",
    ["", "Bearer", "Bearer ", "Bearer nonsense", "Basic aGk6aGk=", "hm_" + "0" * 64, f"Bearer hm_{'0' * 64}"],
)
async def test_without_a_valid_credential_nothing_answers(api: Served, header: str) -> None:
    headers = {"Authorization": header} if header else {}
    for method, path in (("GET", "overview"), ("POST", "recall"), ("POST", "store"), ("GET", "health")):
        response = await api.anonymous.request(method, f"{REST}/{path}", headers=headers)
        refused = envelope(response, 401, "unauthorized")
        assert response.headers["www-authenticate"].startswith("Bearer")
        assert "plan" not in refused


async def test_the_scheme_is_case_insensitive_and_a_revoked_key_ends_at_once(api: Served) -> None:
    headers = {"Authorization": f"bearer  {api.key}"}
    assert (await api.anonymous.get(f"{REST}/overview", headers=headers)).status_code == 200
    await api.services.keys.revoke(await api.services.access.local_principal(), api.key)
    envelope(await api.anonymous.get(f"{REST}/overview", headers=headers), 401, "unauthorized")


async def test_a_read_only_key_reads_and_does_not_write(api: Served) -> None:
    await api.store("fact_a", "One.")
    assert (await api.reader.post(f"{REST}/recall", json={"query": "One"})).json()["count"] == 1
    for body in ({"key": "fact_b", "description": "Two."}, {}):
        refused = envelope(await api.reader.post(f"{REST}/store", json=body), 403, "forbidden")
        assert "plan" not in refused


async def test_unknown_paths_and_methods(api: Served) -> None:
    for path in ("/", "/nope", f"{REST}/nope", f"{REST}/recall/", "/mcp/", "//evil.example/", f"{REST}/../x"):
        response = await api.client.get(path)
        envelope(response, 404, "not_found")
        assert "location" not in response.headers
    for method, path, allow in (
        ("GET", f"{REST}/recall", "POST"),
        ("DELETE", f"{REST}/overview", "GET"),
        ("PUT", f"{REST}/store", "POST"),
        ("OPTIONS", f"{REST}/store", "POST"),
    ):
        response = await api.client.request(method, path)
        envelope(response, 405, "method_not_allowed")
        assert allow in response.headers["allow"]


async def test_head_is_get_without_its_body(api: Served) -> None:
    for path in ("/health", f"{REST}/overview", f"{REST}/health", f"{REST}/ready", "/openapi.json"):
        response = await api.client.head(path)
        assert response.status_code == 200, path


async def test_request_ids(api: Served) -> None:
    given = await api.client.get("/health", headers={"X-Request-Id": "Build-2024-abcdef"})
    assert given.headers["x-request-id"] == "Build-2024-abcdef"
    assert given.headers["cache-control"] == "no-store"
    for bad in ("short", "x" * 65, "with blank inside", "newline%0a-abcdef"):
        own = (await api.client.get("/health", headers={"X-Request-Id": bad})).headers["x-request-id"]
        assert own != bad
        assert len(own) == 32


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8477", "localhost.evil.example", "a@localhost", ""]
)
async def test_foreign_hosts_are_refused(api: Served, host: str) -> None:
    for path in ("/health", "/mcp", f"{REST}/overview"):
        response = await api.client.get(path, headers={"Host": host})
        envelope(response, 421, "host_not_allowed")


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:9", "127.0.0.1:8477", "[::1]:8477"])
async def test_loopback_hosts_are_ours(api: Served, host: str) -> None:
    assert (await api.client.get("/health", headers={"Host": host})).status_code == 200


@pytest.mark.parametrize(
    "origin", ["https://evil.example", "null", "http://localhost.evil.example", "file://"]
)
async def test_pages_of_other_sites_are_refused(api: Served, origin: str) -> None:
    for method, path in (("GET", "/health"), ("POST", "/mcp"), ("POST", f"{REST}/store")):
        response = await api.client.request(method, path, headers={"Origin": origin})
        envelope(response, 403, "origin_not_allowed")
    own = await api.client.get("/health", headers={"Origin": "http://127.0.0.1:5173"})
    assert own.status_code == 200


async def test_allowed_hosts_setting(tmp_path: Path) -> None:
    async with served(tmp_path / "a", allowed_hosts="memory.example, other.example:8443") as api:
        for host, status in (
            ("memory.example", 200),
            ("memory.example:444", 200),
            ("other.example:8443", 200),
            ("other.example", 421),
            ("evil.example", 421),
        ):
            assert (await api.client.get("/health", headers={"Host": host})).status_code == status, host
    async with served(tmp_path / "b", allowed_hosts="*") as api:
        assert (await api.client.get("/health", headers={"Host": "any.example"})).status_code == 200


async def test_health_and_readiness(api: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    assert (await api.anonymous.get("/health")).json() == {"status": "ok"}
    assert (await api.anonymous.get(f"{REST}/ready")).json() == {"status": "ready"}
    body = (await api.client.get(f"{REST}/health")).json()
    assert body["status"] == "ok"
    assert body["checks"]["embedder"] == "ok"
    assert body["checks"]["reranker"] == "off"
    api.services.executor.use_embedder(None, "model.onnx is cut short; install it again")
    degraded = await api.client.get(f"{REST}/health")
    assert degraded.status_code == 200
    assert degraded.json()["status"] == "degraded"
    assert "model.onnx" in degraded.json()["checks"]["embedder"]


async def test_failures_carry_the_envelope(api: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    async def busy(*_: object) -> None:
        raise Unavailable("the store is busy.", retry_after_seconds=7)

    async def broken(*_: object) -> None:
        raise ValueError("secret detail")

    recall = type(api.services.recall)
    monkeypatch.setattr(recall, "recall", busy)
    response = await api.post("recall", {"query": "x"})
    refused = envelope(response, 503, "unavailable")
    assert refused["retryable"] is True
    assert refused["retry_after"] == 7
    assert response.headers["retry-after"] == "7"
    monkeypatch.setattr(recall, "recall", broken)
    response = await api.post("recall", {"query": "x"})
    assert "secret" not in response.text
    envelope(response, 500, "internal_error")
