"""Standard output carries protocol and nothing else, whatever the locale, the log level and the input."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cases.reports import Report
from tests.surfaces.test_stdio import HELLO, Stdio


def ended_well(stdio: Stdio) -> bytes:
    """Close the input; the process ends, and all it wrote were messages. Its diagnostics."""
    code, logged = stdio.close()
    assert code == 0, logged
    assert stdio.lines
    for line in stdio.lines:
        assert line.endswith(b"\n")
        assert json.loads(line.decode("utf-8"))["jsonrpc"] == "2.0"
    return logged


@pytest.mark.shared
@pytest.mark.models
def test_reported_session_with_the_real_models(tmp_path: Path, report: Callable[[str], Report]) -> None:
    case = report("C21")
    [start] = [step["start"] for step in case.setup]
    given = {name: value for name, value in start["env"].items() if name.startswith("PYTHON")}
    stdio = Stdio(
        tmp_path / "a folder with spaces and é",
        **given,
        HIVEMEM_LOG_LEVEL="debug",
        HIVEMEM_EMBEDDER="bundled",
        HIVEMEM_RERANKER="bundled",
    )
    for step in (one["stdio"] for one in case.sequence):
        match step:
            case "initialize":
                assert stdio.ask("initialize", HELLO)["result"]["serverInfo"]["name"] == "hivemem"
            case "tools/list":
                assert stdio.ask("tools/list", {})["result"]["tools"]
            case {"tools/call": {"store": {"nodes": [node]}}}:
                stored = stdio.call("hm_store", {"key": node["key"], "description": node["description"]})
                assert stored["structuredContent"]["status"] == "created"
                text = node["description"]
            case {"tools/call": {"recall": {"query": ""}}}:
                assert stdio.call("hm_recall", {"query": ""})["isError"] is True
            case {"tools/call": {"recall": asked}}:
                found = stdio.call("hm_recall", asked)["structuredContent"]["results"]
                assert found[0]["description"] == text
            case "shutdown":
                ended_well(stdio)
            case _:
                raise AssertionError(step)


@pytest.mark.parametrize("locale", ["C", "tr_TR.ISO-8859-9", "no_such_locale"])
def test_texts_come_back_exactly_in_any_locale(tmp_path: Path, locale: str) -> None:
    texts = ["İstanbul ıhlamur", "\u2028 line and \u2029 paragraph", "tab\tand\nline", "𝔘𝔫𝔦 👩‍👩‍👧"]
    stdio = Stdio(tmp_path / "données 数据", LC_ALL=locale, LANG=locale, PYTHONUTF8="0")
    stdio.ask("initialize", HELLO)
    for number, text in enumerate(texts):
        key = f"fact_{number}"
        stdio.call("hm_store", {"key": key, "description": text})
        nodes = stdio.call("hm_get_nodes", {"keys": [key]})["structuredContent"]["nodes"]
        assert nodes[key]["node"]["description"] == text
    ended_well(stdio)


ODD_LINES = [
    b"",
    b"   ",
    b"[]",
    b"null",
    b"{",
    b'{"jsonrpc":"2.0"}',
    b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"hm_none","arguments":{}}}',
    b'{"jsonrpc":"2.0","id":8,"method":"no/such/method"}',
    b'{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"hm_recall","arguments":[1]}}',
    b"\x00\x01\x02",
    b'"' + b"a" * 200_000 + b'"',
]


def test_odd_lines_are_answered_or_passed_over(tmp_path: Path) -> None:
    stdio = Stdio(tmp_path, HIVEMEM_LOG_LEVEL="debug")
    stdio.ask("initialize", HELLO)
    # Numbers that the odd lines use are not asked for again.
    stdio.number = 100
    for line in ODD_LINES:
        stdio.send(line)
        answer: dict[str, Any] = stdio.call("hm_get_overview", {})
        assert answer["structuredContent"]["nodes"] == 0, line[:80]
    assert b"Traceback" not in ended_well(stdio)
