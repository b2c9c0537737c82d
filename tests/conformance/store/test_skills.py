"""Skills that were published for the agents of a graph."""

from __future__ import annotations

from typing import Any

from hivemem.domain.skills import CustomSkill, SkillFile
from hivemem.ports.store import Store
from tests.support.builders import minutes

GRAPH, OTHER_GRAPH = "graph_one", "graph_two"


def skill(name: str = "tidy-up", **changes: Any) -> CustomSkill:
    fields: dict[str, Any] = {
        "skill_id": f"skill_{name}",
        "name": name,
        "version": "0.1.0",
        "content": f"# {name}\n\nDo it. ☕",
        "files": (SkillFile(path="notes/how.md", content="é\r\n", content_type="text/markdown"),),
        "published_at": minutes(1),
    }
    return CustomSkill(**{**fields, **changes})


async def test_skills_are_listed_by_name_within_their_graph(store: Store) -> None:
    assert await store.skills(GRAPH) == []
    for name in ("b", "a", "Z"):
        assert await store.put_skill(GRAPH, skill(name)) == skill(name)
    await store.put_skill(OTHER_GRAPH, skill("c", files=()))
    assert await store.skills(GRAPH) == [skill("Z"), skill("a"), skill("b")]
    assert await store.skills(OTHER_GRAPH) == [skill("c", files=())]


async def test_a_name_keeps_its_id(store: Store) -> None:
    await store.put_skill(GRAPH, skill())
    new = skill(skill_id="skill_new", version="0.2.0", content="Other.", files=(), published_at=minutes(2))
    kept = skill(version="0.2.0", content="Other.", files=(), published_at=minutes(2))
    assert await store.put_skill(GRAPH, new) == kept
    assert await store.skills(GRAPH) == [kept]


async def test_a_skill_can_be_removed(store: Store) -> None:
    await store.put_skill(GRAPH, skill())
    assert await store.remove_skill(OTHER_GRAPH, "tidy-up") is False
    assert await store.remove_skill(GRAPH, "tidy-up") is True
    assert await store.remove_skill(GRAPH, "tidy-up") is False
    assert await store.skills(GRAPH) == []
