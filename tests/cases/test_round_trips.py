"""What is exported and imported again is the same memory, and a damaged file changes nothing."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hivemem.surfaces.cli.main import main
from tests.cases.reports import Report
from tests.surfaces.serving import FAST

ENVELOPE = ("exported_at", "graph_id", "format_version")


class Memories:
    """Commands on data directories, in this process."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder = folder
        self._capsys = capsys

    def __call__(self, place: str, *arguments: str, code: int = 0) -> Any:
        """The JSON that a command printed, an error's as well."""
        ended = main([*arguments, "--json", "--data-dir", str(self.folder / place)])
        captured = self._capsys.readouterr()
        assert ended == code, captured.err
        lines = (captured.out or captured.err).strip().splitlines()
        return json.loads(lines[-1]) if lines else None

    def exported(self, place: str, name: str) -> Any:
        """The document of a memory without what belongs to the export itself."""
        path = self.folder / name
        self(place, "export", str(path))
        document = json.loads(path.read_text(encoding="utf-8"))
        return {name: value for name, value in document.items() if name not in ENVELOPE}


@pytest.fixture
def memories(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Memories:
    for name, value in FAST.items():
        monkeypatch.setenv(f"HIVEMEM_{name.upper()}", value)
    return Memories(tmp_path, capsys)


def store(memories: Memories, place: str, key: str, description: str, **fields: Any) -> Any:
    options = [part for name, value in fields.items() for part in (f"--{name}", json.dumps(value))]
    return memories(place, "store", key, description, *options)


@pytest.mark.shared
def test_reported_round_trip(memories: Memories, report: Callable[[str], Report]) -> None:
    case = report("C32")
    [first, *_] = case.setup
    for node in first["store"]["nodes"]:
        store(memories, "one", node["key"], node["description"], data=node.get("data", {}))
    wishes = [
        {"from_key": one["from"], "to_key": one["to"], "relationship": one["relationship"]}
        for one in first["store"]["relationships"]
    ]
    related = memories("one", "relate", "--relationships", json.dumps(wishes), code=6)
    # An edge from a node to itself is refused here; the other three are taken.
    assert (len(related["created"]), [one["index"] for one in related["errors"]]) == (3, [3])
    memories("one", "update", "--key", "hotel", "--description", "Hotel with the green door.")
    memories("one", "recall", "ferry", "--session-id", "s1")
    key = memories("one", "key", "create", "--name", "laptop")

    before = memories.exported("one", "a.json")
    archive = memories.folder / "a.hivemem"
    memories("one", "export", str(archive))
    memories("two", "import", str(archive))
    assert memories.exported("two", "b.json") == before
    [trip] = [node for node in before["nodes"] if node["key"] == "trip"]
    assert json.dumps(trip["data"]) == json.dumps(first["store"]["nodes"][0]["data"]), "kinds of numbers"

    memories("two", "import", str(archive), "--merge", "--if-exists", "keep")
    overview = memories("two", "overview")
    assert (overview["nodes"], overview["edges"]) == (3, 3)
    assert memories("two", "recall", "green door hotel")["results"][0]["key"] == "hotel"
    lines = [(event["ts"], event["summary"]) for event in memories("one", "timeline")["events"]]
    assert lines
    assert set(lines) <= {(one["ts"], one["summary"]) for one in memories("two", "timeline")["events"]}

    cut = memories.folder / "cut.hivemem"
    cut.write_bytes(archive.read_bytes()[: archive.stat().st_size // 2])
    with_error = main(["import", str(cut), "--json", "--data-dir", str(memories.folder / "three")])
    assert with_error != 0
    assert memories("three", "overview")["nodes"] == 0
    secret = str(next(value for value in key.values() if str(value).startswith("hm_"))).encode()
    for path in (archive, memories.folder / "a.json"):
        assert secret not in path.read_bytes()


def test_a_document_merged_twice_is_there_once(memories: Memories) -> None:
    store(
        memories,
        "one",
        "person_zoë",
        "Zoë 👩‍👩‍👧 keeps the keys.",
        data={"n": 1.0, "big": 2**70, "none": None},
    )
    store(memories, "one", "Fact/A b", "A key with slash, capital and blank.")
    memories(
        "one",
        "relate",
        "--relationships",
        json.dumps(
            [
                {
                    "from_key": "person_zoë",
                    "to_key": "Fact/A b",
                    "relationship": "wrote “this” down",
                    "data": {"x": [1]},
                }
            ]
        ),
    )
    document = memories.exported("one", "a.json")
    for _ in range(2):
        memories("two", "import", str(memories.folder / "a.json"))
        overview = memories("two", "overview")
        assert (overview["nodes"], overview["edges"]) == (2, 1)
    nodes = memories("two", "nodes", "person_zoë", "Fact/A b")["nodes"]
    for node in document["nodes"]:
        if node["key"] in nodes:
            copied = nodes[node["key"]]["node"]
            assert json.dumps(copied["data"]) == json.dumps(node["data"])
            assert copied["description"] == node["description"]


def test_an_archive_brings_history_and_forgotten_nodes_back(memories: Memories) -> None:
    for text in ("First.", "Second."):
        store(memories, "one", "fact_a", text)
    store(memories, "one", "fact_b", "To be forgotten.")
    memories("one", "forget", "--key", "fact_b")
    archive = memories.folder / "a.hivemem"
    memories("one", "export", str(archive))
    memories("two", "import", str(archive))
    assert memories("two", "history", "fact_a") == memories("one", "history", "fact_a")
    assert memories("two", "restore", "fact_b")["status"] == "restored"
    memories("two", "restore", "fact_a", "--version", "1")
    nodes = memories("two", "nodes", "fact_a", "fact_b")["nodes"]
    assert [entry["node"]["description"] for entry in nodes.values()] == ["First.", "To be forgotten."]
