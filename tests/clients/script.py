"""One conversation with every tool, with valid and with invalid arguments, for any kind of client to play."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

Json = dict[str, Any]
Answers = Mapping[str, Json]
"""Answers of the calls that have a name, by that name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One call of a tool.

    `arguments` may be made from earlier answers. `refused` is the error code to expect, None for an answer.
    """

    tool: str
    arguments: Json | Callable[[Answers], Json]
    refused: str | None = None
    name: str | None = None

    def sent(self, answers: Answers) -> Json:
        return self.arguments(answers) if callable(self.arguments) else self.arguments


def good(tool: str, arguments: Json | Callable[[Answers], Json], name: str | None = None) -> Call:
    return Call(tool=tool, arguments=arguments, name=name)


def bad(tool: str, code: str, arguments: Json | Callable[[Answers], Json]) -> Call:
    return Call(tool=tool, arguments=arguments, refused=code)


THREE = "Ola, the ferry and the harbour office were named in one and the same message of the harbour master."
TABLE = base64.b64encode(b"tide,height\nhigh,3.1\nlow,0.4\n").decode()
PROGRAM = base64.b64encode(b"MZ\x90\x00\x03\x00\x00\x00\x04\xff" * 20).decode()
INVALID = "validation_error"

SEGMENTS = [{"category": "coding", "weight": 60}, {"category": "memory", "weight": 40}]
REPORT: Json = {
    "ai_tool": "claude_code",
    "provider": "unknown",
    "model": "unknown",
    "session_id": "turns",
    "turn_sequence": 1,
    "measurement_quality": "client_exact",
    "segments": SEGMENTS,
    "input_tokens": 12,
    "cost_usd": 0.25,
}

WRITES = [
    good(
        "hm_store",
        {
            "key": "event_ferry",
            "description": "The ferry leaves the harbour at nine. ☕",
            "data": {"gates": [1, 2.5, None, True]},
            "relationships": [{"to_key": "person_ola", "relationship": "is steered by"}],
            "assets": ["https://example.org/ferry"],
            "search_text": "boat timetable",
            "session_id": "talk",
        },
        "ferry",
    ),
    good("hm_store", {"key": "event_ferry", "description": "Not taken.", "if_exists": "keep"}),
    good("hm_store", {"key": "person_ola", "description": "Ola repairs motors.", "node_type": "person"}),
    good("hm_store", {"key": "organization_harbour", "description": "The harbour office opens at seven."}),
    good("hm_store", {"key": "fact_alone", "description": "Nothing belongs to this one.", "colour": "red"}),
    bad("hm_store", "already_exists", {"key": "fact_alone", "description": "Twice.", "if_exists": "error"}),
    bad("hm_store", INVALID, {"key": "fact_b"}),
    bad("hm_store", INVALID, {"key": "fact_b", "description": " "}),
    bad("hm_store", INVALID, {"key": "a\u0007b", "description": "Text."}),
    bad("hm_store", INVALID, {"key": "fact_b", "description": "Text.", "if_exists": "perhaps"}),
    bad("hm_store", INVALID, {"key": "fact_b", "description": "Text.", "data": [1]}),
    good(
        "hm_add_relationships",
        {
            "relationships": [
                {
                    "participant_keys": ["person_ola", "event_ferry", "organization_harbour"],
                    "relationship": "were named in one message",
                    "description": THREE,
                },
                {"from_key": "person_ola", "to_key": "nobody", "relationship": "waits for"},
            ]
        },
        "related",
    ),
    bad("hm_add_relationships", INVALID, {"relationships": []}),
    bad("hm_add_relationships", INVALID, {"relationships": "x"}),
    good("hm_update", {"key": "person_ola", "description": "Ola repairs outboard motors."}),
    good(
        "hm_update",
        lambda seen: {"edge_id": _edge(seen), "edge_version": 1, "description": "Every day."},
    ),
    bad(
        "hm_update", "version_conflict", lambda seen: {"edge_id": _edge(seen), "edge_version": 1, "data": {}}
    ),
    bad(
        "hm_update",
        "hyperedge_immutable",
        lambda seen: {"edge_id": seen["related"]["created"][0]["entity_id"], "description": "x"},
    ),
    bad("hm_update", "not_found", {"key": "fact_none", "description": "x"}),
    bad("hm_update", INVALID, {"key": "fact_alone"}),
    bad("hm_update", INVALID, {"key": "fact_alone", "edge_id": "edge_x", "description": "x"}),
    good("hm_ingest", {"text": "Ola met Kari in Bergen. The pier was closed in May.", "context": "diary"}),
    bad("hm_ingest", INVALID, {"text": ""}),
    bad("hm_ingest", INVALID, {"context": "no text"}),
    good("hm_upload_file", {"filename": "tides.csv", "content_base64": TABLE}, "file"),
    bad("hm_upload_file", INVALID, {"filename": "tides.csv", "content_base64": "*"}),
    bad("hm_upload_file", "unsupported_file_type", {"filename": "a.exe", "content_base64": PROGRAM}),
    good("hm_timeline_write", {"summary": "Talked about boats.", "meta": {"n": 1}}),
    bad("hm_timeline_write", INVALID, {"summary": "  "}),
    good("hm_tokens", REPORT),
    good("hm_tokens", REPORT),
    bad("hm_tokens", INVALID, {**REPORT, "segments": {"coding": 100}}),
    bad("hm_tokens", INVALID, {**REPORT, "turn_sequence": 0}),
    bad("hm_tokens", INVALID, {"ai_tool": "codex"}),
]

READS = [
    good("hm_get_overview", {}),
    good("hm_get_overview", {"organization_id": "none"}),
    bad("hm_get_overview", "invalid_request", {"organization_id": "acme"}),
    good("hm_recall", {"query": "when does the ferry leave?", "session_id": "talk", "max_results": 3}),
    good("hm_recall", {"query": "zxqv blorple"}),
    good("hm_recall", {"query": "motors|ferry", "force_regex": True}),
    bad("hm_recall", INVALID, {"query": "(", "force_regex": True}),
    bad("hm_recall", INVALID, {"query": "x", "max_results": 51}),
    bad("hm_recall", INVALID, {"query": "x", "max_results": 1.5}),
    bad("hm_recall", INVALID, {}),
    good(
        "hm_get_nodes",
        {"keys": ["event_ferry", "fact_none"], "include_enrichment_history": True},
    ),
    good("hm_get_nodes", {"keys": ["person_ola"], "relationship_detail": "full", "participant_limit": 0}),
    good("hm_get_nodes", {"keys": ["person_ola", "event_ferry"], "include_relationships": False}),
    bad("hm_get_nodes", INVALID, {"keys": []}),
    bad("hm_get_nodes", INVALID, {"keys": ["a", 1]}),
    bad("hm_get_nodes", INVALID, {"keys": ["a"], "participant_limit": 101}),
    good("hm_get_chat_context", {"session_id": "talk"}),
    good("hm_get_chat_context", {}),
    bad("hm_get_chat_context", INVALID, {"session_id": " "}),
    good(
        "hm_find_related",
        {"start_node": "event_ferry", "query": "motors", "lens": "person", "session_id": "talk"},
    ),
    good("hm_find_related", {"start_node": "event_ferry", "relationship_pattern": "steered", "max_depth": 1}),
    bad("hm_find_related", "not_found", {"start_node": "fact_none"}),
    bad("hm_find_related", INVALID, {"start_node": "event_ferry", "max_nodes": 0}),
    bad("hm_find_related", INVALID, {}),
    good("hm_list_orphans", {"limit": 1}, "orphans"),
    good("hm_list_orphans", lambda seen: {"cursor": seen["orphans"]["next_cursor"]}),
    bad("hm_list_orphans", INVALID, {"cursor": "%"}),
    bad("hm_list_orphans", INVALID, {"limit": 0}),
    good("hm_timeline", {}),
    good("hm_timeline", {"query": "boats", "period": "1h", "limit": 2}),
    good("hm_timeline", {"node_key": "event_ferry", "start": "2020-01-01T00:00:00Z"}),
    bad("hm_timeline", INVALID, {"period": "2h"}),
    bad("hm_timeline", INVALID, {"start": "2026-02-30"}),
    good("hm_list_files", {}),
    good("hm_list_files", {"file_type": "image", "search": "tide"}),
    bad("hm_list_files", INVALID, {"file_type": "hologram"}),
    good("hm_tabular", lambda seen: {"mode": "outline", "file_id": _file(seen)}),
    good(
        "hm_tabular",
        lambda seen: {"mode": "range", "file_id": _file(seen), "sheet": "tides", "range": "A1:B3"},
    ),
    good("hm_tabular", lambda seen: {"mode": "search", "file_id": _file(seen), "query": "high"}),
    good(
        "hm_tabular",
        lambda seen: {"mode": "trace", "file_id": _file(seen), "sheet": "tides", "cell": "B2"},
    ),
    bad("hm_tabular", INVALID, lambda seen: {"mode": "range", "file_id": _file(seen)}),
    bad("hm_tabular", "not_found", {"mode": "outline", "file_id": "file_none"}),
    good("hm_skill", {}),
    good("hm_skill", {"action": "get", "variant": "cli"}),
    good("hm_skill", {"action": "check_update", "variant": "general", "current_version": "0.0.1"}),
    bad("hm_skill", INVALID, {"action": "check_update", "variant": "general"}),
    bad("hm_skill", "not_found", {"action": "get", "name": "no_such_skill"}),
    bad("hm_skill", INVALID, {"action": "publish"}),
]

FORGETTING = [
    bad("hm_forget", "version_conflict", lambda seen: {"edge_id": _edge(seen), "edge_version": 9}),
    good("hm_forget", lambda seen: {"edge_id": _edge(seen), "edge_version": 2}),
    bad("hm_forget", "not_found", lambda seen: {"edge_id": _edge(seen)}),
    good("hm_forget", {"key": "event_ferry"}),
    bad("hm_forget", "not_found", {"key": "event_ferry"}),
    bad("hm_forget", INVALID, {}),
    bad("hm_forget", INVALID, {"key": "person_ola", "edge_version": 1}),
    good("hm_recall", {"query": "when does the ferry leave?"}),
]

SCRIPT = (*WRITES, *READS, *FORGETTING)


def _edge(seen: Answers) -> str:
    return seen["ferry"]["relationship_results"]["created"][0]["entity_id"]


def _file(seen: Answers) -> str:
    return seen["file"]["file_id"]
