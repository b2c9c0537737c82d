"""Changing a node: only what is sent changes, and nothing is lost."""

from __future__ import annotations

from typing import Any

import pytest

from hivemem.domain.graph import Kind
from hivemem.errors import Forbidden, InvalidInput, LimitExceeded, NotFound
from hivemem.service.limits import Limits
from hivemem.service.remember import UpdateRequest
from tests.service.conftest import GRAPH, OWNER, READER, World


async def test_only_the_given_fields_change(world: World) -> None:
    await world.put("fact_a", data={"a": 1, "b": 2}, search_text="ferry boat", assets=("file_1",))
    result = await world.remember.update(OWNER, UpdateRequest(key="fact_a", data={"c": 3}))
    assert result.status == "updated"
    node = await world.node("fact_a")
    assert node.data == {"c": 3}, "data is replaced as a whole"
    assert node.description == "The ferry leaves at nine."
    assert (node.search_text, node.assets, node.write_version) == ("ferry boat", ("file_1",), 2)
    await world.remember.update(OWNER, UpdateRequest(key=" fact_a ", node_type="tool", assets=()))
    node = await world.node("fact_a")
    assert (node.node_type, node.assets, node.data) == ("technology", (), {"c": 3})


async def test_a_text_that_stays_is_not_embedded_again(world: World) -> None:
    await world.put("fact_a")
    world.embedder.embedded.clear()
    await world.remember.update(OWNER, UpdateRequest(key="fact_a", data={"c": 3}))
    assert world.embedder.embedded == []
    await world.remember.update(OWNER, UpdateRequest(key="fact_a", description="It leaves at ten."))
    assert world.embedder.embedded == ["It leaves at ten."]
    assert await world.passages("fact_a") == ["description"]


async def test_a_placeholder_gets_its_description_by_update(world: World) -> None:
    await world.put("fact_a", "One.", {"to_key": "person_ann", "relationship": "was told by"})
    with pytest.raises(InvalidInput, match=r"'person_ann' is a placeholder.*send a description"):
        await world.remember.update(OWNER, UpdateRequest(key="person_ann", data={"age": 40}))
    await world.remember.update(OWNER, UpdateRequest(key="person_ann", description="Ann keeps bees."))
    node = await world.node("person_ann")
    assert (node.placeholder, node.node_type, node.write_version) == (False, "person", 2)


async def test_the_versions_and_the_diary_tell_of_it(world: World) -> None:
    await world.put("fact_a")
    await world.remember.update(OWNER, UpdateRequest(key="fact_a", description="It leaves at ten."))
    versions = await world.store.versions(GRAPH, Kind.NODE, "fact_a")
    assert [getattr(version.state, "description", None) for version in versions] == [
        "It leaves at ten.",
        "The ferry leaves at nine.",
    ]
    [newest, *_] = await world.store.timeline(GRAPH)
    assert newest.entry.tool == "hm_update"
    assert newest.entry.summary == "Updated fact_a: It leaves at ten."


@pytest.mark.parametrize(
    ("fields", "error", "said"),
    [
        ({"key": "fact_none", "description": "x"}, NotFound, "'fact_none' does not exist"),
        ({"key": "fact_a"}, InvalidInput, "/description is missing"),
        ({"key": "fact_a", "description": "  "}, InvalidInput, "/description is blank"),
        ({"key": "", "description": "x"}, InvalidInput, "/key"),
        ({"key": "fact_a", "description": "x" * 3_000_000}, LimitExceeded, "/description"),
    ],
)
async def test_a_bad_update_says_what_is_wrong(
    world: World, fields: dict[str, Any], error: type[Exception], said: str
) -> None:
    await world.put("fact_a")
    before = await world.node("fact_a")
    with pytest.raises(error, match=said):
        await world.remember.update(OWNER, UpdateRequest(**fields))
    assert await world.node("fact_a") == before
    assert Limits().max_description_characters < 3_000_000


async def test_a_reader_may_not(world: World) -> None:
    await world.put("fact_a")
    with pytest.raises(Forbidden):
        await world.remember.update(READER, UpdateRequest(key="fact_a", description="x"))
