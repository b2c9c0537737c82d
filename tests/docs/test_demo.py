"""The demonstration: what it reads from a repository, what it prints, and that it runs from start to end."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from demo.__main__ import QUESTIONS, UNANSWERABLE
from demo.client import DemoFailed, Refused, Server, call, working_key
from demo.memories import MAX_DESCRIPTION, opening, read_modules, repository_memories
from demo.show import answer_lines, connection_lines
from hivemem.domain.keys import convention_warning
from hivemem.domain.node_types import CANONICAL_TYPES
from tests.docs.pages import REPOSITORY


def small_repository(root: Path) -> Path:
    package = root / "src" / "hivemem"
    (package / "parts").mkdir(parents=True)
    (package / "__init__.py").write_text('"""The whole."""\n')
    (package / "errors.py").write_text(
        '"""Errors."""\n\nclass Broken(Exception):\n    """It broke.\n    """\n'
    )
    (package / "silent.py").write_text("x = 1\n")
    (package / "parts" / "__init__.py").write_text('"""Parts."""\n')
    (package / "parts" / "a.py").write_text(
        '"""Part a.\n\nMore of it."""\n\nimport json\n\nimport numpy as np\n\n'
        "from hivemem.errors import Broken\nfrom hivemem.parts import b\nfrom hivemem.silent import x\n"
    )
    (package / "parts" / "b.py").write_text('"""Part b."""\n')
    decisions = root / "docs" / "decisions"
    decisions.mkdir(parents=True)
    (decisions / "README.md").write_text("# Index\n")
    (decisions / "why-a.md").write_text(
        "# Why a\n\n**Decision.** `parts/a.py` uses\nnumpy.\n\n| a | table |\n\n## Later\n\nThe rest.\n"
    )
    return root


def relationships(memory: dict[str, Any]) -> set[tuple[str, str]]:
    return {(one["to_key"], one["relationship"]) for one in memory.get("relationships", ())}


@pytest.fixture(name="memories")
def fixture_memories(tmp_path: Path) -> dict[str, Any]:
    return {str(memory["key"]): memory for memory in repository_memories(small_repository(tmp_path))}


def test_modules_with_a_docstring_decisions_and_packages_become_nodes(memories: dict[str, Any]) -> None:
    assert set(memories) == {
        "decision_why_a",
        "component_hivemem",
        "component_errors",
        "component_parts",
        "component_parts_a",
        "component_parts_b",
        "technology_numpy",
    }
    assert memories["component_parts_a"]["description"] == "hivemem.parts.a: Part a.\n\nMore of it."
    assert memories["component_parts_a"]["data"] == {"path": "src/hivemem/parts/a.py", "lines": 11}
    assert memories["component_errors"]["search_text"] == "Broken: It broke."
    assert "search_text" not in memories["component_parts_b"]


def test_imports_and_mentions_become_relationships(memories: dict[str, Any]) -> None:
    assert relationships(memories["component_parts_a"]) == {
        ("decision_why_a", "is explained by"),
        ("component_errors", "imports Broken"),
        ("component_parts_b", "imports this module"),
        ("technology_numpy", "is built on numpy"),
    }
    assert relationships(memories["decision_why_a"]) == {("technology_numpy", "discusses numpy")}


def test_a_decision_is_its_title_and_opening_and_is_searched_whole(memories: dict[str, Any]) -> None:
    assert memories["decision_why_a"]["description"] == "Why a\n\nDecision. `parts/a.py` uses numpy."
    assert memories["decision_why_a"]["search_text"].endswith("The rest.\n")


def test_an_opening_is_bounded_but_never_empty() -> None:
    long = "word " * 400
    assert opening(long) == long.strip()
    assert opening(f"{'word ' * 200}\n\n{'word ' * 200}") == ("word " * 200).strip()
    assert len(opening("\n\n".join(["x" * 500] * 9))) <= MAX_DESCRIPTION


def test_the_graph_of_this_repository_is_complete() -> None:
    memories = repository_memories(REPOSITORY)
    keys = [str(memory["key"]) for memory in memories]
    assert len(set(keys)) == len(keys)
    assert [key for key in keys if convention_warning(key)] == []
    assert {memory["node_type"] for memory in memories} <= set(CANONICAL_TYPES)
    targets = {target for memory in memories for target, _ in relationships(memory)}
    assert targets <= set(keys)
    assert {"component_retrieval_fuse", "decision_vector_search", "technology_numpy"} <= set(keys)
    assert "hivemem.retrieval.fuse" in read_modules(REPOSITORY / "src" / "hivemem")


def item(**fields: Any) -> dict[str, Any]:
    return {
        "key": "fact_a",
        "node_type": "fact",
        "description": "A memory.",
        "score": 0.5,
        "expansion_context": [],
        **fields,
    }


def answer(*items: dict[str, Any]) -> dict[str, Any]:
    return {"results": list(items), "_search_meta": {"total_ms": 12.3, "below_floor": 4}}


def test_hits_are_printed_with_score_reasons_and_relationships() -> None:
    entries = [
        {"direction": direction, "key": f"fact_{number}", "relationship": "follows"}
        for number, direction in enumerate(("outgoing", "incoming", "outgoing"))
    ]
    hit = item(
        reasons=["holds a", "nearness in meaning: 0.70"], expansion_context=entries, expansion_omitted=2
    )
    lines = answer_lines("Why?", answer(hit, item(), item()))
    assert lines == [
        "? Why?",
        "  1. 0.500  fact_a (fact)",
        "           A memory.",
        "           why: holds a; nearness in meaning: 0.70",
        "           -> fact_0: follows",
        "           <- fact_1: follows",
        "           and 3 more relationships",
        "  2. 0.500  fact_a (fact)",
        "           A memory.",
        "  and 1 more",
        "  (12 ms, 4 below the floor)",
        "",
    ]


def test_long_texts_are_cut_to_the_width_and_reasons_are_wrapped() -> None:
    hit = item(description="word " * 100, reasons=["because of this"] * 10)
    lines = answer_lines("Why?", answer(hit), width=60)
    assert all(len(line) <= 60 for line in lines)
    assert sum("because" in line for line in lines) > 1


def test_an_empty_answer_is_printed_as_such() -> None:
    assert answer_lines("Why?", answer()) == ["? Why?", "  nothing relevant is remembered", ""]


def test_the_key_stands_in_the_command_and_only_its_variable_in_the_files() -> None:
    lines = connection_lines("http://127.0.0.1:1", "hm_secret")
    assert [line.strip().split()[0] for line in lines if "hm_secret" in line] == ["claude", "export"]
    assert sum("HM_API_KEY" in line for line in lines) == 4


def demo(data_dir: Path) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("HIVEMEM_")}
    return subprocess.run(
        [sys.executable, "-m", "demo", "--data-dir", str(data_dir), "--port", "0", "--exit"],
        cwd=REPOSITORY,
        env=environment | {"HIVEMEM_EMBEDDER": "hashing", "HIVEMEM_RERANKER": "none"},
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )


def test_it_runs_twice_on_the_same_data(tmp_path: Path) -> None:
    data_dir = tmp_path / "demo"
    first, second = demo(data_dir), demo(data_dir)
    assert first.returncode == 0, first.stderr
    assert second.returncode == 0, second.stderr
    size = len((data_dir / "memories.jsonl").read_text("utf-8").splitlines())
    assert f"{size} created, 0 updated, 0 kept, 0 failed" in first.stdout
    assert f"0 created, {size} updated, 0 kept, 0 failed, 0 relationships" in second.stdout
    for question in (*QUESTIONS, UNANSWERABLE):
        assert f"? {question}\n" in second.stdout
    assert "claude mcp add" in second.stdout
    # The key is shown by the server once, and still works in the second run.
    key = (data_dir / "demo-key").read_text("utf-8").strip()
    assert key in first.stdout and key in second.stdout
    assert (data_dir / "demo-key").stat().st_mode & 0o777 == 0o600


def test_a_lost_key_is_replaced_and_a_second_server_is_refused_with_a_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HIVEMEM_EMBEDDER", "hashing")
    monkeypatch.setenv("HIVEMEM_RERANKER", "none")
    server = Server(tmp_path, 0)
    try:
        server.wait_until_ready()
        assert server.first_key is not None
        first = working_key(server, tmp_path)
        assert first == server.first_key
        server.first_key = None
        assert working_key(server, tmp_path) == first
        (tmp_path / "demo-key").write_text("hm_" + "0" * 64)
        second = working_key(server, tmp_path)
        assert second != first
        assert call(server.url, "GET", "/overview", key=second)["nodes"] == 0
        with pytest.raises(Refused) as refused:
            call(server.url, "GET", "/overview", key="hm_" + "0" * 64)
        assert refused.value.status == 401
        with pytest.raises(DemoFailed, match="in use by process"):
            Server(tmp_path, 0)
    finally:
        server.stop()
    with pytest.raises(DemoFailed, match="cannot be reached"):
        call(server.url, "GET", "/overview")
    assert "already_running" in (tmp_path / "server.log").read_text("utf-8")
