"""`hivemem export` and `hivemem import` as commands."""

from __future__ import annotations

import errno
import json
import zipfile
from pathlib import Path
from typing import Any

import httpx2
import pytest

from hivemem.surfaces.cli.main import main
from tests.service.test_importing_formats import MCP_LINES, MEM0
from tests.surfaces.serving import FAST, REST, Server, bearer


@pytest.fixture
def hivemem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    """Run a command on the memory `name`: (exit code, standard output, standard error)."""
    for name, value in FAST.items():
        monkeypatch.setenv(f"HIVEMEM_{name.upper()}", value)

    def run(name: str, *arguments: str) -> tuple[int, str, str]:
        code = main([*arguments, "--data-dir", str(tmp_path / name)])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


def fill(hivemem: Any, name: str = "one") -> None:
    hivemem(name, "store", "pref_tea", "Anna drinks tea.", "--relate", "person_anna", "is liked by Anna")
    hivemem(name, "store", "person_anna", "Anna Berg.", "--data", '{"n": 1}')
    hivemem(name, "note", "A line.")


def test_a_memory_moves_to_another_place(hivemem: Any, tmp_path: Path) -> None:
    fill(hivemem)
    archive = str(tmp_path / "m.hivemem")
    code, out, _ = hivemem("one", "export", archive)
    assert code == 0 and out.startswith(f"wrote {archive}: ")
    assert hivemem("one", "export", archive)[0] == 6
    code, out, _ = hivemem("two", "import", archive, "--json")
    assert code == 0 and json.loads(out)["restored"] is True
    for command in (
        ["nodes", "pref_tea", "person_anna"],
        ["overview"],
        ["history", "person_anna"],
        ["timeline"],
    ):
        assert hivemem("two", *command, "--json")[1] == hivemem("one", *command, "--json")[1]
    assert "pref_tea" in hivemem("two", "recall", "who drinks tea")[1]
    code, _, err = hivemem("two", "import", archive)
    assert code == 6 and "--merge" in err
    hivemem("two", "store", "pref_tea", "Anna drinks coffee now.")
    code, out, _ = hivemem("two", "import", archive, "--merge", "--if-exists", "keep", "--json")
    assert (code, json.loads(out)["kept"], json.loads(out)["relationships"]) == (0, 3, 0)
    assert "coffee" in hivemem("two", "nodes", "pref_tea")[1]


def test_an_archive_that_is_cut_off_or_another_zip_file_says_so(hivemem: Any, tmp_path: Path) -> None:
    fill(hivemem)
    archive = tmp_path / "m.hivemem"
    hivemem("one", "export", str(archive))
    archive.write_bytes(archive.read_bytes()[:-100])
    for options in ([], ["--merge"]):
        code, out, err = hivemem("two", "import", str(archive), *options)
        assert (code, out) == (8, "") and "is not a whole archive" in err
    with zipfile.ZipFile(tmp_path / "other.zip", "w") as other:
        other.writestr("a.txt", "A.")
    code, _, err = hivemem("two", "import", str(tmp_path / "other.zip"))
    assert code == 6 and "not an archive of hivemem" in err


DEEP = "[" * 100_000 + "]" * 100_000
ENTITY = '{"type": "entity", "name": "Ada", "entityType": "person", "observations": %s}'


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (DEEP, "nested too deeply"),
        (f'[{{"id": "1", "memory": "Tea.", "metadata": {DEEP}}}]', "nested too deeply"),
        (f'{{"nodes": [{{"key": "a_b", "data": {{"a": {DEEP}}}}}], "edges": []}}', "nested too deeply"),
        (f'{{"format_version":1,\n"nodes":[\n{DEEP}\n]\n}}\n', "nested too deeply"),
        (f"{ENTITY % '[]'}\n{ENTITY % DEEP}\n", "line 2: /name is missing"),
    ],
    ids=["lines", "mem0", "a document", "a document by lines", "the memory server"],
)
def test_what_is_nested_too_deeply_is_refused_with_its_place(
    hivemem: Any, tmp_path: Path, content: str, told: str
) -> None:
    file = tmp_path / "deep.json"
    file.write_text(content)
    code, _, err = hivemem("one", "import", str(file))
    assert code == 6 and told in err


