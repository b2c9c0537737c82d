"""Numbers and names of the wire contract: required properties, defaults, ranges, statuses."""

from __future__ import annotations

from typing import Any

import pytest

from hivemem.surfaces.operations import TOOLS, Access
from hivemem.surfaces.schemas import slim_schema
from tests.surfaces.serving import Served

REQUIRED = {
    "hm_recall": {"query"},
    "hm_get_nodes": {"keys"},
    "hm_find_related": {"start_node"},
    "hm_store": {"key", "description"},
    "hm_add_relationships": {"relationships"},
    "hm_ingest": {"text"},
    "hm_timeline_write": {"summary"},
    "hm_upload_file": {"filename", "content_base64"},
    "hm_tabular": {"mode", "file_id"},
    "hm_tokens": {
        *("ai_tool", "provider", "model", "session_id", "turn_sequence", "measurement_quality", "segments"),
    },
}

# (tool, property): (minimum, maximum, default); None where there is none.
RANGES = {
    ("hm_recall", "max_results"): (1, 50, 10),
    ("hm_get_nodes", "participant_limit"): (0, 100, 20),
    ("hm_find_related", "max_nodes"): (1, 500, 50),
    ("hm_find_related", "max_depth"): (1, None, 2),
    ("hm_update", "edge_version"): (0, None, None),
    ("hm_forget", "edge_version"): (0, None, None),
    ("hm_list_orphans", "limit"): (1, 200, 50),
    ("hm_timeline", "limit"): (1, 200, 50),
    ("hm_list_files", "limit"): (1, 200, 50),
    ("hm_tabular", "max_sheets"): (1, 500, 250),
    ("hm_tabular", "max_cells"): (1, 2000, 2000),
    ("hm_tabular", "limit"): (1, 50, 25),
    ("hm_tabular", "max_depth"): (1, 8, 6),
    ("hm_tabular", "max_nodes"): (1, 500, 200),
    ("hm_tokens", "turn_sequence"): (1, None, None),
}

CHOICES = {
    ("hm_store", "if_exists"): {"update", "keep", "error"},
    ("hm_get_nodes", "relationship_detail"): {"summary", "full"},
    ("hm_timeline", "period"): {"1h", "3h", "6h", "12h", "24h", "3d", "7d", "14d", "30d", "90d", "1y"},
    ("hm_list_files", "file_type"): {"document", "image", "audio", "video"},
    ("hm_tabular", "mode"): {"outline", "range", "search", "trace"},
    ("hm_tabular", "direction"): {"precedents", "dependents"},
    ("hm_skill", "action"): {"list", "get", "check_update"},
    ("hm_tokens", "measurement_quality"): {"client_exact", "self_estimated", "provider_actual"},
}

WRITE_TOOLS = {
    *("hm_store", "hm_update", "hm_forget", "hm_add_relationships", "hm_ingest", "hm_timeline_write"),
    "hm_upload_file",
}


def properties(tool: str) -> dict[str, Any]:
    return slim_schema(TOOLS[tool].input.model_json_schema())["properties"]


def test_there_are_eighteen_tools_and_seven_of_them_write() -> None:
    assert len(TOOLS) == 18
    assert {name for name, tool in TOOLS.items() if tool.access is Access.WRITE} == WRITE_TOOLS


def test_required_properties() -> None:
    found = {
        name: set(slim_schema(tool.input.model_json_schema()).get("required", ()))
        for name, tool in TOOLS.items()
    }
    assert {name: names for name, names in found.items() if names} == REQUIRED


@pytest.mark.parametrize(("tool", "name"), RANGES)
def test_ranges_and_defaults(tool: str, name: str) -> None:
    told = properties(tool)[name]
    assert told["type"] == "integer"
    assert (told.get("minimum"), told.get("maximum"), told.get("default")) == RANGES[tool, name]


@pytest.mark.parametrize(("tool", "name"), CHOICES)
def test_choices(tool: str, name: str) -> None:
    assert set(properties(tool)[name]["enum"]) == CHOICES[tool, name]


async def test_statuses_of_refusals(api: Served) -> None:
    stored = await api.store(
        "fact_a", "One.", relationships=[{"to_key": "fact_b", "relationship": "is near"}]
    )
    edge_id = stored["relationship_results"]["created"][0]["entity_id"]
    joined = await api.post(
        "relationships",
        {
            "relationships": [
                {
                    "participant_keys": ["fact_a", "fact_b", "user_profile"],
                    "relationship": "were told in one breath",
                    "description": "Three at once, described at such length that the policy for "
                    "three has nothing against it.",
                }
            ]
        },
    )
    assert not joined.json()["errors"], joined.text
    [hyperedge] = joined.json()["created"]
    for route, body, status, code in (
        ("recall", {"query": "x", "organization_id": "acme"}, 400, "invalid_request"),
        ("store", {"key": "fact_a", "description": "x", "if_exists": "error"}, 409, "already_exists"),
        ("update", {"edge_id": edge_id, "edge_version": 7, "data": {}}, 409, "version_conflict"),
        ("update", {"edge_id": hyperedge["entity_id"], "description": "x"}, 409, "hyperedge_immutable"),
        ("update", {"key": "fact_none", "description": "x"}, 404, "not_found"),
        ("forget", {"edge_id": "edge_none"}, 404, "not_found"),
        ("forget", {"key": "user_profile"}, 409, "conflict"),
        ("find-related", {"start_node": "fact_none"}, 404, "not_found"),
        ("tabular/trace", {"mode": "range", "file_id": "x"}, 422, "validation_error"),
        ("ingest", {"text": "x" * 200_000}, 413, "payload_too_large"),
    ):
        answer = await api.post(route, body)
        assert (answer.status_code, answer.json()["error"]) == (status, code), answer.text
    assert (await api.post("update", {"edge_id": edge_id, "edge_version": 7, "data": {}})).json()[
        "current_version"
    ] == 1


async def test_a_whole_number_may_be_written_with_a_fraction_of_zero(api: Served) -> None:
    """JSON knows one kind of number, and schemas take 3.0 for an integer."""
    await api.store("fact_a", "The harbour opens at seven.")
    found = await api.client.post(
        "/api/v1/memory/recall", content=b'{"query": "harbour", "max_results": 3.0, "session_id": null}'
    )
    assert (found.status_code, found.json()["count"]) == (200, 1)
    for wrong in (b"3.5", b"51.0", b"1e300", b"true"):
        refused = await api.client.post(
            "/api/v1/memory/recall", content=b'{"query": "harbour", "max_results": ' + wrong + b"}"
        )
        assert (refused.status_code, refused.json()["error"]) == (422, "validation_error"), wrong
