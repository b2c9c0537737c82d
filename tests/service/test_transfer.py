"""Exports and imports: an archive is the same graph again, documents and notes keep what they say."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import itertools
import json
import stat
import tempfile
import zipfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing, suppress
from pathlib import Path
from typing import Any

import networkx
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from hivemem.app import OpenServices, database_of, open_services
from hivemem.domain.access import Principal, Scope
from hivemem.domain.skills import CustomSkill
from hivemem.domain.tokens import TokenReport
from hivemem.domain.writing import LABEL_FIELD
from hivemem.errors import Conflict, Corruption, HivememError, InvalidInput, StaleWrite
from hivemem.service.archive import ArchiveReader
from hivemem.service.database_urls import open_source
from hivemem.service.exporting_files import LINKS, note_name
from hivemem.service.exporting_records import GraphRecords
from hivemem.service.exporting_to_file import ExportFormat
from hivemem.service.importing_formats import Format, ImportSource, RecordsSource, recognise, source_of
from hivemem.settings import load_settings
from hivemem.storage.tables import GRAPH_TABLES
from tests.support.builders import (
    batch,
    create,
    delete,
    edge,
    entry,
    hyperedge,
    minutes,
    node,
    passage,
    placeholder,
    update,
    vectors,
)
from tests.support.postgres import fresh_database
from tests.surfaces.serving import FAST

_numbers = itertools.count(1)
KEYS = [*(f"n_{number}" for number in range(6)), "Fact/é ü", "UPPER", "upper"]

ADDED = LABEL_FIELD
"""A field that the server adds to the data of each new relationship."""


def principal(graph_id: str) -> Principal:
    return Principal(user_id="user_one", graph_id=graph_id, scope=Scope.OWNER)


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest) -> Iterator[dict[str, str]]:
    """Settings of a database that the tests of this file share; each makes graphs of its own in it."""
    with tempfile.TemporaryDirectory() as folder:
        url = fresh_database() if request.param == "postgres" else ""
        yield {"data_dir": folder, "database_url": url, **FAST}


@asynccontextmanager
async def opened(place: dict[str, str]) -> AsyncIterator[OpenServices]:
    services = await open_services(load_settings(place, {}).settings)
    while services.models_loading:
        await asyncio.sleep(0.001)
    try:
        yield services
    finally:
        await services.close()


def fresh_graph() -> str:
    return f"graph_{next(_numbers)}"


def rows(services: OpenServices, graph_id: str) -> dict[str, list[Any]]:
    with closing(open_source(database_of(services.settings))) as source:
        return {table.name: [row[1:] for row in source.rows_of(table, graph_id)] for table in GRAPH_TABLES}


TEXTS = st.one_of(
    st.sampled_from(
        ["A.", "a\n---\n", f"x\n\n{LINKS}\n\n- [[y]]", " two \r\n lines\n\n", "日本語 ☕", "tab\there"]
    ),
    st.text(st.characters(exclude_categories=("Cs", "Cc", "Cf")), min_size=1, max_size=30).map(
        lambda text: "w" + text
    ),
)
DATA = st.dictionaries(
    st.text("ab é", max_size=3), st.sampled_from([1, 1.0, None, True, "x\ny", [2**40], {"z": {}}]), max_size=2
)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("node"), st.sampled_from(KEYS), TEXTS, DATA),
        st.tuples(st.just("placeholder"), st.sampled_from(KEYS)),
        st.tuples(st.just("edge"), st.sampled_from(KEYS), st.sampled_from(KEYS), TEXTS, DATA),
        st.tuples(st.just("hyperedge"), st.permutations(KEYS), st.integers(3, 5), TEXTS, DATA),
        st.tuples(st.just("session"), st.permutations(KEYS), st.integers(2, 4)),
        st.tuples(st.just("delete"), st.sampled_from(KEYS)),
        st.tuples(st.just("diary"), TEXTS),
        st.tuples(st.just("report"), st.integers(1, 3)),
        st.tuples(st.just("skill"), TEXTS),
    ),
    max_size=14,
)


async def play(store: Any, graph_id: str, steps: list[Any]) -> None:
    """Make a graph by steps; one that the graph does not allow changes nothing."""
    for number, (kind, *values) in enumerate(steps, start=1):
        at = minutes(number)
        try:
            if kind in ("node", "placeholder"):
                key = values[0]
                before = (await store.nodes(graph_id, [key])).get(key)
                if kind == "placeholder":
                    await store.apply(graph_id, batch(placeholder(key), at=at))
                    continue
                made = node(
                    key,
                    values[1],
                    data=values[2],
                    search_text=f"{key} text" if number % 2 else None,
                    assets=("file_1", "é") if number % 3 else (),
                    updated_at=at,
                )
                put = create(made, vectors(passage(1.5, -0.0), passage(number)))
                if before is not None:
                    changes = {name: getattr(made, name) for name in ("description", "data", "search_text")}
                    put = update(before, enrichment_status=made.enrichment_status, **changes)
                await store.apply(graph_id, batch(put, at=at))
                await store.touch(graph_id, "session ☕", [key], at)
            elif kind == "edge":
                source, target, text, data = values
                told = None if number % 2 else text
                new = edge(
                    source, target, text.strip(), data=data, description=told, edge_id=f"edge_{number}"
                )
                await store.apply(graph_id, batch(new, at=at))
            elif kind == "hyperedge":
                keys, size, text, data = values
                new = hyperedge(
                    *keys[:size], relationship=text.strip(), data=data, hyperedge_id=f"hyper_{number}"
                )
                await store.apply(graph_id, batch(new, at=at))
            elif kind == "session":
                keys, size = values
                new = hyperedge(*keys[:size], relationship=f"chat_{number}", hyperedge_id=f"hyper_{number}")
                await store.apply(graph_id, batch(new, at=at))
            elif kind == "delete":
                before = (await store.nodes(graph_id, values)).get(values[0])
                if before is not None:
                    await store.apply(graph_id, batch(delete(before), at=at))
            elif kind == "diary":
                await store.add_event(graph_id, entry(values[0], at=at, meta={"é": [1.0]}))
            elif kind == "report":
                report = TokenReport(
                    event_id=f"event_{number}",
                    user_id="user_one",
                    session_id="s",
                    turn_sequence=values[0],
                    report={"n": 1},
                    recorded_at=at,
                )
                await store.record_tokens(graph_id, report)
            else:
                skill = CustomSkill(
                    skill_id=f"skill_{number}", name="a", version="1", content=values[0], published_at=at
                )
                await store.put_skill(graph_id, skill)
        except (StaleWrite, InvalidInput):
            continue


EVERYTHING: list[Any] = [
    ("node", "n_0", "Zero.", {"a": 1.0}),
    ("node", "Fact/é ü", f"x\n\n{LINKS}\n\n- [[y]]", {}),
    ("node", "n_1", "One.\r\n", {}),
    ("node", "n_0", "Zero again.\n", {"b": None}),
    ("placeholder", "UPPER"),
    ("placeholder", "upper"),
    ("edge", "n_0", "Fact/é ü", "knows\nwell", {"since": 2020}),
    ("edge", "upper", "UPPER", "is written like", {}),
    ("hyperedge", ["n_0", "n_1", "upper", "UPPER"], 4, "met", {"x": 1}),
    ("hyperedge", ["n_0", "n_1", "upper"], 3, "related", {}),
    ("session", ["n_0", "n_1"], 2),
    ("delete", "UPPER"),
    ("diary", "A line."),
    ("report", 1),
    ("skill", "Do it."),
]


@settings(max_examples=25, deadline=None)
@example(steps=EVERYTHING)
@given(steps=STEPS)
def test_an_archive_is_the_same_graph_again(place: dict[str, str], steps: list[Any]) -> None:
    async def play_it() -> None:
        async with opened(place) as services:
            source, target = fresh_graph(), fresh_graph()
            await play(services.store, source, steps)
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "memory.hivemem"
                await write(services, source, path)
                await restore(services, target, path)
            assert rows(services, target) == rows(services, source)
            if steps is EVERYTHING:
                empty = [name for name, found in rows(services, target).items() if not found]
                assert empty == ["files"]

    asyncio.run(play_it())


async def write(services: OpenServices, graph_id: str, path: Path, **options: Any) -> dict[str, int]:
    endings = {".hivemem": "archive", ".json": "json", ".graphml": "graphml", "": "markdown"}
    format = ExportFormat(endings[path.suffix])
    return await services.file_export.write(graph_id, path, format, report=lambda *_: None, **options)


async def restore(services: OpenServices, graph_id: str, path: Path) -> int:
    with closing(ArchiveReader.open(path)) as archive:
        return await services.importing.restore(principal(graph_id), archive, lambda done: None)


async def merge(
    services: OpenServices, graph_id: str, source: ImportSource, **options: Any
) -> dict[str, Any]:
    problems: list[str] = []

    def fail(where: str, error: HivememError) -> None:
        problems.append(f"{where}: {error.message}")

    counts = await services.importing.merge(
        principal(graph_id), source, fail=fail, on_done=lambda done: None, **options
    )
    return {**counts, "problems": problems}


def said(services: OpenServices, graph_id: str) -> dict[str, list[Any]]:
    """What a graph says, without ids, times and versions."""
    with closing(open_source(database_of(services.settings))) as source:
        records = GraphRecords(source, graph_id)
        fields = ("key", "node_type", "description", "data", "assets", "search_text")
        nodes = [[one[name] for name in fields] for one in records.nodes() if one["key"] != "user_profile"]
        ends = ("from_key", "to_key", "relationship", "description", "data")
        for one in (edges := list(records.edges())):
            one["data"].pop(ADDED, None)
        edges = [[one[name] for name in ends] for one in edges]
        hyperedges: dict[str, Any] = {}
        for one in records.hyperedges():
            keys = sorted(part["node_key"] for part in one["participants"])
            one["data"].pop(ADDED, None)
            # Two can have become the same by losing participants; the first one is imported.
            hyperedges.setdefault(repr([one["relationship"], keys]), [one["description"], one["data"]])
    return {"nodes": nodes, "edges": sorted(edges, key=repr), "hyperedges": sorted(hyperedges.items())}


@settings(max_examples=20, deadline=None)
@example(steps=EVERYTHING, way="m.json")
@example(steps=EVERYTHING, way="notes")
@example(steps=EVERYTHING, way="m.hivemem")
@given(steps=STEPS, way=st.sampled_from(["m.json", "notes", "m.hivemem"]))
def test_documents_notes_and_merged_archives_keep_what_a_graph_says(
    place: dict[str, str], steps: list[Any], way: str
) -> None:
    async def play_it() -> None:
        async with opened(place) as services:
            source, target = fresh_graph(), fresh_graph()
            await play(services.store, source, steps)
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / way
                await write(services, source, path)
                format = recognise(path)
                if format is Format.ARCHIVE:
                    with closing(ArchiveReader.open(path)) as archive:
                        records = RecordsSource(GraphRecords(archive, source))
                        told = await merge(services, target, records, trusted=True)
                else:
                    told = await merge(services, target, source_of(path, format), trusted=True)
            assert told["problems"] == []
            assert said(services, target) == said(services, source)

    asyncio.run(play_it())


async def sample(services: OpenServices) -> str:
    graph_id = fresh_graph()
    things = [
        create(node("n_1", "One.\x0b"), vectors(passage(1.0))),
        node("n_2", "Two.", data={"a": [1]}),
        node("n_3", "Three."),
    ]
    joined = [edge("n_1", "n_2", "knows\r\nwell"), hyperedge("n_3", "n_1", "n_2")]
    await services.store.apply(graph_id, batch(*things, *joined))
    return graph_id


async def test_an_archive_goes_into_an_empty_graph_only(place: dict[str, str], tmp_path: Path) -> None:
    async with opened(place) as services:
        source = await sample(services)
        await write(services, source, tmp_path / "m.hivemem")
        with pytest.raises(Conflict, match="not empty"):
            await restore(services, source, tmp_path / "m.hivemem")
        own = (await services.access.local_principal()).graph_id
        before = rows(services, own)
        assert [row[0] for row in before["nodes"]] == ["user_profile"]
        assert await restore(services, own, tmp_path / "m.hivemem") > 10
        assert rows(services, own) == rows(services, source)
        with pytest.raises(Conflict, match="not empty"):
            await restore(services, own, tmp_path / "m.hivemem")
        # A server that knew the graph before sees all of it.
        assert (await services.store.changes(own, 0, model_id="")).revision == 1


async def test_bytes_of_files_come_along(place: dict[str, str], tmp_path: Path) -> None:
    async with opened(place) as services:
        source, target = await sample(services), fresh_graph()
        uploaded = await services.files.upload(
            principal(source), "a.txt", base64.b64encode(b"Harbour. " * 99_999).decode(), node_key="n_1"
        )
        counts = await write(services, source, tmp_path / "m.hivemem")
        assert counts["files"] == 1
        await restore(services, target, tmp_path / "m.hivemem")
        assert rows(services, target) == rows(services, source)
        sha256 = rows(services, target)["files"][0][6]
        found = services.importing._files_of(target).read(sha256)
        assert b"".join([piece async for piece in found]) == b"Harbour. " * 99_999
        assert uploaded


async def test_without_vectors_nodes_wait_for_new_ones(place: dict[str, str], tmp_path: Path) -> None:
    async with opened(place) as services:
        source, target = await sample(services), fresh_graph()
        await write(services, source, tmp_path / "m.hivemem", vectors=False)
        await restore(services, target, tmp_path / "m.hivemem")
        assert rows(services, target)["node_vectors"] == []
        waiting = await services.store.without_vectors(target, "test-model")
        assert [one.key for one in waiting] == ["n_1", "n_2", "n_3"]


def changed(path: Path, name: str, change: Any) -> Path:
    """A copy of an archive in which one part is another."""
    copy = path.with_name("changed.hivemem")
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(copy, "w") as new:
        for entry_name in old.namelist():
            content = old.read(entry_name)
            new.writestr(entry_name, change(content) if entry_name == name else content)
    return copy


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("tables/nodes.jsonl", lambda text: text.replace(b"Two.", b"Too.")),
        ("tables/nodes.jsonl", lambda text: text[: text.rindex(b"[")]),
        ("tables/nodes.jsonl", lambda text: text.replace(b'"Two."', b"2")),
        ("tables/nodes.jsonl", lambda text: b"{}\n"),
        ("tables/edges.jsonl", lambda text: b"[\n"),
        ("manifest.json", lambda text: b"[]"),
        ("manifest.json", lambda text: b"{"),
    ],
    ids=["text", "row", "kind", "object", "json", "manifest", "no manifest"],
)
async def test_a_changed_archive_writes_nothing(
    place: dict[str, str], tmp_path: Path, name: str, change: Any
) -> None:
    async with opened(place) as services:
        await write(services, await sample(services), tmp_path / "m.hivemem")
        target = fresh_graph()
        with pytest.raises(Corruption, match=r"not those that were exported|damaged"):
            await restore(services, target, changed(tmp_path / "m.hivemem", name, change))
        assert all(not found for found in rows(services, target).values())


async def test_every_flipped_bit_of_an_archive_is_noticed_or_harmless(
    place: dict[str, str], tmp_path: Path
) -> None:
    async with opened(place) as services:
        source = await sample(services)
        await services.files.upload(principal(source), "a.txt", base64.b64encode(b"Tea.").decode())
        await write(services, source, tmp_path / "m.hivemem")
    whole = (tmp_path / "m.hivemem").read_bytes()
    expected = contents(tmp_path / "m.hivemem")
    flipped = tmp_path / "flipped.hivemem"
    # The end of a zip file is its table of contents, which no SHA-256 covers.
    for position in range(whole.index(b"PK\x01\x02"), len(whole)):
        flipped.write_bytes(whole[:position] + bytes([whole[position] ^ 4]) + whole[position + 1 :])
        with suppress(Corruption, InvalidInput):
            assert contents(flipped) == expected, position


def contents(path: Path) -> tuple[Any, ...]:
    with closing(ArchiveReader.open(path)) as archive:
        tables = [list(archive.rows_of(table, "graph_any")) for table in GRAPH_TABLES]
        files = {name: b"".join(archive.file(name)) for name in archive.file_hashes()}
        if any(hashlib.sha256(content).hexdigest() != name for name, content in files.items()):
            raise Corruption("an import compares these")
        return tables, files


async def test_an_archive_whose_rows_contradict_each_other_is_refused(
    place: dict[str, str], tmp_path: Path
) -> None:
    async with opened(place) as services:
        source, target = await sample(services), fresh_graph()
        await write(services, source, tmp_path / "m.hivemem")

        def without_nodes(manifest: bytes) -> bytes:
            told = json.loads(manifest)
            told["tables"] = [one for one in told["tables"] if one["name"] != "nodes"]
            return json.dumps(told).encode()

        with pytest.raises(InvalidInput, match="cannot be stored"):
            await restore(services, target, changed(tmp_path / "m.hivemem", "manifest.json", without_nodes))
        assert all(not found for found in rows(services, target).values())


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("format_version", 2, "newer"),
        ("format", "other", "not an archive"),
        ("tables", [{"name": "dreams", "columns": ["a"], "rows": 1, "sha256": ""}], "newer"),
        ("tables", [{"name": "nodes", "columns": ["key"], "rows": 1, "sha256": ""}], "bring that database"),
    ],
)
async def test_archives_of_other_versions_say_so(
    place: dict[str, str], tmp_path: Path, field: str, value: Any, message: str
) -> None:
    async with opened(place) as services:
        await write(services, await sample(services), tmp_path / "m.hivemem")
        other = changed(
            tmp_path / "m.hivemem",
            "manifest.json",
            lambda text: json.dumps({**json.loads(text), field: value}),
        )
        with pytest.raises(InvalidInput, match=message):
            ArchiveReader.open(other)


async def test_graphml_opens_in_networkx(place: dict[str, str], tmp_path: Path) -> None:
    async with opened(place) as services:
        await write(services, await sample(services), tmp_path / "m.graphml")
    graph = networkx.read_graphml(tmp_path / "m.graphml")
    hyper = [name for name, fields in graph.nodes(data=True) if fields["kind"] == "hyperedge"]
    assert set(graph.nodes) - set(hyper) == {"n_1", "n_2", "n_3"}
    assert graph.nodes["n_1"]["description"] == "One.\ufffd"
    assert json.loads(graph.nodes["n_2"]["data"]) == {"a": [1]}
    assert [fields["relationship"] for _, _, fields in graph.edges("n_1", data=True)] == ["knows\r\nwell"]
    assert list(graph.successors(hyper[0])) == ["n_3", "n_1", "n_2"]
    assert graph.nodes[hyper[0]]["label"] == "were decided together"


async def test_notes_link_to_each_other(place: dict[str, str], tmp_path: Path) -> None:
    async with opened(place) as services:
        await write(services, await sample(services), tmp_path / "notes")
    notes = {path.name: path.read_text() for path in (tmp_path / "notes" / "notes").iterdir()}
    assert set(notes) == {"n_1.md", "n_2.md", "n_3.md"}
    assert notes["n_1.md"].startswith('---\nkey: "n_1"\nnode_type: "fact"\n')
    assert "- knows well [[n_2]]\n" in notes["n_1.md"]
    assert "- [[n_1]] knows well this\n" in notes["n_2.md"]
    [joined] = (tmp_path / "notes" / "hyperedges").iterdir()
    assert "[[n_3]]" in joined.read_text()


async def test_what_is_there_is_never_written_over(place: dict[str, str], tmp_path: Path) -> None:
    async with opened(place) as services:
        source = await sample(services)
        for name in ("m.hivemem", "m.json", "m.graphml", "notes"):
            await write(services, source, tmp_path / name)
            with pytest.raises(Conflict, match="there already"):
                await write(services, source, tmp_path / name)
        with pytest.raises(HivememError, match="cannot be written"):
            await write(services, source, tmp_path / "nowhere" / "m.json")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m.graphml", "m.hivemem", "m.json", "notes"]
    assert stat.S_IMODE((tmp_path / "m.hivemem").stat().st_mode) == 0o600


def test_notes_have_names_of_their_own() -> None:
    names = [note_name(key) for key in ("a", "A", "é", "É", "a/b", "a%2fb", ".a", "", "x" * 256, "x" * 255)]
    assert len({name.lower() for name in names}) == len(names)
    assert all(len(name) < 150 and "/" not in name and not name.startswith(".") for name in names)
    assert names[0] == "a"
