"""What each format of an import is recognised by, and what it is read as."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hivemem.errors import InvalidInput, NotFound
from hivemem.service.importing_formats import (
    Format,
    NodeItem,
    Problem,
    RelationshipItem,
    recognise,
    slug,
    source_of,
)

MCP_LINES = (
    '{"type":"entity","name":"Mara López","entityType":"person",'
    '"observations":["Likes tea"," ","Lives in Rome"]}\n'
    '{"type":"relation","from":"Mara López","to":"Atlas","relationType":"works_on"}\n'
    '{"type":"entity","name":"Atlas","entityType":"project","observations":[]}\n'
    '{"type":"entity","name":"mara lópez","entityType":"person","observations":[]}\n'
    '{"type":"relation","from":"Nobody","to":"Atlas","relationType":"leads"}\n'
)
MEM0 = {
    "results": [
        {
            "id": "0b-1",
            "memory": "Likes tea.",
            "metadata": {"a": 1},
            "created_at": "2026-01-01",
            "score": None,
        },
        {"id": "2", "memory": ""},
        "text",
    ],
    "relations": [{"source": "Mara", "relationship": "likes", "target": "Green tea"}, {"source": "x"}],
}
DOCUMENT = {
    "nodes": [{"key": "a_b", "description": "A."}, {"key": 1}, {"key": "p", "description": "", "data": []}],
    "edges": [{"from_key": "a_b", "to_key": "p", "relationship": "r", "edge_id": "e"}, 5],
    "hyperedges": [{"relationship": "h", "participants": [{"node_key": "a"}, {"node_key": "b"}]}, {}],
}


def written(tmp_path: Path, content: str) -> Path:
    path = tmp_path / "file"
    path.write_text(content, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("content", "format"),
    [
        (MCP_LINES, Format.MCP_MEMORY),
        ("\ufeff" + MCP_LINES, Format.MCP_MEMORY),
        (MCP_LINES.splitlines()[1], Format.MCP_MEMORY),
        (json.dumps(MEM0), Format.MEM0),
        (json.dumps(MEM0, indent=2), Format.MEM0),
        (json.dumps(MEM0["results"]), Format.MEM0),
        (json.dumps(DOCUMENT), Format.DOCUMENT),
        (json.dumps(DOCUMENT, indent=1), Format.DOCUMENT),
        ('{"format_version":1,"graph_id":"g",\n"nodes":[\n]\n}\n', Format.DOCUMENT),
        ('{"key": "a", "description": "A."}', Format.LINES),
        ('{"key": "a", "description": "A."}\n{"key": "b"}\n', Format.LINES),
        ('{"nonsense": 1}\n{"key": "b"}\n', Format.LINES),
        ('{"nonsense": 1}', Format.LINES),
        ("", Format.LINES),
        ("{", Format.LINES),
        ("[", Format.LINES),
        ("plain text", Format.LINES),
        ("PK\x03\x04 cut off", Format.ARCHIVE),
    ],
)
def test_a_file_is_recognised_by_its_content(tmp_path: Path, content: str, format: Format) -> None:
    assert recognise(written(tmp_path, content)) is format


def test_folders_are_notes_and_nothing_is_not_found(tmp_path: Path) -> None:
    assert recognise(tmp_path) is Format.NOTES
    with pytest.raises(NotFound):
        recognise(tmp_path / "nowhere")
    with pytest.raises(InvalidInput, match="no folder"):
        source_of(tmp_path, Format.NOTES)


def read(tmp_path: Path, content: str, format: Format) -> tuple[list[Any], list[Any]]:
    source = source_of(written(tmp_path, content), format)
    return list(source.nodes()), list(source.relationships())


def test_the_file_of_the_memory_server(tmp_path: Path) -> None:
    nodes, relations = read(
        tmp_path, MCP_LINES + "{\n[]\n" + '{"type":"entity","name":"x"}\n', Format.MCP_MEMORY
    )
    mara, atlas, other, *problems = nodes
    assert mara == NodeItem(
        where="line 1",
        key="person_mara_lópez",
        description="Mara López (person)\nLikes tea\nLives in Rome",
        node_type="person",
        data={
            "name": "Mara López",
            "entity_type": "person",
            "observations": ["Likes tea", " ", "Lives in Rome"],
        },
    )
    assert (atlas.key, atlas.description) == ("project_atlas", "Atlas (project)")
    # Another name with the same letters is another node.
    assert other.key.startswith("person_mara_lópez_") and other.key != mara.key
    assert [problem.where for problem in problems] == ["line 6", "line 7", "line 8"]
    assert all(isinstance(problem, Problem) for problem in problems)
    works = {"from_key": mara.key, "to_key": atlas.key, "relationship": "works_on"}
    leads = {"from_key": "concept_nobody", "to_key": atlas.key, "relationship": "leads"}
    assert relations == [
        RelationshipItem(where="line 2", fields=works),
        RelationshipItem(where="line 5", fields=leads),
    ]


def test_relations_of_the_memory_server_alone_have_the_same_keys(tmp_path: Path) -> None:
    path = written(tmp_path, MCP_LINES)
    first = [item.fields for item in source_of(path, Format.MCP_MEMORY).relationships()]  # type: ignore[union-attr]
    source = source_of(path, Format.MCP_MEMORY)
    list(source.nodes())
    assert [item.fields for item in source.relationships()] == first  # type: ignore[union-attr]


@pytest.mark.parametrize("content", [MEM0, MEM0["results"]], ids=["object", "list"])
def test_answers_of_mem0(tmp_path: Path, content: Any) -> None:
    nodes, relations = read(tmp_path, json.dumps(content), Format.MEM0)
    tea, blank, text = nodes
    assert tea == NodeItem(
        where="/results/0",
        key="fact_0b_1",
        description="Likes tea.",
        node_type="fact",
        data={"mem0": {"id": "0b-1", "metadata": {"a": 1}, "created_at": "2026-01-01"}},
    )
    assert (blank.where, text.where) == ("/results/1", "/results/2")
    assert isinstance(blank, Problem) and isinstance(text, Problem)
    if content is MEM0:
        likes = {"from_key": "concept_mara", "to_key": "concept_green_tea", "relationship": "likes"}
        assert relations[0] == RelationshipItem(where="/relations/0", fields=likes)
        assert isinstance(relations[1], Problem)
    else:
        assert relations == []


def test_documents_of_any_layout(tmp_path: Path) -> None:
    nodes, relations = read(tmp_path, json.dumps(DOCUMENT, indent=2), Format.DOCUMENT)
    assert nodes[0] == NodeItem(where="/nodes/0", key="a_b", description="A.")
    assert [isinstance(one, Problem) for one in nodes] == [False, True, True]
    assert [isinstance(one, Problem) for one in relations] == [False, True, False, False]
    assert relations[0].fields["to_key"] == "p"
    assert relations[2].fields["participant_keys"] == ["a", "b"]
    lines = '{"format_version":1,"graph_id":"g",\n"nodes":[\n{"key":"a","description":"A."},\n{broken\n]\n}\n'
    nodes, relations = read(tmp_path, lines, Format.DOCUMENT)
    assert (nodes[0].where, nodes[1].where, relations) == ("line 3", "line 4", [])
    assert isinstance(nodes[1], Problem)


def test_notes_that_people_changed(tmp_path: Path) -> None:
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "a.md").write_text('---\nkey: fact_a\ndata: {"n": 1}\nrelationships: []\n---\n\nBy hand.\n')
    (folder / "b.md").write_text("No header.")
    (folder / "c.md").write_text("---\nkey\n---\n\nx\n")
    (folder / "d.md").write_bytes(b"---\nkey: a\n---\n\xff")
    (folder / "e.md").write_text(
        '---\nkey: "e"\nrelationships: [{"to_key": "fact_a", "relationship": "r"}, 1]\n---\n'
    )
    source = source_of(tmp_path, Format.NOTES)
    nodes = list(source.nodes())
    assert nodes[0] == NodeItem(where="notes/a.md", key="fact_a", description="By hand.", data={"n": 1})
    assert [one.where for one in nodes if isinstance(one, Problem)] == [f"notes/{name}.md" for name in "bcd"]
    relations = list(source.relationships())
    assert isinstance(relations[0], RelationshipItem)
    assert relations[0].fields["from_key"] == "e"


def test_names_become_parts_of_keys() -> None:
    assert slug("Ünïcode & Co.  KG") == "ünïcode_co_kg"
    assert slug("日本語") == "日本語"
    assert slug("???") != slug("!!!")
    assert len(slug("x" * 500)) == 80
