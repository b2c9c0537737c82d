"""Records of uploaded files."""

from __future__ import annotations

from typing import Any

import pytest

from hivemem.domain.files import StoredFile
from hivemem.errors import Conflict
from hivemem.ports.store import Store
from tests.conformance.store.observe import GRAPH, OTHER_GRAPH
from tests.support.builders import batch, delete, minutes, node


def stored(file_id: str, **changes: Any) -> StoredFile:
    fields: dict[str, Any] = {
        "file_id": file_id,
        "filename": f"{file_id}.txt",
        "file_type": "document",
        "content_type": "text/plain",
        "size_bytes": 3,
        "sha256": "0" * 64,
        "node_key": "a_1",
        "summary": "A café.",
        "created_at": minutes(1),
    }
    return StoredFile(**{**fields, **changes})


@pytest.fixture
async def graph(store: Store) -> Store:
    await store.apply(GRAPH, batch(node("a_1"), node("b_1")))
    return store


async def ids(store: Store, **filters: Any) -> list[str]:
    return [file.file_id for file in await store.files(GRAPH, **filters)]


async def test_files_are_kept_and_listed_newest_first(graph: Store) -> None:
    first, second = stored("f_1"), stored("f_2", filename="Übersicht 2026.PNG", file_type="image")
    third = stored("f_3", created_at=minutes(5), size_bytes=2**40)
    for file in (first, second, third):
        await graph.add_file(GRAPH, file)
    assert await graph.files(GRAPH) == [third, second, first]
    assert await graph.file(GRAPH, "f_2") == second
    assert await graph.file(GRAPH, "f_9") is None
    assert await ids(graph, file_type="image") == ["f_2"]
    assert await ids(graph, search="SICHT 2026.p") == ["f_2"]
    assert await ids(graph, search="übersicht") == [], "only ASCII letters are folded, alike everywhere"
    assert await ids(graph, search="%") == await ids(graph, search="f_1.t_t") == []
    assert await ids(graph, limit=2) == ["f_3", "f_2"]
    assert await graph.files(OTHER_GRAPH) == []
    assert await graph.file(OTHER_GRAPH, "f_1") is None


async def test_an_id_is_taken_once_in_a_graph(graph: Store) -> None:
    await graph.add_file(GRAPH, stored("f_1"))
    with pytest.raises(Conflict, match="'f_1' is taken"):
        await graph.add_file(GRAPH, stored("f_1", filename="other.txt"))
    assert await graph.file(GRAPH, "f_1") == stored("f_1")
    await graph.add_file(OTHER_GRAPH, stored("f_1"))


async def test_a_file_is_hidden_while_its_node_is_forgotten(graph: Store) -> None:
    await graph.add_file(GRAPH, stored("f_1"))
    await graph.add_file(GRAPH, stored("f_2", node_key="b_1", created_at=minutes(9)))
    await graph.apply(GRAPH, batch(delete(node("a_1")), delete(node("b_1"))))
    assert await ids(graph) == []
    assert await graph.file(GRAPH, "f_1") is None
    await graph.apply(GRAPH, batch(node("a_1")))
    assert await ids(graph) == ["f_1"]
    assert await graph.drop_forgotten_files(GRAPH, minutes(9)) == 0
    assert await graph.drop_forgotten_files(GRAPH, minutes(10)) == 1
    await graph.apply(GRAPH, batch(node("b_1")))
    assert await ids(graph) == ["f_1"]


async def test_used_blobs_are_those_of_the_graph(graph: Store) -> None:
    await graph.add_file(GRAPH, stored("f_1", sha256="a" * 64))
    await graph.add_file(GRAPH, stored("f_2", sha256="b" * 64, node_key="gone_1"))
    await graph.add_file(OTHER_GRAPH, stored("f_1", sha256="c" * 64))
    assert await graph.used_blobs(GRAPH, [letter * 64 for letter in "abcd"]) == {"a" * 64, "b" * 64}
    assert await graph.used_blobs(GRAPH, []) == set()
