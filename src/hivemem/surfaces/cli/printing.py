"""Answers for people on a terminal; with `--json`, the answer itself."""

from __future__ import annotations

import json
import shutil
import sys
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

Answer = Mapping[str, Any]
_INDENT = "   "


def print_answer(verb: str, answer: Answer, *, as_json: bool) -> None:
    """Write an answer to standard output, and its warnings to standard error."""
    if as_json:
        print(json.dumps(answer, ensure_ascii=False))
        return
    printers = {
        "recall": _recall,
        "store": _store,
        "nodes": _nodes,
        "overview": _overview,
        "restore": _restore,
    }
    lines = printers[verb](answer) if verb in printers else _as_json(answer)
    if answer.get("write_target") and verb in printers:
        target = answer["write_target"]
        lines.append(f"{_INDENT}in the memory of {target['name']} ({target['organization_id']})")
    print("\n".join(lines))
    for warning in answer.get("warnings", ()):
        print(f"note: {warning}", file=sys.stderr)


def table(rows: list[tuple[str, ...]]) -> list[str]:
    """Rows as aligned columns, without trailing blanks."""
    if not rows:
        return []
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    ]


def _recall(answer: Answer) -> list[str]:
    lines = _results(answer["results"]) or ["nothing relevant is remembered"]
    return lines + _organization_memory(answer.get("organization_memory") or {"status": ""})


def _organization_memory(memory: Answer) -> list[str]:
    """What an organization knows, under its name, or why nothing of it is shown."""
    if memory["status"] == "included":
        found = _results(memory["results"]) or ["nothing relevant is remembered there"]
        return ["", f"organization {memory['name']} ({memory['organization_id']})", *found]
    if memory["status"] == "failed":
        return ["", f"organization {memory.get('name', '')}: {memory['error']}"]
    if memory["status"] == "selection_required":
        known = [(f"{_INDENT}{one['organization_id']}", one["name"]) for one in memory["organizations"]]
        return ["", "no organization was searched; choose one with --organization", *table(known)]
    return []


def _results(results: Sequence[Answer]) -> list[str]:
    lines: list[str] = []
    for rank, item in enumerate(results, start=1):
        lines.append(f"{rank}. {item['score']:.3f}  {item['key']}  ({item['node_type']})")
        lines.append(_one_line(item["description"]))
        if item.get("reasons"):
            lines.append(_one_line("why: " + "; ".join(item["reasons"])))
        for entry in item["expansion_context"]:
            arrow = "->" if entry["direction"] == "outgoing" else "<-"
            lines.append(_one_line(f"{arrow} {entry['key']}: {entry['relationship']}"))
        if item.get("expansion_omitted"):
            lines.append(f"{_INDENT}and {item['expansion_omitted']} more relationships")
    return lines


def _restore(answer: Answer) -> list[str]:
    related = f", with {answer['relationships']} relationships" if answer["relationships"] else ""
    return [
        f"restored {answer['key']} to version {answer['restored_version']}; it is now version "
        f"{answer['write_version']}{related}",
        _one_line(answer["node"]["description"]),
    ]


def _store(answer: Answer) -> list[str]:
    results = answer["relationship_results"]
    lines = [f"{answer['status']} {answer['key']} ({answer['node_type']}, version {answer['write_version']})"]
    lines += [f"{_INDENT}related: {one['relationship']}" for one in results["created"]]
    lines += [f"{_INDENT}already related: {one['relationship']}" for one in results["replayed"]]
    lines += [f"{_INDENT}refused: {one['detail']}" for one in results["errors"]]
    return lines


def _nodes(answer: Answer) -> list[str]:
    lines: list[str] = []
    for key, entry in answer["nodes"].items():
        node = entry["node"]
        lines.append(f"{key}  ({node['node_type']}, version {node['write_version']}, {node['updated_at']})")
        lines += textwrap.indent(node["description"] or "not described yet", _INDENT).splitlines()
        if node["data"]:
            lines.append(f"{_INDENT}data: {json.dumps(node['data'], ensure_ascii=False)}")
        for edge in entry.get("binary_edges", ()):
            outgoing = edge["direction"] == "outgoing"
            other = edge["out_node"] if outgoing else edge["in_node"]
            lines.append(f"{_INDENT}{'->' if outgoing else '<-'} {other}: {edge['relationship']}")
        for hyperedge in entry.get("hyperedges", ()):
            names = ", ".join(one["node_key"] for one in hyperedge["participants"])
            more = ", ..." if hyperedge["participants_truncated"] else ""
            lines.append(f"{_INDENT}-- {hyperedge['relationship']} [{names}{more}]")
        for version in entry.get("enrichment_history", ()):
            said = "removed" if version["removed"] else version.get("description") or ""
            lines.append(_one_line(f"{version['recorded_at']}: {said}"))
    lines += [f"{key}  is not there" for key in answer["missing"]]
    return lines


def _overview(answer: Answer) -> list[str]:
    lines = [f"{answer['nodes']} nodes, {answer['edges']} edges, {answer['hyperedges']} hyperedges"]
    if answer["types"]:
        lines += ["", "types"]
        lines += table([(f"{_INDENT}{one['name']}", str(one["node_count"])) for one in answer["types"]])
    if answer["top_nodes"]:
        lines += ["", "best connected"]
        rows = [
            (f"{_INDENT}{one['key']}", str(one["connections"]), one["node_type"])
            for one in answer["top_nodes"]
        ]
        lines += table(rows)
    if answer.get("organizations"):
        known = [(f"{_INDENT}{one['organization_id']}", one["name"]) for one in answer["organizations"]]
        lines += ["", "your organizations", *table(known)]
    return lines


def _as_json(answer: Answer) -> list[str]:
    shown = {name: value for name, value in answer.items() if name != "warnings"}
    return [json.dumps(shown, ensure_ascii=False, indent=2)]


def _one_line(text: str) -> str:
    width = max(40, shutil.get_terminal_size((100, 24)).columns - len(_INDENT) - 1)
    return _INDENT + textwrap.shorten(text, width, placeholder=" …")
