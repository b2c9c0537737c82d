"""The OpenAPI document describes what the server really answers."""

from __future__ import annotations

from typing import Any

import httpx2
import jsonschema
import pytest

from hivemem.surfaces.operations import OPERATIONS, REST_PREFIX, TOOLS
from tests.surfaces.serving import REST, Served

# The input properties of the wire contract, tool by tool.
PROPERTIES = {
    "hm_get_overview": {"organization_id"},
    "hm_recall": {"query", "max_results", "organization_id", "session_id", "force_regex"},
    "hm_get_nodes": {
        *("keys", "include_relationships", "include_duplicates", "relationship_detail", "participant_limit"),
        *("include_enrichment_history", "include_session_relationships", "organization_id"),
    },
    "hm_find_related": {
        *("start_node", "query", "max_nodes", "max_depth", "relationship_pattern", "lens", "session_id"),
        "organization_id",
    },
    "hm_store": {
        *("key", "description", "node_type", "data", "relationships", "assets", "search_text", "session_id"),
        "if_exists",
    },
    "hm_update": {
        *("key", "edge_id", "edge_version", "description", "node_type", "data", "assets", "search_text"),
    },
    "hm_forget": {"key", "edge_id", "edge_version"},
    "hm_add_relationships": {"relationships"},
    "hm_ingest": {"text", "context"},
    "hm_upload_file": {"filename", "content_base64", "description", "node_key"},
    "hm_list_files": {"file_type", "search", "limit"},
    "hm_tabular": {
        *(
            "mode",
            "file_id",
            "include_regions",
            "max_sheets",
            "sheet",
            "range",
            "max_cells",
            "query",
            "limit",
        ),
        *("cell", "direction", "max_depth", "max_nodes"),
    },
    "hm_timeline": {"query", "node_key", "period", "start", "end", "limit"},
    "hm_timeline_write": {"summary", "meta"},
    "hm_get_chat_context": {"session_id"},
    "hm_tokens": {
        *("ai_tool", "provider", "model", "session_id", "turn_sequence", "measurement_quality", "segments"),
        *("input_tokens", "output_tokens", "total_tokens", "cache_tokens", "reasoning_tokens"),
        *("cache_accounting", "estimation_bias", "cost_usd", "cost_quality", "ai_account_id", "timestamp"),
        "uncertainty_percentage",
    },
    "hm_list_orphans": {"limit", "cursor", "organization_id"},
    "hm_skill": {"action", "variant", "name", "skill_id", "current_version", "include_content"},
}
"""The input properties of each tool, exactly as the clients know them."""

ROUTES = {
    "hm_get_overview": [("GET", "/overview")],
    "hm_recall": [("POST", "/recall")],
    "hm_get_nodes": [("POST", "/nodes")],
    "hm_find_related": [("POST", "/find-related")],
    "list_relationships": [("GET", "/relationships/{key}")],
    "hm_list_orphans": [("GET", "/orphans")],
    "node_history": [("GET", "/history/{key}")],
    "hm_store": [("POST", "/store")],
    "hm_update": [("POST", "/update")],
    "hm_forget": [("POST", "/forget")],
    "hm_add_relationships": [("POST", "/relationships")],
    "hm_ingest": [("POST", "/ingest")],
    "hm_upload_file": [("POST", "/upload-file")],
    "hm_list_files": [("GET", "/files")],
    "hm_tabular": [("POST", "/tabular/{mode}")],
    "hm_timeline": [("POST", "/timeline")],
    "hm_timeline_write": [("POST", "/timeline/write")],
    "hm_get_chat_context": [],
    "hm_tokens": [("POST", "/hm_tokens")],
    "hm_skill": [("POST", "/skills"), ("GET", "/skills")],
    "restore_node": [("POST", "/restore")],
}


@pytest.fixture
async def document(api: Served) -> dict[str, Any]:
    response = await api.anonymous.get("/openapi.json")
    assert response.status_code == 200
    return response.json()


def check(document: dict[str, Any], method: str, path: str, response: httpx2.Response) -> None:
    described = document["paths"][path][method]["responses"][str(response.status_code)]
    schema = described["content"]["application/json"]["schema"]
    validator = jsonschema.Draft202012Validator({**schema, "components": document["components"]})
    errors = [error.message for error in validator.iter_errors(response.json())]
    assert errors == []