def test_a_line_of_a_document_that_is_no_utf_8_costs_that_line(hivemem: Any, tmp_path: Path) -> None:
    fill(hivemem)
    document = tmp_path / "m.json"
    hivemem("one", "export", str(document))
    document.write_bytes(document.read_bytes().replace(b"Anna Berg.", b"Anna \xff."))
    code, out, err = hivemem("two", "import", str(document))
    assert code == 6 and "cannot be stored" in err
    assert "1 failed" in out and "1 created" in out


def test_a_document_of_a_newer_version_is_refused(hivemem: Any, tmp_path: Path) -> None:
    document = tmp_path / "m.json"
    document.write_text('{"format_version": 2, "nodes": [{"key": "a_b", "description": "A."}], "edges": []}')
    code, _, err = hivemem("one", "import", str(document))
    assert code == 6 and "has format version 2" in err and "upgrade" in err


def test_a_graph_for_other_programs_is_refused_as_a_whole(hivemem: Any, tmp_path: Path) -> None:
    fill(hivemem)
    graph = tmp_path / "m.graphml"
    hivemem("one", "export", str(graph))
    code, out, err = hivemem("two", "import", str(graph))
    assert (code, out) == (6, "") and f"error: {graph} is XML" in err


def test_a_file_without_the_right_to_read_is_named(
    hivemem: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = tmp_path / "m.json"
    secret.write_text("{}")

    def refused(path: Path, *_: Any, **__: Any) -> Any:
        # Root may read whatever the rights say.
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    monkeypatch.setattr(Path, "open", refused)
    code, _, err = hivemem("one", "import", str(secret))
    assert (code, err) == (6, f"error: {secret} cannot be read: Permission denied.\n")


@pytest.mark.parametrize("name", ["m.json", "notes"])
def test_documents_and_notes_go_into_any_memory(hivemem: Any, tmp_path: Path, name: str) -> None:
    fill(hivemem)
    assert hivemem("one", "export", str(tmp_path / name))[0] == 0
    code, out, err = hivemem("two", "import", str(tmp_path / name))
    assert (code, err) == (0, "")
    assert out.startswith("2 created, 0 updated, 1 kept, 0 failed, 1 relationships, 0 relationships refused")
    told = [json.loads(hivemem(place, "overview", "--json")[1]) for place in ("one", "two")]
    assert [one["edges"] for one in told] == [1, 1]


def test_a_format_is_named_or_seen_by_the_ending(hivemem: Any, tmp_path: Path) -> None:
    fill(hivemem)
    assert hivemem("one", "export", str(tmp_path / "m.dat"))[0] == 6
    code, out, _ = hivemem("one", "export", str(tmp_path / "m.dat"), "--format", "graphml", "--json")
    assert code == 0
    assert json.loads(out) == {"file": str(tmp_path / "m.dat"), "format": "graphml", "nodes": 3, "edges": 1}
    assert hivemem("one", "export", str(tmp_path / "no" / "m.json"))[0] == 8


def test_files_of_other_programs(hivemem: Any, tmp_path: Path) -> None:
    (tmp_path / "memory.json").write_text(MCP_LINES, encoding="utf-8")
    code, out, err = hivemem("one", "import", str(tmp_path / "memory.json"), "--json")
    told = json.loads(out)
    assert (code, told["format"], told["created"], told["relationships"]) == (0, "mcp-memory", 3, 2)
    assert told["errors"] == [] and err == ""
    assert "Lives in Rome" in hivemem("one", "nodes", "person_mara_lópez")[1]
    assert "works_on" in hivemem("one", "relationships", "person_mara_lópez")[1]
    (tmp_path / "mem0.json").write_text(json.dumps(MEM0), encoding="utf-8")
    code, out, err = hivemem("one", "import", str(tmp_path / "mem0.json"))
    assert code == 6
    assert out.startswith("1 created, 0 updated, 0 kept, 2 failed, 1 relationships, 1 relationships refused")
    assert err.startswith("/results/1: ")


def test_a_server_goes_on_meanwhile_and_sees_what_was_imported(hivemem: Any, tmp_path: Path) -> None:
    fill(hivemem)
    archive = str(tmp_path / "m.hivemem")
    with Server(tmp_path / "one"):
        assert hivemem("one", "export", archive)[0] == 0
    with Server(tmp_path / "two") as server:

        def recalled() -> list[str]:
            response = httpx2.post(
                f"{server.url}{REST}/recall", json={"query": "who drinks tea"}, headers=bearer(server.key)
            )
            return [result["key"] for result in response.json()["results"]]

        assert recalled() == []
        assert hivemem("two", "import", archive)[0] == 0
        assert recalled()[0] == "pref_tea"
