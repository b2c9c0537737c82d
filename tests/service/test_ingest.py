"""A text as memories in a graph."""

from __future__ import annotations

import pytest

from hivemem.errors import Forbidden, InvalidInput, LimitExceeded
from hivemem.service.ingest import Ingest
from hivemem.service.limits import Limits
from tests.service.conftest import GRAPH, OWNER, READER, World

TEXT = """# Gateway
Yesterday Alice Stone told us that the gateway signs requests.

- The keys rotate on 2026-03-03.
- Ask ops@acme.example about it.
"""


@pytest.fixture
def ingest(world: World) -> Ingest:
    return Ingest(store=world.store, remember=world.remember, limits=Limits())


async def test_statements_become_facts_related_to_what_they_name(world: World, ingest: Ingest) -> None:
    result = await ingest.ingest(OWNER, TEXT, context="minutes of the gateway team")
    facts = [key for key in result.created_keys if key.startswith("fact_")]
    assert len(facts) == 3
    assert {"person_alice_stone", "event_2026_03_03", "person_ops"} <= set(result.created_keys)
    first = await world.node(facts[0])
    assert first.description == "Yesterday Alice Stone told us that the gateway signs requests."
    assert first.data == {"context": "minutes of the gateway team", "heading": "Gateway"}
    related = await world.store.relationships(GRAPH, facts, edge_limit=10, hyperedge_limit=10)
    labels = {(edge.from_key, edge.to_key): edge.relationship for edge in related[facts[1]].edges}
    assert labels == {
        (facts[1], "event_2026_03_03"): "is dated 2026-03-03",
        (facts[1], facts[2]): "continues in the next one",
    }
    assert result.edges_created == (await world.store.counts(GRAPH)).edges
    tools = {event.entry.tool for event in await world.store.timeline(GRAPH)}
    assert tools == {"hm_ingest"}


async def test_the_same_text_again_changes_nothing(world: World, ingest: Ingest) -> None:
    first = await ingest.ingest(OWNER, TEXT)
    counts = await world.store.counts(GRAPH)
    again = await ingest.ingest(OWNER, TEXT)
    assert (again.created_keys, again.edges_created) == ((), 0)
    assert again.nodes_kept == len(first.created_keys)
    assert await world.store.counts(GRAPH) == counts


async def test_a_known_person_is_not_made_twice(world: World, ingest: Ingest) -> None:
    await world.put("user_alice_stone", "Alice keeps the keys.")
    result = await ingest.ingest(OWNER, TEXT)
    assert "person_alice_stone" not in result.created_keys
    related = await world.store.relationships(GRAPH, ["user_alice_stone"], edge_limit=10, hyperedge_limit=10)
    assert [edge.relationship for edge in related["user_alice_stone"].edges] == ["mentions Alice Stone"]
    assert (await world.node("user_alice_stone")).description == "Alice keeps the keys."


async def test_a_bad_text_says_what_is_wrong(ingest: Ingest) -> None:
    for text in ("", " \n\n ", "# \n"):
        with pytest.raises(InvalidInput, match="/text is blank"):
            await ingest.ingest(OWNER, text)
    with pytest.raises(LimitExceeded, match="/text has 100001 characters"):
        await ingest.ingest(OWNER, "x" * 100_001)
    with pytest.raises(InvalidInput, match="/text"):
        await ingest.ingest(OWNER, "a\x00b")
    with pytest.raises(Forbidden):
        await ingest.ingest(READER, TEXT)
