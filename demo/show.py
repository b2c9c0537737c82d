"""What the demonstration prints: hits with their reasons, and how to connect an agent."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Mapping
from typing import Any

SHOWN_HITS = 2
SHOWN_RELATIONSHIPS = 2
KEY_VARIABLE = "HM_API_KEY"
"""Not `HIVEMEM_...`: variables with that prefix are settings, and unknown ones are errors."""

_INDENT = " " * 11


def answer_lines(question: str, answer: Mapping[str, Any], width: int = 100) -> list[str]:
    """A question and its best hits: score, key, text, reasons and strongest relationships."""
    results = answer["results"]
    lines = [f"? {question}"]
    if not results:
        return [*lines, "  nothing relevant is remembered", ""]
    for rank, item in enumerate(results[:SHOWN_HITS], start=1):
        lines.append(f"  {rank}. {item['score']:.3f}  {item['key']} ({item['node_type']})")
        lines.append(_one_line(item["description"], width))
        if item.get("reasons"):
            lines += _wrapped("why: " + "; ".join(item["reasons"]), width)
        shown = item["expansion_context"][:SHOWN_RELATIONSHIPS]
        for entry in shown:
            arrow = "->" if entry["direction"] == "outgoing" else "<-"
            lines.append(_one_line(f"{arrow} {entry['key']}: {entry['relationship']}", width))
        more = len(item["expansion_context"]) - len(shown) + item.get("expansion_omitted", 0)
        if more:
            lines.append(f"{_INDENT}and {more} more relationship{'s' if more > 1 else ''}")
    if len(results) > SHOWN_HITS:
        lines.append(f"  and {len(results) - SHOWN_HITS} more")
    took = answer["_search_meta"]["total_ms"]
    return [*lines, f"  ({took:.0f} ms, {answer['_search_meta']['below_floor']} below the floor)", ""]


def connection_lines(url: str, key: str) -> list[str]:
    """How agents reach the server at `url`, ready to paste."""
    return [
        f"The server listens on {url}; agents connect to {url}/mcp.",
        "",
        "Claude Code, once:",
        f'  claude mcp add --transport http hivemem {url}/mcp --header "Authorization: Bearer {key}"',
        "",
        "For the files below, put the key into the environment of the agent:",
        f"  export {KEY_VARIABLE}={key}",
        "",
        "Claude Code, .mcp.json of a project:",
        *_indented(claude_entry(url)),
        "",
        "Codex, ~/.codex/config.toml:",
        *_indented(codex_entry(url)),
        "",
        "Cursor, .cursor/mcp.json:",
        *_indented(cursor_entry(url)),
    ]


def claude_entry(url: str) -> str:
    """`.mcp.json` for Claude Code."""
    headers = {"Authorization": f"Bearer ${{{KEY_VARIABLE}}}"}
    return _json({"mcpServers": {"hivemem": {"type": "http", "url": f"{url}/mcp", "headers": headers}}})


def codex_entry(url: str) -> str:
    """A table of `config.toml` for Codex."""
    return f'[mcp_servers.hivemem]\nurl = "{url}/mcp"\nbearer_token_env_var = "{KEY_VARIABLE}"'


def cursor_entry(url: str) -> str:
    """`.cursor/mcp.json` for Cursor."""
    headers = {"Authorization": f"Bearer ${{env:{KEY_VARIABLE}}}"}
    return _json({"mcpServers": {"hivemem": {"url": f"{url}/mcp", "headers": headers}}})


def _json(value: object) -> str:
    return json.dumps(value, indent=2)


def _indented(text: str) -> list[str]:
    return [f"  {line}" for line in text.splitlines()]


def _wrapped(text: str, width: int) -> list[str]:
    return textwrap.wrap(text, width, initial_indent=_INDENT, subsequent_indent=_INDENT)


def _one_line(text: str, width: int) -> str:
    return _INDENT + textwrap.shorten(text, width - len(_INDENT), placeholder=" …")