def test_inputs_are_exactly_the_properties_of_the_contract() -> None:
    assert {name: set(operation.input_names) for name, operation in TOOLS.items()} == PROPERTIES
    assert {
        operation.name: [(route.method, route.path) for route in operation.routes] for operation in OPERATIONS
    } == ROUTES


async def test_the_document_names_every_route_and_resolves(document: dict[str, Any]) -> None:
    assert document["openapi"].startswith("3.1")
    paths = document["paths"]
    assert {REST_PREFIX + route.path for operation in OPERATIONS for route in operation.routes} <= set(paths)
    schemas = document["components"]["schemas"]
    for schema in schemas.values():
        jsonschema.Draft202012Validator.check_schema(schema)

    def references(value: Any) -> list[str]:
        if isinstance(value, dict):
            found = [value["$ref"]] if isinstance(value.get("$ref"), str) else []
            return found + [name for item in value.values() for name in references(item)]
        return [name for item in value for name in references(item)] if isinstance(value, list) else []

    named = references(document)
    assert named
    for reference in named:
        assert reference.removeprefix("#/components/schemas/") in schemas


async def test_answers_fit_the_document(api: Served, document: dict[str, Any]) -> None:
    wishes = [
        {"to_key": "person_b", "relationship": "knows", "data": {"since": 2020}},
        {"participant_keys": [f"person_{n}" for n in range(6)], "relationship": "met at the harbour"},
        {"to_key": "fact_a", "relationship": "is itself"},
    ]
    store = {"key": "fact_a", "description": "One memory.", "data": {"n": 1}, "relationships": wishes}
    for body in (store, {**store, "description": "x " * 20_000, "colour": 1}, {"key": "k"}):
        check(document, "post", f"{REST}/store", await api.post("store", body))
    await api.store("fact_c", "y " * 20_000)
    for body in ({"query": "One memory"}, {"query": ""}, {"query": "x", "organization_id": "acme"}):
        check(document, "post", f"{REST}/recall", await api.post("recall", body))
    for body in (
        {"keys": ["fact_a", "person_b", "nope"], "include_enrichment_history": True},
        {"keys": ["fact_a", "fact_c"], "include_relationships": False, "include_duplicates": False},
        {"keys": []},
    ):
        check(document, "post", f"{REST}/nodes", await api.post("nodes", body))
    for path in (f"{REST}/overview", f"{REST}/health", f"{REST}/ready", "/health"):
        check(document, "get", path, await api.client.get(path))
    check(document, "get", f"{REST}/overview", await api.anonymous.get(f"{REST}/overview"))
    check(document, "post", f"{REST}/store", await api.reader.post(f"{REST}/store", json=store))


async def test_answers_of_oauth_fit_the_document(api: Served, document: dict[str, Any]) -> None:
    registration: dict[str, Any] = {"redirect_uris": ["http://127.0.0.1"], "client_name": "Agent"}
    for body in (registration, {}, {**registration, "token_endpoint_auth_method": "none"}):
        check(document, "post", "/register", await api.anonymous.post("/register", json=body))
    for path in ("/token", "/revoke"):
        for sent in ({}, {"client_id": "none", "grant_type": "refresh_token", "refresh_token": "x"}):
            check(document, "post", path, await api.anonymous.post(path, data=sent))
    well_known = [path for path in document["paths"] if path.startswith("/.well-known/")]
    assert len(well_known) == 3
    for path in well_known:
        check(document, "get", path, await api.anonymous.get(path))


async def test_answers_fit_the_output_schemas_of_the_tools(api: Served) -> None:
    listed = await api.client.post("/mcp", json={"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
    schemas = {tool["name"]: tool["outputSchema"] for tool in listed.json()["result"]["tools"]}
    answers = {
        "hm_store": await api.store("fact_a", "One.", relationships=[{"to_key": "b", "relationship": "r"}]),
        "hm_recall": (await api.post("recall", {"query": "One"})).json(),
        "hm_get_nodes": (await api.post("nodes", {"keys": ["fact_a"]})).json(),
        "hm_get_overview": (await api.client.get(f"{REST}/overview")).json(),
    }
    for name, answer in answers.items():
        jsonschema.Draft202012Validator(schemas[name]).validate(answer)
